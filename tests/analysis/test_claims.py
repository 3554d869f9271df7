"""The judges of the paper's claims: given the paper's own numbers, they find what the paper's numbers say."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bootdqn.analysis import paper
from bootdqn.analysis.atari import MEASURES, Played, leader
from bootdqn.analysis.claims import CLAIMS, judged
from bootdqn.analysis.deep_sea import Result
from bootdqn.analysis.evidence import CONTRADICTED, OPEN, SUPPORTED, Evidence
from bootdqn.common.variants import Variant

BEST_IN_FOUR = "EVOI has the best maximal score in four of six games."
ABOVE_ORIGINAL = "The paper's own BootDQN scores above the original's."
MORE_HEADS = "More heads are better (K = 2, 6, 10, 12 on Hero)."
UCB_BY_COUNTS = "UCB's votes are the most diverse, except in Venture (by count variance, as printed)."
UCB_BY_ENTROPY = "UCB's votes are the most diverse (by entropy, as meant)."
OURS_BY_COUNTS = "Gain's and EVOI's votes are at least as diverse as BootDQN's (by count variance, as printed)."
SLOWER = "EVOI is about 10 % slower than BootDQN at K = 10."
GAIN_IN_DEEP_SEA = "Gain beats the baselines on DeepSea."
LEADS = {
    "greedy": "EVOI has the best human-normalised mean: 9.38 points over BootDQN.",
    "ids": "19.16 points over DQN-IDS.",
    "ucb": "16.45 points over BootDQN-UCB.",
}


def played(game, strategy, seed=0, score=1.0, variance=1.0, frames=paper.FRAMES, num_heads=10):
    settings = () if num_heads == 10 else (("num_heads", num_heads),)
    return Played(
        name=f"{game}-{strategy}-{seed}",
        game=game,
        variant=Variant(strategy, settings),
        num_heads=num_heads,
        seed=seed,
        frames=(frames,),
        scores=(score,),
        diversity=dict.fromkeys(MEASURES, (variance,)),
        status="finished",
        total_frames=frames,
        seconds=1.0,
    )


def the_papers_runs():
    """What the paper printed, as if each of its three seeds had been the mean."""
    return [
        played(game, strategy, seed, score, paper.VOTE_VARIANCE[game].get(strategy, 1.0))
        for game, row in paper.MAXIMAL_SCORE.items()
        for strategy, score in row.items()
        if strategy != paper.ORIGINAL
        for seed in range(paper.SEEDS)
    ]


def verdicts(deep_sea=(), atari=(), any_heads=()):
    table = judged(Evidence(list(deep_sea), list(atari), list(any_heads)))
    return {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}


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


def test_the_papers_own_tables_are_told_where_they_contradict():
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
        assert {row["here"] for row in verdicts(atari=fewer).values()} == {OPEN}


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
    variants = [Variant(name) for name in paper.MEAN_NORMALISED]
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


scores_beyond = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=3)


@settings(max_examples=20, deadline=None)
@given(st.sets(st.sampled_from(sorted(paper.MEAN_NORMALISED))), scores_beyond, st.floats(0, 10))
def test_nothing_beyond_the_papers_frames_counts(longer, scores, variance):
    runs = the_papers_runs()
    beyond = [trained_on(run, *scores, variance=variance) if run.variant.strategy in longer else run for run in runs]
    assert verdicts(atari=beyond) == verdicts(atari=runs)


@settings(max_examples=20, deadline=None)
@given(scores_beyond, st.floats(0, 10))
def test_a_run_that_is_longer_than_the_others_is_judged_by_its_beginning(scores, variance):
    runs = [replace(run, frames=(10**6,)) for run in the_papers_runs()]
    longer = [
        trained_on(run, *scores, every=10**6, variance=variance) if run.variant == Variant("evoi") else run
        for run in runs
    ]
    assert verdicts(atari=longer) == verdicts(atari=runs)
    variants = [Variant(name) for name in paper.MEAN_NORMALISED]
    for game in paper.GAMES:
        assert leader(longer, game, variants) == leader(runs, game, variants)


def test_games_of_different_lengths_are_told_as_a_range():
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
    apart = verdicts(atari=[runs[0], runs[3]])[SLOWER]["what these runs say"]
    assert apart == (
        "with the paper's settings BootDQN and EVOI were not both finished on one game, with the same device, threads, "
        "engine and precision"
    )


def race(cap=1000, claim=GAIN_IN_DEEP_SEA, **solved):
    results = [
        Result(Variant({"evoi": "evoi:reduce=sum"}.get(name, name)), 20, seed, cap, value, value)
        for name, values in solved.items()
        for seed, value in enumerate(values)
    ]
    found = verdicts(deep_sea=results)[claim]
    return found["here"], found["what these runs say"].rpartition("; ")[2]


def around(mean):
    return [mean - 10, mean, mean + 10]


def test_means_in_an_order_decide_nothing_where_intervals_overlap():
    assert race(gain=around(101), greedy=around(99), ucb=around(100)) == (OPEN, "the intervals overlap")
    assert race(gain=around(101), greedy=around(500), ucb=around(100)) == (OPEN, "the intervals overlap")


def test_one_baseline_that_is_better_contradicts():
    assert race(gain=around(510), greedy=around(99), ucb=around(898))[0] == CONTRADICTED
    assert race(gain=[None] * 3, greedy=around(99), ucb=[None] * 3)[0] == CONTRADICTED
    assert race(gain=[600, 700, None], greedy=around(99), ucb=around(650))[0] == CONTRADICTED


def test_runs_that_reached_the_cap_leave_open_what_lies_beyond_it():
    cap = "runs that reached the cap leave it open"
    assert race(gain=around(900), greedy=[100] * 9 + [None], ucb=[None] * 3) == (OPEN, cap)
    assert race(gain=[100] * 9 + [None], greedy=around(900), ucb=around(800)) == (OPEN, cap)


points = st.integers(1, 5)


@given(points, points, points, st.booleans(), st.booleans(), st.booleans())
def test_cells_without_spread_are_judged_by_their_one_value(ours, one, other, unsolved, one_unsolved, other_unsolved):
    """Results that are all equal have no interval; an unsolved cell stands at the cap of 5, or beyond."""
    mine, rivals = (
        (5 if unsolved else ours),
        [(5 if u else v, u) for v, u in ((one, one_unsolved), (other, other_unsolved))],
    )
    if not unsolved and all(mine < value for value, _ in rivals):
        expected = SUPPORTED
    elif any(value < mine and not capped for value, capped in rivals):
        expected = CONTRADICTED
    else:
        expected = OPEN
    values = (("gain", ours, unsolved), ("greedy", one, one_unsolved), ("ucb", other, other_unsolved))
    found, why = race(cap=5, **{name: [None if capped else value] * 3 for name, value, capped in values})
    assert found == expected
    assert (why == "the intervals overlap") == (expected == OPEN and any(value == mine for value, _ in rivals))


def test_evoi_scales_best_only_if_it_is_ahead_of_gain_as_well():
    claim, baselines = (
        "EVOI (sum) scales best on DeepSea: it beats Gain, too.",
        {"greedy": [None] * 3, "ucb": [None] * 3},
    )
    assert race(claim=claim, evoi=around(300), gain=around(500), **baselines)[0] == SUPPORTED
    assert race(claim=claim, evoi=around(500), gain=around(300), **baselines)[0] == CONTRADICTED
    assert race(claim=claim, evoi=around(300), gain=around(305), **baselines) == (OPEN, "the intervals overlap")
    assert race(claim=claim, evoi=around(300), **baselines)[0] == OPEN


def test_every_claim_can_be_told_apart_by_its_text():
    assert len({claim.text for claim in CLAIMS}) == len(CLAIMS)
