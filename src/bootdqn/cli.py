"""The command line: parse and call.

Nothing here imports PyTorch before there is work to do, so that `--help` and mistakes answer at once.
"""

import contextlib
import difflib
import io
import os
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Generic, NoReturn, Protocol

import numpy as np
import tyro

from bootdqn import __version__
from bootdqn.common.errors import TrainingError, UsageError
from bootdqn.envs.config import AtariConfig, DeepSeaConfig, GymConfig
from bootdqn.experiments.plan import PlannedRun, deep_sea_race
from bootdqn.exploration.voting import VoteRule
from bootdqn.training.config import ATARI, DEEP_SEA, GYM, EnvT, SavingConfig, TrainConfig


class Command(Protocol):
    """A parsed command line."""

    def execute(self) -> int:
        """Do it and return the exit code."""
        ...


@dataclass(frozen=True)
class Train(Generic[EnvT]):
    """Train one agent in one run folder."""

    config: Annotated[tyro.conf.OmitArgPrefixes[TrainConfig[EnvT]], tyro.conf.arg(name="")]
    run_dir: Path | None = None
    """Folder of the run (None: one under runs/ named after the configuration)."""
    quiet: bool = False
    """Show no progress."""
    tensorboard: bool = False
    """Also write TensorBoard's event files into the run folder (extra: tensorboard)."""
    wandb: bool = False
    """Also log to Weights & Biases (extra: wandb; WANDB_MODE=offline keeps it on this machine)."""
    restart: bool = False
    """Begin again, even if this run was begun or finished before; what it found is removed."""
    saving: Annotated[tyro.conf.OmitArgPrefixes[SavingConfig], tyro.conf.arg(name="")] = field(
        default_factory=SavingConfig
    )

    def execute(self) -> int:
        """Train, and say where the results are."""
        from bootdqn.training.run import default_run_dir

        path = self.run_dir or default_run_dir(self.config)
        return _train(
            self.config,
            path,
            quiet=self.quiet,
            saving=self.saving,
            restart=self.restart,
            tensorboard=self.tensorboard,
            wandb=self.wandb,
        )


@dataclass(frozen=True)
class Resume:
    """Go on with a stopped run."""

    run_dir: tyro.conf.Positional[Path]
    """Folder of the run."""
    quiet: bool = False
    """Show no progress."""
    tensorboard: bool = False
    """Also write TensorBoard's event files into the run folder (extra: tensorboard)."""
    wandb: bool = False
    """Also log to Weights & Biases (extra: wandb)."""
    restart: bool = False
    """Begin again, with the configuration of the folder; what the run found is removed."""
    saving: Annotated[tyro.conf.OmitArgPrefixes[SavingConfig], tyro.conf.arg(name="")] = field(
        default_factory=SavingConfig
    )

    def execute(self) -> int:
        """Train on, and say where the results are."""
        from bootdqn.training.run import read_run_config

        return _train(
            read_run_config(self.run_dir),
            self.run_dir,
            quiet=self.quiet,
            saving=self.saving,
            restart=self.restart,
            tensorboard=self.tensorboard,
            wandb=self.wandb,
        )


def _train(
    config: TrainConfig[Any],
    path: Path,
    *,
    quiet: bool,
    saving: SavingConfig,
    restart: bool,
    tensorboard: bool,
    wandb: bool,
) -> int:
    from bootdqn.training.display import live_line, summary_line
    from bootdqn.training.run import run

    with live_line(str(path), quiet=quiet) as voice:
        outcome = run(config, path, *voice, saving=saving, restart=restart, tensorboard=tensorboard, wandb=wandb)
    unsaved = "; NOT everything could be written" if outcome.exit_code == 1 else ""
    print(f"{path}: {'already ' if outcome.already_finished else ''}{summary_line(outcome.summary)}{unsaved}")
    return outcome.exit_code


