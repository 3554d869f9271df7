#!/usr/bin/env bash
# The paper's Atari study on a Ray cluster inside of one Slurm job:   sbatch slurm-ray.sh [SWEEP] [OUT]
# OUT must be on storage that all nodes share. The job saves its runs before its time is up, and queues itself again.
#SBATCH --job-name=bootdqn
#SBATCH --nodes=8
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=32
#SBATCH --gpus-per-node=4
#SBATCH --mem=256G
#SBATCH --time=2-00:00:00
#SBATCH --signal=B:TERM@600
#SBATCH --no-kill
#SBATCH --requeue
#SBATCH --open-mode=append
set -euo pipefail

sweep=${1:-paper-atari}
out=${2:-$PWD/runs/$sweep}
port=6379

read -r head < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
read -r address _ < <(srun --nodes=1 --ntasks=1 --overlap --nodelist="$head" hostname --ip-address)

start_ray() { # start_ray NODES [srun options] -- ray start options
    local nodes=$1 options=()
    shift
    while [ "$1" != -- ]; do options+=("$1") && shift; done
    shift
    srun --nodes="$nodes" --ntasks="$nodes" --overlap "${options[@]}" ray start --block --disable-usage-stats \
        --num-cpus="$SLURM_CPUS_PER_TASK" --num-gpus="${SLURM_GPUS_ON_NODE:-0}" "$@" &
}

start_ray 1 --nodelist="$head" -- --head --node-ip-address="$address" --port="$port" --include-dashboard=false
until (exec 3<>"/dev/tcp/$address/$port") 2>/dev/null; do sleep 1; done
if [ "$SLURM_JOB_NUM_NODES" -gt 1 ]; then # the sweep uses each node from when it joins
    start_ray $((SLURM_JOB_NUM_NODES - 1)) --exclude="$head" -- --address="$address:$port"
fi

bootdqn sweep "$sweep" --out "$out" --ray "$address:$port" --gpus-per-run 1 device=cuda &
process=$!
trap 'kill -TERM "$process"' TERM # a checkpoint of every run, then exit code 143
code=143
while kill -0 "$process" 2>/dev/null; do # a signal interrupts wait
    code=0
    wait "$process" || code=$?
done
if [ "$code" -eq 143 ]; then
    scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"
