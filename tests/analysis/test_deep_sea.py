"""Results without hiding: unsolved runs stay in, lower bounds say so, caps are never mixed."""

import json

import numpy as np
import pytest

from bootdqn.analysis.deep_sea import COLUMNS, Result, cells, read_results, summary_table, table_rows
from bootdqn.analysis.figures import episodes_to_solve, to_svg
from bootdqn.analysis.page import answer, write_page
from bootdqn.common.run_folder import find_runs


def result(strategy="greedy", size=10, seed=0, cap=2000, solved=100, strict=...):
    return Result(strategy, size, seed, cap, solved, solved if strict is ... else strict)


def write_run(path, status="finished", **changes):
    config = {"environment": "deep-sea", "strategy": "gain", "size": 5, "seed": 0, "max_episodes": 50}
    path.mkdir(parents=True)
    (path / "config.json").write_text(json.dumps(config | changes))
    (path / "summary.json").write_text(json.dumps({"status": status, "solved_at": 9, "solved_at_strict": None}))


def test_finished_deep_sea_runs_are_read_and_others_are_not(tmp_path):
    write_run(tmp_path / "a")
    write_run(tmp_path / "b", status="interrupted")
    write_run(tmp_path / "c", environment="another")
    write_run(tmp_path / "d")
    (tmp_path / "d/summary.json").unlink()
    assert read_results(find_runs(tmp_path)) == [Result("gain", 5, 0, 50, 9, None)]


def test_an_unsolved_run_counts_with_its_cap_and_makes_the_mean_a_lower_bound():
    cell = cells([result(seed=0, solved=100), result(seed=1, solved=None)])[0]
    assert cell.mean == (100 + 2000) / 2
    assert cell.censored
    assert cell.solved == 1
    row = dict(zip(COLUMNS, table_rows([result(seed=0, solved=100), result(seed=1, solved=None)])[0], strict=True))
    assert row["mean episodes"] == "≥ 1,050"
    assert row["solved"] == "1/2"
    assert row["each seed"] == "100, > 2,000"


def test_solved_by_bsuite_with_few_good_episodes_is_counted_apart():
    runs = [result(seed=0, solved=9, strict=40), result(seed=1, solved=9, strict=None), result(seed=2, solved=30)]
    row = dict(zip(COLUMNS, table_rows(runs)[0], strict=True))
    assert row["solved with < 10 good"] == "2"
    assert row["solved"] == "2/3"
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
    text = answer(good + bad)
    assert text.startswith("At N = 10, BootDQN-EVOI needed the fewest episodes: 101 on average, 3 of 3 runs solved.")
    assert "BootDQN, at least 2,000 (0 of 3 solved)" in text
    assert "not a proof" in text
    assert answer(bad) == "At N = 10 no algorithm solved DeepSea before the cap (3 seeds each)."


def test_the_terminal_table_explains_its_bounds():
    table = summary_table([result(solved=None)])
    assert table.row_count == 1
    assert "lower bound" in table.caption
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
    marks = [point for collection in axes.collections for point in collection.get_offsets()]
    lower_bounds = len(sizes)
    assert len(marks) == len(runs) + lower_bounds
    assert any("cap: 2,000 episodes" in text.get_text() for text in axes.texts)


def test_the_same_results_give_the_same_picture():
    assert to_svg(episodes_to_solve([result()])) == to_svg(episodes_to_solve([result()]))


def test_the_page_stands_alone_and_escapes_names(tmp_path):
    page = write_page([result("<script>alert(1)</script>"), result()], tmp_path / "page.html").read_text()
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    body = page.replace("http://www.w3.org", "")
    assert "http" not in body
    assert "src=" not in body
