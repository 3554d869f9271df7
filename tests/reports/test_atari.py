"""Atari runs: a seed counts once, and runs of different lengths are compared where all were evaluated."""

import itertools

import pytest
from matplotlib.collections import FillBetweenPolyCollection

from bootdqn.reports import atari_figures
from bootdqn.reports.atari import (
    best_scores,
    common_budgets,
    curve,
    evaluations_of,
    improvements,
    maximal_scores,
    within_common_budget,
)
from bootdqn.reports.atari_heads import runtime_table
from bootdqn.reports.conclusions import games_conclusion
from bootdqn.reports.report import write_report
from bootdqn.reports.report_data import load_report_data
from reference.run_directories import write_atari


def read(root):
    """Return the evaluations of the runs that count, and why others do not."""
    study = load_report_data(root)
    return evaluations_of(study), {run.run: run.problem for run in study.runs.itertuples() if run.problem}


def rows(table):
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def test_there_is_no_equal_budget_where_a_run_was_not_evaluated_within_it(tmp_path):
    write_atari(tmp_path / "often", scores=(7.0,), every=50_000, eval_every_frames=50_000)
    write_atari(tmp_path / "seldom", scores=(1.0, 3.0), every=1_000_000)
    evaluations, _ = read(tmp_path)
    assert common_budgets(evaluations) == {}
    found = {row["ours"]: (row["ours at equal budget"], row["budget"]) for row in rows(maximal_scores(evaluations))}
    assert found == {"7.0": ("", ""), "3.0": ("", "")}
    assert write_report(tmp_path, tmp_path / "out.html").exists()


def test_an_equal_budget_has_an_evaluation_of_every_run(tmp_path):
    write_atari(tmp_path / "often", scores=range(1, 22), every=50_000, eval_every_frames=50_000)
    write_atari(tmp_path / "seldom", scores=(1.0, 3.0), every=1_000_000)
    evaluations, _ = read(tmp_path)
    assert common_budgets(evaluations) == {"Hero": 1_050_000}
    found = {row["ours"]: row["ours at equal budget"] for row in rows(maximal_scores(evaluations))}
    assert found == {"21.0": f"{sum(range(12, 22)) / 10:,.1f}", "3.0": "1.0"}


def test_copies_of_a_run_count_once(tmp_path):
    for name in ("a", "b", "c"):
        write_atari(tmp_path / name, seed=0, status="interrupted" if name == "a" else "finished")
    evaluations, problems = read(tmp_path)
    assert list(evaluations.run.unique()) == ["a"]
    same = "the same algorithm, game and seed as a, which is counted"
    assert problems == {
        "a": "interrupted: its evaluations so far are counted, up to 2,000,000 frames",
        "b": same,
        "c": same,
    }
    assert rows(maximal_scores(evaluations))[0]["seeds"] == "1"


def test_of_a_seed_the_run_that_was_evaluated_for_longest_counts(tmp_path):
    for name, length in (("a", 1), ("b", 2), ("c", 4), ("d", 3)):
        write_atari(tmp_path / name, seed=0, scores=[1.0] * length)
    write_atari(tmp_path / "e", seed=1, scores=[1.0])
    write_atari(tmp_path / "f", game="Alien", seed=0, scores=[1.0])
    write_atari(tmp_path / "g", strategy="gain", seed=0, scores=[1.0])
    evaluations, problems = read(tmp_path)
    assert list(evaluations.run.unique()) == ["c", "e", "f", "g"]
    assert problems == dict.fromkeys("abd", "the same algorithm, game and seed as c, which is counted")


def test_runs_of_different_lengths_are_marked_beside_their_mean(tmp_path):
    """`total_frames` only sets when a run stops: its first frames are those of a longer one."""
    write_atari(tmp_path / "a", seed=0, scores=(1.0, 9.0, 3.0))
    write_atari(tmp_path / "b", seed=1, scores=(5.0, 2.0, 4.0, 100.0))
    (row,) = rows(maximal_scores(read(tmp_path)[0]))
    assert (row["frames"], row["budget"], row["seeds"]) == ("3M to 4M", "3M", "2")


def test_a_run_wins_nothing_by_being_longer(tmp_path):
    """Gain is ahead of EVOI within the two evaluations that both have."""
    write_atari(tmp_path / "evoi", strategy="evoi", scores=(1.0, 2.0, 9.0, 3.0))
    write_atari(tmp_path / "gain", strategy="gain", scores=(4.0, 3.0))
    evaluations, _ = read(tmp_path)
    common = within_common_budget(evaluations)
    assert list(common.frames) == [10**6, 2 * 10**6] * 2
    assert best_scores(common) == [2.0, 4.0]
    assert [(row["algorithm"], row["probability"]) for row in rows(improvements(evaluations))] == [
        ("BootDQN-Gain", "1.00"),
        ("BootDQN-EVOI", "0.00"),
    ]
    assert games_conclusion(evaluations) == (
        "On Atari, BootDQN-Gain has the highest maximal score in 1 of 1 game, of 2 algorithms on 1 seed and 2M frames."
    )


