"""The analogues of the paper's Atari claims on MinAtar: judged by all planned runs or not at all."""

import re
from dataclasses import replace

import numpy as np
import pytest

from bootdqn.reports.report_data import DIVERSITY
from bootdqn.reports.suites import MINATAR_RANDOM
from bootdqn.sweeps.sweep_file import load_sweep
from reference.tables import AtariRun, evaluations_table
from reproduction.claims import MINATAR_CLAIMS, analogues_table
from reproduction.evidence import CONTRADICTED, MINATAR, OPEN, SUPPORTED, Evidence

STEPS = MINATAR.budget
STRATEGIES = ("greedy", "ucb", "gain", "evoi")
JUDGES = {claim.text: claim.judge for claim in MINATAR_CLAIMS}
BY_MEAN = "EVOI has the highest mean of the normalised scores."
BY_IQM = "EVOI has the highest interquartile mean of the normalised scores."
IN_GAMES = "EVOI has the best maximal score in two games of three (by the means alone)."
AT_THE_END = "EVOI outperforms or matches the others in all games at the end of training."
HEADS = "More heads are better (EVOI, K = 2, 6, 10, 12, on Asterix)."
UCB_BY_COUNTS = "UCB's votes are the most diverse (by count variance, as printed)."
UCB_BY_ENTROPY = "UCB's votes are the most diverse (by entropy, as meant)."
OURS_BY_ENTROPY = "Gain's and EVOI's votes are at least as diverse as BootDQN's (by entropy, as meant)."
GROW = "BootDQN's votes grow more diverse after the first tenth of training (by entropy, as meant)."
SLOWER = "EVOI takes about 10 % longer than BootDQN."


