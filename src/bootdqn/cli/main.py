"""Entry point of the command line: the commands, and how their errors are printed."""

import io
import os
import re
import sys
from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol

from bootdqn import __version__
from bootdqn.cli.arguments import CommandParser, asks_for_help
from bootdqn.cli.evaluate import EvaluateCommand, InspectCommand
from bootdqn.cli.report import ReportCommand
from bootdqn.cli.sweep import DemoCommand, SweepCommand
from bootdqn.cli.train import ResumeCommand, TrainCommand, TrainMiniGridCommand
from bootdqn.common.errors import TrainingError, UsageError, is_out_of_memory, os_error_reason
from bootdqn.common.fields import flag_of
from bootdqn.common.text import did_you_mean, escape_unprintable
from bootdqn.config.defaults import ATARI, BSUITE, DEEP_SEA, DEFAULTS, GYM, MINATAR, MINIGRID
from bootdqn.config.settings import BUDGET_SYNONYMS, setting_synonyms, setting_types
from bootdqn.config.train import TrainConfig
from bootdqn.exploration.registry import registered_name
from bootdqn.runs.user_code_imports import UserCodeImports

_LESS_MEMORY = "lower --replay-capacity, --batch-size, --hidden-sizes or --size"
_LESS_GPU_MEMORY = "lower --batch-size, --num-heads or --hidden-sizes, or use --device cpu"


class Command(Protocol):
    """A parsed command."""

    def execute(self) -> int:
        """Execute the command and return the exit code."""
        ...


@dataclass(frozen=True)
class CommandSpec:
    """A command before it is parsed: its flags and its help."""

    command: Any
    """Its dataclass, or an instance that holds the defaults."""
    description: str
    example: str
    synonyms: dict[str, str] = field(default_factory=dict)
    """For flags that it does not have, the flag to suggest."""

    @property
    def required(self) -> str | None:
        """Field that must be given although it has a default: the environment's task."""
        return self.command.config.env.required_field if isinstance(self.command, TrainCommand) else None


def _as_flag(word: str) -> str:
    return f"--{word.replace('_', '-')}"


def _train_synonyms(config: TrainConfig[Any]) -> dict[str, str]:
    """Return the flags of `train` to suggest for those that it does not have."""
    types = setting_types(config.env.kind)
    meant = {
        _as_flag(word): flag_of(types[name]).name_for(name) for word, name in setting_synonyms(config.env.kind).items()
    }
    return {"--out": "--run-dir"} | meant


def _sweep_synonyms() -> dict[str, str]:
    """Return by the flag of each setting how `sweep` takes it."""
    types = {name: kind for environment in DEFAULTS for name, kind in setting_types(environment).items()}
    return {flag_of(kind).name_for(name): f"{name}=VALUE, without dashes" for name, kind in types.items()}


COMMANDS: dict[str, Any] = {
    "train": {
        "deep-sea": CommandSpec(
            TrainCommand(DEEP_SEA),
            "Train one agent on DeepSea; the defaults are the paper's settings (Appendix A).",
            example="bootdqn train deep-sea --size 20 --strategy evoi:reduce=sum --seed 3 --run-dir runs/first",
            synonyms=_train_synonyms(DEEP_SEA),
        ),
        "atari": CommandSpec(
            TrainCommand(ATARI),
            "Train one agent on an Atari game; the defaults are the paper's settings (Section IV).",
            example="bootdqn train atari --game Gravitar --strategy gain --seed 1 --total-frames 10M",
            synonyms=_train_synonyms(ATARI),
        ),
        "minatar": CommandSpec(
            TrainCommand(MINATAR),
            "Train one agent on a MinAtar game; the defaults scale the paper's Atari settings.",
            example="bootdqn train minatar --game breakout --strategy evoi --seed 1 --total-steps 200k",
            synonyms=_train_synonyms(MINATAR),
        ),
        "gym": CommandSpec(
            TrainCommand(GYM),
            "Train one agent on any Gymnasium environment with discrete actions.",
            example="bootdqn train gym --env-id CartPole-v1 --strategy evoi --total-steps 50000",
            synonyms=_train_synonyms(GYM),
        ),
        "minigrid": CommandSpec(
            TrainMiniGridCommand(MINIGRID),
            "Train one agent on a MiniGrid environment: as `train gym`, with settings for rare rewards.",
            example="bootdqn train minigrid --env-id MiniGrid-DoorKey-5x5-v0 --total-steps 50000",
            synonyms=_train_synonyms(MINIGRID),
        ),
        "bsuite": CommandSpec(
            TrainCommand(BSUITE),
            "Train one agent in one setting of bsuite's exploration experiments: deep_sea, deep_sea_stochastic and "
            "cartpole_swingup; `bootdqn sweep bsuite-exploration` trains it in all of them.",
            example="bootdqn train bsuite --id deep_sea/7 --strategy evoi:reduce=sum",
            synonyms=_train_synonyms(BSUITE),
        ),
    },
    "resume": CommandSpec(
        ResumeCommand,
        "Resume a stopped run exactly from its last checkpoint; its configuration is read from the run directory. With "
        "--budget a run is trained for longer than it was started with, also a finished one that was trained with "
        "--keep-checkpoint.",
        example="bootdqn resume runs/first",
        synonyms=dict.fromkeys(map(_as_flag, BUDGET_SYNONYMS), "--budget"),
    ),
    "evaluate": CommandSpec(
        EvaluateCommand,
        "Evaluate a run by the vote of its heads and print the returns, with the weights saved last: at a checkpoint, "
        "an evaluation or the end.",
        example="bootdqn evaluate runs/first --episodes 5 --video play.mp4",
        synonyms={"--checkpoint": "--weights", "--strategy": "--vote"},
    ),
    "sweep": CommandSpec(
        SweepCommand,
        "Train every run of an experiment, on this machine or on a Ray cluster; the same command resumes a sweep that "
        "was stopped."
        "\n\nThe paper's experiments: paper-atari, paper-diversity, paper-deepsea. Ours: paper-deepsea-every-step, "
        "paper-minatar, minatar-heads, deepsea-frontier, deepsea-ablation, deepsea-sensitivity. bsuite's: "
        "bsuite-exploration. Each also as NAME-smoke, which takes a minute.",
        example="bootdqn sweep paper-deepsea --out runs/deepsea 'seed=[0,1,2]' --dry-run",
        synonyms=_sweep_synonyms(),
    ),
    "report": CommandSpec(
        ReportCommand,
        "Write one page with the tables and figures of all runs below some directories; for DeepSea and Atari those of "
        "the paper, ours beside theirs, for other environments learning curves and a table. With --watch, a page that "
        "follows the runs while they are trained.",
        example="bootdqn report runs/deepsea --out report.html",
    ),
    "inspect": CommandSpec(
        InspectCommand,
        "Play a trained agent and write one page that shows why it chose each action: Q, gain and EVOI, head by head.",
        example="bootdqn inspect runs/first --out inspect.html",
        synonyms={"--checkpoint": "--weights"},
    ),
    "demo": CommandSpec(
        DemoCommand(),
        "Compare strategies on DeepSea by the episodes that they need to solve it; ends with a page to open.",
        example="bootdqn demo --sizes 5 10 15 --num-seeds 5",
        synonyms={
            **dict.fromkeys(map(_as_flag, BUDGET_SYNONYMS), "--max-episodes"),
            "--strategy": "--strategies",
            "--run-dir": "--out",
            "--n": "--sizes",
        },
    ),
}
SUMMARIES = {"train": "Train one agent in one run directory"}