@dataclass(frozen=True)
class Demo:
    """Race strategies on DeepSea."""

    out: Path = Path("runs/demo")
    """Folder for the runs and the page; runs that are finished there are not run again."""
    strategies: tuple[str, ...] = ("greedy", "ucb", "gain", "evoi:reduce=sum")
    """The strategies to race."""
    sizes: tuple[int, ...] = (10,)
    """Sizes N of the grid."""
    num_seeds: int = 3
    """Runs of each strategy at each size, with seeds 0, 1, 2, ..."""
    max_episodes: int = 2000
    """Give a run up after this many episodes."""
    workers: int | None = None
    """Processes, of one thread each (None: one for each core)."""

    def __post_init__(self) -> None:
        for name in ("num_seeds", "workers"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"--{name.replace('_', '-')} must be at least 1, got {value}")
        if not self.plan():
            raise ValueError("--strategies and --sizes must name at least one each")

    def plan(self) -> list[PlannedRun]:
        """Return the runs of the race."""
        return deep_sea_race(self.strategies, self.sizes, self.num_seeds, self.max_episodes).runs()

    def execute(self) -> int:
        """Run the race; exit code 0 if every run finished."""
        from rich.console import Console

        from bootdqn.analysis.deep_sea import read_results, summary_table
        from bootdqn.analysis.report import write_report
        from bootdqn.analysis.runs import read_runs
        from bootdqn.experiments.conduct import conduct

        console = Console(soft_wrap=True, markup=False, highlight=False)
        runs = self.plan()
        console.print(f"{len(runs)} runs on DeepSea, at most {self.max_episodes:,} episodes each, in {self.out}")
        outcome = conduct(runs, self.out, console, workers=self.workers)
        planned = {str(run.name) for run in runs}
        results, _ = read_results(run for run in read_runs(self.out)[0] if run.name in planned)
        if results:
            console.print(summary_table(results))
            self._inspect(runs, console)
            console.print(f"Open {write_report(self.out, self.out / 'report.html')} in a browser.")
        missing = len(runs) - len(results)
        if missing:
            print(f"{missing} of {len(runs)} runs did not finish; the same command goes on", file=sys.stderr)
        return outcome.stop_exit_code or (1 if missing else 0)

    def _inspect(self, runs: list[PlannedRun], console: Any) -> None:
        """Show why one of the agents chose its actions: the last strategy's first run at the largest size."""
        from bootdqn.common.run_folder import RunFolder
        from bootdqn.inspector.inspect import inspect_run

        wanted = [run for run in runs if run.config.env.size == max(self.sizes) and run.config.run.seed == 0]
        if RunFolder(self.out / wanted[-1].name).weights.exists():
            console.print(inspect_run(self.out / wanted[-1].name, self.out / "inspect.html", episodes=3))


@dataclass(frozen=True)
class Sweep:
    """Make every run of an experiment."""

    name: tyro.conf.Positional[str]
    """An experiment that comes with the package, or a .toml or .yaml file."""
    overrides: tyro.conf.Positional[tuple[str, ...]] = ()
    """Settings to change, as key=value; a list of values makes an axis: seed=[0,1] total_frames=1000000."""
    out: Path | None = None
    """Folder for the runs (None: runs/NAME); runs that are finished there are not made again."""
    workers: int | None = None
    """Runs at a time on this machine (None: as many as its cores can hold threads of)."""
    retries: int = 1
    """How often a run that fails is tried again."""
    dry_run: bool = False
    """List the runs and what they will cost at most, and do nothing."""
    ray: str | None = None
    """Run on the Ray cluster at this address, or on the one that auto finds (extra: ray)."""
    gpus_per_run: float = 0.0
    """Share of a GPU that each run asks of Ray."""
    saving: Annotated[tyro.conf.OmitArgPrefixes[SavingConfig], tyro.conf.arg(name="")] = field(
        default_factory=SavingConfig
    )

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise ValueError(f"--workers must be at least 1, got {self.workers}")
        if self.retries < 0:
            raise ValueError(f"--retries must not be negative, got {self.retries}")
        if self.gpus_per_run < 0:
            raise ValueError(f"--gpus-per-run must not be negative, got {self.gpus_per_run}")
        if self.ray is not None and self.workers is not None:
            raise ValueError("--workers is for this machine; on Ray the cluster's CPUs decide")

    def execute(self) -> int:
        """Make the runs; exit code 0 if every one finished."""
        from rich.console import Console

        from bootdqn.experiments.conduct import conduct, cost_table
        from bootdqn.experiments.plan import load_sweep

        sweep = load_sweep(self.name).with_overrides(self.overrides)
        runs, out = sweep.runs(), self.out or Path("runs") / sweep.name
        console = Console(soft_wrap=True, markup=False, highlight=False)
        console.print(f"{sweep.description}\n{len(runs)} runs in {out}".strip())
        if out.exists() and not out.is_dir():
            raise UsageError(f"--out {out} is a file; choose a folder")
        if self.dry_run:
            print("trying a little of each kind of run ...", file=sys.stderr)
            console.print(cost_table(runs, out, self.workers))
            return 0
        outcome = conduct(
            runs,
            out,
            console,
            workers=self.workers,
            retries=self.retries,
            ray=self.ray,
            gpus_per_run=self.gpus_per_run,
            saving=self.saving,
        )
        failed = [end for end in outcome.ended if end.error is not None]
        for end in failed:
            print(f"failed: {out / end.run.name}: {end.error}", file=sys.stderr)
        finished = sum(end.finished for end in outcome.ended)
        print(f"{finished} of {len(runs)} runs finished in {out}")
        if finished < len(runs):
            print("the same command goes on with the others", file=sys.stderr)
        return outcome.stop_exit_code or (0 if finished == len(runs) else 1)


