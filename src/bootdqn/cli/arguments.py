"""Command lines from dataclasses: a field is a flag, its type the values it takes, its docstring the help."""

import argparse
import ast
import difflib
import inspect
import itertools
import re
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn, get_args, get_origin, get_type_hints

from bootdqn.common.errors import UsageError
from bootdqn.common.fields import Flag, Range, constraints_of, flag_of, item_kind, parse_as

_METAVARS = {int: "INT", float: "FLOAT", str: "STR", Path: "PATH", type(None): "None"}
_MAX_SHOWN = 10_000
"""Largest upper bound that the help shows; no sensible value comes near a larger one."""
_NEGATIVE_NUMBER = re.compile(r"-\.?\d.*")


@dataclass(frozen=True)
class Argument:
    """A field of a command, or of one of its parts, on the command line."""

    field: str
    kind: Any
    """Type, with its annotations."""
    default: Any
    """MISSING where there is none."""
    help: str
    required: bool = False
    """Whether it has to be given although it has a default."""

    @property
    def flag(self) -> Flag:
        """Annotation of the field."""
        return flag_of(self.kind)

    @property
    def name(self) -> str:
        """Name of the flag, or of the value where it is positional."""
        return self.flag.name_for(self.field)

    @property
    def is_tuple(self) -> bool:
        """Whether it takes any number of values."""
        return item_kind(self.kind) is not None

    @property
    def is_switch(self) -> bool:
        """Whether it takes no value: --name turns it on, --no-name off."""
        return self.kind in (bool, bool | None)

    def add_to(self, group: Any) -> list[str]:
        """Add it to a group of an argparse parser and return its flags; without a value it is not in the namespace."""
        options: dict[str, Any] = {"help": self._help_text()}
        if not self.flag.positional:
            options |= {"dest": self.field, "default": argparse.SUPPRESS}
        if self.is_switch:
            options["action"] = argparse.BooleanOptionalAction
        else:
            options["metavar"] = self.flag.metavar or (self.name if self.flag.positional else _metavar(self.kind))
        if self.flag.repeated:
            options["action"] = "append"
        elif self.is_tuple:
            options["nargs"] = "*"
        elif self.flag.positional:
            options["nargs"] = "?"  # one that is missing is reported by `CommandParser`
        return list(group.add_argument(self.field if self.flag.positional else self.name, **options).option_strings)

    def parse(self, given: Any) -> Any:
        """Return the value of the words `given`: one word, a list of words, or a boolean for a switch.

        Raises:
            ValueError: They are no value of its type.
        """
        if self.is_tuple:
            return tuple(itertools.chain.from_iterable(parse_as(self.kind, word) for word in given))
        return given if self.is_switch else parse_as(self.kind, given)

    def _help_text(self) -> str:
        default = " ".join(map(str, self.default)) if isinstance(self.default, tuple) else self.default
        ranges = [one for one in constraints_of(self.kind) if isinstance(one, Range)]
        notes = [str(one) for one in ranges if min(one.le, one.lt) <= _MAX_SHOWN]
        if self.required or default is MISSING:
            notes.append("required")
        elif default not in (None, ""):
            notes.append(f"default: {default}")
        text = f"{self.help} ({'; '.join(notes)})" if notes else self.help
        return text.replace("%", "%%")


