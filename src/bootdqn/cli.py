"""The command line: parse and call.

Nothing here imports PyTorch before there is work to do, so that `--help` and mistakes answer at once.
"""

import contextlib
import copy
import io
import itertools
import os
import re
import sys
from dataclasses import dataclass, replace
from typing import Any, NoReturn, Protocol

import tyro

from bootdqn import __version__
from bootdqn.commands.experiments import Demo, Sweep
from bootdqn.commands.results import Evaluate, Inspect, Report
from bootdqn.commands.training import Resume, Train
from bootdqn.common.errors import TrainingError, UsageError, is_lack_of_memory
from bootdqn.common.written import did_you_mean
from bootdqn.envs.config import AtariConfig, DeepSeaConfig, GymConfig
from bootdqn.exploration.registry import registered_name
from bootdqn.training.config import ATARI, DEEP_SEA, GYM
from bootdqn.training.extensions import Extensions

STRATEGY_FROM, IMPORT = "--strategy-from", "--import"
BUDGETS = ("--max-episodes", "--total-steps", "--total-frames")
"""What says how long to train: episodes on DeepSea, steps in Gymnasium, frames on Atari."""
OF_PROCESSOR = "lower --replay-capacity, --batch-size, --hidden-sizes or --size"
"""What takes memory of the processor."""
OF_GPU = "lower --batch-size, --num-heads or --hidden-sizes, or use --device cpu"
"""What takes memory of a GPU."""


class Command(Protocol):
    """A parsed command line."""

    def execute(self) -> int:
        """Do it and return the exit code."""
        ...


@dataclass(frozen=True)
class Leaf:
    """A command that can be called: its type, the values it starts from, and what it does."""

    command: Any
    default: Any
    description: str
    imports: tuple[str, ...] = (STRATEGY_FROM, IMPORT)
    """Its flags that import code of the user's own."""
    budget: str | None = None
    """Its flag that says how long to train."""

    @property
    def needed(self) -> str | None:
        """Its setting that must be said: the task, where the environment is many."""
        return self.default.config.env.must_be_said if isinstance(self.default, Train) else None


COMMANDS: dict[str, Any] = {
    "train": {
        "deep-sea": Leaf(
            Train[DeepSeaConfig],
            Train(DEEP_SEA),
            "Train one agent on DeepSea; the defaults are the paper's settings (Appendix A).\n\n"
            "Example: bootdqn train deep-sea --size 20 --strategy evoi:reduce=sum --seed 3 --run-dir runs/first",
            imports=(STRATEGY_FROM,),
            budget="--max-episodes",
        ),
        "atari": Leaf(
            Train[AtariConfig],
            Train(ATARI),
            "Train one agent on an Atari game; the defaults are the paper's settings (Section IV).\n\n"
            'Example: bootdqn train atari --game "Private Eye" --strategy gain --seed 1 --total-frames 10000000',
            imports=(STRATEGY_FROM,),
            budget="--total-frames",
        ),
        "gym": Leaf(
            Train[GymConfig],
            Train(GYM),
            "Train one agent on any Gymnasium environment with discrete actions.\n\n"
            "Example: bootdqn train gym --env-id CartPole-v1 --strategy evoi --total-steps 50000",
            budget="--total-steps",
        ),
    },
    "resume": Leaf(
        Resume,
        None,
        "Go on with a stopped run, exactly where its last checkpoint was made; its folder says the rest. With --budget "
        "a run goes further than it was meant to, also a finished one that was trained with --keep-checkpoint."
        "\n\nExample: bootdqn resume runs/first",
        budget="--budget",
    ),
    "evaluate": Leaf(
        Evaluate,
        None,
        "Play a run by the vote of its heads and tell the scores, with the weights saved last: at a checkpoint, an "
        "evaluation or the end."
        "\n\nExample: bootdqn evaluate runs/first --episodes 5 --video play.mp4",
    ),
    "sweep": Leaf(
        Sweep,
        None,
        "Make every run of an experiment, on this machine or on a Ray cluster; killed and started again it goes on."
        "\n\nThe paper's: paper-atari, paper-diversity, paper-deepsea. Ours: deepsea-frontier, deepsea-ablation, "
        "deepsea-sensitivity. Each also as NAME-smoke, which takes a minute."
        "\n\nExample: bootdqn sweep paper-deepsea --out runs/deepsea 'seed=[0,1,2]' --dry-run",
    ),
    "report": Leaf(
        Report,
        None,
        "Turn folders of runs into one page, with every table and figure of the paper, ours beside theirs."
        "\n\nRuns of train gym have learning curves and a table."
        "\n\nExample: bootdqn report runs/deepsea --out report.html",
        imports=(),
    ),
    "inspect": Leaf(
        Inspect,
        None,
        "Play a trained agent and write one page that shows why it chose each action: Q, gain and EVOI, head by head."
        "\n\nExample: bootdqn inspect runs/first --out inspect.html",
    ),
    "demo": Leaf(
        Demo,
        Demo(),
        "Race strategies on DeepSea and draw who solves it first; ends with a page to open.\n\n"
        "Example: bootdqn demo --sizes 5 10 15 --num-seeds 5",
        imports=(STRATEGY_FROM,),
        budget="--max-episodes",
    ),
}
SUMMARIES = {"train": "Train one agent in one run folder."}


