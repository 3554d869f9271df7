"""The parameters of a strategy as text: which types they may have, how a value is written and how it is read."""

from typing import Any, Literal, get_args, get_origin

WRITTEN_AS = {float: "a number", int: "a whole number", str: "a text"}
TRUTH = {"true": True, "false": False}


def can_be_written(kind: Any) -> bool:
    """Return whether a parameter may be of type `kind`: float, int, bool, str, or a Literal of strings."""
    if get_origin(kind) is Literal:
        return all(isinstance(choice, str) for choice in get_args(kind))
    return kind is bool or kind in WRITTEN_AS


def parse_value(key: str, text: str, kind: Any) -> Any:
    """Return the value of type `kind` that `text` stands for.

    Raises:
        ValueError: It stands for none; the message says what the parameter `key` takes.
    """
    if kind in WRITTEN_AS:
        try:
            return kind(text)
        except ValueError:
            raise ValueError(f"{key} must be {WRITTEN_AS[kind]}, got {text!r}") from None
    choices = tuple(TRUTH) if kind is bool else get_args(kind)
    value = text.lower() if kind is bool else text
    if value not in choices:
        raise ValueError(f"{key} must be one of {', '.join(choices)}; got {text!r}")
    return TRUTH[value] if kind is bool else value


def format_value(key: str, value: Any) -> str:
    """Return the text that `parse_value` reads as `value`."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if "," in text:
        raise ValueError(f"{key} must not contain a comma, which separates parameters; got {text!r}")
    return text
