"""How agents acted, in a report: lines of the update records, and of nothing else."""

import csv
import json
import re

import numpy as np
import pytest

from bootdqn.config.settings import from_flat
from bootdqn.reports.action_statistics import TITLES, acting_figure, runs_by_task
from bootdqn.reports.report import write_report
from bootdqn.reports.report_data import load_report_data
from bootdqn.reports.style import UNFINISHED_CAPTION
from bootdqn.runs.directory import RunDirectory
from bootdqn.training.run import train_run
from reference.planned import SMALL
from reference.run_directories import write_atari, write_deep_sea, write_gym


def update(step, overruled=0.5, evoi=0.25, disagreement=2.0):
    values = {"overruled": overruled, "evoi": evoi, "disagreement": disagreement}
    return {"kind": "update", "step": step, "updates": step} | values


def add_records(path, *records):
    with (path / "metrics.jsonl").open("a") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)


def tasks(root):
    """Return the tasks that have a figure."""
    return set(runs_by_task(load_report_data(root)))


def acting(root):
    """Plot the runs of the only task."""
    study = load_report_data(root)
    (runs,) = runs_by_task(study).values()
    return acting_figure(runs[runs.has_line], study.acting)


def figure_names(root):
    write_report(root, root / "report.html")
    return [path.stem for path in (root / "report_files/figures").glob("acting*.png")]


def captions(root):
    write_report(root, root / "report.html")
    return re.findall("<figcaption>(.*?)</figcaption>", (root / "report.html").read_text())


def test_the_lines_of_a_run_are_its_records(tmp_path):
    train_run(
        from_flat(SMALL | {"strategy": "evoi:reduce=sum", "stop_when_solved": False, "log_every": 5}), tmp_path / "run"
    )
    records = list(RunDirectory(tmp_path / "run").read_metrics("update"))
    assert len(records) == 6
    panels = acting(tmp_path).axes
    assert [axes.get_title() for axes in panels] == list(TITLES.values())
    for axes, name in zip(panels, TITLES, strict=True):
        (line,) = axes.get_lines()
        recorded = [[record["step"], record[name]] for record in records]
        np.testing.assert_allclose(line.get_xydata(), recorded, rtol=1e-13, err_msg="but for the rounding of sums")


def test_every_run_has_a_line_and_every_algorithm_a_name(tmp_path):
    for name, strategy, seed in (("a", "gain", 0), ("b", "gain", 1), ("c", "greedy", 0)):
        write_gym(tmp_path / name, strategy, seed)
        add_records(tmp_path / name, update(10 + seed), update(20 + seed))
    figure = acting(tmp_path)
    assert [len(axes.get_lines()) for axes in figure.axes] == [3, 3, 3]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["BootDQN", "BootDQN-Gain"]


@pytest.mark.parametrize(("longest", "scale"), [(9, "linear"), (10, "log")])
def test_runs_of_very_different_lengths_share_a_log_scale(tmp_path, longest, scale):
    for seed, times in enumerate((1, longest)):
        write_gym(tmp_path / str(seed), seed=seed)
        add_records(tmp_path / str(seed), update(10 * times), update(20 * times))
    assert {axes.get_xscale() for axes in acting(tmp_path).axes} == {scale}


def test_many_records_are_smoothed(tmp_path):
    write_gym(tmp_path / "run")
    values = np.random.default_rng(0).random(40)
    add_records(tmp_path / "run", *(update(10 * n, overruled=value) for n, value in enumerate(values, start=1)))
    plotted = acting(tmp_path).axes[0].get_lines()[0].get_ydata()
    np.testing.assert_allclose(plotted[20:], [values[n - 3 : n + 1].mean() for n in range(20, 40)])


@pytest.mark.parametrize(("write", "label"), [(write_atari, "BootDQN-EVOI"), (write_gym, "BootDQN-EVOI (mean)")])
def test_evoi_is_called_what_the_paper_calls_it_there(tmp_path, write, label):
    write(tmp_path / "run", strategy="evoi")
    add_records(tmp_path / "run", update(10), update(20))
    assert [text.get_text() for text in acting(tmp_path).legends[0].get_texts()] == [label]


