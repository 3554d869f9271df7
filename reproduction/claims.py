"""The paper's claims, one by one, and what runs say about them: never more than they allow."""

from collections.abc import Callable
from dataclasses import dataclass

from bootdqn.reports.tables import Table
from reproduction.atari_claims import (
    above_the_original,
    best_in_four_games,
    diversity_rises,
    evoi_ends,
    evoi_is_slower_than,
    more_heads_are_better,
    normalised_lead,
    votes_are_diverse,
)
from reproduction.deep_sea_claims import beats, helps
from reproduction.ensemble_claims import gain_is_sparser, rare_states_are_disputed
from reproduction.evidence import CONTRADICTED, MIXED, OPEN, SUPPORTED, Evidence, Verdict

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
    """Return the table of claims."""
    rows = []
    for claim in CLAIMS:
        verdict = claim.judge(evidence)
        rows.append((f"{COLOURS[verdict.status]} {verdict.status}", claim.text, claim.remark, verdict.reason))
    columns = ("verdict", "the paper says", "its own numbers", "what these runs say")
    return Table("claims", "The paper's claims", columns, rows, text_columns=columns)


DEEP_SEA_NUMBERS = "a figure without numbers; 15 seeds, at most 100,000 episodes"
CLAIMS = (
    Claim("Gain beats the baselines on DeepSea.", DEEP_SEA_NUMBERS, beats("gain")),
    Claim("EVOI (sum) beats the baselines on DeepSea.", DEEP_SEA_NUMBERS, beats(DEEP_SEA_EVOI)),
    Claim(
        "EVOI (sum) scales best on DeepSea: it beats Gain, too.",
        f"{DEEP_SEA_NUMBERS}; taken as the fewest episodes at the largest N",
        beats(DEEP_SEA_EVOI, rivals=("gain", "greedy", "ucb")),
    ),
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
    Claim("EVOI has the best maximal score in four of six games.", "not in Alien and Private Eye", best_in_four_games),
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
        beats("vote:rule=mean", rivals=("greedy",)),
    ),
)
