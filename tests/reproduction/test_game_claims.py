"""The judges of the paper's claims about Atari: given its own numbers, they reach the verdicts of these."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bootdqn.config.variants import Variant
from bootdqn.reports import paper
from bootdqn.reports.atari import leader
from bootdqn.reports.report_data import DIVERSITY
from reference.tables import AtariRun, evaluations_table
from reference.verdicts import verdicts_on_atari as verdicts
from reproduction.claims import CLAIMS
from reproduction.evidence import CONTRADICTED, OPEN, SUPPORTED

BEST_IN_FOUR = "EVOI has the best maximal score in four of six games."
ABOVE_ORIGINAL = "The paper's own BootDQN scores above the original's."
MORE_HEADS = "More heads are better (K = 2, 6, 10, 12 on Hero)."
UCB_BY_COUNTS = "UCB's votes are the most diverse, except in Venture (by count variance, as printed)."
UCB_BY_ENTROPY = "UCB's votes are the most diverse (by entropy, as meant)."
OURS_BY_COUNTS = "Gain's and EVOI's votes are at least as diverse as BootDQN's (by count variance, as printed)."
MATCHES = "EVOI outperforms or matches the others in all games (Fig. 2a)."
OUTPERFORMS = "EVOI outperforms the others in Gravitar and Venture (Fig. 2a)."
GROW = "BootDQN's votes begin alike and grow more diverse (Fig. 2b; by entropy, as meant)."
AS_LONG = "Gain takes about as long as EVOI at K = 10."
SLOWER = "EVOI is about 10 % slower than BootDQN at K = 10."
LEADS = {
    "greedy": "EVOI has the best human-normalised mean: 9.38 points over BootDQN.",
    "ids": "19.16 points over DQN-IDS.",
    "ucb": "16.45 points over BootDQN-UCB.",
}


def played(game, strategy, seed=0, score=1.0, variance=1.0, frames=paper.FRAMES, num_heads=10):
    diversity = dict.fromkeys(DIVERSITY, (variance,))
    return AtariRun(game, strategy, seed, (score,), (frames,), diversity, num_heads, total_frames=frames)


def the_papers_runs():
    """What the paper printed, as if each of its three seeds had been the mean."""
    return [
        played(game, strategy, seed, score, paper.VOTE_VARIANCE[game].get(strategy, 1.0))
        for game, row in paper.MAXIMAL_SCORE.items()
        for strategy, score in row.items()
        if strategy != paper.ORIGINAL
        for seed in range(paper.SEEDS)
    ]


def verdict(claim, atari):
    return verdicts(atari=atari)[claim]["here"]


def with_score(runs, game, strategy, score):
    return [
        replace(run, scores=(score,)) if (run.game, run.variant.strategy) == (game, strategy) else run for run in runs
    ]


def without(runs, strategy, game=None):
    return [run for run in runs if run.variant.strategy != strategy or game not in (None, run.game)]


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        *((claim, SUPPORTED) for claim in LEADS.values()),
        (BEST_IN_FOUR, SUPPORTED),
        (ABOVE_ORIGINAL, CONTRADICTED),
        (UCB_BY_COUNTS, SUPPORTED),
        (UCB_BY_ENTROPY, CONTRADICTED),
        (OURS_BY_COUNTS, CONTRADICTED),
    ],
)
def test_the_papers_own_tables_are_judged_as_they_read(claim, expected):
    """The entropies are the count variances here, and Venture is excepted from the claim about the latter only."""
    found = verdicts(atari=the_papers_runs())[claim]
    assert found["here"] == expected
    assert "seed" not in found["what these runs say"], "nothing is smaller than in the paper"


def test_contradictions_in_the_papers_own_tables_are_reported():
    found = verdicts(atari=the_papers_runs())
    assert "Private Eye 1,584.4 against 1,812.5" in found[ABOVE_ORIGINAL]["what these runs say"]
    assert "not in Gravitar (BootDQN 2.00, BootDQN-Gain 1.96" in found[OURS_BY_COUNTS]["what these runs say"]
    assert found[UCB_BY_COUNTS]["what these runs say"] == "holds in 5 of 5 games"
    assert "+9.38 points on 6 of 6 games" in found[LEADS["greedy"]]["what these runs say"]


def test_every_judge_leaves_less_than_the_papers_tables_open():
    for fewer in (
        [run for run in the_papers_runs() if run.seed != 1 or run.game != "Hero"],
        [replace(run, frames=(10**6,)) if run.game == "Hero" else run for run in the_papers_runs()],
        [run for run in the_papers_runs() if run.game != "Hero"],
    ):
        found = {claim: row["here"] for claim, row in verdicts(atari=fewer).items()}
        assert found.pop(OUTPERFORMS) == SUPPORTED, "it does not ask about Hero"
        assert set(found.values()) == {OPEN}


def test_a_lead_is_supported_from_half_the_claimed_points():
    """Scores of BootDQN that put every game at EVOI's human-normalised score less some points."""
    for points, expected in ((4.7, SUPPORTED), (4.68, CONTRADICTED), (-1.0, CONTRADICTED)):
        runs = the_papers_runs()
        for game in paper.GAMES:
            span = paper.HUMAN_SCORE[game] - paper.RANDOM_SCORE[game]
            runs = with_score(runs, game, "greedy", paper.MAXIMAL_SCORE[game]["evoi"] - points / 100 * span)
        assert verdict(LEADS["greedy"], runs) == expected


