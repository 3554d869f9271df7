"""The cost of a sweep, and how many runs it trains at a time: as many as cores and memory hold."""

import io
import itertools
import re
import sys
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from bootdqn.cli.main import run_command_line
from bootdqn.common.errors import UsageError
from bootdqn.config.settings import from_flat
from bootdqn.config.train import resolve
from bootdqn.runs.resources import ResourceEstimate
from bootdqn.sweeps.cost import (
    Cost,
    _finishing_time,
    _Probe,
    dry_run,
    estimate_costs,
    max_evaluation_steps,
    runs_at_a_time,
)
from bootdqn.sweeps.executor import Ended, SweepExit
from bootdqn.sweeps.sweep_file import PlannedRun, deep_sea_sweep, load_sweep
from reference.planned import planned

FINISHED = {"status": "finished"}


def cost_of(planned_run, needed):
    """Return what a run costs that takes a second a step."""
    steps = planned_run.config.env.max_training_steps
    return Cost(steps, float(steps), needed)


def test_a_dry_run_estimates_and_writes_nothing(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("bootdqn.sweeps.cost.PROBE_SECONDS", 0.05)
    arguments = ["paper-deepsea", "--out", str(tmp_path / "out"), "seed=[0]", "size=[4]", "--dry-run"]
    assert run_command_line(["sweep", *arguments]) == 0
    printed = capsys.readouterr().out
    description, changed, count = printed.splitlines()[:3]
    assert description.startswith("The paper's DeepSea study")
    assert changed == "changed: seed=[0] size=[4]"
    assert count.startswith("6 runs in ")
    assert "at most" in printed
    assert "400,000" in printed
    assert not (tmp_path / "out").exists()


def cells_of(table):
    return list(zip(*(list(column.cells) for column in table.columns), strict=True))


def test_a_dry_run_has_a_row_for_each_cell_and_not_for_each_seed(tmp_path, monkeypatch):
    runs = deep_sea_sweep(["greedy", "gain"], [3, 4], num_seeds=5, max_episodes=7).runs()
    needed = ResourceEstimate(0, 0, 20 * 2**20, 30 * 2**20)
    monkeypatch.setattr("bootdqn.sweeps.cost.estimate_costs", lambda todo, _: [cost_of(one, needed) for one in todo])
    monkeypatch.setattr("bootdqn.sweeps.cost.split_remaining", lambda runs, _: (runs[1:], [Ended(runs[0], FINISHED)]))
    table, problems = dry_run(runs, tmp_path, workers=1)
    assert cells_of(table) == [
        ("size-3 greedy", "5, 1 done", "21", "21s", "20 MiB", "30 MiB"),
        ("size-3 gain", "5", "21", "21s", "20 MiB", "30 MiB"),
        ("size-4 greedy", "5", "28", "28s", "20 MiB", "30 MiB"),
        ("size-4 gain", "5", "28", "28s", "20 MiB", "30 MiB"),
    ]
    assert problems == []


def test_runs_that_cannot_be_trained_are_listed_below_those_that_can(tmp_path, monkeypatch):
    runs = deep_sea_sweep(["greedy", "gain"], [3], num_seeds=2, max_episodes=7).runs()
    error, needed = UsageError("no gain today"), ResourceEstimate(0, 0, 0, 0)
    monkeypatch.setattr(
        "bootdqn.sweeps.cost.estimate_costs",
        lambda todo, _: [error if one.config.actor.strategy == "gain" else cost_of(one, needed) for one in todo],
    )
    table, problems = dry_run(runs, tmp_path, workers=1)
    assert [row[:4] for row in cells_of(table)] == [
        ("size-3 greedy", "2", "21", "21s"),
        ("size-3 gain", "2", "", "not possible"),
    ]
    assert problems == ["2 runs cannot be trained: no gain today"]
    monkeypatch.setattr("bootdqn.sweeps.cost.estimate_costs", lambda todo, _: [error] * len(todo))
    with pytest.raises(UsageError, match="no gain today"):
        dry_run(runs, tmp_path, workers=1)


def test_without_the_emulator_a_dry_run_names_what_to_install_in_a_line(tmp_path, monkeypatch, capsys):
    for module in [name for name in sys.modules if name == "bootdqn.envs.atari" or name.partition(".")[0] == "ale_py"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "ale_py", None)
    monkeypatch.chdir(tmp_path)
    assert run_command_line(["sweep", "paper-atari-smoke", "--dry-run"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    (line,) = printed.err.splitlines()
    assert "pip install -c constraints.txt -e '.[atari]'" in line


def test_a_dry_run_counts_the_frames_of_games_and_fits_80_columns(tmp_path, monkeypatch):
    runs = load_sweep("paper-atari").runs()
    needed = ResourceEstimate(0, 0, 20 * 2**30, 30 * 2**30)
    monkeypatch.setattr("bootdqn.sweeps.cost.estimate_costs", lambda todo, _: [cost_of(one, needed) for one in todo])
    table, _ = dry_run(runs, tmp_path, workers=1)
    assert {row[2] for row in cells_of(table)} == {f"{200_000_000:,}"}
    console = Console(width=80, file=io.StringIO())
    console.print(table)
    lines = console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert "200,000,000" in console.file.getvalue(), "and nothing of a number is cut"


def test_a_dry_run_into_a_file_is_not_cut(tmp_path, capsys, monkeypatch):
    cost = Cost(5, 10.0, ResourceEstimate(0, 0, 123 * 2**20, 456 * 2**20))
    monkeypatch.setattr("bootdqn.sweeps.cost.estimate_costs", lambda runs, _: [cost] * len(runs))
    (tmp_path / "own.toml").write_text(
        "[base]\nenvironment = 'deep-sea'\n[axes]\nunscaled_move_cost = [0.0123456789]\ntarget_rate = [0.123456789]\n"
        "learning_rate = [0.00123456789]\nmask_probability = [0.987654321]\n"
    )
    assert run_command_line(["sweep", str(tmp_path / "own.toml"), "--out", str(tmp_path / "out"), "--dry-run"]) == 0
    printed = capsys.readouterr().out
    (planned_run,) = load_sweep(str(tmp_path / "own.toml")).runs()
    settings = " ".join(planned_run.name.parent.parts)
    assert len(settings) > 80
    assert all(cell in printed for cell in (settings, "123 MiB", "456 MiB"))
    assert max(map(len, printed.splitlines())) < 400


def test_a_dry_run_adds_up_what_is_needed_at_a_time(tmp_path, monkeypatch):
    runs = deep_sea_sweep(["greedy"], [3, 4, 5, 6], num_seeds=1, max_episodes=5).runs()
    needed = [(2, 700, 10.0), (8, 100, 30.0), (4, 300, 10.0), (1, 500, 25.0)]  # MiB of memory and of disk, seconds
    found = [Cost(5, seconds, ResourceEstimate(0, 0, memory * 2**20, disk * 2**20)) for memory, disk, seconds in needed]
    monkeypatch.setattr("bootdqn.sweeps.cost.estimate_costs", lambda *_: found)
    assert dry_run(runs, tmp_path, workers=2).table.caption == (
        "at most 45s with 2 at a time, 12 MiB of memory and 1.2 GiB of disk for the runs in progress"
    )
    assert dry_run(runs, tmp_path, workers=2, keeps_checkpoints=True).table.caption.endswith(
        "12 MiB of memory and 1.6 GiB of disk for all runs, which keep their checkpoints"
    )
    assert dry_run(runs, tmp_path, workers=9).table.caption.startswith(
        "at most 30s with 4 at a time, 15 MiB of memory and 1.6 GiB of disk"
    )


def test_a_dry_run_plans_as_many_at_a_time_as_the_sweep_will(tmp_path, monkeypatch):
    runs = deep_sea_sweep(["greedy"], [3, 4, 5], num_seeds=1, max_episodes=5).runs()
    monkeypatch.setattr(
        "bootdqn.sweeps.cost.estimate_costs", lambda *_: [Cost(5, 10.0, ResourceEstimate(0, 0, 6, 0))] * 3
    )
    monkeypatch.setattr("bootdqn.sweeps.cost.available_memory", lambda: 8)
    monkeypatch.setattr("bootdqn.sweeps.cost.available_cores", lambda: 2)
    assert "; running 1 at a time; at most 30s with 1 at a time" in dry_run(runs, tmp_path, None).table.caption
    too_many = dry_run(runs, tmp_path, workers=2).table
    assert too_many.row_count == 3, "the needs of each are listed all the same"
    assert too_many.caption.endswith("choose --workers 1")


@given(st.lists(st.floats(0, 100), min_size=1, max_size=8), st.integers(1, 4))
def test_the_end_of_a_sweep_is_that_of_a_slow_simulation_of_workers(seconds, workers):
    """Second by second would be too slow: from one end of a run to the next."""
    waiting, left, now = list(seconds), [], 0.0
    while waiting or left:
        while waiting and len(left) < workers:
            left.append(waiting.pop(0))
        shortest = min(left)
        now += shortest
        left = [one - shortest for one in left]
        left.remove(0.0)
    assert _finishing_time(seconds, workers) == pytest.approx(now)


DIVE = {"environment": "deep-sea", "update_every": 1, "size": 10, "max_episodes": 100}
PONG = {"environment": "atari", "game": "Pong", "total_frames": 5_000_000, "eval_every_frames": 1_000_000}
CART = {"environment": "gym", "env_id": "CartPole-v1", "total_steps": 90}


@pytest.mark.parametrize(
    ("settings", "steps"), [(DIVE, 1000), (PONG, 1_250_000), (PONG | {"total_frames": 5}, 2), (CART, 90)]
)
def test_training_costs_at_most_the_steps_of_its_budget(settings, steps):
    assert from_flat(settings).env.max_training_steps == steps


def test_runs_with_evaluations_are_tried_apart_from_those_without(monkeypatch):
    tried = []

    def probe(config, _):
        tried.append(config)
        return _Probe(evaluation_speed=10.0, training_speed=10.0, needed=ResourceEstimate(0, 0, 0, 0))

    monkeypatch.setattr("bootdqn.sweeps.cost._probe", probe)
    settings = [DIVE | {"eval_every_steps": every, "seed": seed} for every in (None, 500, 700) for seed in (0, 1)]
    found = estimate_costs([PlannedRun(PurePosixPath(), resolve(from_flat(one))) for one in settings])
    assert [config.env.eval_every_steps for config in tried] == [None, 500]
    assert [cost.seconds for cost in found] == [100.0, 100.0, 120.0, 120.0, 110.0, 110.0]


@pytest.mark.parametrize(
    ("settings", "steps"),
    [
        (DIVE, 0),
        (DIVE | {"eval_every_steps": 300, "eval_episodes": 4}, 3 * 40),
        (PONG, 5 * 270_000),
        (PONG | {"eval_max_steps": 7}, 5 * 7),
        (CART | {"eval_every_steps": 40, "eval_max_steps": 9}, 2 * 9),
    ],
)
def test_evaluations_cost_their_steps_too(settings, steps):
    assert max_evaluation_steps(resolve(from_flat(settings))) == steps


@pytest.mark.parametrize(
    ("env_id", "limit"), [("CartPole-v1", 500), ("MiniGrid-DoorKey-5x5-v0", 250), ("bootdqn/DeepSea-v0", 20_000)]
)
def test_an_evaluation_takes_no_more_steps_than_the_episodes_of_its_environment(monkeypatch, env_id, limit):
    monkeypatch.setattr("bootdqn.sweeps.cost._evaluation_speed", lambda *_: 10.0)
    monkeypatch.setattr("bootdqn.sweeps.cost.MAX_PROBE_SECONDS", 0.1)
    settings = {"environment": "gym", "env_id": env_id, "total_steps": 90, "eval_every_steps": 90}
    config = resolve(from_flat(settings | {"eval_episodes": 1, "eval_max_steps": 20_000}))
    (cost,) = estimate_costs([PlannedRun(PurePosixPath(), config)])
    assert cost.evaluation_seconds == limit / 10.0


def at_a_time(available, sizes, workers, cores=4):
    """Return how many runs of these sizes are made at a time, given so many MiB."""
    runs = [planned(f"seed-{seed}", seed=seed) for seed in range(len(sizes))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bootdqn.sweeps.cost.available_memory", lambda: available and available * 2**20)
        patch.setattr("bootdqn.sweeps.cost.memory_needed", lambda _: [size * 2**20 for size in sizes])
        patch.setattr("bootdqn.sweeps.cost.available_cores", lambda: cores)
        return runs_at_a_time(runs, workers)


def fitting(available, sizes, workers):
    """Return how many workers a sweep of runs of these sizes is advised to choose, or None if there is no error."""
    try:
        at_a_time(available, sizes, workers)
    except UsageError as refusal:
        return int(str(refusal).rpartition("choose --workers ")[2])
    return None


@given(st.integers(1, 60), st.lists(st.integers(0, 30), min_size=1, max_size=7), st.integers(1, 9))
def test_a_sweep_whose_concurrent_runs_do_not_fit_is_an_error_that_names_how_many_do(available, sizes, workers):
    fit_alone = [size for size in sizes if size <= available]

    def always_fit(count):
        return all(sum(some) <= available for some in itertools.combinations(fit_alone, min(count, len(fit_alone))))

    printed = fitting(available, sizes, workers)
    assert (printed is None) == always_fit(workers)
    assert printed is None or (always_fit(printed) and not always_fit(printed + 1))


@pytest.mark.parametrize(
    ("available", "sizes", "expected"),
    [(100, [10] * 6, 4), (25, [10] * 6, 2), (10, [10] * 6, 1), (None, [10] * 6, 4), (100, [10] * 2, 2), (5, [10], 1)],
)
def test_by_default_a_sweep_trains_as_many_runs_at_a_time_as_cores_and_memory_hold(available, sizes, expected):
    assert at_a_time(available, sizes, workers=None, cores=4) == expected


def test_a_sweep_that_trains_fewer_runs_at_a_time_for_lack_of_memory_prints_a_line(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("bootdqn.sweeps.cost.available_memory", lambda: 2**30)
    monkeypatch.setattr("bootdqn.sweeps.cost.available_cores", lambda: 2)
    made = []

    def make(runs, _, workers, *__, **___):
        made.append((len(runs), workers))
        return SweepExit([])

    monkeypatch.setattr("bootdqn.sweeps.run_sweep.run_locally", make)
    arguments = ["paper-deepsea", "--out", str(tmp_path / "out"), "seed=[0]", "size=[4]"]
    run_command_line(["sweep", *arguments])
    assert made == [(6, 1)]
    printed = [line for line in capsys.readouterr().out.splitlines() if "memory" in line]
    assert len(printed) == 1
    assert re.fullmatch(
        r"2 runs at a time need 1\.\d GiB of memory, and 1\.0 GiB are available; running 1 at a time", printed[0]
    )


def test_a_sweep_is_no_error_where_the_memory_is_unknown():
    assert fitting(None, [10**6, 10**6], workers=2) is None


def test_a_sweep_too_large_for_the_memory_is_an_error_in_one_line_and_leaves_no_directory(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr("bootdqn.sweeps.cost.available_memory", lambda: 2**30)
    arguments = ["paper-deepsea", "--out", str(tmp_path / "out"), "seed=[0]", "size=[4]", "--workers", "2"]
    assert run_command_line(["sweep", *arguments]) == 2
    assert re.search(
        r"2 runs at a time need 1\.\d GiB of memory, and 1\.0 GiB are available; choose --workers 1\n",
        capsys.readouterr().err,
    )
    assert not (tmp_path / "out").exists()
