#!/usr/bin/env bash
# The paper's Atari study without Ray, one Slurm task for each of its 72 runs:   sbatch slurm-array.sh [OUT]
# OUT must be on storage that all nodes share. A task saves its run before its time is up, and queues itself again.
#SBATCH --job-name=bootdqn
#SBATCH --array=0-71
#SBATCH --cpus-per-task=2
#SBATCH --gpus-per-task=1
#SBATCH --ntasks=1
#SBATCH --mem=16G
#SBATCH --time=2-00:00:00
#SBATCH --signal=TERM@600
#SBATCH --requeue
#SBATCH --open-mode=append
set -euo pipefail

out=${1:-$PWD/runs/paper-atari}
games=(Gravitar Solaris PrivateEye Venture Alien Hero)
strategies=(greedy ucb gain evoi)

task=$SLURM_ARRAY_TASK_ID
strategy=${strategies[task % 4]}
game=${games[task / 4 % 6]}
seed=$((task / 24))

code=0
srun bootdqn sweep paper-atari --out "$out" --workers 1 device=cuda "seed=$seed" "game=$game" "strategy=$strategy" ||
    code=$?
if [ "$code" -eq 143 ]; then
    scontrol requeue "${SLURM_ARRAY_JOB_ID}_$task"
fi
exit "$code"