def test_above_the_original_in_all_its_games_is_supported():
    runs = with_score(the_papers_runs(), "PrivateEye", "greedy", 1812.6)
    assert verdict(ABOVE_ORIGINAL, runs) == SUPPORTED


@pytest.mark.parametrize("game", ["Pong", "Solaris"])
def test_games_that_the_original_has_no_score_of_do_not_decide_the_budget(game):
    small = played(game, "greedy", seed=9, frames=10**6)
    assert verdict(ABOVE_ORIGINAL, [*the_papers_runs(), small]) == CONTRADICTED


def test_votes_that_nobody_asks_about_do_not_decide_the_budget():
    small = [played(game, "ids", seed=9, frames=10**6) for game in paper.GAMES]
    small += [played("Pong", "ucb", frames=10**6)]
    assert verdict(UCB_BY_COUNTS, the_papers_runs() + small) == SUPPORTED


def test_votes_are_compared_with_all_that_the_claim_names():
    found = verdicts(atari=without(the_papers_runs(), "gain", "Hero"))[UCB_BY_COUNTS]
    assert (found["here"], found["what these runs say"]) == (OPEN, "holds in 5 of 5 games, not all with BootDQN-Gain")
    assert verdict(OURS_BY_COUNTS, without(the_papers_runs(), "evoi")) == OPEN
    assert verdict(OURS_BY_COUNTS, without(the_papers_runs(), "ucb")) == CONTRADICTED


def test_a_tie_is_not_the_best_score_in_either_order():
    runs = with_score(the_papers_runs(), "Hero", "gain", paper.MAXIMAL_SCORE["Hero"]["evoi"])
    for given_in in (runs, runs[::-1]):
        assert verdict(BEST_IN_FOUR, given_in) == CONTRADICTED
    variants, runs = [Variant(name) for name in paper.MEAN_NORMALISED], evaluations_table(runs)
    assert leader(runs, "Hero", variants) is None
    assert leader(runs, "Venture", variants) == Variant("evoi")
    assert leader(runs, "Pong", variants) is None


def test_the_best_score_is_among_the_papers_algorithms_and_needs_all_of_them():
    others = [played(game, "vote:rule=borda", seed, 1e6) for game in paper.GAMES for seed in range(3)]
    assert verdict(BEST_IN_FOUR, the_papers_runs() + others) == SUPPORTED
    found = verdicts(atari=without(the_papers_runs(), "ids"))[BEST_IN_FOUR]
    assert (found["here"], "not all with DQN-IDS" in found["what these runs say"]) == (OPEN, True)
    assert verdict(BEST_IN_FOUR, without(the_papers_runs(), "evoi")) == OPEN


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ({2: 1, 6: 2, 10: 3, 12: 4}, SUPPORTED),
        ({2: 1, 6: 2, 10: 4, 12: 3}, CONTRADICTED),
        ({2: 1, 6: 2, 10: 3, 12: 3}, CONTRADICTED),
        ({2: 1, 6: 2, 10: 3}, OPEN),
    ],
)
def test_more_heads_are_better_where_every_k_of_the_paper_adds_something(scores, expected):
    runs = [
        played("Hero", "evoi", seed, score, frames=10**8, num_heads=heads)
        for heads, score in scores.items()
        for seed in range(3)
    ]
    assert verdicts(any_heads=runs)[MORE_HEADS]["here"] == expected
    assert verdicts(any_heads=runs[1:])[MORE_HEADS]["here"] == OPEN
    assert verdicts(any_heads=[replace(run, frames=(10**7,)) for run in runs])[MORE_HEADS]["here"] == OPEN
    elsewhere = [replace(run, game="Pong") for run in runs]
    assert (
        verdicts(any_heads=elsewhere)[MORE_HEADS]["what these runs say"] == "with the paper's settings K was not varied"
    )


