"""Results without hiding: unsolved runs stay in, lower bounds say so, caps are never mixed."""

import numpy as np
import pytest
from matplotlib.collections import PathCollection

from bootdqn.analysis.deep_sea import COLUMNS, Result, cells, read_results, summary_table, table
from bootdqn.analysis.deep_sea_figures import drawing, episodes_to_solve, solved_fraction
from bootdqn.analysis.figures import to_png, to_svg
from bootdqn.analysis.report import deep_sea_answer
from bootdqn.analysis.runs import read_runs
from reference.run_folders import write_deep_sea


def result(strategy="greedy", size=10, seed=0, cap=2000, solved=100, strict=...):
    return Result(strategy, size, seed, cap, solved, solved if strict is ... else strict)


def row_of(results):
    return dict(zip(COLUMNS, table(results).rows[0], strict=True))


def test_finished_runs_are_read_and_others_are_named(tmp_path):
    write_deep_sea(tmp_path / "a", strict=None)
    write_deep_sea(tmp_path / "b", status="interrupted")
    write_deep_sea(tmp_path / "d")
    (tmp_path / "d/summary.json").unlink()
    results, troubles = read_results(read_runs(tmp_path)[0])
    assert results == [Result("gain", 5, 0, 50, 9, None)]
    assert [(trouble.name, trouble.problem) for trouble in troubles] == [("b", "interrupted"), ("d", "under way")]


def test_an_unsolved_run_counts_with_its_cap_and_makes_the_mean_a_lower_bound():
    cell = cells([result(seed=0, solved=100), result(seed=1, solved=None)])[0]
    assert cell.mean == (100 + 2000) / 2
    assert cell.censored
    assert cell.solved == 1
    row = row_of([result(seed=0, solved=100), result(seed=1, solved=None)])
    assert row["mean episodes"] == "≥ 1,050"
    assert row["solved"] == "1/2"
    assert row["each seed"] == "100, > 2,000"


def test_solved_by_bsuite_with_few_good_episodes_is_counted_apart():
    runs = [result(seed=0, solved=9, strict=40), result(seed=1, solved=9, strict=None), result(seed=2, solved=30)]
    row = row_of(runs)
    assert row["solved with < 10 good"] == "2"
    assert row["solved"] == "2/3"
    assert row["solved, bsuite's rule"] == "3/3"
    assert cells(runs)[0].mean == pytest.approx((40 + 2000 + 30) / 3)


def test_runs_with_different_caps_are_never_averaged():
    with pytest.raises(ValueError, match=r"different caps \[1000, 2000\]"):
        cells([result(cap=1000), result(cap=2000, seed=1)])


def test_the_interval_is_the_bootstrap_of_the_mean():
    episodes = [100, 150, 220, 400, 90, 130]
    cell = cells([result(seed=seed, solved=solved) for seed, solved in enumerate(episodes)])[0]
    rng = np.random.default_rng(1)
    means = rng.choice(episodes, (40_000, len(episodes))).mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    assert cell.interval == pytest.approx((low, high), rel=0.02)


def test_equal_runs_and_single_runs_have_no_interval():
    assert cells([result()])[0].interval is None
    assert cells([result(seed=0), result(seed=1)])[0].interval is None


def test_algorithms_come_in_the_order_of_the_paper():
    names = ["ids", "custom", "evoi:reduce=sum", "evoi", "gain", "ucb", "greedy"]
    order = [cell.strategy for cell in cells([result(strategy=name) for name in names])]
    assert order == ["greedy", "ucb", "gain", "evoi", "evoi:reduce=sum", "ids", "custom"]


def test_the_answer_names_the_best_and_never_claims_more_than_the_runs():
    good = [result("evoi:reduce=sum", seed=seed, solved=100 + seed) for seed in range(3)]
    bad = [result("greedy", seed=seed, solved=None) for seed in range(3)]
    text = deep_sea_answer(good + bad)
    assert text.startswith("At N = 10, BootDQN-EVOI needed the fewest episodes: 101 on average, 3 of 3 runs solved.")
    assert "BootDQN, at least 2,000 (0 of 3 solved)" in text
    assert "not a proof" in text
    assert deep_sea_answer(bad) == "At N = 10 no algorithm solved DeepSea before the cap (3 seeds each)."


def test_the_terminal_table_explains_its_bounds():
    shown = summary_table([result(solved=None)])
    assert shown.row_count == 1
    assert "lower bound" in shown.caption
    assert summary_table([result()]).caption is None


@pytest.mark.parametrize("sizes", [(10,), (5, 10, 15)])
def test_the_figure_shows_every_seed_and_the_cap(sizes):
    runs = [
        result(strategy, size, seed, solved=None if strategy == "ucb" else 100 * size)
        for strategy in ("greedy", "ucb")
        for size in sizes
        for seed in range(3)
    ]
    axes = episodes_to_solve(runs).axes[0]
    dots = [collection for collection in axes.collections if isinstance(collection, PathCollection)]
    marks = [point for collection in dots for point in collection.get_offsets()]
    lower_bounds = len(sizes)
    assert len(marks) == len(runs) + lower_bounds
    assert any("cap: 2,000 episodes" in text.get_text() for text in axes.texts)


def test_the_same_results_give_the_same_picture():
    assert to_svg(episodes_to_solve([result()])) == to_svg(episodes_to_solve([result()]))


def test_the_fraction_that_solved_it_is_a_bar():
    runs = [result(seed=seed, solved=100 if seed else None) for seed in range(4)]
    (bar,) = solved_fraction(runs).axes[0].patches
    assert bar.get_height() == 0.75


def test_the_problem_can_be_drawn():
    assert to_png(drawing(5)).startswith(b"\x89PNG")
