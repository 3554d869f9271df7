"""What the judges of the paper's claims say."""

from bootdqn.report.claims import judged


def verdicts(evidence):
    """Return the row of each claim, by its text."""
    table = judged(evidence)
    return {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}
