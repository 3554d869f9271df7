"""Command lines that cannot be meant: each is answered in a line or two that says what to write instead."""

import json
import shlex

import pytest

from bootdqn.cli import run_command_line

MALFORMED = {
    # Commands
    "Train": "did you mean 'train'?",
    "resum here": "did you mean 'resume'?",
    "evalute here": "did you mean 'evaluate'?",
    "dmeo": "did you mean 'demo'?",
    "--size 3": "choose from train, resume, evaluate, ",
    "train Atari": "did you mean 'atari'?",
    "train gmy": "did you mean 'gym'?",
    "train mujoco": "choose from deep-sea, atari, gym",
    "train --size 3": "choose from deep-sea, atari, gym",
    # Flags that are not there
    "train deep-sea --num-head 3": "did you mean --num-heads?",
    "train deep-sea --restrat": "did you mean --restart",
    "train deep-sea --no-stop-when-solvd": "did you mean --stop-when-solved",
    "train deep-sea --game Pong": "see bootdqn train deep-sea --help",
    "train deep-sea --total-steps 100": "did you mean --max-episodes?; see",
    "resume here --max-episodes 100": "did you mean --budget?; see",
    "resume here --budget 0": "--budget must be at least 1, got 0",
    "train deep-sea --total_frames=100": "did you mean --max-episodes?; see",
    "train gym --total-frames 300": "did you mean --total-steps?; see",
    "train gym --max-episodes 300": "did you mean --total-steps?; see",
    "train atari --total-steps 300": "did you mean --total-frames?; see",
    "demo --total-steps 300": "did you mean --max-episodes?; see",
    "train atari --total-frame 9": "did you mean --total-frames?",
    "train gym --envid CartPole-v1": "did you mean --env-id?",
    "resume begun --checkpoint-every-minuts 1": "did you mean --checkpoint-every-minutes?",
    "resume begun --size 3": "see bootdqn resume --help",
    "evaluate begun --episods 3": "did you mean --episodes?",
    "demo --seeds 4": "did you mean --num-seeds?",
    "demo --size 3": "did you mean --sizes?",
    # Words too many, values too few
    "train deep-sea size 3": "Unrecognized options: size, 3; see bootdqn train deep-sea --help",
    "train deep-sea --quiet true": "Unrecognized options: true",
    "train deep-sea --num-heads": "--num-heads",
    "train deep-sea --size=": "--size must be a whole number, got ''",
    "train deep-sea --run-dir": "--run-dir",
    "train atari": "bootdqn train atari needs --game, as in --game Gravitar; see bootdqn train atari --help",
    "train atari --strategy gain": "needs --game",
    "train gym": "bootdqn train gym needs --env-id, as in --env-id CartPole-v1; see bootdqn train gym --help",
    "train atari --game Qbert Pong": "Unrecognized options: Pong",
    "train atari --game": "--game",
    "train gym --env-id": "--env-id",
    "resume": "Folder of the run. (required)",
    "resume begun elsewhere": "Unrecognized options: elsewhere",
    "evaluate --episodes 3": "Folder of a run, finished or under way. (required)",
    "evaluate begun --video": "--video",
    "demo --out": "--out",
    "demo now": "see bootdqn demo --help",
    # Values of another type
    "train deep-sea --size ten": "--size must be a whole number, got 'ten'; see bootdqn train deep-sea --help",
    "train deep-sea --size 1.5": "--size must be a whole number, got '1.5'",
    "train deep-sea --mask-probability half": "--mask-probability must be a number, got 'half'",
    "train deep-sea --hidden-sizes 50,50": "--hidden-sizes",
    "train deep-sea --eval-every-steps often": "--eval-every-steps must be None or a whole number, got 'often'",
    "train deep-sea --snapshot-every lgo": "--snapshot-every must be None or a whole number or log, got 'lgo'",
    "train atari --total-frames 1e6": "--total-frames must be a whole number, got '1e6'",
    "evaluate begun --episodes many": "--episodes must be None or a whole number, got 'many'",
    "evaluate begun --seed 1.5": "--seed must be a whole number, got '1.5'",
    "demo --num-seeds three": "--num-seeds must be a whole number, got 'three'",
    "demo --sizes 3,4": "--sizes",
    # Values out of range
    "train deep-sea --mapping-seed 7 --no-randomize-actions": "it needs --randomize-actions",
    "train deep-sea --size -3": "--size must be in 1..1000, got -3",
    "train deep-sea --num-heads 0": "--num-heads must be in 1..10000, got 0",
    "train deep-sea --batch-size 0": "--batch-size must be at least 1, got 0",
    "train deep-sea --mask-probability 2": "--mask-probability must be in (0, 1], got 2.0",
    "train deep-sea --discount -0.1": "--discount must be in [0, 1], got -0.1",
    "train deep-sea --learning-rate 0": "--learning-rate must be positive",
    "train deep-sea --seed 4294967296": "--seed must be in 0..4294967295",
    "train deep-sea --snapshot-every 0": "--snapshot-every must be at least 1 or log, got 0",
    "train deep-sea --checkpoint-every-minutes nan": "--checkpoint-every-minutes must be positive",
    "train deep-sea --checkpoint-every-steps 0": "--checkpoint-every-steps must be at least 1",
    "train deep-sea --warmup-steps -1": "--warmup-steps must not be negative",
    "train atari --sticky 1": "--sticky must be in [0, 1), got 1.0",
    "train atari --frame-skip 0": "--frame-skip must be at least 1",
    "train atari --max-episode-frames 10": "--max-episode-frames must be at least 34",
    "train atari --replay-capacity 3": "--replay-capacity must be at least 5",
    "train gym --total-steps 0": "--total-steps must be at least 1",
    "train gym --target-every None": "--target-every needs a number of steps",
    "resume begun --checkpoint-every-steps 0": "--checkpoint-every-steps must be at least 1",
    "evaluate begun --max-steps 0": "max_steps must be at least 1",
    "demo --max-episodes 0": "--max-episodes must be at least 1",
    # One of a few
    "train deep-sea --ensemble sharde": "'auto', 'independent', 'shared'",
    "train deep-sea --engine gpu": "'auto', 'fused', 'autograd'",
    "train deep-sea --precision fp16": "'fp32', 'bf16'",
    "train deep-sea --vote majority": "'plurality', 'mean'",
    "train deep-sea --before-learning random": "'strategy', 'uniform'",
    "train deep-sea --device cuda:x": "--device must be cpu, cuda or cuda:INDEX",
    "train deep-sea --strategy ''": "known: greedy, ucb, gain, evoi, ids",
    "train deep-sea --strategy evoi:reduce": "as evoi:parameter=value",
    "train deep-sea --strategy ucb:scale=much": "scale must be a number, got 'much'",
    "train atari --game ''": "for example Gravitar or PrivateEye",
    "train gym --env-id CartPole-v9": "did you mean 'CartPole-v1'?",
    "train gym --env-id 'not a name'": "[namespace/](env-name)-v(version)",
    "train gym --env-id MountainCarContinuous-v0": "Q-learning needs actions 0, 1, ..., n-1",
    "train gym --env-id Blackjack-v1": "observations must be Box or Discrete",
    "train gym --env-id CartPole-v1 --engine fused": "use --engine auto",
    "evaluate begun --vote bordo": "'plurality'",
    "evaluate begun --video play": "--video must be an .mp4 or a .gif file",
    # Experiments
    "sweep paper-depsea": "did you mean 'paper-deepsea'?",
    "sweep paper-deepsea size": "'size' is not of the form key=value",
    "sweep paper-deepsea strategy=[greedy,gain]": 'write words as in \'strategy=["greedy", "gain"]\'',
    # Folders and files that are something else, or not there
    "train deep-sea --run-dir file": "choose another folder",
    "train deep-sea --run-dir photos": "choose another folder",
    "train deep-sea --run-dir begun --seed 7": "choose another folder",
    "resume nowhere": "it has no config.json",
    "resume file": "it has no config.json",
    "resume photos": "it has no config.json",
    "resume broken": "broken/config.json: ",
    "evaluate file": "it has no config.json",
    "evaluate photos": "it has no config.json",
    "evaluate begun": "weights.safetensors is missing: a run saves its weights with each checkpoint",
    "demo --out file": "--out file is a file; choose a folder",
    "sweep paper-deepsea-smoke --out file": "--out file is a file; choose a folder",
    "sweep paper-deepsea-smoke --out file --dry-run": "--out file is a file; choose a folder",
    "sweep paper-deepsea-smoke --gpus-per-run 0.5": "--gpus-per-run is for --ray",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("a letter")
    for name in ("begun", "broken", "photos"):
        (tmp_path / name).mkdir()
    (tmp_path / "begun/config.json").write_text(json.dumps({"environment": "deep-sea", "size": 3}))
    (tmp_path / "broken/config.json").write_text('{"environment": "deep-s')
    (tmp_path / "photos/beach.png").write_bytes(b"sand")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def contents(folder):
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.mark.parametrize(("line", "hint"), MALFORMED.items(), ids=MALFORMED)
def test_what_cannot_be_meant_is_answered_with_what_to_write_instead(folder, capsys, line, hint):
    before = contents(folder)
    assert run_command_line(shlex.split(line)) == 2
    answer = capsys.readouterr().err
    assert answer.startswith("bootdqn: ")
    assert hint in answer
    assert "Traceback" not in answer
    assert len(answer.splitlines()) <= 2
    assert contents(folder) == before
