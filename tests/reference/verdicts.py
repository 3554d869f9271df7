"""Verdicts on the paper's claims."""

from collections.abc import Mapping
from functools import cache

from reference.tables import deep_sea_table, evaluations_table
from reproduction.claims import CLAIMS
from reproduction.evidence import Evidence

JUDGES = {claim.text: claim.judge for claim in CLAIMS}


class Verdicts(Mapping):
    """The status and the reason of each claim, by its text; a claim is judged when it is asked for."""

    def __init__(self, evidence):
        self._judge = cache(lambda claim: JUDGES[claim](evidence))

    def __getitem__(self, claim):
        verdict = self._judge(claim)
        return {"here": verdict.status, "what these runs say": verdict.reason}

    def __iter__(self):
        return iter(JUDGES)

    def __len__(self):
        return len(JUDGES)


def verdicts_on_atari(atari=(), any_heads=()):
    """Return the verdicts by Atari runs alone."""
    none = deep_sea_table([])
    return Verdicts(Evidence(none, none, evaluations_table(atari), evaluations_table(any_heads)))
