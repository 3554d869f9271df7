"""The comparisons of a report: the difference, its interval and its test, against SciPy's own."""

import csv
import re

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import bootdqn
from bootdqn.cli.main import run_command_line
from bootdqn.common.errors import UsageError
from bootdqn.config.variants import Variant
from bootdqn.reports.comparisons import Comparison, Result, baseline_table, comparisons_table
from bootdqn.reports.conclusions import deep_sea_conclusion
from bootdqn.reports.deep_sea import solve_table
from bootdqn.reports.statistics import interval_of_difference
from bootdqn.reports.suites import ATARI
from reference.run_directories import write_deep_sea, write_gym
from reference.tables import AtariRun, DeepSeaRun, deep_sea_table, evaluations_table

NO_GYM = pd.DataFrame(columns=["task", "budget"])
MINUS = "\N{MINUS SIGN}"


def result(strategy, size, seed, solved=100, cap=2000, **settings):
    return DeepSeaRun(Variant(strategy, tuple(sorted(settings.items()))), size, seed, cap, solved, solved)


def first_row(runs):
    table = comparisons_table(deep_sea_table(runs), {ATARI: evaluations_table([])}, NO_GYM)
    return None if table is None else dict(zip(table.columns, table.rows[0], strict=True))


def against_baseline(runs, games=(), baseline=None):
    table = baseline_table(deep_sea_table(runs), {ATARI: evaluations_table(games)}, NO_GYM, baseline)
    return table, [dict(zip(table.columns, row, strict=True)) for row in table.rows] if table else []


def test_the_best_is_compared_with_the_next_at_the_largest_size_from_four_seeds_on():
    ours, theirs = (100, 110, 120, 130), (200, 240, 260, 300)
    runs = [result("gain", 10, seed, solved=value) for seed, value in enumerate(ours)]
    runs += [result("greedy", 10, seed, solved=value) for seed, value in enumerate(theirs)]
    runs += [result("greedy", 5, seed, solved=20) for seed in range(4)]
    row = first_row(runs)
    assert row["task"] == "DeepSea, N = 10"
    assert (row["best"], row["next"]) == ("BootDQN-Gain: 115", "BootDQN: 250")
    assert row["difference"] == "\N{MINUS SIGN}135"
    assert row["rank test"] == f"p = {stats.mannwhitneyu(ours, theirs, method='exact').pvalue:.3f}"
    assert row["seeds"] == "4 and 4"


def test_a_difference_to_runs_that_reached_the_cap_is_a_bound():
    runs = [result("gain", 10, seed, solved=100 + seed) for seed in range(4)]
    runs += [result("greedy", 10, seed, solved=None) for seed in range(4)]
    row = first_row(runs)
    assert row["next"] == "BootDQN: ≥ 2,000"
    assert row["difference"].startswith("≤ \N{MINUS SIGN}1,898")
    assert row["95 % interval"].startswith("≤ \N{MINUS SIGN}1,89")
    few = Comparison("task", "episodes", Result("a", (2000, 100), True), Result("b", (2000, 2000), True)).row()
    assert few[4:7] == ("", "", "too few seeds")


def test_the_difference_of_bounds_is_bounded_on_the_side_that_is_known():
    low, high = Result("low", (10, 20, 30)), Result("high", (80, 100, 100), censored=True)
    assert Comparison("task", "episodes", low, high).row()[4:6] == (f"≤ {MINUS}73.33", f"≤ {MINUS}60")
    assert Comparison("task", "episodes", high, low).row()[4:6] == ("≥ +73.33", "≥ +60")


def test_an_interval_of_a_difference_is_that_of_resampled_means():
    rng = np.random.default_rng(1)
    ours, theirs = rng.normal(10, 3, 12), rng.normal(4, 2, 9)
    low, high = interval_of_difference(list(ours), list(theirs))
    means = [rng.choice(ours, 12).mean() - rng.choice(theirs, 9).mean() for _ in range(20_000)]
    assert (low, high) == pytest.approx(tuple(np.quantile(means, [0.025, 0.975])), abs=0.15)
    assert interval_of_difference([1.0, 2.0], [1.0, 2.0, 3.0]) is None
    assert interval_of_difference([1.0] * 3, [2.0] * 3) is None