class CommandParser:
    """Parser of the words of one command into its dataclass.

    Args:
        program: Words that call the command, as in `bootdqn train gym`.
        command: The dataclass, or an instance that holds the defaults. Fields that are dataclasses themselves are parts
            of it: their fields are flags, too, under a heading of their own.
        description: Description in the help (default: the docstring of the command).
        example: A command line that works.
        required: Name of a field that must be given although it has a default.
        synonyms: For flags that the command does not have, in lower case, the flag to suggest.
    """

    def __init__(
        self,
        program: str,
        command: Any,
        description: str = "",
        *,
        example: str = "",
        required: str | None = None,
        synonyms: Mapping[str, str] | None = None,
    ) -> None:
        self._program, self._command, self._example = program, command, example
        self._required, self._synonyms = required, synonyms or {}
        self._parser = _Parser(
            prog=program,
            description=_wrap(description or str(_class_of(command).__doc__)),
            epilog=f"Example: {example}" if example else None,
            formatter_class=partial(argparse.RawDescriptionHelpFormatter, max_help_position=32),
            allow_abbrev=False,
            exit_on_error=False,
        )
        self._arguments: dict[str, Argument] = {}
        self._flags: dict[str, Argument] = {}
        for heading, arguments in _arguments_by_part(command):
            group = self._parser.add_argument_group(heading) if heading else self._parser
            for each in arguments:
                argument = replace(each, required=True) if each.field == required else each
                self._arguments[argument.field] = argument
                self._flags |= dict.fromkeys(argument.add_to(group), argument)
        positional = [argument.name for argument in self._arguments.values() if argument.flag.positional]
        self._parser.usage = " ".join([program, *positional, "[options]"])

    def format_help(self) -> str:
        """Return the help, laid out for the width of the terminal."""
        return self._parser.format_help()

    def parse(self, words: list[str]) -> dict[str, Any]:
        """Return the values in `words` by field; fields that are not given are left out.

        Raises:
            UsageError: A flag does not exist, does not take its value, or is missing.
        """
        words = [_with_hyphens(word) for word in words]
        for word in words:
            if word.startswith("-") and word.partition("=")[0] not in self._flags and not _NEGATIVE_NUMBER.match(word):
                self._raise(f"unknown flag {word}", closest=word)
        try:
            namespace, stray = self._parser.parse_known_intermixed_args(words)
        except argparse.ArgumentError as error:
            name = str(error.argument_name).partition("/")[0]
            if name in self._flags and self._flags[name].is_switch:
                self._raise(f"{name} takes no value; write {name} or --no-{name.removeprefix('--')}")
            self._raise(f"{name} {error.message}")
        if stray:
            self._raise(f"unexpected argument {stray[0]!r}", closest=stray[0])
        given = {}
        for name, value in vars(namespace).items():
            argument = self._arguments[name]
            if argument.flag.positional and value in (None, []):
                continue
            try:
                given[name] = argument.parse(value)
            except ValueError as error:
                self._raise(f"{argument.name} {error}")
        for argument in self._arguments.values():
            if argument.default is MISSING and argument.field not in given:
                self._raise_missing(argument, self._example)
        return given

    def build(self, given: dict[str, Any], defaults: Any = None) -> Any:
        """Return the command with the `given` values, and the default of every other field.

        Args:
            given: Values by field.
            defaults: A command with other defaults than those that the help shows (None: those).

        Raises:
            UsageError: A value is out of range, or the values do not go together.
        """
        try:
            command = _build(self._command if defaults is None else defaults, given)
        except ValueError as error:
            raise UsageError(str(error)) from None
        if self._required and self._required not in given:
            argument = self._arguments[self._required]
            self._raise_missing(argument, f"{argument.name} {argument.default}")
        return command

    def _raise_missing(self, argument: Argument, example: str) -> NoReturn:
        self._raise(f"{self._program.removeprefix('bootdqn ')} needs {argument.name}, as in {example}")

    def _raise(self, message: str, closest: str = "") -> NoReturn:
        """Raise a UsageError that suggests the flag closest to a word, or else the help."""
        name = closest.partition("=")[0].lstrip("-").lower()
        flag = self._synonyms.get(f"--{name}") or closest_flag(name, self._flags)
        raise UsageError(f"{message}; did you mean {flag}?" if flag else f"{message}; see {self._program} --help")


def parse_command(command: Any, words: list[str], program: str) -> Any:
    """Return `command`, a dataclass or an instance with defaults, as `words` describe it; for scripts.

    `--help` and usage errors are printed and end the program.
    """
    parser = CommandParser(program, command)
    if asks_for_help(words):
        print(parser.format_help())
        raise SystemExit(0)
    try:
        return parser.build(parser.parse(words))
    except UsageError as error:
        raise SystemExit(f"{program}: {error}") from None


