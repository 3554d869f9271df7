"""The paper's claims, one by one, and what runs say about them: never more than they allow."""

from collections.abc import Callable
from dataclasses import dataclass

from bootdqn.reports import paper
from bootdqn.reports.statistics import interquartile_mean
from bootdqn.reports.tables import Table
from reproduction import minatar_claims
from reproduction.deep_sea_claims import beats, helps
from reproduction.ensemble_claims import gain_is_sparser, rare_states_are_disputed
from reproduction.evidence import CONTRADICTED, MIXED, OPEN, SUPPORTED, Evidence, Verdict
from reproduction.game_claims import (
    above_the_original,
    best_in_two_thirds,
    diversity_rises,
    evoi_ends,
    evoi_is_slower_than,
    more_heads_are_better,
    normalised_lead,
    votes_are_diverse,
)
from reproduction.minatar_claims import (
    ahead,
    diversity,
    diversity_grows,
    normalised_scores,
    time_against,
    when_complete,
)

DEEP_SEA_EVOI = "evoi:reduce=sum"
COLOURS = {SUPPORTED: "🟢", CONTRADICTED: "🔴", MIXED: "🟡", OPEN: "⚪"}
"""Marks before a verdict: Markdown has no other colours."""


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, and how to judge it."""

    text: str
    remark: str
    """The paper's own numbers about it."""
    judge: Callable[[Evidence], Verdict]


def claims_table(evidence: Evidence) -> Table:
    """Return the table of the paper's claims."""
    return _judged(CLAIMS, evidence, "The paper's claims", ("verdict", "the paper says", "its own numbers"))


def analogues_table(evidence: Evidence) -> Table:
    """Return the table of the analogues on MinAtar."""
    columns = ("verdict on the analogue", "analogue on MinAtar", "the paper, on Atari")
    return _judged(MINATAR_CLAIMS, evidence, "Analogues of the paper's claims", columns)


def _judged(claims: tuple[Claim, ...], evidence: Evidence, title: str, columns: tuple[str, ...]) -> Table:
    rows = []
    for claim in claims:
        verdict = claim.judge(evidence)
        rows.append((f"{COLOURS[verdict.status]} {verdict.status}", claim.text, claim.remark, verdict.reason))
    columns = (*columns, "what these runs say")
    return Table("claims", title, columns, rows, text_columns=columns)


_RIVALS = tuple(name for name in paper.MEAN_NORMALISED if name != "evoi")
DEEP_SEA_NUMBERS = "a figure without numbers; 15 seeds, at most 100,000 episodes"
DEEP_SEA_CLAIMS = (
    Claim("Gain beats the baselines on DeepSea.", DEEP_SEA_NUMBERS, beats("gain")),
    Claim("EVOI (sum) beats the baselines on DeepSea.", DEEP_SEA_NUMBERS, beats(DEEP_SEA_EVOI)),
    Claim(
        "EVOI (sum) scales best on DeepSea: it beats Gain, too.",
        f"{DEEP_SEA_NUMBERS}; taken as the fewest episodes at the largest N",
        beats(DEEP_SEA_EVOI, rivals=("gain", "greedy", "ucb")),
    ),
)
CLAIMS = (
    *DEEP_SEA_CLAIMS,
    Claim(
        "EVOI has the best human-normalised mean: 9.38 points over BootDQN.",
        "60.05 against 50.67; Gain, at 48.30, is below BootDQN",
        normalised_lead("greedy", 9.38),
    ),
    Claim("19.16 points over DQN-IDS.", "60.05 against 40.89", normalised_lead("ids", 19.16)),
    Claim("16.45 points over BootDQN-UCB.", "60.05 against 43.60", normalised_lead("ucb", 16.45)),
    Claim(
        "EVOI outperforms or matches the others in all games (Fig. 2a).", "curves, no table", evoi_ends(or_level=True)
    ),
    Claim(
        "EVOI outperforms the others in Gravitar and Venture (Fig. 2a).",
        "curves, no table",
        evoi_ends(ahead_in=("Gravitar", "Venture"), or_level=False),
    ),
    Claim(
        "EVOI has the best maximal score in four of six games.",
        "not in Alien and Private Eye",
        best_in_two_thirds(_RIVALS),
    ),
    Claim(
        "The paper's own BootDQN scores above the original's.",
        "not in Private Eye: 1,584.4 against 1,812.5",
        above_the_original,
    ),
    Claim("More heads are better (K = 2, 6, 10, 12 on Hero).", "one figure, no table", more_heads_are_better),
    Claim(
        "UCB's votes are the most diverse, except in Venture (by count variance, as printed).",
        "count variance is high when heads agree",
        votes_are_diverse("vote_count_variance", ("ucb",), highest=True, except_in=("Venture",)),
    ),
    Claim(
        "UCB's votes are the most diverse (by entropy, as meant).",
        "",
        votes_are_diverse("vote_entropy", ("ucb",), highest=True),
    ),
    Claim(
        "Gain's and EVOI's votes are at least as diverse as BootDQN's (by count variance, as printed).",
        "Gravitar's Gain, 1.96, is below BootDQN's 2",
        votes_are_diverse("vote_count_variance", ("gain", "evoi"), highest=False),
    ),
    Claim(
        "Gain's and EVOI's votes are at least as diverse as BootDQN's (by entropy, as meant).",
        "",
        votes_are_diverse("vote_entropy", ("gain", "evoi"), highest=False),
    ),
    Claim(
        "BootDQN's votes begin alike and grow more diverse (Fig. 2b; by entropy, as meant).",
        '"common", by count variance',
        diversity_rises,
    ),
    Claim("EVOI is about 10 % slower than BootDQN at K = 10.", "", evoi_is_slower_than("greedy")),
    Claim("Gain takes about as long as EVOI at K = 10.", "no number", evoi_is_slower_than("gain")),
    Claim("Gain is sparser than EVOI, which is denser but lower.", "shown at one state", gain_is_sparser),
    Claim("Heads disagree more in rare states.", "said, not shown", rare_states_are_disputed),
    Claim(
        "Both methods would benefit from prioritised replay.",
        "suggested for future work",
        helps("replay", "prioritized", ("gain", DEEP_SEA_EVOI)),
    ),
    Claim(
        "Other voting rules would use better what the heads know, also in training.",
        "anticipated for future work; with two actions the vote by mean stands for all but plurality",
        beats("vote:rule=mean", rivals=("greedy",), options=True),
    ),
)