def test_a_mean_is_the_same_in_the_answer_in_the_comparison_and_in_the_table():
    episodes = {"gain": (104, 105), "greedy": (145, None)}
    runs = [result(of, 10, seed, at, cap=146) for of, both in episodes.items() for seed, at in enumerate(both)]
    row, found = first_row(runs), deep_sea_table(runs)
    assert (row["best"], row["next"]) == ("BootDQN-Gain: 104.5", "BootDQN: ≥ 145.5")
    answer = deep_sea_conclusion(found)
    assert "episodes: 104.5 on average" in answer
    assert "BootDQN, at least 145.5" in answer
    assert [of_table[3] for of_table in solve_table(found).rows] == ["≥ 145.5", "104.5"]


def test_one_algorithm_alone_has_no_comparison():
    assert first_row([result("gain", 10, seed) for seed in range(4)]) is None
    assert first_row([]) is None


EPISODES = {
    ("greedy", 10): (200, 240, 260, 300, 310),
    ("greedy", 20): (400, 480, 520, 600, 640),
    ("ucb", 10): (150, 210, 305, 320, 330),
    ("ucb", 20): (410, 450, 700, 710, 720),
    ("gain", 10): (100, 110, 120, 130, 140),
    ("gain", 20): (300, 310, 320, 330, 650),
}


def test_every_algorithm_is_compared_with_bootdqn_at_every_size():
    runs = [result(*of, seed, solved=value) for of, values in EPISODES.items() for seed, value in enumerate(values)]
    table, rows = against_baseline(runs)
    assert table.title == "Every algorithm against BootDQN"
    pairs = [("ucb", 10), ("gain", 10), ("ucb", 20), ("gain", 20)]
    tested = [stats.mannwhitneyu(EPISODES[one], EPISODES["greedy", one[1]], method="exact").pvalue for one in pairs]
    for (strategy, size), row, p in zip(pairs, rows, tested, strict=True):
        ours, theirs = EPISODES[strategy, size], EPISODES["greedy", size]
        label = {"ucb": "BootDQN-UCB", "gain": "BootDQN-Gain"}[strategy]
        assert (row["task"], row["seeds"]) == (f"DeepSea, N = {size}", "5 and 5")
        assert row["algorithm"] == f"{label}: {np.mean(ours):g}"
        assert row["baseline"] == f"BootDQN: {np.mean(theirs):g}"
        assert float(row["difference"].replace(MINUS, "-")) == pytest.approx(np.mean(ours) - np.mean(theirs))
        ends = [float(end.replace(MINUS, "-")) for end in row["95 % interval"].split(" to ")]
        assert ends == pytest.approx(interval_of_difference(ours, theirs), rel=1e-3)
        assert row["rank test"] == f"p = {p:.3f}"
        smaller = [other for other in tested if other <= p]
        holm = max((len(tested) - sum(least < other for least in tested)) * other for other in smaller)
        assert row["corrected"] == f"p = {min(1, holm):.3f}"
    assert [row["corrected"] for row in rows][1] == "p = 0.032", "4 times 2 / 252"
    assert "by Holm's method for the 4 comparisons" in table.note
    assert "With these seeds" not in table.note


def test_the_test_of_four_seeds_survives_no_correction_and_the_note_says_how_many_would_do():
    algorithms = {"greedy": 300, "ucb": 200, "gain": 100}
    runs = [result(name, 10, seed, solved=at + seed) for name, at in algorithms.items() for seed in range(4)]
    table, rows = against_baseline(runs)
    assert [(row["rank test"], row["corrected"]) for row in rows] == [("p = 0.029", "p = 0.057")] * 2
    assert "With these seeds no corrected p-value can be below 0.05; with 5 of each algorithm one can." in table.note


def test_too_few_seeds_are_not_tested_and_not_counted():
    runs = [result("greedy", 10, seed, solved=300 + seed) for seed in range(5)]
    runs += [result("gain", 10, seed, solved=100 + seed) for seed in range(5)]
    runs += [result("ucb", 10, seed, solved=200) for seed in range(1)]
    table, (few, enough) = against_baseline(runs)
    assert (few["rank test"], few["corrected"], few["seeds"]) == ("too few seeds", "", "1 and 5")
    assert enough["corrected"] == enough["rank test"] == "p = 0.008"
    assert "for the 1 comparison tested" in table.note


