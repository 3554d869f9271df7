"""How a field of a configuration appears on the command line, where its name and type do not determine it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Flag:
    """Annotation of a dataclass field, as in `imports: Annotated[tuple[str, ...], Flag(name="import")] = ()`."""

    name: str | None = None
    """Name of the flag (None: the field's own, with hyphens)."""
    positional: bool = False
    """Whether the value is given by its position, without a flag."""
    repeated: bool = False
    """Whether each value of a tuple has a flag of its own, as in `--import a --import b`."""
    metavar: str | None = None
    """Name of the value in the help (None: derived from the type)."""
