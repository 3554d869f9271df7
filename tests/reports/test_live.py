"""Runs are followed while they are trained: files are read once, and new records appear."""

import json
import os

import pytest

from bootdqn.reports import live
from bootdqn.reports.live import Curve, LiveRuns, Tail
from bootdqn.runs.lock import locked
from bootdqn.runs.summary import describe_result
from reference.run_directories import write_atari, write_deep_sea, write_gym, write_run_dir

UNDER_WAY = {"environment": "deep-sea", "strategy": "gain", "size": 5, "seed": 2, "max_episodes": 100}


def append(path, *records):
    with path.open("a") as file:
        file.write("".join(json.dumps(record) + "\n" for record in records))


def episode(number, *, bad=True):
    return {"kind": "episode", "episode": number, "step": 5 * number, "bad": bad, "return": 0.0}


def states(live_runs):
    return {state["run"]: state for state in live_runs.update()["runs"]}


def test_a_tail_returns_each_complete_line_once(tmp_path):
    path = tmp_path / "lines"
    tail = Tail(path)
    assert tail.read() == []
    append(path, {"a": 1}, {"a": 2})
    assert tail.read() == [{"a": 1}, {"a": 2}]
    with path.open("a") as file:
        file.write('{"a": ')
    assert tail.read() == []
    with path.open("a") as file:
        file.write('3}\n{"a": 4}\n')
    assert tail.read() == [{"a": 3}, {"a": 4}]


def test_a_tail_reads_only_what_was_appended(tmp_path, monkeypatch):
    path, parsed = tmp_path / "lines", []
    real = live.parse_json_object
    monkeypatch.setattr(live, "parse_json_object", lambda line, *rest: parsed.append(line) or real(line, *rest))
    tail = Tail(path)
    append(path, *({"a": number} for number in range(1000)))
    tail.read()
    parsed.clear()
    append(path, {"a": 1000})
    tail.read()
    tail.read()
    assert parsed == [b'{"a": 1000}']


@pytest.mark.parametrize("replace", [True, False], ids=["another file", "a shorter file"])
def test_a_tail_restarts_when_the_file_does(tmp_path, replace):
    path = tmp_path / "lines"
    append(path, {"a": 1}, {"a": 2})
    tail = Tail(path)
    tail.read()
    if replace:
        append(tmp_path / "new", {"b": 1}, {"b": 2}, {"b": 3})
        (tmp_path / "new").replace(path)
    else:
        os.truncate(path, 0)
        append(path, {"b": 1})
    assert tail.read()[0] == {"b": 1}
    assert tail.restarted


def test_a_long_file_is_read_in_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(live, "MAX_BYTES", 30)
    append(tmp_path / "lines", *({"a": number} for number in range(10)))
    tail, found = Tail(tmp_path / "lines"), []
    while records := tail.read():
        assert len(records) < 10
        found += records
    assert found == [{"a": number} for number in range(10)]


def test_a_curve_keeps_its_ends_and_few_points():
    curve = Curve()
    for number in range(10_000):
        curve.add(number, 2 * number)
    points = curve.points()
    assert len(points) <= live.MAX_POINTS + 1
    assert (points[0], points[-1]) == ((0, 0), (9999, 2e4))
    assert all(y == pytest.approx(2 * x, rel=1e-3) for x, y in points)


def test_a_run_shows_its_progress_speed_and_time_left(tmp_path):
    write_run_dir(tmp_path / "a", UNDER_WAY, metrics=[episode(1), episode(2, bad=False)])
    runs = LiveRuns([tmp_path])
    with locked(tmp_path / "a/lock.json"):
        append(tmp_path / "a/timing.jsonl", {"seconds": 4.0, "step": 10, "steps_per_second": 2.5})
        state = states(runs)["a"]
        assert (state["status"], state["completed"], state["speed"]) == ("under way", 0.02, 2.5)
        assert state["left"] == 196  # 98 of 100 episodes at 2 s each
        assert state["position"] == "2 episodes of at most 100"
        append(tmp_path / "a/metrics.jsonl", *map(episode, range(3, 51)))
        assert states(runs)["a"]["completed"] == 0.5
    assert states(runs)["a"]["status"] == "stopped"


def test_curves_grow_and_a_run_that_is_started_later_appears(tmp_path):
    runs = LiveRuns([tmp_path])
    assert runs.update() == {"where": str(tmp_path), "runs": [], "left": None, "speed": 0, "charts": []}
    write_deep_sea(tmp_path / "a", "gain", bad=[True, True, False, False])
    (chart,) = runs.update()["charts"]
    assert (chart["task"], chart["what"]) == (
        "DeepSea, N = 5",
        "fraction of bad episodes, solved below 0.9 by episodes",
    )
    (curve,) = chart["curves"]
    assert curve["label"] == "BootDQN-Gain"
    assert curve["lines"] == [{"points": [(1, 1), (2, 1), (3, 0.6667), (4, 0.5)], "finished": True}]
    write_gym(tmp_path / "c", "greedy", episodes=[(10, 1.0), (20, 3.0), (30, 5.0)])
    write_atari(tmp_path / "b", scores=(1.0, 5.0))
    charts = {chart["task"]: chart for chart in runs.update()["charts"]}
    assert charts["Hero"]["curves"][0]["lines"][0]["points"] == [(1e6, 1.0), (2e6, 5.0)]
    assert [y for _, y in charts["CartPole-v1"]["curves"][0]["lines"][0]["points"]] == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(("environment", "budget"), [("atari", "total_frames"), ("minatar", "total_steps")])
