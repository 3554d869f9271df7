"""Command lines from dataclasses: every type that a field may have, every way to write a value."""

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import pytest

from bootdqn.cli.arguments import CommandParser, closest_flag, field_docs, parse_command
from bootdqn.cli.main import parse
from bootdqn.cli.train import TrainCommand
from bootdqn.common.errors import UsageError
from bootdqn.common.fields import Flag
from bootdqn.config.defaults import ATARI


@dataclass(frozen=True)
class Part:
    """A part. Its second sentence is no heading."""

    rate: float = 0.5
    """How fast, in
    two lines."""
    rule: Literal["mean", "sum"] = "mean"
    """Which one."""


@dataclass(frozen=True)
class Example:
    """An example."""

    place: Annotated[Path, Flag(positional=True)]
    """Where."""
    words: Annotated[tuple[str, ...], Flag(positional=True, metavar="WORD")] = ()
    """Anything, 100 % of it."""
    count: int | Literal["all"] | None = None
    """How many."""
    sizes: tuple[int, ...] = (1, 2)
    """Numbers."""
    loud: bool = False
    """Whether."""
    keep: bool | None = None
    """Whether, or nobody knows."""
    modules: Annotated[tuple[str, ...], Flag(name="import", repeated=True)] = ()
    """What to import."""
    part: Part = field(default_factory=Part)

    def __post_init__(self):
        if self.count == 13:
            raise ValueError("--count must not be 13")


@pytest.fixture
def parser():
    return CommandParser("example", Example, example="example here", synonyms={"--number": "--count"})


@pytest.mark.parametrize(
    ("line", "changes"),
    [
        ("here", {}),
        ("here a b", {"words": ("a", "b")}),
        ("here a --loud b", {"words": ("a", "b"), "loud": True}),
        ("--loud here", {"loud": True}),
        ("here --no-loud --no-keep", {"loud": False, "keep": False}),
        ("here --count 3", {"count": 3}),
        ("here --count=-3", {"count": -3}),
        ("here --count -3", {"count": -3}),
        ("here --count all", {"count": "all"}),
        ("here --count None", {"count": None}),
        ("here --sizes 3 4", {"sizes": (3, 4)}),
        ("here --sizes 3,4", {"sizes": (3, 4)}),
        ("here --sizes 3,4 5", {"sizes": (3, 4, 5)}),
        ("here --sizes", {"sizes": ()}),
        ("here --import a --import b", {"modules": ("a", "b")}),
        ("here --rate 1e-3 --rule sum", {"part": Part(0.001, "sum")}),
        ("here --rate=2", {"part": Part(2.0)}),
    ],
)
def test_every_way_to_write_a_value(parser, line, changes):
    expected = Example(**{"place": Path("here"), **changes})
    assert parser.build(parser.parse(line.split())) == expected


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("200M", 200_000_000),
        ("200e6", 200_000_000),
        ("1e3", 1000),
        ("1.5k", 1500),
        ("1_000", 1000),
        ("+7", 7),
        ("2G", 2 * 10**9),
    ],
)
def test_whole_numbers_may_be_written_short(parser, text, number):
    assert parser.build(parser.parse(["here", "--count", text])).count == number


@pytest.mark.parametrize("text", ["1.5", "1e-3", "0.0005k", "1e999", "_1", "1 000", "k", "", "0x10", "٣", "1M5", "nan"])
def test_text_that_is_no_whole_number_is_rejected(parser, text):
    with pytest.raises(UsageError, match="--count must be a whole number or all or None, got "):
        parser.parse(["here", "--count", text])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "example needs PLACE, as in example here; see example --help"),
        ("here --cuont 3", "unknown flag --cuont; did you mean --count?"),
        ("here --number 3", "unknown flag --number; did you mean --count?"),
        ("here --help-me", "unknown flag --help-me; see example --help"),
        ("here --no-count", "unknown flag --no-count; did you mean --count?"),
        ("here --loud=yes", "--loud takes no value; write --loud or --no-loud; see example --help"),
        ("here --rule max", "--rule must be one of mean, sum; got 'max'; see example --help"),
        ("here --rate fast", "--rate must be a number, got 'fast'; see example --help"),
        ("here --rate", "--rate expected one argument; see example --help"),
        ("here --count 13", "--count must not be 13"),
    ],
)
def test_an_argument_error_names_what_to_write(parser, line, message):
    with pytest.raises(UsageError) as caught:
        parser.build(parser.parse(line.split()))
    assert str(caught.value) == message


def test_help_has_every_flag_with_its_docstring_and_default(parser, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    text = " ".join(parser.format_help().split())
    assert text.startswith("usage: example PLACE WORD [options] An example.")
    assert "PLACE Where. (required)" in text
    assert "WORD Anything, 100 % of it." in text
    assert "--count INT|all|None How many. --sizes" in text
    assert "--sizes [INT ...] Numbers. (default: 1 2)" in text
    assert "--loud, --no-loud Whether. (default: False)" in text
    assert (
        "A part: --rate FLOAT How fast, in two lines. (default: 0.5) --rule mean|sum Which one. (default: mean)" in text
    )
    assert text.endswith("Example: example here")


def test_help_has_the_ranges_that_teach_something(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    text = " ".join(CommandParser("train", TrainCommand(ATARI)).format_help().split())
    assert "--discount FLOAT Discount factor. (between 0 and 1; default: 0.99)" in text
    assert "(at least 0 and below 1; default: 0.0)" in text
    assert "--seed INT Seed of every random stream of the run. (default: 0)" in text
    assert "--batch-size INT Transitions in one update. (default: 32)" in text


def test_the_docstrings_of_fields_are_those_below_them():
    assert field_docs(Part) == {"rate": "How fast, in two lines.", "rule": "Which one."}


def test_the_closest_flag_is_one_that_the_word_begins_or_resembles():
    flags = ["--batch-size", "--size", "--num-seeds"]
    assert closest_flag("--siz=5", flags) == "--size"
    assert closest_flag("--seeds", flags) == "--num-seeds"
    assert closest_flag("--eval", ["--level", "--eval-every-steps"]) == "--eval-every-steps"
    assert closest_flag("--colour", flags) is None
    assert closest_flag("", flags) is None


def test_a_script_with_one_command_prints_its_help_and_ends_with_a_line(capsys):
    assert parse_command(Part, ["--rate", "2"], "script.py") == Part(2.0)
    with pytest.raises(SystemExit) as ended:
        parse_command(Part, ["--help"], "script.py")
    assert ended.value.code == 0
    assert "usage: script.py [options]" in capsys.readouterr().out
    with pytest.raises(SystemExit, match=r"script.py: unknown flag --rats; did you mean --rate\?"):
        parse_command(Part, ["--rats", "2"], "script.py")


def test_budgets_and_layers_may_be_written_short_on_the_real_command_line():
    config = parse(["train", "atari", "--game", "Pong", "--total-frames", "200M", "--hidden-sizes", "50,60"]).config
    assert (config.env.total_frames, config.network.hidden_sizes) == (200_000_000, (50, 60))


@pytest.mark.parametrize("name", ["deepsea", "replay", "atari"])
def test_the_benchmarks_show_their_help(name):
    command = [sys.executable, "-m", f"benchmarks.{name}", "--help"]
    shown = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True)
    assert "--json" in shown.stdout
