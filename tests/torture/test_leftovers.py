"""A run killed between its summary and its tidying up is tidied up by the next command."""

import contextlib
import os
import shutil
import signal

import pytest

from bootdqn import load_run
from bootdqn.cli.main import run_command_line
from bootdqn.runs.directory import RunDirectory
from bootdqn.runs.lock import locked
from torture.legs import end_leg, replaced, results, start_leg, train_unbroken

SETTINGS = {"environment": "deep-sea", "update_every": 1, "size": 3, "max_episodes": 20, "stop_when_solved": False,
            "num_heads": 2, "hidden_sizes": [4], "snapshot_every": 20}  # fmt: skip
FILES = {"config.json", "metrics.jsonl", "provenance.json", "snapshots", "summary.json", "timing.jsonl",
         "weights.safetensors"}  # fmt: skip


@contextlib.contextmanager
def killed_while_tidying_up():
    """Kill the process where it would remove the checkpoints of its finished run."""
    from bootdqn.runs.checkpoint import Checkpoints

    def kill(checkpoints):
        if checkpoints.exist():  # not at the beginning, where there is nothing to remove
            os.kill(os.getpid(), signal.SIGKILL)

    with replaced(Checkpoints, "remove", kill), replaced(Checkpoints, "keep_last", kill):
        yield


@pytest.fixture(scope="module", params=[False, True], ids=["removed", "kept"])
def killed(request, tmp_path_factory):
    """A run, and whether its last checkpoint was to be kept; what was half-written lies there, too."""
    path = tmp_path_factory.mktemp("leftovers") / "seed-0"
    saving = {"checkpoint_every_steps": 15, "keep_checkpoint": request.param}
    leg, directory = end_leg(start_leg(SETTINGS, path, killed_while_tidying_up, saving=saving)), RunDirectory(path)
    assert (leg.exit_code, leg.error, leg.warned) == (None, None, []), "it was killed, and nothing else"
    assert leg.info, "it got as far as that"
    assert directory.read_summary()["status"] == "finished"
    assert {entry.name for entry in path.iterdir()} == FILES | {"checkpoints", "lock.json"}
    assert len(list(directory.checkpoints.glob("step-*"))) == 2
    for name in (".summary.json.0123abcd.part", ".weights.safetensors.part", f".now.{'0' * 32}.part"):
        (path / name).write_text("half")
    (directory.snapshots / ".step-000000000060.safetensors.part").write_text("half")
    (directory.checkpoints / f".{'0' * 32}.part").mkdir()
    return path, request.param


@pytest.fixture
def copy(killed, tmp_path):
    path, kept = killed
    shutil.copytree(path, tmp_path / "runs/seed-0")
    return RunDirectory(tmp_path / "runs/seed-0"), kept


def sweep(directory):
    lines = [
        f"{name} = {str(value).lower() if isinstance(value, bool) else repr(value)}" for name, value in SETTINGS.items()
    ]
    file = directory.path.parents[1] / "mine.toml"
    file.write_text("\n".join(["[base]", *lines, "[axes]", "seed = [0]"]))
    return run_command_line(["sweep", str(file), "--out", str(directory.path.parent)])


COMMANDS = {
    "resume": lambda directory: run_command_line(["resume", str(directory.path)]),
    "evaluate": lambda directory: run_command_line(["evaluate", str(directory.path), "--episodes", "1"]),
    "inspect": lambda directory: run_command_line(
        ["inspect", str(directory.path), "--out", str(directory.path.parent / "p.html")]
    ),
    "load_run": lambda directory: 0 if load_run(directory.path) else 1,
    "sweep": sweep,
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_the_next_command_removes_what_is_left(copy, command):
    directory, kept = copy
    before = {name: digest for name, digest in results(directory.path).items() if not name.endswith(".part")}
    assert command(directory) == 0
    assert {entry.name for entry in directory.path.iterdir()} == FILES | ({"checkpoints"} if kept else set())
    assert not list(directory.path.rglob("*.part"))
    assert results(directory.path) == before
    if kept:
        assert [entry.name for entry in directory.checkpoints.glob("step-*")] == ["step-000000000060"]
        assert run_command_line(["resume", str(directory.path), "--budget", "30"]) == 0


def test_a_process_at_work_is_left_alone(copy):
    directory, _ = copy
    directory.lock.unlink()
    before = sorted(directory.path.rglob("*"))
    with locked(directory.lock):
        assert COMMANDS["evaluate"](directory) == 0
        assert sorted(entry for entry in directory.path.rglob("*") if entry != directory.lock) == before


def test_checkpoints_stay_where_nobody_knows_whether_they_were_to_be_kept(copy):
    directory, _ = copy
    directory.provenance.unlink()
    before = sorted(directory.checkpoints.rglob("*"))
    assert COMMANDS["evaluate"](directory) == 0
    assert sorted(directory.checkpoints.rglob("*")) == before
    assert not directory.lock.exists()


def test_half_written_files_are_removed_when_a_killed_run_resumes(tmp_path):
    expected = train_unbroken(SETTINGS, tmp_path / "unbroken")
    killed = start_leg(SETTINGS, tmp_path / "run", killed_in_the_middle, saving={"checkpoint_every_steps": 15})
    assert end_leg(killed).exit_code is None
    for name in (".summary.json.0123abcd.part", ".weights.safetensors.part"):
        (tmp_path / "run" / name).write_text("half")
    assert run_command_line(["resume", str(tmp_path / "run"), "--quiet"]) == 0
    assert {entry.name for entry in (tmp_path / "run").iterdir()} == FILES
    assert results(tmp_path / "run") == expected


@contextlib.contextmanager
def killed_in_the_middle():
    from bootdqn.training import trainer

    original = trainer.train

    def train(config, components):
        for result in original(config, components):
            if result.step == 33:
                os.kill(os.getpid(), signal.SIGKILL)
            yield result

    with replaced(trainer, "train", train):
        yield
