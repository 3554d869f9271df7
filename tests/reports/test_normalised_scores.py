"""Human-normalised scores: a game counts as much as any other, however many seeds it was played with."""

from bootdqn.reports.atari import normalised_scores
from reference.tables import AtariRun, evaluations_table
from reference.verdicts import verdicts_on_atari

LEAD = "EVOI has the best human-normalised mean: 9.38 points over BootDQN."
RANDOM_ON_VENTURE, HUMAN_ON_VENTURE = 0.0, 1187.5
RANDOM_ON_HERO, HUMAN_ON_HERO = 1027.0, 30826.4


def test_the_mean_is_that_of_the_games_and_the_interquartile_mean_that_of_the_runs():
    """Runs at 100 per cent on Venture, and at 0, 0, 0 and 60 on Hero: the middle three of all five are 0, 0 and 60."""
    near = RANDOM_ON_HERO + 0.6 * (HUMAN_ON_HERO - RANDOM_ON_HERO)
    runs = [AtariRun("Hero", seed=seed, scores=(RANDOM_ON_HERO,)) for seed in range(3)]
    runs += [AtariRun("Hero", seed=3, scores=(near,)), AtariRun("Venture", scores=(HUMAN_ON_VENTURE,))]
    table = normalised_scores(evaluations_table(runs))
    (row,) = (dict(zip(table.columns, row, strict=True)) for row in table.rows)
    assert (row["mean"], row["interquartile mean"]) == ("57.50", "20.00")


def test_a_lead_is_the_mean_over_games_however_many_seeds_each_has():
    """EVOI leads by 100 points on Venture, where it has one seed, and by none on Hero, where it has three."""
    runs = [AtariRun("Hero", "evoi", seed, scores=(RANDOM_ON_HERO,)) for seed in range(3)]
    runs += [AtariRun("Venture", "evoi", scores=(HUMAN_ON_VENTURE,))]
    runs += [
        AtariRun("Hero", "greedy", scores=(RANDOM_ON_HERO,)),
        AtariRun("Venture", "greedy", scores=(RANDOM_ON_VENTURE,)),
    ]
    assert verdicts_on_atari(runs)[LEAD]["what these runs say"].startswith("+50.00 points on 2 of 6 games")