def test_a_game_without_frames_in_common_is_not_compared(tmp_path):
    write_atari(tmp_path / "often", scores=(7.0,), every=50_000, eval_every_frames=50_000)
    write_atari(tmp_path / "seldom", scores=(1.0, 3.0), every=1_000_000)
    evaluations, _ = read(tmp_path)
    assert within_common_budget(evaluations).empty
    assert within_common_budget(evaluations[:1], most=10_000).empty
    assert improvements(evaluations) is None
    assert games_conclusion(evaluations) == "On Atari there is nothing to compare yet: 2 runs, 2 algorithms."


def test_the_scores_of_each_k_are_those_within_the_same_frames(tmp_path):
    write_atari(tmp_path / "2", num_heads=2, scores=(1.0, 2.0))
    write_atari(tmp_path / "10", num_heads=10, scores=(2.0, 1.0, 9.0))
    found = [(row["K"], row["maximal score"], row["within frames"]) for row in rows(runtime_table(read(tmp_path)[0]))]
    assert found == [("2", "2.0", "2M"), ("10", "2.0", "2M")]


def test_the_papers_speed_at_each_k_follows_from_its_runtime(tmp_path):
    """100 million frames took 24 hours and 53 minutes with two heads, 39 hours and 3 minutes with ten."""
    for num_heads in (2, 3, 10):
        write_atari(tmp_path / str(num_heads), num_heads=num_heads)
    found = {row["K"]: row["frames/s, paper"] for row in rows(runtime_table(read(tmp_path)[0]))}
    assert found == {"2": "1,116", "3": "", "10": "711"}


@pytest.mark.parametrize("change", [{"device": "cuda"}, {"threads": 7}, {"engine": "torch"}])
def test_speeds_are_averaged_and_compared_only_where_they_were_computed_alike(tmp_path, change):
    for heads, seed in itertools.product((2, 4, 6, 8, 10), (0, 1)):
        changes = change if heads == 6 or (heads, seed) == (8, 1) else {}
        write_atari(tmp_path / f"{heads}-{seed}", seed=seed, num_heads=heads, scores=(1.0,), **changes)
    table = runtime_table(read(tmp_path)[0])
    assert [(row["K"], row["frames/s, ours"], row["time against the K before"]) for row in rows(table)] == [
        ("2", "5,000", ""),
        ("4", "2,500", "+100 %"),
        ("6", "1,667", ""),
        ("8", "", ""),
        ("10", "1,000", ""),
    ]
    assert "differ in device, threads, engine or precision are neither averaged nor compared in speed" in table.note


def test_a_run_that_has_not_ended_has_no_speed(tmp_path):
    write_atari(tmp_path / "2", num_heads=2, status="interrupted")
    write_atari(tmp_path / "4", num_heads=4)
    assert [row["frames/s, ours"] for row in rows(runtime_table(read(tmp_path)[0]))] == ["", "5,000"]


@pytest.mark.parametrize(("seeds", "bands"), [(1, 0), (2, 0), (3, 1)])
def test_a_band_is_shaded_from_three_seeds_on(tmp_path, seeds, bands):
    for seed in range(seeds):
        write_atari(tmp_path / str(seed), seed=seed, scores=(1.0 + seed, 2.0 - seed))
    (axes,) = atari_figures.scores(read(tmp_path)[0]).axes
    assert sum(isinstance(one, FillBetweenPolyCollection) for one in axes.collections) == bands


def test_the_papers_scores_of_the_algorithms_plotted_are_marked_or_written_out_where_they_are_far_above(tmp_path):
    """Of Hero the paper has 21,537 for BootDQN, 28,309 for Gain and 28,539.3 for EVOI."""
    write_atari(tmp_path / "greedy", strategy="greedy", scores=(1_000.0, 12_000.0))
    write_atari(tmp_path / "gain", strategy="gain", scores=(1_000.0, 13_000.0))
    write_atari(tmp_path / "another", strategy="gain", num_heads=3, scores=(1_000.0, 11_000.0))
    write_atari(tmp_path / "ours", strategy="vote", scores=(1_000.0, 12_500.0))
    figure = atari_figures.scores(read(tmp_path)[0])
    (axes,) = figure.axes
    assert [line.get_ydata().tolist() for line in axes.lines if line.get_marker() == "<"] == [[21_537.0]]
    assert [text.get_text() for text in axes.texts] == ["random", "↑ BootDQN-Gain in the paper: 28,309.0"]
    assert "the paper's maximal score" in [text.get_text() for text in figure.legends[0].get_texts()]


@pytest.mark.parametrize("game", ["Alien", "Pong"])
def test_nothing_is_marked_where_the_paper_has_no_score_within_sight(tmp_path, game):
    write_atari(tmp_path / "run", game=game, scores=(1.0, 2.0))
    figure = atari_figures.scores(read(tmp_path)[0])
    assert all(line.get_marker() != "<" for line in figure.axes[0].lines)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["BootDQN-EVOI"]


@pytest.mark.parametrize(("evaluations", "window"), [(4, 1), (19, 1), (20, 2), (99, 9), (100, 10), (200, 10)])
def test_a_curve_averages_over_a_tenth_of_the_evaluations_and_ten_at_most(tmp_path, evaluations, window):
    scores = [float(number**2 % 17) for number in range(evaluations)]
    write_atari(tmp_path / "run", scores=scores, every=1_000_000)
    _, found = curve(read(tmp_path)[0])
    slow = [sum(scores[max(0, end - window) : end]) / min(end, window) for end in range(1, evaluations + 1)]
    assert found[0] == pytest.approx(slow)
