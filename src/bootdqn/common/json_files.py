"""JSON that somebody else may have written: parsed, and every value checked, in this one place.

Whoever uses the values need not ask again whether a number fits into 64 bits, or a text can be encoded.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

from bootdqn.common.errors import DamagedFileError
from bootdqn.common.files import read_regular

MAX_DEPTH = 32
MAX_NUMBER = 1e100
"""Rewards are float32 numbers, so that no sum of them comes near. Squares of what is below are finite."""


MAX_STORED = 9_000
"""Characters that are kept of a text whose length nobody vouches for."""


class Limits(NamedTuple):
    """What a file of one kind may hold."""

    max_bytes: int
    """Of the file, or of a line where it has one object a line."""
    max_text: int
    """Characters of any text in it."""
    integer_bits: int = 63
    """Beside the sign."""


CONFIG = Limits(max_bytes=2**18, max_text=10_000)
RECORD = Limits(max_bytes=2**24, max_text=10_000)
SUMMARY = Limits(max_bytes=2**24, max_text=2**20)
PROVENANCE = Limits(max_bytes=2**28, max_text=2**20)
CHECKPOINT = Limits(max_bytes=2**28, max_text=2**28, integer_bits=128)
"""The states of random streams have 128 bits, and environments are saved as text."""


def read_json_object(path: Path, limits: Limits) -> dict[str, Any]:
    """Return the JSON object in `path`.

    Raises:
        DamagedFileError: It is not there, or holds something else, or more than the limits.
    """
    try:
        content = read_regular(path, limits.max_bytes)
    except OSError as error:
        raise DamagedFileError(f"{path} cannot be read: {error.strerror}") from error
    return parse_json_object(content, str(path), limits)


def parse_json_object(content: bytes, where: str, limits: Limits) -> dict[str, Any]:
    """Return the JSON object that `content` is, or raise a DamagedFileError that begins with `where`."""
    try:
        value = json.loads(content.decode()) if content.strip() else None
    except (ValueError, RecursionError) as error:
        raise DamagedFileError(f"{where} is not JSON: {error}") from error
    if not isinstance(value, dict):
        found = type(value).__name__ if content.strip() else "nothing"
        raise DamagedFileError(f"{where}: expected a JSON object, found {found}")
    if problem := _problem_with(value, limits, MAX_DEPTH):
        raise DamagedFileError(f"{where}: {problem}")
    return value


def storable(text: str) -> str:
    """Return a text of somebody else, such as an error's, as one that can be read again from any file of a run."""
    encodable = text.encode(errors="backslashreplace").decode().replace("\0", "\\0")
    return encodable if len(encodable) <= MAX_STORED else f"{encodable[:MAX_STORED]}..."


def _problem_with(value: Any, limits: Limits, depth: int) -> str:
    """Return what is wrong with a value, or nothing."""
    kind = type(value)
    if kind is int:
        return "" if value.bit_length() <= limits.integer_bits else f"a number has {value.bit_length():,} bits"
    if kind is float:
        return "" if -MAX_NUMBER <= value <= MAX_NUMBER else f"a number is {value}"
    if kind is str:
        return _problem_with_text(value, limits.max_text)
    if kind is dict or kind is list:
        if depth == 0:
            return f"it is nested more than {MAX_DEPTH} deep"
        for item in value if kind is list else (*value, *value.values()):
            if problem := _problem_with(item, limits, depth - 1):
                return problem
    return ""


def _problem_with_text(text: str, max_text: int) -> str:
    if len(text) > max_text:
        return f"a text has {len(text):,} characters, at most {max_text:,} are read: {text[:20]!r}..."
    if "\0" in text or (not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text)):
        return f"a text has characters that no text has: {text[:200]!r}"
    return ""