def test_runs_with_different_caps_are_compared_apart():
    runs = [
        result(name, 10, seed, solved=at, cap=cap)
        for name, at in (("greedy", 50), ("gain", 40))
        for cap in (100, 2000)
        for seed in range(2)
    ]
    assert [row["task"] for row in against_baseline(runs)[1]] == [
        "DeepSea, N = 10, at most 2,000 episodes",
        "DeepSea, N = 10, at most 100 episodes",
    ]


def test_the_baseline_is_bootdqn_with_the_fewest_settings_and_never_dqn():
    both = [result("greedy", 10, 0, prior_scale=3.0), result("greedy", 10, 0), result("gain", 10, 0)]
    assert against_baseline(both)[0].title.endswith("against BootDQN")
    assert [row["algorithm"] for row in against_baseline(both)[1]] == ["BootDQN + prior 3: 100", "BootDQN-Gain: 100"]
    changed = [both[0], both[2], result("greedy", 10, 0, prior_scale=3.0, n_step=3)]
    assert against_baseline(changed)[0].title.endswith("against BootDQN + prior 3")
    dqn = [result("greedy", 10, 0, num_heads=1, epsilon=0.1), both[2]]
    assert against_baseline(dqn)[0] is None
    assert against_baseline([])[0] is None
    assert against_baseline(both[1:2])[0] is None


def test_a_task_without_the_sections_baseline_has_its_own():
    plain = [result(strategy, 10, seed) for strategy in ("greedy", "gain") for seed in range(4)]
    with_prior = [result(strategy, 20, seed, prior_scale=3.0) for strategy in ("greedy", "gain") for seed in range(4)]
    table, rows = against_baseline(plain + with_prior)
    assert table.title.endswith("against the baseline")
    assert [(row["task"], row["baseline"]) for row in rows] == [
        ("DeepSea, N = 10", "BootDQN: 100"),
        ("DeepSea, N = 20", "BootDQN + prior 3: 100"),
    ]


def test_tasks_without_the_chosen_baseline_are_named():
    small = [result(strategy, 10, seed) for strategy in ("greedy", "gain") for seed in range(4)]
    large = [result(strategy, 20, seed) for strategy in ("greedy", "ucb") for seed in range(4)]
    table, rows = against_baseline(small + large, baseline="BootDQN-Gain")
    assert [row["task"] for row in rows] == ["DeepSea, N = 10"]
    assert "Left out, since BootDQN-Gain was not run there: DeepSea, N = 20." in table.note
    assert "Left out" not in against_baseline(small + large)[0].note


def test_one_seed_against_many_is_not_tested():
    runs = [result("greedy", 10, seed) for seed in range(45)] + [result("gain", 10, 0, 50)]
    assert against_baseline(runs)[1][0]["rank test"] == "too few seeds"


def test_another_algorithm_is_the_baseline_by_its_label():
    runs = [result(name, 10, 0) for name in ("greedy", "ucb", "gain")]
    table, rows = against_baseline(runs, baseline="BootDQN-Gain")
    assert table.title == "Every algorithm against BootDQN-Gain"
    assert [row["algorithm"] for row in rows] == ["BootDQN: 100", "BootDQN-UCB: 100"]
    with pytest.raises(UsageError, match="in these results, got 'BootDQN-Gian'; did you mean 'BootDQN-Gain'"):
        against_baseline(runs, baseline="BootDQN-Gian")
    with pytest.raises(UsageError, match=r"got 'evoi'; choose from 'BootDQN', 'BootDQN-UCB', 'BootDQN-Gain'$"):
        against_baseline(runs, baseline="evoi")
    every_step = [result("gain", 10, 0, update_every=1), result("gain", 10, 0, update_every=1, prior_scale=3.0)]
    with pytest.raises(UsageError, match="did you mean 'BootDQN-Gain, update every step'"):
        against_baseline(every_step, baseline="BootDQN-Gain")
    with pytest.raises(UsageError, match=r"got 'BootDQN'; no run on DeepSea, .* has a result yet$"):
        against_baseline([], baseline="BootDQN")