def main() -> NoReturn:
    """Run the command line and exit with its code."""
    sys.exit(run_command_line(sys.argv[1:]))


def run_command_line(arguments: list[str]) -> int:
    """Do what `arguments` ask and return the exit code; a mistake is told in a line or two and gives 2."""
    try:
        command = parse(arguments)
        return 0 if command is None else command.execute()
    except UsageError as error:
        print(f"bootdqn: {error}", file=sys.stderr)
        return 2
    except TrainingError as error:
        print(f"bootdqn: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as stop:
        print("bootdqn: interrupted", file=sys.stderr)
        return int(getattr(stop, "exit_code", 130))
    except (MemoryError, RuntimeError) as error:
        if not is_lack_of_memory(error):
            raise
        return _tell_lack_of_memory(error)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains once more at its exit
        return 141
    except OSError as error:
        print(f"bootdqn: {error}", file=sys.stderr)
        return 2


def _tell_lack_of_memory(error: Exception) -> int:
    advice = OF_GPU if type(error).__name__ == "OutOfMemoryError" else OF_PROCESSOR
    lines = str(error).splitlines() or ["MemoryError"]
    print(f"bootdqn: not enough memory ({lines[0]}); {advice}", file=sys.stderr)
    return 2


def parse(arguments: list[str]) -> Command | None:
    """Return the command that `arguments` describe, or None where they asked for help and got it."""
    path = ["bootdqn"]
    node: Any = COMMANDS
    rest = list(arguments)
    while isinstance(node, dict):
        if rest and rest[0] == "--version":
            print(f"bootdqn {__version__}")
            return None
        if not rest or rest[0] in ("-h", "--help"):
            print(_overview(path, node))
            return None
        word = rest.pop(0)
        if word not in node:
            hint = did_you_mean(word, node, f"choose from {', '.join(node)}")
            raise UsageError(f"unknown command {word!r} after {' '.join(path)!r}{hint}")
        path.append(word)
        node = node[word]
    return _parse_leaf(node, " ".join(path), rest)


def _parse_leaf(leaf: Leaf, program: str, arguments: list[str]) -> Command | None:
    errors = io.StringIO()
    try:
        start = _import_own_code(leaf, arguments)
        if leaf.needed and {"-h", "--help"} & set(arguments):
            start = _without(start, leaf.needed)
        with contextlib.redirect_stderr(errors):
            default = {} if start is None else {"default": start}
            parsed: Command = tyro.cli(
                leaf.command, prog=program, args=arguments, description=leaf.description, **default
            )
    except SystemExit as stop:
        if not stop.code:
            return None
        raise UsageError(f"{_explained(leaf, arguments, errors.getvalue())}; see {program} --help") from None
    except ValueError as error:
        raise UsageError(str(error)) from None
    _refuse_what_is_not_said(leaf, program, arguments)
    return parsed


def _without(command: Train[Any], setting: str) -> Train[Any]:
    """Return the command without a value for a setting of its environment, so that its help calls it required."""
    env = copy.copy(command.config.env)
    object.__setattr__(env, setting, tyro.MISSING)  # `replace` would check the value
    return replace(command, config=replace(command.config, env=env))


def _refuse_what_is_not_said(leaf: Leaf, program: str, arguments: list[str]) -> None:
    """Raise a UsageError if the setting that must be said is not among the arguments."""
    if leaf.needed:
        flag, default = f"--{leaf.needed.replace('_', '-')}", getattr(leaf.default.config.env, leaf.needed)
        if not _values(arguments, flag):
            raise UsageError(f"{program} needs {flag}, as in {flag} {default}; see {program} --help")


def _explained(leaf: Leaf, arguments: list[str], box: str) -> str:
    """Return tyro's framed error in one line; a budget in the unit of another command is answered with this one's."""
    told = _in_one_line(box)
    if leaf.budget and any(_values(arguments, flag) for flag in BUDGETS if flag != leaf.budget):
        return f"{told.partition('; did you mean')[0]}; did you mean {leaf.budget}?"
    return told


def _import_own_code(leaf: Leaf, arguments: list[str]) -> Any:
    """Import what `arguments` ask for, since they are read with it; return the values that the command starts from."""
    asked = {flag: _values(arguments, flag) for flag in leaf.imports}
    strategies = asked.get(STRATEGY_FROM, ())
    Extensions(strategies, asked.get(IMPORT, ())).load()
    if strategies and isinstance(leaf.default, Train):
        return leaf.default.following(registered_name(strategies[-1]))
    return leaf.default


def _values(arguments: list[str], flag: str) -> tuple[str, ...]:
    """Return the values that `flag` has, be it written `--flag value`, `--flag=value` or with underscores."""
    words = [(*word.partition("="), following) for word, following in itertools.pairwise([*arguments, ""])]
    return tuple(
        value if equals else following for name, equals, value, following in words if name.replace("_", "-") == flag
    )


def _in_one_line(box: str) -> str:
    """Return the message of one of tyro's framed errors, and the flag it suggests, without the frame.

    The frame is drawn with lines where the terminal can, otherwise with dashes under a title.
    """
    framed = box.startswith("╭")
    lines = [line.strip("│ ") for line in box.splitlines() if not line.startswith(("╭", "╰"))]
    sections = re.split(r"^[─-]{4,}$", "\n".join(lines), flags=re.MULTILINE)[0 if framed else 1 :]
    message = re.sub(r"^Error parsing [A-Za-z][\w.]*: ", "", " ".join(sections[0].split())).removesuffix(".")
    suggestion = next((section.split()[3].rstrip(",") for section in sections if "Perhaps you meant" in section), None)
    message = _in_plain_words(message)
    return message if suggestion is None else f"{message}; did you mean {suggestion}?"


def _in_plain_words(message: str) -> str:
    """Say what the value of a flag must be, where the message says how Python failed to read it."""
    flag, number = r"^Error parsing (--[\w-]+): ", {"INT": "a whole number", "FLOAT": "a number"}
    message = re.sub(flag + r"invalid literal for int\(\).*?: (.*)", r"\1 must be a whole number, got \2", message)
    message = re.sub(flag + r"could not convert string to float: (.*)", r"\1 must be a number, got \2", message)
    one_of = re.match(flag + r"no type matching (\S+) could be instantiated from \[(.*?)\]", message)
    if one_of is None:
        return message
    kinds = [number.get(kind, kind.strip("{}")) for kind in one_of[2].split("|")]
    return f"{one_of[1]} must be {' or '.join(kinds)}, got {one_of[3]}"


def _overview(path: list[str], commands: dict[str, Any]) -> str:
    def summary(word: str, node: Any) -> str:
        return SUMMARIES[word] if isinstance(node, dict) else str(node.description.splitlines()[0])

    width = max(map(len, commands))
    listed = "\n".join(f"  {word:<{width}}  {summary(word, node)}" for word, node in commands.items())
    program = " ".join(path)
    return f"usage: {program} COMMAND [options]\n\n{listed}\n\n{program} COMMAND --help tells more."