def main() -> NoReturn:
    """Run the command line and exit with its code."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names of files need not be text
    sys.exit(run_command_line(sys.argv[1:]))


def run_command_line(arguments: list[str]) -> int:
    """Execute the command line `arguments` and return the exit code; a usage error is one or two lines and gives 2."""
    try:
        command = parse(arguments)
        return 0 if command is None else command.execute()
    except UsageError as error:
        _print_error(str(error))
        return 2
    except TrainingError as error:
        _print_error(str(error))
        return 1
    except KeyboardInterrupt as stop:
        print("bootdqn: interrupted", file=sys.stderr)
        return int(getattr(stop, "exit_code", 130))
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        return _report_lack_of_memory(error)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains once more at its exit
        return 141
    except OSError as error:
        what = f"{error.filename}: " if error.filename else ""
        _print_error(f"{what}{os_error_reason(error)}")
        return 2


def _print_error(message: str) -> None:
    """Print an error; control characters in names and texts from outside are escaped."""
    lines = [escape_unprintable(line) for line in f"bootdqn: {message}".splitlines()]
    print("\n".join(lines), file=sys.stderr)


def _report_lack_of_memory(error: Exception) -> int:
    advice = _LESS_GPU_MEMORY if type(error).__name__ == "OutOfMemoryError" else _LESS_MEMORY
    lines = str(error).splitlines() or ["MemoryError"]
    print(f"bootdqn: not enough memory ({lines[0]}); {advice}", file=sys.stderr)
    return 2


def parse(arguments: list[str]) -> Command | None:
    """Return the command that `arguments` describe; None where they asked for help or the version, which is printed."""
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
    return _parse_flags(node, " ".join(path), rest)


def _parse_flags(spec: CommandSpec, program: str, words: list[str]) -> Command | None:
    parser = CommandParser(
        program,
        spec.command,
        spec.description,
        example=spec.example,
        required=spec.required,
        synonyms=spec.synonyms,
    )
    if asks_for_help(words):
        print(parser.format_help())
        return None
    given = parser.parse(words)
    strategies = _import_user_code(given)
    if strategies and isinstance(spec.command, TrainCommand):
        given.setdefault("strategy", registered_name(strategies[-1]))
    preset = given.get("preset")
    source = spec.command.with_preset(preset) if isinstance(spec.command, TrainCommand) and preset else spec.command
    command: Command = parser.build(given, source)
    return command


def _import_user_code(given: dict[str, Any]) -> tuple[str, ...]:
    """Import the user code that the command line names, which its other values may refer to; return its strategies."""
    named = given.get("strategy_from") or ()
    strategies = (named,) if isinstance(named, str) else named
    try:
        UserCodeImports(strategies, given.get("imports", ())).load()
    except ValueError as error:
        raise UsageError(str(error)) from None
    return strategies


def _overview(path: list[str], commands: dict[str, Any]) -> str:
    def summary(word: str, node: Any) -> str:
        return SUMMARIES[word] if isinstance(node, dict) else re.split(r"[.;:](\s|$)", node.description)[0]

    width = max(map(len, commands))
    listed = "\n".join(f"  {word:<{width}}  {summary(word, node)}" for word, node in commands.items())
    program = " ".join(path)
    return f"usage: {program} COMMAND [options]\n\n{listed}\n\n{program} COMMAND --help shows its options."
