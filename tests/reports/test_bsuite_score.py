"""bsuite's score against a computation by hand, and no score where sizes are missing."""

import pytest

from bootdqn.config.variants import Variant
from bootdqn.reports import bsuite
from bootdqn.reports.bsuite import DEEP_SEA_SIZES as BSUITE_SIZES
from bootdqn.reports.bsuite import beats_random_play
from bootdqn.reports.deep_sea import cells, largest_solved
from reference.tables import DeepSeaRun, deep_sea_table

GAIN = Variant("gain")
PRIOR = Variant("gain", (("prior_scale", 3.0),))


def result(size, solved, seed=0, variant=GAIN, cap=10_000, strict=...):
    return DeepSeaRun(variant, size, seed, cap, solved, solved if strict is ... else strict)


def score_table(runs):
    return bsuite.deep_sea_table(deep_sea_table(runs), "bsuite-score")


def row_of(runs):
    table = score_table(runs)
    (row,) = table.rows
    return dict(zip(table.columns, row, strict=True))


def test_the_sizes_are_bsuites():
    assert BSUITE_SIZES == (10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34, 36, 38, 40, 42, 44, 46, 48, 50)


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
    runs = deep_sea_table([result(size, solved, cap=cap)])
    assert beats_random_play(runs["size"], runs.solved_at).item() == counts


def test_the_score_reads_solved_as_bsuite_does():
    runs = deep_sea_table([result(20, 9, strict=None)])
    assert beats_random_play(runs["size"], runs.solved_at).item() == 1


def test_the_score_of_all_sizes_is_the_fraction_solved_averaged_over_seeds():
    solved_up_to = {0: 30, 1: 20, 2: 50}
    runs = [
        result(size, 500 if size <= last else None, seed)
        for seed, last in solved_up_to.items()
        for size in BSUITE_SIZES
    ]
    by_hand = (11 / 21 + 6 / 21 + 21 / 21) / 3
    assert bsuite.deep_sea_scores(deep_sea_table(runs)).score.item() == pytest.approx(by_hand)
    row = row_of(runs)
    assert (row["score"], row["sizes"], row["seeds"]) == (f"{by_hand:.3f}", "21 of 21", "3")
    assert row["score on a part"] == row["so the score is within"] == ""
    assert row["largest N solved by half"] == "30"


def test_there_is_no_score_on_a_part_of_the_sizes_only_bounds_of_it():
    runs = [result(size, 500 if size < 16 else None) for size in BSUITE_SIZES[:5]]
    row = row_of(runs)
    assert (row["score"], row["score on a part"], row["sizes"]) == ("", "0.600 on 5 sizes", "5 of 21")
    assert row["so the score is within"] == f"{3 / 21:.3f} to {19 / 21:.3f}"


def test_too_few_sizes_other_sizes_and_shorter_runs_are_not_scored():
    assert score_table([result(size, 500) for size in BSUITE_SIZES[:4]]) is None
    assert score_table([result(size, 500) for size in range(11, 50, 2)]) is None
    assert score_table([result(size, 500, cap=2000) for size in BSUITE_SIZES]) is None


def test_variants_are_scored_apart():
    runs = [result(size, 500, variant=PRIOR) for size in BSUITE_SIZES] + [result(size, None) for size in BSUITE_SIZES]
    assert [(row[0], row[1]) for row in score_table(runs).rows] == [
        ("BootDQN-Gain", "0.000"),
        ("BootDQN-Gain + prior 3", "1.000"),
    ]


def test_the_frontier_is_the_largest_size_that_half_of_the_seeds_solved():
    solved = {10: (5, 5), 12: (5, None), 14: (None, None), 16: (None, 5), 18: (None, None)}
    runs = [result(size, value, seed) for size, values in solved.items() for seed, value in enumerate(values)]
    assert largest_solved(cells(deep_sea_table(runs))) == 16
    assert largest_solved(cells(deep_sea_table([result(10, None)]))) is None
    thin = [result(10, 9, strict=None)]
    assert largest_solved(cells(deep_sea_table(thin))) is None, "by the strict reading"
