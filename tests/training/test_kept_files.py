"""Records, networks and weights that a run keeps, however often it was stopped."""

import json

import numpy as np
import pytest
import safetensors

from bootdqn.cli.main import run_command_line
from bootdqn.common.tensor_files import read_tensors
from bootdqn.config.settings import from_flat
from bootdqn.config.train import SavingConfig
from bootdqn.runs.directory import RunDirectory
from bootdqn.training.metrics import read_timing_up_to
from bootdqn.training.run import train_run
from reference.faults import (
    CHECKPOINT_EVERY,
    COMPILED,
    EVALUATED,
    LEARNERS,
    LEARNING_STARTS,
    SMALL,
    STEPS,
    results,
    steps_watched,
    stopping_at,
    train,
    train_by_command,
)

pytestmark = pytest.mark.usefixtures("one_thread")


def test_records_of_a_run_stopped_and_killed_several_times_are_those_of_one_never_stopped(path, monkeypatch, unbroken):
    def kill(components):
        if components.loop.step == 170:
            raise KeyboardInterrupt

    settings = EVALUATED | {"num_envs": 2}
    with stopping_at(monkeypatch, 10, 64, 100, 130):
        for _ in range(4):
            assert train(settings, path).exit_code == 143
    with pytest.raises(KeyboardInterrupt), steps_watched(monkeypatch, kill):
        train(settings, path)
    assert train(settings, path).exit_code == 0
    assert results(path) == unbroken(settings)
    records = list(RunDirectory(path).read_metrics())
    assert [record["step"] for record in records] == sorted(record["step"] for record in records)
    numbers = {"episode": "episode", "update": "updates", "evaluation": "step"}
    found = {kind: [record[key] for record in records if record["kind"] == kind] for kind, key in numbers.items()}
    assert found["episode"] == list(range(1, 1 + len(found["episode"])))
    assert found["update"] == list(range(10, 1 + STEPS - LEARNING_STARTS, 10))
    assert found["evaluation"] == [64, 128, 192]
    timing = [json.loads(line) for line in RunDirectory(path).timing.read_text().splitlines()]
    for key in ("step", "seconds"):
        assert [record[key] for record in timing] == sorted(record[key] for record in timing)


def test_timing_records_the_cost_of_checkpoints(path):
    train(COMPILED, path)
    timing = [json.loads(line) for line in RunDirectory(path).timing.read_text().splitlines()]
    saved = [record for record in timing if "checkpoint_seconds" in record]
    assert [record["step"] for record in saved] == [0, 48, 96, 144, 192]
    assert all(record["checkpoint_seconds"] >= 0 and record["checkpoint_bytes"] > 0 for record in saved)


def saved_steps(path):
    timing = [json.loads(line) for line in RunDirectory(path).timing.read_text().splitlines()]
    return [record["step"] for record in timing if "checkpoint_seconds" in record]


@pytest.mark.parametrize(("num_envs", "steps"), [(1, [*range(0, 200, 10)]), (3, [0, 12, 21, 30, 42, 51])])
def test_checkpoints_are_made_at_the_chosen_steps(path, num_envs, steps):
    saving = SavingConfig(checkpoint_every_steps=10)
    train_run(from_flat({"environment": "gym"} | SMALL | {"num_envs": num_envs}), path, saving=saving)
    assert saved_steps(path)[: len(steps)] == steps


def test_the_checkpoint_of_a_stopped_run_is_timed_and_stays_so(path, monkeypatch):
    with stopping_at(monkeypatch, 70):
        train(COMPILED, path)
    assert saved_steps(path) == [0, 48, 70]
    train(COMPILED, path)
    assert saved_steps(path) == [0, 48, 70, 96, 144, 192]


def test_timing_beyond_the_checkpoint_of_a_killed_run_is_dropped(path, monkeypatch):
    def kill(components):
        if components.loop.step == 80:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), steps_watched(monkeypatch, kill):
        train(COMPILED, path)
    with RunDirectory(path).timing.open("w") as file:
        file.write('{"seconds": 1.5, "step": 48}\n{"seconds": 2.5, "step": 49}\n\0\0\0')
    train(COMPILED, path)
    timing = [json.loads(line) for line in RunDirectory(path).timing.read_text().splitlines()]
    assert timing[0] == {"seconds": 1.5, "step": 48}
    assert [record["step"] for record in timing] == [48, 96, 144, 192, 200]
    assert [record["seconds"] for record in timing] == sorted(record["seconds"] for record in timing)