_ALL_FOUR = ("greedy", "ucb", "gain", "evoi")
MINATAR_CLAIMS = (
    Claim(
        "EVOI has the highest mean of the normalised scores.",
        "60.05, BootDQN 50.67, Gain 48.30, UCB 43.60 (human-normalised)",
        when_complete(_ALL_FOUR, ahead(normalised_scores, ("evoi",), ("greedy", "ucb", "gain"))),
    ),
    Claim(
        "EVOI has the highest interquartile mean of the normalised scores.",
        "none given",
        when_complete(_ALL_FOUR, ahead(normalised_scores, ("evoi",), ("greedy", "ucb", "gain"), interquartile_mean)),
    ),
    Claim(
        "EVOI has the best maximal score in two games of three (by the means alone).",
        "in four of six",
        when_complete(_ALL_FOUR, best_in_two_thirds(("greedy", "ucb", "gain"))),
    ),
    Claim(
        "EVOI outperforms or matches the others in all games at the end of training.",
        "Fig. 2a, no table",
        when_complete(_ALL_FOUR, evoi_ends(or_level=True)),
    ),
    Claim(
        "More heads are better (EVOI, K = 2, 6, 10, 12, on Asterix).",
        "Fig. 3, on Hero",
        minatar_claims.more_heads_are_better,
    ),
    Claim(
        "UCB's votes are the most diverse (by count variance, as printed).",
        "in five of six games; count variance is high when heads agree",
        when_complete(_ALL_FOUR, ahead(diversity("vote_count_variance"), ("ucb",), ("greedy", "gain", "evoi"))),
    ),
    Claim(
        "UCB's votes are the most diverse (by entropy, as meant).",
        "",
        when_complete(_ALL_FOUR, ahead(diversity("vote_entropy"), ("ucb",), ("greedy", "gain", "evoi"))),
    ),
    Claim(
        "Gain's and EVOI's votes are at least as diverse as BootDQN's (by count variance, as printed).",
        "at least as diverse, but for Gain on Gravitar",
        when_complete(
            ("greedy", "gain", "evoi"), ahead(diversity("vote_count_variance"), ("gain", "evoi"), ("greedy",))
        ),
    ),
    Claim(
        "Gain's and EVOI's votes are at least as diverse as BootDQN's (by entropy, as meant).",
        "",
        when_complete(("greedy", "gain", "evoi"), ahead(diversity("vote_entropy"), ("gain", "evoi"), ("greedy",))),
    ),
    Claim(
        "BootDQN's votes grow more diverse after the first tenth of training (by entropy, as meant).",
        'Fig. 2b: "common", by count variance',
        when_complete(("greedy",), diversity_grows("greedy")),
    ),
    Claim("EVOI takes about 10 % longer than BootDQN.", "", when_complete(("greedy", "evoi"), time_against("greedy"))),
    Claim("EVOI takes about as long as Gain.", "no number", when_complete(("gain", "evoi"), time_against("gain"))),
)
"""Analogues on MinAtar of the claims about Atari."""
