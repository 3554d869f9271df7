"""Numbers in sentences."""


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: "1 run", "2 runs"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