@pytest.mark.parametrize(
    "junk", ["{\n", "[]\n", "null\n", '{"step": 3}\n', '{"step": 3, "seconds": 1e999}\n', '{"step"']
)
def test_timing_that_a_power_cut_spoiled_ends_before_it(tmp_path, junk):
    path, good = tmp_path / "timing.jsonl", '{"seconds": 1, "step": 0}\n{"seconds": 2, "step": 3}\n'
    path.write_text(good + junk + '{"seconds": 3, "step": 3}\n')
    assert read_timing_up_to(path, 3) == (len(good), 2.0)
    assert read_timing_up_to(path, 2) == (len(good) // 2, 1.0)


@pytest.mark.parametrize(
    ("every", "num_envs", "steps"),
    [("log", 1, [100, 200]), (70, 1, [70, 140]), (50, 1, [50, 100, 150, 200]), (50, 3, [51, 102, 150, 201])],
)
def test_networks_are_kept_at_the_chosen_steps(path, monkeypatch, every, num_envs, steps):
    settings = {"snapshot_every": every, "num_envs": num_envs}
    seen = {}

    def remember(components):
        seen[components.loop.step] = {
            name: value.numpy().copy() for name, value in components.learner.online.state_dict().items()
        }

    with steps_watched(monkeypatch, remember):
        assert train_by_command(settings, path) == 0
    files = sorted(RunDirectory(path).snapshots.iterdir())
    assert [file.name for file in files] == [f"step-{step:012d}.safetensors" for step in steps]
    for file, step in zip(files, steps, strict=True):
        np.testing.assert_equal(read_tensors(file), seen[step])


def test_networks_kept_by_a_stopped_run_are_those_of_one_never_stopped(path, monkeypatch, unbroken):
    settings = {"snapshot_every": 30}
    with stopping_at(monkeypatch, 70, 120):
        train(settings, path)
        train(settings, path)
    train(settings, path)
    assert len(results(path)[-1]) == 6
    assert results(path) == unbroken(settings)


@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
def test_weights_are_those_of_the_last_checkpoint_and_whole_at_any_moment(path, monkeypatch, learner):
    seen, found = {}, []

    def look(components):
        seen[components.loop.step] = {
            name: value.numpy().copy() for name, value in components.learner.online.state_dict().items()
        }
        file = RunDirectory(path).weights
        with safetensors.safe_open(file, framework="np") as opened:
            found.append((components.loop.step, int(opened.metadata()["step"]), read_tensors(file)))

    with steps_watched(monkeypatch, look):
        train(learner, path)
    for step, saved_after, weights in found:
        assert saved_after == (step - 1) // CHECKPOINT_EVERY * CHECKPOINT_EVERY
        if saved_after:
            np.testing.assert_equal(weights, seen[saved_after])


def test_a_run_under_way_can_be_evaluated_and_inspected(tmp_path, monkeypatch, capsys):
    path = tmp_path / "run"

    def look(components):
        if components.loop.step == 30:
            assert run_command_line(["evaluate", str(path), "--episodes", "2"]) == 0
            assert run_command_line(["inspect", str(path), "--out", str(tmp_path / "page.html")]) == 0

    config = from_flat(
        {
            "environment": "deep-sea",
            "update_every": 1,
            "size": 4,
            "num_heads": 3,
            "hidden_sizes": [8, 8],
            "max_episodes": 9,
        }
    )
    with steps_watched(monkeypatch, look):
        train_run(config, path, saving=SavingConfig(checkpoint_every_steps=20))
    assert "weights after 20 steps" in capsys.readouterr().out
    assert (tmp_path / "page.html").exists()


def test_a_file_that_cannot_be_written_does_not_stop_the_training_and_is_no_end(path, monkeypatch, capsys, unbroken):
    with stopping_at(monkeypatch, 70):
        train(EVALUATED, path)
    weights = RunDirectory(path).weights
    weights.unlink()
    with steps_watched(monkeypatch, lambda components: components.loop.step == 80 and weights.mkdir()):
        assert run_command_line(["resume", str(path), "--quiet"]) == 1
    captured = capsys.readouterr()
    assert f"{path} could not be written at step 128" in captured.err
    assert "training continues" in captured.err
    assert RunDirectory(path).read_summary() is None
    weights.rmdir()
    assert run_command_line(["resume", str(path), "--quiet"]) == 0
    assert results(path) == unbroken(EVALUATED)