def test_a_curve_has_the_label_of_its_run(tmp_path, environment, budget):
    """The paper's EVOI is the mean over heads there, so its label has no brackets."""
    config = {"environment": environment, "game": "x", "strategy": "evoi", "seed": 0, "num_heads": 10, budget: 9}
    evaluations = [{"kind": "evaluation", "step": step, "mean_return": 1.0} for step in (4, 8)]
    write_run_dir(tmp_path / "a", config, {"status": "finished"}, evaluations)
    state = LiveRuns([tmp_path]).update()
    assert state["charts"][0]["curves"][0]["label"] == state["runs"][0]["algorithm"] == "BootDQN-EVOI"


def test_finished_runs_are_read_once(tmp_path, monkeypatch):
    for number in range(3):
        write_deep_sea(tmp_path / str(number), seed=number, bad=[True])
    runs, loaded = LiveRuns([tmp_path]), []
    real = live.load_run
    monkeypatch.setattr(live, "load_run", lambda name, directory: loaded.append(name) or real(name, directory))
    runs.update()
    runs.update()
    assert loaded == ["0", "1", "2"]
    summary = tmp_path / "1/summary.json"
    changed = json.loads(summary.read_text()) | {"episodes": 11, "solved_at": 11, "solved_at_strict": 11}
    summary.write_text(json.dumps(changed))
    assert states(runs)["1"]["result"] == "solved at episode 11"
    assert loaded == ["0", "1", "2", "1"]


def test_the_result_of_a_run_is_described_as_at_its_end(tmp_path):
    counts = {"episodes": 120, "solved_at": None, "bad_episodes": 90, "total_return": 0.0, "best_episode": 0.0}
    config = {"environment": "bsuite", "bsuite_id": "deep_sea/0", "strategy": "gain", "seed": 0, "max_episodes": 120}
    summary = {"status": "finished", "experiment": "deep_sea"} | counts
    write_run_dir(tmp_path / "bsuite", config, summary)
    write_run_dir(tmp_path / "damaged", config, {"status": "finished", "experiment": "deep_sea"})
    found = states(LiveRuns([tmp_path]))
    assert found["bsuite"]["result"] == describe_result(summary) == "0.750 of 120 episodes bad"
    assert found["damaged"]["result"] == ""


def test_failures_and_warnings_are_shown_with_their_run(tmp_path, monkeypatch):
    write_run_dir(tmp_path / "failed", UNDER_WAY, {"status": "failed", "error": "the environment raised"})
    write_run_dir(tmp_path / "broken", UNDER_WAY, metrics=[episode(1)])
    (tmp_path / "broken/metrics.jsonl").write_text("[]\n")
    write_run_dir(tmp_path / "resumed", UNDER_WAY)
    resumed = [{"step": 1200, "not_exact": ["another processor"]}]
    (tmp_path / "resumed/provenance.json").write_text(json.dumps({"resumed": resumed}))
    runs = LiveRuns([tmp_path])
    for _ in range(2):
        found = states(runs)
        assert found["failed"]["problem"] == "the environment raised"
        assert "expected a JSON object" in found["broken"]["problem"]
        assert found["resumed"]["warnings"] == ["resumed at step 1,200: another processor"]
    monkeypatch.setattr(live, "SILENT_AFTER_SECONDS", -1.0)
    with locked(tmp_path / "resumed/lock.json"):
        assert "nothing written for 0 minutes" in states(runs)["resumed"]["warnings"]


def test_an_error_of_reading_is_shown_until_the_file_can_be_read(tmp_path, monkeypatch):
    write_deep_sea(tmp_path / "a", bad=[True, False])
    runs, real = LiveRuns([tmp_path]), live.open_regular

    def busy(_path):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(live, "open_regular", busy)
    assert "Input/output error" in states(runs)["a"]["problem"]
    monkeypatch.setattr(live, "open_regular", real)
    state = runs.update()
    assert state["runs"][0]["problem"] == ""
    assert state["charts"][0]["curves"][0]["lines"][0]["points"] == [(1, 1), (2, 0.5)]


def test_at_most_eight_algorithms_are_plotted_on_a_task(tmp_path):
    for number in range(10):
        write_deep_sea(tmp_path / str(number), "gain", bad=[True, False], prior_scale=float(number))
    (chart,) = LiveRuns([tmp_path]).update()["charts"]
    assert (len(chart["curves"]), chart["left_out"]) == (8, 2)
    assert len({(curve["colour"], curve["dash"]) for curve in chart["curves"]}) == 8


def test_tasks_are_in_the_order_of_their_numbers(tmp_path):
    for size in (12, 8):
        write_deep_sea(tmp_path / str(size), size=size, bad=[True, False])
    charts = LiveRuns([tmp_path]).update()["charts"]
    assert [chart["task"] for chart in charts] == ["DeepSea, N = 8", "DeepSea, N = 12"]