def asks_for_help(words: Iterable[str]) -> bool:
    """Return whether -h or --help is among the words of a command line."""
    return not {"-h", "--help"}.isdisjoint(words)


def closest_flag(word: str, flags: Iterable[str]) -> str | None:
    """Return the flag closest to `word`: one that it is a prefix of, or else a similar one; none to a single letter.

    Example:
        >>> closest_flag("--siz", ["--batch-size", "--size"]), closest_flag("strateg", ["--strategy"])
        ('--size', '--strategy')
    """
    name = word.partition("=")[0].lstrip("-").lower()
    by_name = {flag.lstrip("-"): flag for flag in flags}
    longer = sorted((flag for flag in by_name if len(name) > 1 and flag.startswith(name)), key=len)
    close = longer or difflib.get_close_matches(name, by_name, n=1)
    return by_name[close[0]] if close else None


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see {self.prog} --help")


def _wrap(text: str) -> str:
    """Wrap each paragraph to the width of the terminal."""
    width = max(shutil.get_terminal_size().columns - 2, 20)
    return "\n\n".join(textwrap.fill(part, width) for part in text.split("\n\n"))


@cache
def field_docs(kind: type) -> dict[str, str]:
    """Return the docstring below each field of a dataclass, by the field's name."""
    definition = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    assert isinstance(definition, ast.ClassDef)
    docs = {}
    for statement, following in itertools.pairwise(definition.body):
        match statement, following:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                docs[name] = " ".join(text.split())
    return docs


def _class_of(source: Any) -> type:
    return source if isinstance(source, type) else type(source)


def _arguments_by_part(source: Any, heading: str = "") -> Iterator[tuple[str, list[Argument]]]:
    """Yield the arguments of a dataclass, then those of each of its parts, headed by the docstring of the part."""
    kind = _class_of(source)
    hints, docs = get_type_hints(kind, include_extras=True), field_docs(kind)
    own, parts = list[Argument](), list[Any]()
    for field in fields(kind):
        default = _default(source, field)
        if is_dataclass(default):
            parts.append(default)
        else:
            own.append(Argument(field.name, hints[field.name], default, docs.get(field.name, "")))
    if own:
        yield heading, own
    for part in parts:
        yield from _arguments_by_part(part, str(type(part).__doc__).partition("\n")[0].partition(". ")[0].rstrip("."))


def _default(source: Any, field: Field[Any]) -> Any:
    if not isinstance(source, type):
        return getattr(source, field.name)
    return field.default if field.default_factory is MISSING else field.default_factory()


def _build(source: Any, given: dict[str, Any]) -> Any:
    values = {}
    for field in fields(_class_of(source)):
        default = _default(source, field)
        values[field.name] = _build(default, given) if is_dataclass(default) else given.get(field.name, default)
    return _class_of(source)(**values)


def _with_hyphens(word: str) -> str:
    """Return a flag with hyphens where it was written with underscores."""
    name, equals, value = word.partition("=")
    return f"{name.replace('_', '-')}{equals}{value}" if name.startswith("--") else word


def _metavar(kind: Any) -> str:
    """Return how the help writes a value: `INT`, `mean|sum`, `INT|log|None`."""
    item = item_kind(kind)
    if item is not None:
        return _metavar(item)
    if get_origin(kind) is Annotated:
        return _metavar(get_args(kind)[0])
    if get_origin(kind) is Literal:
        return "|".join(get_args(kind))
    arms = sorted(get_args(kind), key=lambda arm: arm is type(None))
    return "|".join(map(_metavar, arms)) if arms else _METAVARS[kind]


Repeated = Annotated[tuple[str, ...], Flag(repeated=True)]


@dataclass(frozen=True)
class UserCode:
    """User code. It is never imported because a file names it: repeat the flags that a run was trained with."""

    strategy_from: Repeated = ()
    """Import a strategy of your own, as in my_module.MyStrategy."""
    imports: Annotated[tuple[str, ...], Flag(name="import", repeated=True)] = ()
    """Import a module of your own that registers Gymnasium environments."""