@dataclass(frozen=True)
class Evaluate:
    """Let the heads of a run vote, and tell the scores."""

    run_dir: tyro.conf.Positional[Path]
    """Folder of a run, finished or under way."""
    episodes: int = 10
    """The most episodes to play."""
    max_steps: int = 500_000
    """The most steps to play."""
    vote: VoteRule = "plurality"
    """How the heads vote."""
    seed: int = 0
    """Seed of the environment."""
    video: Path | None = None
    """File to film the episodes to, such as play.mp4 or play.gif."""

    def __post_init__(self) -> None:
        for name in ("episodes", "max_steps"):
            if getattr(self, name) < 1:
                raise ValueError(f"--{name.replace('_', '-')} must be at least 1, got {getattr(self, name)}")
        if self.seed < 0:
            raise ValueError(f"--seed must not be negative, got {self.seed}")
        if self.video and self.video.suffix not in (".mp4", ".gif"):
            raise ValueError(f"--video must be an .mp4 or a .gif file, got {self.video}")

    def execute(self) -> int:
        """Evaluate and print."""
        from bootdqn.training.assess import assess

        found, step = assess(
            self.run_dir,
            episodes=self.episodes,
            max_steps=self.max_steps,
            rule=self.vote,
            seed=self.seed,
            video=self.video,
        )
        cut = " (cut at --max-steps)" if found.cut else ""
        print(f"weights after {step:,} steps; {self.vote} vote of the heads")
        print(f"mean return {np.mean(found.returns):,.2f} over {len(found.returns)} episodes{cut}")
        print(f"returns: {', '.join(f'{value:g}' for value in found.returns)}")
        print(f"lengths: {', '.join(map(str, found.lengths))}")
        print("vote diversity: " + ", ".join(f"{name} {value:.3f}" for name, value in found.diversity.items()))
        return 0


@dataclass(frozen=True)
class Report:
    """Turn a folder of runs into a page."""

    folder: tyro.conf.Positional[Path]
    """Folder that holds runs, finished or not, at any depth."""
    out: Path | None = None
    """The page (None: report.html in the folder); figures and tables go to a folder beside it."""

    def __post_init__(self) -> None:
        if self.out is not None and self.out.suffix != ".html":
            raise ValueError(f"--out must be an .html file, got {self.out}")

    def execute(self) -> int:
        """Write the page and name it."""
        from bootdqn.analysis.report import write_report

        out = self.out or self.folder / "report.html"
        print(f"Open {write_report(self.folder, out)} in a browser; its figures and tables are in {out.stem}_files.")
        return 0


@dataclass(frozen=True)
class Inspect:
    """Show why an agent chose each of its actions."""

    run_dir: tyro.conf.Positional[Path]
    """Folder of a run, finished or under way."""
    out: Path = Path("inspect.html")
    """The page."""
    checkpoint: str | None = None
    """Step of a snapshot, or a file of weights (None: the weights saved last)."""
    episodes: int = 1
    """The most episodes to play."""
    max_steps: int = 1000
    """The most steps to play."""
    strategy: str | None = None
    """How to act (None: as in training)."""
    head: int | None = None
    """The active head (None: drawn for each episode)."""
    seed: int = 0
    """Seed of the environment and the draws."""
    figure: Path | None = None
    """Instead of the page, draw one step as the paper's Fig. 1 to this .png, .svg or .pdf file."""
    step: int = 0
    """Which step to draw."""

    def __post_init__(self) -> None:
        for name in ("episodes", "max_steps"):
            if getattr(self, name) < 1:
                raise ValueError(f"--{name.replace('_', '-')} must be at least 1, got {getattr(self, name)}")
        if self.seed < 0:
            raise ValueError(f"--seed must not be negative, got {self.seed}")
        if self.out.suffix != ".html":
            raise ValueError(f"--out must be an .html file, got {self.out}")
        if self.figure and self.figure.suffix not in (".png", ".svg", ".pdf"):
            raise ValueError(f"--figure must be a .png, .svg or .pdf file, got {self.figure}")

    def execute(self) -> int:
        """Play, write, and name what to open."""
        from bootdqn.inspector.inspect import inspect_run

        print(
            inspect_run(
                self.run_dir,
                self.out,
                checkpoint=self.checkpoint,
                episodes=self.episodes,
                max_steps=self.max_steps,
                strategy=self.strategy,
                head=self.head,
                seed=self.seed,
                figure=self.figure,
                step=self.step,
            )
        )
        return 0


@dataclass(frozen=True)
class Leaf:
    """A command that can be called: its type, the values it starts from, and what it does."""

    command: Any
    default: Any
    description: str