def test_games_are_compared_within_the_frames_that_all_have():
    games = [AtariRun("Hero", "greedy", seed, scores=(1.0 + seed, 9.0), frames=(10, 20)) for seed in range(4)]
    games += [AtariRun("Hero", "evoi", seed, scores=(10.0 + seed,), frames=(10,)) for seed in range(4)]
    games += [AtariRun("Venture", "evoi", 0, scores=(5.0,))]
    _, (row,) = against_baseline([], games)
    assert (row["task"], row["measure"]) == ("Hero", "maximal score")
    assert (row["algorithm"], row["baseline"], row["difference"]) == ("BootDQN-EVOI: 11.5", "BootDQN: 2.5", "+9")
    assert (row["rank test"], row["corrected"]) == ("p = 0.029", "p = 0.029")


def test_environments_are_compared_at_each_budget_from_python_too(tmp_path):
    for steps, raised in ((1000, 0.0), (2000, 5.0)):
        for seed in range(3):
            for strategy, last in (("greedy", 2.0), ("gain", 4.0 + raised)):
                values = (1.0, last + seed, 20.0)
                write_gym(tmp_path / f"{strategy}/{steps}/{seed}", strategy, seed, values, total_steps=steps)
    assert bootdqn.report(tmp_path, baseline="BootDQN-Gain").path == tmp_path / "report.html"
    with (tmp_path / "report_files/tables/against-baseline.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["task"], row["measure"], row["difference"]) for row in rows] == [
        ("CartPole-v1, 1,000 steps", "last evaluation", f"{MINUS}2"),
        ("CartPole-v1, 2,000 steps", "last evaluation", f"{MINUS}7"),
    ]
    assert {(row["rank test"], row["corrected"]) for row in rows} == {("too few seeds", "")}
    assert "no corrected p-value can be below 0.05; with 5 of each" in (tmp_path / "report.html").read_text()
    with pytest.raises(ValueError, match="`watch` compares nothing"):
        bootdqn.report(tmp_path, baseline="BootDQN-Gain", watch=True)


@pytest.fixture
def runs(tmp_path):
    for seed in range(4):
        for strategy, solved in (("greedy", 300), ("gain", 200), ("ucb", 100)):
            write_deep_sea(tmp_path / f"sea/{strategy}/{seed}", strategy, 10, seed, 1000, solved + seed)
    return tmp_path


def test_a_report_has_the_baseline_of_the_command_line(runs, capsys):
    page, tables = runs / "report.html", runs / "report_files/tables"
    assert run_command_line(["report", str(runs)]) == 0
    assert "<h3>Every algorithm against BootDQN</h3>" in page.read_text()
    assert run_command_line(["report", str(runs), "--baseline", "BootDQN-UCB"]) == 0
    text = page.read_text()
    assert "<h3>Every algorithm against BootDQN-UCB</h3>" in text
    assert text.index("The comparison this rests on") < text.index("Every algorithm") < text.index("Episodes to solve")
    assert "--baseline BootDQN-UCB --out" in text
    assert (tables / "against-baseline.csv").read_text().count("BootDQN-UCB: 101.5") == 2
    assert r"\caption{Every algorithm against BootDQN-UCB}" in (tables / "against-baseline.tex").read_text()
    capsys.readouterr()
    assert run_command_line(["report", str(runs), "--baseline", "BootDQN-UBC"]) == 2
    assert re.search(r"--baseline .*'BootDQN-UBC'; did you mean 'BootDQN-UCB'\?\n$", capsys.readouterr().err)
    assert run_command_line(["report", str(runs), "--baseline", "BootDQN-UCB", "--watch"]) == 2
    assert "leave out --baseline, or --watch" in capsys.readouterr().err


def test_a_report_without_bootdqn_has_no_such_table(tmp_path):
    for strategy in ("gain", "ucb"):
        write_deep_sea(tmp_path / strategy, strategy)
    assert run_command_line(["report", str(tmp_path)]) == 0
    assert "Every algorithm against" not in (tmp_path / "report.html").read_text()
    assert not (tmp_path / "report_files/tables/against-baseline.csv").exists()
    assert (tmp_path / "report_files/tables/comparisons.csv").exists()
