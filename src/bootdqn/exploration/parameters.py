"""The parameters of a strategy as text: which types they may have, and how a value is written."""

from typing import Any, Literal, get_args, get_origin

PARAMETER_TYPES = (float, int, bool, str)


def can_be_written(kind: Any) -> bool:
    """Return whether a parameter may be of type `kind`: float, int, bool, str, or a Literal of strings."""
    if get_origin(kind) is Literal:
        return all(isinstance(choice, str) for choice in get_args(kind))
    return kind in PARAMETER_TYPES


def format_value(key: str, value: Any) -> str:
    """Return the text that `parse_as` reads as `value`."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if "," in text:
        raise ValueError(f"{key} must not contain a comma, which separates parameters; got {text!r}")
    return text
