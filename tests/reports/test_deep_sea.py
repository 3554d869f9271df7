"""Results on DeepSea: unsolved runs count, lower bounds are marked, caps are never mixed."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.collections import FillBetweenPolyCollection, PathCollection

from bootdqn.config.variants import Variant, label
from bootdqn.reports import conclusions, deep_sea, deep_sea_figures
from bootdqn.reports.deep_sea import COLUMNS, solve_table, terminal_table
from bootdqn.reports.report_data import load_report_data
from bootdqn.reports.style import to_svg
from reference.run_directories import write_deep_sea
from reference.tables import DeepSeaRun, deep_sea_table
from reproduction.archive import unpacked


def result(strategy="greedy", size=10, seed=0, cap=2000, solved=100, strict=...):
    return DeepSeaRun(Variant(strategy), size, seed, cap, solved, solved if strict is ... else strict)


def cells(runs):
    """Return the cells of runs, as rows."""
    return list(deep_sea.cells(deep_sea_table(runs)).itertuples())


def interval_of(cell):
    return None if np.isnan(cell.low) else (cell.low, cell.high)


def row_of(runs):
    return dict(zip(COLUMNS, solve_table(deep_sea_table(runs)).rows[0], strict=True))


def read(root):
    """Return the runs that count, and why others do not."""
    study = load_report_data(root)
    return study.counted("deep-sea"), {run.run: run.problem for run in study.runs.itertuples() if run.problem}


def deep_sea_conclusion(runs):
    return conclusions.deep_sea_conclusion(deep_sea_table(runs))


def episodes_to_solve(runs):
    return deep_sea_figures.episodes_figure(deep_sea_table(runs))


def test_finished_runs_are_read_and_others_are_named(tmp_path):
    write_deep_sea(tmp_path / "a", strict=None)
    write_deep_sea(tmp_path / "b", status="interrupted")
    write_deep_sea(tmp_path / "d")
    (tmp_path / "d/summary.json").unlink()
    runs, problems = read(tmp_path)
    (run,) = runs.itertuples()
    assert (run.variant, run.size, run.seed, run.budget, run.solved_at) == (Variant("gain"), 5, 0, 50, 9)
    assert runs.solved_at_strict.isna().all()
    assert problems == {"b": "interrupted", "d": "stopped"}


def test_runs_of_different_settings_are_never_averaged_and_seeds_count_once(tmp_path):
    write_deep_sea(tmp_path / "a", seed=0, solved=10)
    write_deep_sea(tmp_path / "b", seed=1, solved=30, mapping_seed=1, target_every=5)
    write_deep_sea(tmp_path / "c", seed=1, solved=99, mapping_seed=1, threads=4)
    write_deep_sea(tmp_path / "d", seed=0, solved=40, prior_scale=3.0)
    write_deep_sea(tmp_path / "e", seed=0, solved=50, mapping_seed=7)
    write_deep_sea(tmp_path / "f", seed=1, solved=60, update_every=1)
    runs, problems = read(tmp_path)
    assert {label(cell.variant): list(cell.episodes) for cell in deep_sea.cells(runs).itertuples()} == {
        "BootDQN-Gain": [10, 30],
        "BootDQN-Gain + prior 3": [40],
        "BootDQN-Gain, fixed map 7": [50],
        "BootDQN-Gain, update every step": [60],
    }
    assert problems == {"c": "the same algorithm and seed as b, which is counted"}


def test_the_results_of_old_run_directories_are_grouped_by_strategy_and_size_alone():
    names = {
        "greedy": "BootDQN",
        "ucb": "BootDQN-UCB",
        "gain": "BootDQN-Gain",
        "evoi": "BootDQN-EVOI (mean)",
        "evoi:reduce=sum": "BootDQN-EVOI",
        "ids": "DQN-IDS",
    }
    expected = {}  # all of these runs update every step
    old_runs = unpacked("deep-sea-small")
    for path in old_runs.rglob("config.json"):
        config, summary = json.loads(path.read_text()), json.loads(path.with_name("summary.json").read_text())
        episodes = config["max_episodes"] if summary["solved_at_strict"] is None else summary["solved_at_strict"]
        expected.setdefault((str(config["size"]), f"{names[config['strategy']]}, update every step"), []).append(
            episodes
        )
    runs, problems = read(old_runs)
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in solve_table(runs).rows]
    found = {(row["N"], row["algorithm"]): row["mean episodes"].removeprefix("≥ ") for row in rows}
    means = {key: sum(values) / len(values) for key, values in expected.items()}
    assert found == {key: f"{m:,.0f}" if m >= 1000 else f"{m:.1f}".removesuffix(".0") for key, m in means.items()}
    assert len(runs) == sum(map(len, expected.values())) == 120
    assert not problems


def test_an_unsolved_run_counts_with_its_cap_and_makes_the_mean_a_lower_bound():
    cell = cells([result(seed=0, solved=100), result(seed=1, solved=None)])[0]
    assert cell.mean_episodes == (100 + 2000) / 2
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
    assert cells(runs)[0].mean_episodes == pytest.approx((40 + 2000 + 30) / 3)


def test_runs_with_different_caps_are_never_averaged():
    with pytest.raises(ValueError, match=r"different caps \[1000, 2000\]"):
        cells([result(cap=1000), result(cap=2000, seed=1)])


def test_the_interval_is_the_bootstrap_of_the_mean():
    episodes = [100, 150, 220, 400, 90, 130]
    cell = cells([result(seed=seed, solved=solved) for seed, solved in enumerate(episodes)])[0]
    rng = np.random.default_rng(1)
    means = rng.choice(episodes, (40_000, len(episodes))).mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    assert interval_of(cell) == pytest.approx((low, high), rel=0.02)


def test_an_interval_with_an_unsolved_run_in_it_has_no_upper_end():
    complete = [result(seed=seed, solved=100 * (seed + 1)) for seed in range(3)]
    assert row_of(complete)["95 % interval"] == "100 to 300"
    cut_short = [*complete[:2], result(seed=2, solved=None)]
    assert row_of(cut_short)["95 % interval"] == "≥ 100"


def shaded_at(axes):
    """Return the lowest and the highest shade at each x that has any."""
    (shade,) = [one for one in axes.collections if isinstance(one, FillBetweenPolyCollection)]
    corners = [corner for path in shade.get_paths() for corner in path.vertices]
    return {x: (min(y for at, y in corners if at == x), max(y for at, y in corners if at == x)) for x, _ in corners}


def test_a_lower_bound_has_no_band_and_what_all_solved_has_its_interval():
    runs = [result(size=size, seed=seed, solved=100 * (seed + 1)) for size in (10, 20, 30) for seed in range(3)]
    runs[-1] = result(size=30, seed=2, solved=None)
    figure, caption = episodes_to_solve(runs)
    assert shaded_at(figure.axes[0]) == {cell.size: interval_of(cell) for cell in cells(runs)[:2]}
    assert "without an interval" in caption


def test_equal_runs_and_single_runs_have_no_interval():
    assert interval_of(cells([result()])[0]) is None
    assert interval_of(cells([result(seed=0), result(seed=1)])[0]) is None


def test_algorithms_come_in_the_order_of_the_paper():
    names = ["ids", "custom", "evoi:reduce=sum", "evoi", "gain", "ucb", "greedy"]
    order = [cell.variant.strategy for cell in cells([result(strategy=name) for name in names])]
    assert order == ["greedy", "ucb", "gain", "evoi", "evoi:reduce=sum", "ids", "custom"]


def test_the_answer_names_the_best_and_never_claims_more_than_the_runs():
    good = [result("evoi:reduce=sum", seed=seed, solved=100 + seed) for seed in range(3)]
    bad = [result("greedy", seed=seed, solved=None) for seed in range(3)]
    text = deep_sea_conclusion(good + bad)
    assert text.startswith("At N = 10, BootDQN-EVOI needed the fewest episodes: 101 on average, 3 of 3 runs solved.")
    assert "BootDQN, at least 2,000 (0 of 3 solved)" in text
    assert text.endswith("3 against 3 seeds are too few for a rank test.")
    neither = bad + [run._replace(variant=Variant("ucb")) for run in bad]
    assert deep_sea_conclusion(neither) == "At N = 10 no algorithm solved DeepSea before the cap (3 seeds each)."


def runs_of(strategy, solved, unsolved=0, episodes=100, cap=100_000):
    return [result(strategy, 10, seed, cap, episodes if seed < solved else None) for seed in range(solved + unsolved)]


def test_the_answer_ranks_by_the_fraction_solved_and_not_by_the_count():
    evoi, greedy = runs_of("evoi:reduce=sum", 3, 0, 300), runs_of("greedy", 4, 4, 5000, cap=10_000)
    assert deep_sea_conclusion(greedy + [run._replace(cap=10_000) for run in evoi]) == (
        "At N = 10, BootDQN-EVOI needed the fewest episodes: 300 on average, 3 of 3 runs solved. "
        "Next: BootDQN, at least 7,500 (4 of 8 solved); a rank test finds a difference (p = 0.012)."
    )


def test_the_answer_claims_fewest_only_of_a_mean_that_is_complete_and_the_lowest():
    often, quick = runs_of("gain", 10, 0, 50_000), runs_of("greedy", 9, 1, 500)
    assert deep_sea_conclusion(often + quick) == (
        "At N = 10, DeepSea was solved most often by BootDQN-Gain (10 of 10 runs, 50,000 episodes on average). "
        "Next: BootDQN, at least 10,450 (9 of 10 solved); the rank test favours the latter (p < 0.001)."
    )


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ((4, 0, 500), "BootDQN needed 500 episodes on average, 4 of 4 runs solved"),
        ((9, 1, 500), "BootDQN needed at least 10,450 episodes on average, 9 of 10 runs solved"),
        ((0, 1), "BootDQN did not solve DeepSea before the cap in 1 run"),
    ],
)
def test_the_answer_on_one_algorithm_compares_it_with_none(found, expected):
    assert (
        deep_sea_conclusion(runs_of("greedy", *found)) == f"At N = 10, {expected}; there is nothing to compare it with."
    )


def test_the_answer_names_all_that_solved_it_as_often_where_none_is_quickest():
    some = runs_of("gain", 2, 2) + runs_of("greedy", 4, 4, 200) + runs_of("ucb", 1, 4)
    assert deep_sea_conclusion(some) == (
        "At N = 10, DeepSea was solved most often by BootDQN-Gain (2 of 4 runs, at least 50,050 episodes on average) "
        "and BootDQN (4 of 8 runs, at least 50,100 episodes on average). "
        "Next: BootDQN-UCB, at least 80,020 (1 of 5 solved)."
    )
    tie = deep_sea_conclusion(runs_of("gain", 4) + runs_of("greedy", 4))
    assert "most often by BootDQN (4 of 4 runs, 100 episodes on average) and BootDQN-Gain (4 of 4" in tie


def test_the_answer_counts_the_seeds_of_every_algorithm():
    assert "(2 to 5 seeds each)" in deep_sea_conclusion(runs_of("gain", 0, 5) + runs_of("greedy", 0, 2))
    assert "(1 seed each)" in deep_sea_conclusion(runs_of("gain", 0, 1) + runs_of("greedy", 0, 1))
    assert deep_sea_conclusion(runs_of("gain", 5) + runs_of("greedy", 0, 2)).endswith(
        "5 against 2 seeds are too few for a rank test."
    )
    assert deep_sea_conclusion(runs_of("gain", 2) + runs_of("greedy", 2)).endswith(
        "2 seeds are too few for a conclusion."
    )


cell_of_runs = st.tuples(st.integers(0, 4), st.integers(0, 4), st.sampled_from([100, 200, 50_000])).filter(
    lambda c: c[0] + c[1]
)


@given(st.dictionaries(st.sampled_from(["greedy", "ucb", "gain"]), cell_of_runs, min_size=2))
def test_no_algorithm_beats_the_one_that_the_answer_names_first(found):
    """Nobody solves a larger fraction, and "the fewest" is below every other mean, even where that is only a bound."""
    text = deep_sea_conclusion([run for name, cell in found.items() for run in runs_of(name, *cell)])
    names = {"greedy": "BootDQN", "ucb": "BootDQN-UCB", "gain": "BootDQN-Gain"}
    fractions = {name: solved / (solved + not_) for name, (solved, not_, _) in found.items()}
    means = {name: (solved * at + not_ * 100_000) / (solved + not_) for name, (solved, not_, at) in found.items()}
    most = {name for name in found if fractions[name] == max(fractions.values())}
    lowest = {name for name in found if means[name] == min(means.values())}
    if max(fractions.values()) == 0:
        assert "no algorithm solved DeepSea" in text
    elif max(fractions.values()) == 1 and len(lowest) == 1 and lowest <= most:
        assert f", {names[lowest.pop()]} needed the fewest episodes: " in text
    else:
        first = text.partition(" Next: ")[0]
        assert "solved most often by" in first
        assert {name for name in found if f"{names[name]} (" in first} == most


def test_the_terminal_table_explains_its_bounds():
    shown = terminal_table(deep_sea_table([result(solved=None)]))
    assert shown.row_count == 1
    assert "lower bound" in shown.caption
    assert terminal_table(deep_sea_table([result()])).caption is None


@pytest.mark.parametrize("sizes", [(10,), (5, 10, 15)])
def test_the_figure_shows_every_seed_and_the_cap(sizes):
    runs = [
        result(strategy, size, seed, solved=None if strategy == "ucb" else 100 * size)
        for strategy in ("greedy", "ucb")
        for size in sizes
        for seed in range(3)
    ]
    (axes,) = episodes_to_solve(runs)[0].axes
    solved = [(size, 100 * size) for size in sizes for _ in range(3)]
    if len(sizes) == 1:
        assert sorted(round(y) for _, y in marks(axes)) == [1000] * 3 + [2000] * 4, "three seeds and a lower bound"
        assert [(text.get_text(), text.xy[1]) for text in axes.texts] == [("cap", 2000)]
    else:
        assert sorted((round(x), round(y)) for x, y in marks(axes)) == sorted(solved)
        *counts, algorithm, _ = [(text.get_text(), text.xy[0]) for text in axes.texts]
        assert counts == [("3/3", size) for size in sizes]
        assert algorithm == ("BootDQN-UCB", 1.01)
    assert axes.get_yticks()[-1] == 2000
    assert axes.get_lines()[0].get_ydata() == [2000, 2000]


def marks(axes):
    """Return every dot, cross and triangle."""
    groups = [collection for collection in axes.collections if isinstance(collection, PathCollection)]
    return [point for collection in groups for point in collection.get_offsets()]


def test_counts_of_unsolved_seeds_stand_above_the_cap_in_the_order_of_the_legend():
    unsolved = {("greedy", 5): 1, ("ucb", 5): 0, ("gain", 5): 2, ("greedy", 10): 3, ("ucb", 10): 0, ("gain", 10): 0}
    runs = [
        result(strategy, size, seed, solved=None if seed < count else 100)
        for (strategy, size), count in unsolved.items()
        for seed in range(3)
    ]
    (axes,) = episodes_to_solve(runs)[0].axes
    *texts, name = axes.texts
    found = {(text.xy[0], text.get_text()): text.xy[1] for text in texts}
    assert set(found) == {(5, "1/3"), (10, "3/3"), (5, "2/3"), (1.01, "BootDQN"), (1.01, "BootDQN-Gain")}
    assert found[1.01, "BootDQN"] == found[5, "1/3"], "a name beside the counts, not only a colour"
    assert found[5, "1/3"] == found[10, "3/3"] > found[5, "2/3"] > 2000
    assert name.get_text() == "unsolved"
    assert axes.get_ylim()[1] > found[5, "1/3"]
    assert len(marks(axes)) == 2 + 1 + 9 + 2, "seeds that solved it, and two lower bounds"


def test_a_line_ends_where_no_seed_solved_it():
    runs = [result(size=size, seed=seed, solved=None if size == 10 else 100) for size in (5, 10, 15) for seed in (0, 1)]
    lines = [line for line in episodes_to_solve(runs)[0].axes[0].get_lines() if len(set(line.get_xdata())) == 2]
    assert [list(line.get_xdata()) for line in lines] == [[0, 1]], "only that of the cap"


def test_lines_to_cells_of_few_seeds_are_dotted():
    runs = [result(size=size, seed=seed) for size, seeds in ((5, 3), (10, 3), (15, 2)) for seed in range(seeds)]
    lines = [line for line in episodes_to_solve(runs)[0].axes[0].get_lines() if len(set(line.get_xdata())) == 2]
    styles = {tuple(line.get_xdata()): line.get_linestyle() for line in lines}
    assert (styles[5.0, 10.0], styles[10.0, 15.0]) == ("-", ":")


def test_the_same_results_give_the_same_picture():
    assert to_svg(episodes_to_solve([result()])[0]) == to_svg(episodes_to_solve([result()])[0])


def test_the_fraction_that_solved_it_is_a_bar():
    runs = [result(seed=seed, solved=100 if seed else None) for seed in range(4)]
    (bar,) = deep_sea_figures.solved_fraction(deep_sea_table(runs)).axes[0].patches
    assert bar.get_height() == 0.75