def test_each_task_has_its_own_figure_and_deep_sea_only_one_of_the_largest_grid(tmp_path):
    for size in (5, 12, 8):
        write_deep_sea(tmp_path / f"sea-{size}", size=size)
    write_atari(tmp_path / "game", "Hero")
    write_gym(tmp_path / "lake", env_id="FrozenLake-v1", env_options=["map_name=8x8"])
    write_gym(tmp_path / "pole")
    for path in list(tmp_path.iterdir()):
        add_records(path, update(10), update(20))
    assert tasks(tmp_path) == {"DeepSea, N = 12", "Hero", "FrozenLake-v1 map_name=8x8", "CartPole-v1"}
    assert sorted(figure_names(tmp_path)) == [
        "acting-cartpole-v1",
        "acting-deepsea-n-12",
        "acting-frozenlake-v1-map-name-8x8",
        "acting-hero",
    ]


def test_records_without_the_metric_have_no_line(tmp_path):
    old = {"kind": "update", "step": 10, "updates": 10, "loss": 1.0}
    write_gym(tmp_path / "old", seed=0)
    add_records(tmp_path / "old", old, old | {"step": 20})
    write_gym(tmp_path / "short", seed=1)
    add_records(tmp_path / "short", update(10))
    write_gym(tmp_path / "damaged", seed=2)
    add_records(tmp_path / "damaged", update(10), update("later"))
    write_gym(tmp_path / "words", seed=3)
    add_records(tmp_path / "words", update(10), update(20, overruled="often"))
    assert tasks(tmp_path) == set()
    assert figure_names(tmp_path) == []


@pytest.mark.parametrize("write", [write_atari, write_deep_sea, write_gym])
def test_a_run_is_plotted_up_to_its_last_record_and_its_end_is_marked(tmp_path, write):
    write(tmp_path / "run", status="interrupted")
    add_records(tmp_path / "run", update(10), update(20))
    for axes in acting(tmp_path).axes:
        _, end = axes.get_lines()
        assert (end.get_xdata().tolist(), end.get_marker(), end.get_markerfacecolor()) == ([20], "o", "white")
    assert captions(tmp_path)[-1].endswith(UNFINISHED_CAPTION)


def test_an_algorithm_without_a_line_is_named(tmp_path):
    write_gym(tmp_path / "drawn", "gain")
    add_records(tmp_path / "drawn", update(10), update(20))
    write_gym(tmp_path / "solved before its second record", "evoi")
    add_records(tmp_path / "solved before its second record", update(10))
    write_gym(tmp_path / "torn", "ucb")
    (tmp_path / "torn/metrics.jsonl").write_text("[]\n")
    write_gym(tmp_path / "another task", "greedy", env_id="Acrobot-v1")
    caption = captions(tmp_path)[-1]
    assert caption.endswith("Without a line, for lack of metrics: BootDQN-UCB, BootDQN-EVOI (mean).")


def test_a_value_that_overflowed_is_a_gap(tmp_path):
    write_gym(tmp_path / "run")
    add_records(tmp_path / "run", update(10), update(20, disagreement=None), update(30))
    np.testing.assert_array_equal(load_report_data(tmp_path).acting.disagreement, [2.0, np.nan, 2.0])
    acting(tmp_path).savefig(tmp_path / "drawn.png")


def test_a_record_before_which_no_step_was_taken_is_skipped(tmp_path):
    write_gym(tmp_path / "run")
    add_records(tmp_path / "run", update(10), update(10, None, None, None), update(20))
    np.testing.assert_array_equal(load_report_data(tmp_path).acting.step, [10, 20])


@pytest.mark.parametrize("value", [0.0, None])
def test_heads_that_never_differ_are_plotted_too(tmp_path, value):
    write_gym(tmp_path / "run")
    add_records(tmp_path / "run", *(update(step, 0.0, value, value) for step in (10, 20)))
    assert figure_names(tmp_path) == ["acting-cartpole-v1"]


def test_more_algorithms_than_can_be_distinguished_are_not_plotted(tmp_path):
    for number in range(9):
        write_gym(tmp_path / str(number), f"gain:scale={number + 2}")
        add_records(tmp_path / str(number), update(10), update(20))
    assert figure_names(tmp_path) == []
    with (tmp_path / "report_files/tables/gym.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 9