def evaluated(game, strategy, seed, scores=(1.0, 1.0), entropies=None):
    """A run with the paper's frames that was evaluated several times on the way."""
    count = len(scores if entropies is None else entropies)
    values = tuple([1.0] * count if entropies is not None else scores)
    return replace(
        played(game, strategy, seed),
        frames=tuple(paper.FRAMES * (number + 1) // count for number in range(count)),
        scores=values,
        diversity={name: tuple(entropies or [1.0] * count) for name in DIVERSITY},
    )


def four_in_every_game(evoi, others=(10.0, 11.0, 12.0), games=paper.GAMES):
    """Runs that score 99 at first, and in the end the given scores: one number a seed."""
    ends = {"evoi": evoi, "greedy": others, "ucb": others, "gain": others}
    return [
        evaluated(game, strategy, seed, (99.0, end))
        for game in games
        for strategy, scores in ends.items()
        for seed, end in enumerate(scores)
    ]


@pytest.mark.parametrize(
    ("evoi", "matches", "outperforms"),
    [
        ((20.0, 21.0, 22.0), SUPPORTED, SUPPORTED),
        ((10.0, 11.0, 13.0), SUPPORTED, CONTRADICTED),
        ((1.0, 2.0, 3.0), CONTRADICTED, CONTRADICTED),
    ],
)
def test_the_ends_of_the_curves_decide_by_their_intervals(evoi, matches, outperforms):
    found = verdicts(atari=four_in_every_game(evoi))
    assert (found[MATCHES]["here"], found[OUTPERFORMS]["here"]) == (matches, outperforms)


def test_the_ends_of_the_curves_need_every_game_that_is_asked_and_all_four():
    ahead = (20.0, 21.0, 22.0)
    two_games = verdicts(atari=four_in_every_game(ahead, games=("Gravitar", "Venture")))
    assert (two_games[MATCHES]["here"], two_games[OUTPERFORMS]["here"]) == (OPEN, SUPPORTED)
    three = verdicts(atari=without(four_in_every_game(ahead), "ucb", "Venture"))
    assert (three[MATCHES]["here"], three[OUTPERFORMS]["here"]) == (OPEN, OPEN)
    assert three[OUTPERFORMS]["what these runs say"] == "holds in 1 of 1 game"
    behind_in_one = four_in_every_game(ahead, games=paper.GAMES[1:]) + four_in_every_game((1, 2, 3), games=["Gravitar"])
    found = verdicts(atari=behind_in_one)
    assert found[MATCHES]["what these runs say"] == "holds in 5 of 6 games"
    assert (found[MATCHES]["here"], found[OUTPERFORMS]["here"]) == (CONTRADICTED, CONTRADICTED)


@pytest.mark.parametrize(
    ("entropies", "expected"),
    [((0.1, 0.9, 0.4), SUPPORTED), ((0.1, 0.5, 0.9), SUPPORTED), ((0.9, 0.5, 0.4), CONTRADICTED)],
)
def test_votes_grow_diverse_where_they_are_more_so_after_the_beginning(entropies, expected):
    runs = [evaluated(game, "greedy", seed, entropies=entropies) for game in paper.GAMES for seed in range(3)]
    assert verdicts(atari=runs)[GROW]["here"] == expected
    falling = [
        evaluated(game, "greedy", seed, entropies=(0.9, 0.1, 0.1)) for game in paper.GAMES[:2] for seed in range(3)
    ]
    mostly = [run for run in runs if run.game not in paper.GAMES[:2]] + falling
    assert verdicts(atari=mostly)[GROW]["here"] == expected, "it is said to be common, not to be everywhere"
    assert verdicts(atari=runs[1:])[GROW]["here"] == OPEN


@pytest.mark.parametrize("falls_by", [0.0, 0.3])
def test_noise_around_what_does_not_rise_is_no_growth(falls_by):
    rng, steady = np.random.default_rng(0), np.linspace(1.0, 1.0 - falls_by, 200)
    runs = [
        evaluated(game, "greedy", seed, entropies=(steady + 0.05 * rng.normal(size=200)).tolist())
        for game in paper.GAMES
        for seed in range(3)
    ]
    assert verdicts(atari=runs)[GROW]["here"] == CONTRADICTED


def trained_on(run, *scores, every=10**8, variance=1.0):
    """The run with further evaluations after its own."""
    frames = [run.frames[-1] + every * number for number in range(1, len(scores) + 1)]
    return replace(
        run,
        frames=(*run.frames, *frames),
        scores=(*run.scores, *scores),
        diversity={name: (*values, *[variance] * len(scores)) for name, values in run.diversity.items()},
    )


def test_k_is_judged_within_the_frames_that_every_k_has_and_the_paper():
    """K = 10 is run for twice as long by the sweep for the paper's tables."""
    runs = [
        played("Hero", "evoi", seed, heads, frames=10**8, num_heads=heads)
        for heads in (2, 6, 10, 12)
        for seed in (0, 1, 2)
    ]
    expected = verdicts(any_heads=runs)[MORE_HEADS]
    assert expected["here"] == SUPPORTED
    for longer in ((10,), (2, 6, 10, 12)):
        beyond = [trained_on(run, 1e6 - run.num_heads) if run.num_heads in longer else run for run in runs]
        assert verdicts(any_heads=beyond)[MORE_HEADS] == expected


@cache
def verdicts_on_the_papers_runs(frames):
    return verdicts(atari=[replace(run, frames=(frames,)) for run in the_papers_runs()])


def short_runs():
    return [replace(run, frames=(10**6,)) for run in the_papers_runs()]


def leaders(runs):
    table, variants = evaluations_table(runs), [Variant(name) for name in paper.MEAN_NORMALISED]
    return [leader(table, game, variants) for game in paper.GAMES]


@cache
def leaders_of_short_runs():
    return leaders(short_runs())


scores_beyond = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=3)


