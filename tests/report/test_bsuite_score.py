"""bsuite's score against a computation by hand, and no score where sizes are missing."""

import pytest

from bootdqn.config.variants import Variant
from bootdqn.report.bsuite_score import SIZES, beats_random_play, frontier, score, score_table, scored
from bootdqn.report.deep_sea import Result, cells

GAIN = Variant("gain")
PRIOR = Variant("gain", (("prior_scale", 3.0),))


def result(size, solved, seed=0, variant=GAIN, cap=10_000, strict=...):
    return Result(variant, size, seed, cap, solved, solved if strict is ... else strict)


def row_of(results):
    table = score_table(results, "bsuite-score")
    (row,) = table.rows
    return dict(zip(table.columns, row, strict=True))


def test_the_sizes_are_bsuites():
    assert SIZES == (10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34, 36, 38, 40, 42, 44, 46, 48, 50)


@pytest.mark.parametrize(
    ("size", "solved", "cap", "counts"),
    [
        (10, 2**10 + 99, 10_000, True),
        (10, 2**10 + 100, 10_000, False),
        (12, 4195, 10_000, True),
        (12, 4196, 10_000, False),
        (14, 10_000, 10_000, True),
        (50, 10_000, 10_000, True),
        (50, 10_001, 20_000, False),
        (50, None, 10_000, False),
    ],
)
def test_a_run_counts_if_it_is_solved_in_time_and_sooner_than_by_chance(size, solved, cap, counts):
    assert beats_random_play(result(size, solved, cap=cap)) is counts


def test_the_score_reads_solved_as_bsuite_does():
    assert beats_random_play(result(20, 9, strict=None))


def test_the_score_of_all_sizes_is_the_fraction_solved_averaged_over_seeds():
    solved_up_to = {0: 30, 1: 20, 2: 50}
    runs = [result(size, 500 if size <= last else None, seed) for seed, last in solved_up_to.items() for size in SIZES]
    by_hand = (11 / 21 + 6 / 21 + 21 / 21) / 3
    (groups,) = scored(runs).values()
    assert score(groups) == pytest.approx(by_hand)
    row = row_of(runs)
    assert (row["score"], row["sizes"], row["seeds"]) == (f"{by_hand:.3f}", "21 of 21", "3")
    assert row["score on a part"] == row["so the score is within"] == ""
    assert row["largest N solved by half"] == "30"


def test_there_is_no_score_on_a_part_of_the_sizes_only_bounds_of_it():
    runs = [result(size, 500 if size < 16 else None) for size in SIZES[:5]]
    row = row_of(runs)
    assert (row["score"], row["score on a part"], row["sizes"]) == ("", "0.600 on 5 sizes", "5 of 21")
    assert row["so the score is within"] == f"{3 / 21:.3f} to {19 / 21:.3f}"


def test_too_few_sizes_other_sizes_and_shorter_runs_are_not_scored():
    assert score_table([result(size, 500) for size in SIZES[:4]], "bsuite-score") is None
    assert score_table([result(size, 500) for size in range(11, 50, 2)], "bsuite-score") is None
    assert score_table([result(size, 500, cap=2000) for size in SIZES], "bsuite-score") is None


def test_variants_are_scored_apart():
    runs = [result(size, 500, variant=PRIOR) for size in SIZES] + [result(size, None) for size in SIZES]
    assert [(row[0], row[1]) for row in score_table(runs, "bsuite-score").rows] == [
        ("BootDQN-Gain", "0.000"),
        ("BootDQN-Gain + prior 3", "1.000"),
    ]


def test_the_frontier_is_the_largest_size_that_half_of_the_seeds_solved():
    solved = {10: (5, 5), 12: (5, None), 14: (None, None), 16: (None, 5), 18: (None, None)}
    runs = [result(size, value, seed) for size, values in solved.items() for seed, value in enumerate(values)]
    assert frontier(cells(runs)) == 16
    assert frontier(cells([result(10, None)])) is None
    thin = [result(10, 9, strict=None)]
    assert frontier(cells(thin)) is None, "by the strict reading"