COMMANDS: dict[str, Any] = {
    "train": {
        "deep-sea": Leaf(
            Train[DeepSeaConfig],
            Train(DEEP_SEA),
            "Train one agent on DeepSea; the defaults are the paper's settings (Appendix A).\n\n"
            "Example: bootdqn train deep-sea --size 20 --strategy evoi:reduce=sum --seed 3 --run-dir runs/first",
        ),
        "atari": Leaf(
            Train[AtariConfig],
            Train(ATARI),
            "Train one agent on an Atari game; the defaults are the paper's settings (Section IV).\n\n"
            'Example: bootdqn train atari --game "Private Eye" --strategy gain --seed 1 --total-frames 10000000',
        ),
        "gym": Leaf(
            Train[GymConfig],
            Train(GYM),
            "Train one agent on any Gymnasium environment with discrete actions.\n\n"
            "Example: bootdqn train gym --env-id CartPole-v1 --strategy evoi --total-steps 50000",
        ),
    },
    "resume": Leaf(
        Resume,
        None,
        "Go on with a stopped run, exactly where its last checkpoint was made; its folder says the rest."
        "\n\nExample: bootdqn resume runs/first",
    ),
    "evaluate": Leaf(
        Evaluate,
        None,
        "Play a run by the vote of its heads and tell the scores; weights are saved at each evaluation and at the end."
        "\n\nExample: bootdqn evaluate runs/first --episodes 5 --video play.mp4",
    ),
    "sweep": Leaf(
        Sweep,
        None,
        "Make every run of an experiment, on this machine or on a Ray cluster; killed and started again it goes on."
        "\n\nThe paper's: paper-atari, paper-diversity, paper-deepsea, each also as NAME-smoke, which takes a minute."
        "\n\nExample: bootdqn sweep paper-deepsea --out runs/deepsea seed=[0,1,2] --dry-run",
    ),
    "report": Leaf(
        Report,
        None,
        "Turn a folder of runs into one page, with every table and figure of the paper, ours beside theirs."
        "\n\nExample: bootdqn report runs/deepsea --out report.html",
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
        return int(getattr(stop, "exit_code", 130))
    except MemoryError as error:
        return _tell_lack_of_memory(error)
    except RuntimeError as error:
        if "allocate memory" not in str(error):
            raise
        return _tell_lack_of_memory(error)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains once more at its exit
        return 141
    except OSError as error:
        print(f"bootdqn: {error}", file=sys.stderr)
        return 2


def _tell_lack_of_memory(error: Exception) -> int:
    lines = str(error).splitlines() or ["MemoryError"]
    print(
        f"bootdqn: not enough memory ({lines[0]}); lower --replay-capacity, --hidden-sizes or --size", file=sys.stderr
    )
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
            close = difflib.get_close_matches(word, node, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"choose from {', '.join(node)}"
            raise UsageError(f"unknown command {word!r} after {' '.join(path)!r}; {hint}")
        path.append(word)
        node = node[word]
    return _parse_leaf(node, " ".join(path), rest)


def _parse_leaf(leaf: Leaf, program: str, arguments: list[str]) -> Command | None:
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors):
            default = {} if leaf.default is None else {"default": leaf.default}
            parsed: Command = tyro.cli(
                leaf.command, prog=program, args=arguments, description=leaf.description, **default
            )
    except SystemExit as stop:
        if not stop.code:
            return None
        raise UsageError(f"{_in_one_line(errors.getvalue())}; see {program} --help") from None
    except ValueError as error:
        raise UsageError(str(error)) from None
    return parsed


def _in_one_line(box: str) -> str:
    """Return the message of one of tyro's framed errors, and the flag it suggests, without the frame.

    The frame is drawn with lines where the terminal can, otherwise with dashes under a title.
    """
    framed = box.startswith("╭")
    lines = [line.strip("│ ") for line in box.splitlines() if not line.startswith(("╭", "╰"))]
    sections = re.split(r"^[─-]{4,}$", "\n".join(lines), flags=re.MULTILINE)[0 if framed else 1 :]
    message = re.sub(r"^Error parsing [A-Za-z][\w.]*: ", "", " ".join(sections[0].split())).removesuffix(".")
    suggestion = next((section.split()[3].rstrip(",") for section in sections if "Perhaps you meant" in section), None)
    return message if suggestion is None else f"{message}; did you mean {suggestion}?"


def _overview(path: list[str], commands: dict[str, Any]) -> str:
    def summary(word: str, node: Any) -> str:
        return SUMMARIES[word] if isinstance(node, dict) else str(node.description.splitlines()[0])

    width = max(map(len, commands))
    listed = "\n".join(f"  {word:<{width}}  {summary(word, node)}" for word, node in commands.items())
    program = " ".join(path)
    return f"usage: {program} COMMAND [options]\n\n{listed}\n\n{program} COMMAND --help tells more."