@settings(max_examples=20, deadline=None)
@given(st.sets(st.sampled_from(sorted(paper.MEAN_NORMALISED))), scores_beyond, st.floats(0, 10))
def test_nothing_beyond_the_papers_frames_counts(longer, scores, variance):
    runs = the_papers_runs()
    beyond = [trained_on(run, *scores, variance=variance) if run.variant.strategy in longer else run for run in runs]
    assert verdicts(atari=beyond) == verdicts_on_the_papers_runs(paper.FRAMES)


@settings(max_examples=20, deadline=None)
@given(scores_beyond, st.floats(0, 10))
def test_a_run_that_is_longer_than_the_others_is_judged_by_its_beginning(scores, variance):
    runs = short_runs()
    longer = [
        trained_on(run, *scores, every=10**6, variance=variance) if run.variant == Variant("evoi") else run
        for run in runs
    ]
    assert verdicts(atari=longer) == verdicts_on_the_papers_runs(10**6)
    assert leaders(longer) == leaders_of_short_runs()


def test_games_of_different_lengths_are_reported_as_a_range():
    short = played("Hero", "greedy", frames=10**6)
    longer = [trained_on(played("Alien", "greedy", frames=10**6), 1, 1, every=10**6)]
    found = verdicts(atari=[short, *longer])[ABOVE_ORIGINAL]["what these runs say"]
    assert "1 seed of 1M to 3M frames, the paper 3 of 200M" in found
    longer.append(played("Alien", "greedy", seed=1, frames=10**6))
    assert "1 seed of 1M frames" in verdicts(atari=[short, *longer])[ABOVE_ORIGINAL]["what these runs say"]


def test_speeds_are_compared_only_where_they_were_computed_alike():
    runs = [
        replace(played("Hero", strategy, seed), total_frames=frames, computed=computed)
        for strategy, seed, frames, computed in [
            ("greedy", 0, 900, ("cpu", "1")),
            ("greedy", 1, 120, ("cpu", "2")),
            ("greedy", 2, 180, ("cpu", "2")),
            ("evoi", 0, 100, ("cpu", "2")),
            ("evoi", 1, 7, ("cuda", "2")),
        ]
    ]
    found = verdicts(atari=runs)[SLOWER]
    assert (found["here"], found["what these runs say"].partition(";")[0]) == (OPEN, "Hero: BootDQN is +50 % faster")
    as_gain = [replace(run, strategy="gain") if run.strategy == "greedy" else run for run in runs]
    assert verdicts(atari=as_gain)[AS_LONG]["what these runs say"].startswith("Hero: BootDQN-Gain is +50 % faster")
    apart = verdicts(atari=[runs[0], runs[3]])[SLOWER]["what these runs say"]
    assert apart == (
        "with the paper's settings BootDQN and EVOI were not both finished on one game, with the same device, threads, "
        "engine and precision"
    )


def test_the_text_of_every_claim_is_unique():
    assert len({claim.text for claim in CLAIMS}) == len(CLAIMS)