def run(game, strategy, seed, score=10.0, *, heads=10, entropy=1.0, variance=1.0, seconds=100.0):
    """A finished run, evaluated half-way with a score of zero and at the end."""
    diversity = dict.fromkeys(DIVERSITY, (1.0, 1.0))
    diversity |= {"vote_entropy": (entropy, entropy), "vote_count_variance": (variance, variance)}
    frames = (STEPS // 2, STEPS)
    return AtariRun(game, strategy, seed, (0.0, score), frames, diversity, heads, STEPS, seconds, ("cpu", "1"))


def study(lead=0.0, **of_evoi):
    """All runs of `paper-minatar`; EVOI's are `lead` points above the others, which differ by seed only."""
    own = {"evoi": of_evoi}
    return [
        run(game, strategy, seed, 10 + 0.1 * seed + lead * (strategy == "evoi"), **own.get(strategy, {}))
        for game in MINATAR.games
        for strategy in STRATEGIES
        for seed in range(5)
    ]


def with_scores(runs, strategy, above):
    """The runs with another score of a strategy: 10, a tenth for each seed, and so much above that in a game."""
    return [
        replace(one, scores=(0.0, 10 + 0.1 * one.seed + above(one.game))) if one.strategy == strategy else one
        for one in runs
    ]


def with_entropies(runs, series):
    return [replace(one, diversity=one.diversity | {"vote_entropy": series(one.seed)}) for one in runs]


def verdict(claim, games=(), heads=()):
    return JUDGES[claim](Evidence.of_plan(MINATAR, evaluations_table(games), evaluations_table(heads)))


def test_the_plan_is_that_of_the_sweeps():
    for name in ("paper-minatar", "minatar-heads"):
        configs = [planned.config for planned in load_sweep(name).runs()]
        assert {config.env.total_steps for config in configs} == {MINATAR.budget} == {MINATAR.heads_budget}
        assert {config.run.seed for config in configs} == set(range(MINATAR.seeds))
    assert {config.env.game for config in configs} == {MINATAR.heads_game}
    assert {config.network.num_heads for config in configs} == set(MINATAR.heads)
    games = [planned.config for planned in load_sweep("paper-minatar").runs()]
    assert {config.env.game for config in games} == set(MINATAR.games)
    assert {config.actor.strategy for config in games} == set(STRATEGIES)


def test_nothing_is_judged_before_every_planned_run_is_finished():
    complete = study(lead=3)
    short = replace(complete[-1], frames=(STEPS // 4, STEPS // 2))
    other_seed, other_settings = replace(complete[-1], seed=5), replace(complete[-1], num_heads=9)
    for incomplete in ([], complete[:-1], [*complete[:-1], short, other_seed, other_settings]):
        expected = f"not judged: {min(len(incomplete), 99)} of 100 runs"
        assert verdict(BY_MEAN, incomplete) == (OPEN, expected)
    assert verdict(BY_MEAN, complete).status == SUPPORTED
    growing = with_entropies(complete[:-1], lambda seed: (0.0, 1.0 + seed))
    assert verdict(GROW, growing).status == SUPPORTED, "it asks for BootDQN alone, and the run missing is EVOI's"
    assert verdict(HEADS) == (OPEN, "not judged: 0 of 20 runs")


def test_every_analogue_is_in_the_table_whatever_is_there():
    for runs in ([], study()[:7], study(lead=1)):
        table = analogues_table(Evidence.of_plan(MINATAR, evaluations_table(runs), evaluations_table([])))
        assert [row[1] for row in table.rows] == [claim.text for claim in MINATAR_CLAIMS]
        assert "analogue" in table.columns[0]
    assert not any("Atari" in claim.text for claim in MINATAR_CLAIMS)


@pytest.mark.parametrize("claim", [BY_MEAN, BY_IQM])
@pytest.mark.parametrize(("lead", "expected"), [(3.0, SUPPORTED), (0.05, OPEN), (0.0, OPEN), (-3.0, CONTRADICTED)])
def test_the_best_overall_is_decided_by_intervals(claim, lead, expected):
    found = verdict(claim, study(lead))
    assert found.status == expected
    assert "5 of 5 games, 5 seeds of 0.5M steps" in found.reason


def test_a_lead_is_in_points_of_the_normalised_score():
    """The best run has 100 %, and every run of a rival the score that is 60 points below it."""
    runs = [
        run(game, strategy, seed, random + (20 if strategy == "evoi" else 8) + 0.001 * seed)
        for game, random in MINATAR_RANDOM.items()
        for strategy in STRATEGIES
        for seed in range(5)
    ]
    leads = re.findall(r"against \w+ \+([\d.]+)", verdict(BY_MEAN, runs).reason)
    assert list(map(float, leads)) == pytest.approx([60, 60, 60], abs=0.05)


def test_one_rival_ahead_contradicts_and_one_that_is_level_leaves_it_open():
    runs = study(lead=3)
    for rival_lead, expected in ((3.0, OPEN), (6.0, CONTRADICTED)):
        assert verdict(BY_MEAN, with_scores(runs, "gain", lambda _, lead=rival_lead: lead)).status == expected


def test_the_interquartile_mean_ignores_a_single_game_that_the_mean_follows():
    def score(game, strategy, seed):
        if strategy != "evoi":
            return 50 + seed
        return 500 + seed if game == "asterix" else 48.5 + seed

    runs = [run(g, s, seed, score(g, s, seed)) for g in MINATAR.games for s in STRATEGIES for seed in range(5)]
    runs += [run(game, "ids", 0, 510.0) for game in MINATAR.games]  # 100 %, the same in every game
    assert verdict(BY_MEAN, runs).status == SUPPORTED
    assert verdict(BY_IQM, runs).status != SUPPORTED


def test_what_comes_after_the_planned_steps_does_not_count():
    longer = [
        replace(
            one,
            scores=(*one.scores, 1e4 * (one.strategy == "gain")),
            frames=(*one.frames, 2 * STEPS),
            diversity={name: (*values, 9.0) for name, values in one.diversity.items()},
        )
        for one in study(lead=3)
    ]
    for claim in JUDGES:
        assert verdict(claim, longer) == verdict(claim, study(lead=3))


@pytest.mark.parametrize(("ahead_in", "expected"), [(5, SUPPORTED), (4, SUPPORTED), (3, CONTRADICTED)])
def test_best_in_four_of_five_games_is_two_thirds(ahead_in, expected):
    runs = with_scores(study(), "evoi", lambda game: game in MINATAR.games[:ahead_in])
    assert verdict(IN_GAMES, runs) == (expected, f"EVOI is best in {ahead_in} of 5 games")


def test_the_end_of_the_curves_is_compared_by_intervals():
    assert verdict(AT_THE_END, study(lead=0)).status == SUPPORTED
    assert verdict(AT_THE_END, study(lead=-3)) == (CONTRADICTED, "holds in 0 of 5 games")


def test_diversity_is_judged_by_both_readings():
    runs = [
        replace(
            one,
            diversity=one.diversity
            | {
                "vote_entropy": ((one.strategy == "ucb") + 0.1 * one.seed,) * 2,
                "vote_count_variance": (-(one.strategy == "ucb") + 0.1 * one.seed,) * 2,
            },
        )
        for one in study()
    ]
    assert verdict(UCB_BY_ENTROPY, runs).status == SUPPORTED
    assert verdict(UCB_BY_COUNTS, runs).status == CONTRADICTED
    assert verdict(OURS_BY_ENTROPY, runs).status == OPEN, "they are as diverse as BootDQN's, and an interval has zero"


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ({2: 1, 6: 2, 10: 3, 12: 4}, SUPPORTED),
        ({2: 1, 6: 2, 10: 4, 12: 3}, SUPPORTED),
        ({2: 4, 6: 3, 10: 2, 12: 1}, CONTRADICTED),
        ({2: 2, 6: 2, 10: 2, 12: 2}, OPEN),
    ],
)
def test_more_heads_are_better_where_scores_rise_with_k(scores, expected):
    rng = np.random.default_rng(1)
    runs = [
        run("asterix", "evoi", seed, score + rng.normal(), heads=k)
        for k, score in scores.items()
        for seed in range(MINATAR.seeds)
    ]
    found = verdict(HEADS, heads=runs)
    assert found.status == expected
    assert "K = 12:" in found.reason
    assert "rank correlation" in found.reason
    assert verdict(HEADS, heads=runs[1:]) == (OPEN, "not judged: 19 of 20 runs")
    elsewhere = [replace(one, game="breakout") for one in runs]
    assert verdict(HEADS, heads=elsewhere) == (OPEN, "not judged: 0 of 20 runs")


@pytest.mark.parametrize(("later", "expected"), [(1.0, SUPPORTED), (-1.0, CONTRADICTED), (-0.2, OPEN)])
def test_votes_grow_diverse_where_the_interval_of_the_rise_is_above_zero(later, expected):
    runs = with_entropies(study(), lambda seed: (1.0, 1.0 + later + 0.1 * seed))
    assert verdict(GROW, runs).status == expected


def test_games_without_a_normalised_score_are_not_counted():
    """Where no run is better than random play, there is nothing that could be 100 %."""
    runs = [replace(one, scores=(0.0, 0.0)) if one.game == "freeway" else one for one in study(lead=3)]
    assert verdict(BY_MEAN, runs).reason.endswith("; 4 of 5 games, 5 seeds of 0.5M steps")


def test_time_is_described_and_decides_nothing():
    found = verdict(SLOWER, [replace(one, seconds=one.seconds + one.seed) for one in study(seconds=150.0)])
    assert found.status == OPEN
    assert found.reason.startswith("EVOI takes 1.49 times as long")
    unlike = [replace(one, computed=("cpu", str(one.seed))) for one in study()]
    assert verdict(SLOWER, unlike).reason == "not judged: the runs were not timed alike"


def test_single_seeds_have_no_interval_and_no_verdict():
    plan = replace(MINATAR, seeds=1)
    runs = [one for one in study(lead=3) if one.seed == 0]
    evidence = Evidence.of_plan(plan, evaluations_table(runs), evaluations_table([]))
    assert JUDGES[BY_MEAN](evidence) == (OPEN, "not judged: an interval needs 3 seeds that differ")
