"""Verdicts on the paper's claims."""

from reference.tables import deep_sea_table, evaluations_table
from reproduction.claims import claims_table
from reproduction.evidence import Evidence


def verdicts(evidence):
    """Return the row of each claim, by its text."""
    table = claims_table(evidence)
    return {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}


def verdicts_on_atari(atari=(), any_heads=()):
    """Return the row of each claim by its text, judged by Atari runs alone."""
    none = deep_sea_table([])
    return verdicts(Evidence(none, none, evaluations_table(atari), evaluations_table(any_heads)))
