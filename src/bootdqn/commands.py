"""The commands: each a dataclass whose fields are its flags, and what it does.

Nothing here imports PyTorch before there is work to do, so that `--help` and mistakes answer at once.
"""

import shlex
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import numpy as np
import tyro

from bootdqn.common.errors import TrainingError, UsageError
from bootdqn.common.run_folder import find_snapshots
from bootdqn.common.written import counted, rounded
from bootdqn.experiments.plan import PlannedRun, deep_sea_race
from bootdqn.exploration.registry import registered_name
from bootdqn.exploration.voting import VoteRule
from bootdqn.training.config import EnvT, SavingConfig, TrainConfig, check_play, default_settings

Part = TypeVar("Part")
Flat = Annotated[tyro.conf.OmitArgPrefixes[Part], tyro.conf.arg(name="")]
"""Flags of a part, without the part's name before them."""
WIDER_THAN_ANY_TABLE = 10_000
"""Columns of what is no terminal: a file, or another program."""
Repeated = Annotated[tuple[str, ...], tyro.conf.UseAppendAction]


@dataclass(frozen=True)
class OwnCode:
    """Code of your own. A file never imports any by itself: give the flags again that a run was made with."""

    strategy_from: Repeated = ()
    """Import a strategy of your own, as in my_module.MyStrategy."""
    imports: Annotated[Repeated, tyro.conf.arg(name="import")] = ()
    """Import a module of your own that registers Gymnasium environments."""


@dataclass(frozen=True)
class TrainingOptions:
    """How a run is made, which changes none of its numbers."""

    quiet: bool = False
    """Show no progress."""
    tensorboard: bool = False
    """Also write TensorBoard's event files into the run folder (extra: tensorboard)."""
    wandb: bool = False
    """Also log to Weights & Biases (extra: wandb; WANDB_MODE=offline keeps it on this machine)."""
    restart: bool = False
    """Begin again, even if this run was begun or finished before; what it found is removed."""
    saving: Flat[SavingConfig] = field(default_factory=SavingConfig)

    def train(self, config: TrainConfig[Any], path: Path) -> int:
        """Train in the folder `path`, say where the results are, and return the exit code."""
        from bootdqn.training.display import live_line, summary_line
        from bootdqn.training.run import run

        with live_line(str(path), quiet=self.quiet) as voice:
            outcome = run(
                config,
                path,
                *voice,
                saving=self.saving,
                restart=self.restart,
                tensorboard=self.tensorboard,
                wandb=self.wandb,
            )
        unsaved = "; NOT everything could be written" if outcome.exit_code == 1 else ""
        print(f"{path}: {'already ' if outcome.already_finished else ''}{summary_line(outcome.summary)}{unsaved}")
        if outcome.summary["status"] == "interrupted":
            print(f"{_resumption(config, path)} goes on", file=sys.stderr)
        return outcome.exit_code


@dataclass(frozen=True)
class Train(Generic[EnvT]):
    """Train one agent in one run folder."""

    config: Flat[TrainConfig[EnvT]]
    run_dir: Path | None = None
    """Folder of the run (None: one under runs/ named after the configuration)."""
    options: Flat[TrainingOptions] = field(default_factory=TrainingOptions)

    def execute(self) -> int:
        """Train, and say where the results are."""
        from bootdqn.training.run import default_run_dir

        return self.options.train(self.config, self.run_dir or default_run_dir(self.config))

    def following(self, strategy: str) -> "Train[EnvT]":
        """Return the command with another strategy to start from."""
        return replace(self, config=replace(self.config, actor=replace(self.config.actor, strategy=strategy)))


@dataclass(frozen=True)
class Resume:
    """Go on with a stopped run."""

    run_dir: tyro.conf.Positional[Path]
    """Folder of the run."""
    own: Flat[OwnCode] = field(default_factory=OwnCode)
    options: Flat[TrainingOptions] = field(default_factory=TrainingOptions)

    def execute(self) -> int:
        """Train on, and say where the results are."""
        from bootdqn.training.run import read_run_config

        return self.options.train(read_run_config(self.run_dir), self.run_dir)


@dataclass(frozen=True)
class Demo:
    """Race strategies on DeepSea."""

    out: Path = Path("runs/demo")
    """Folder for the runs and the page; runs that are finished there are not run again."""
    strategies: tuple[str, ...] = ("greedy", "ucb", "gain", "evoi:reduce=sum")
    """The strategies to race."""
    strategy_from: Repeated = ()
    """Race a strategy of your own too, as in my_module.MyStrategy."""
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
        """Return the runs of the race; strategies of your own come last, unless --strategies says how to write them."""
        named = {text.partition(":")[0] for text in self.strategies}
        own = [name for name in map(registered_name, self.strategy_from) if name not in named]
        return deep_sea_race([*self.strategies, *own], self.sizes, self.num_seeds, self.max_episodes).runs()

    def execute(self) -> int:
        """Run the race; exit code 0 if every run finished."""
        from bootdqn.analysis.deep_sea import read_results, summary_table
        from bootdqn.analysis.report import write_report
        from bootdqn.analysis.runs import read_runs
        from bootdqn.experiments.conduct import conduct

        console = _console()
        runs = self.plan()
        most = counted(self.max_episodes, "episode")
        console.print(f"{counted(len(runs), 'run')} on DeepSea, at most {most} each, in {self.out}")
        outcome = conduct(runs, self.out, console, workers=self.workers)
        planned = {str(run.name) for run in runs}
        defaults = default_settings()
        results, _ = read_results(run for run in read_runs(self.out, defaults)[0] if run.name in planned)
        if results:
            console.print(summary_table(results))
            page = write_report(self.out, self.out / "report.html", defaults)
            self._inspect(runs, console)
            console.print(f"Open {page} in a browser.")
        missing = len(runs) - len(results)
        if missing:
            print(f"{missing} of {counted(len(runs), 'run')} did not finish; the same command goes on", file=sys.stderr)
        return outcome.stop_exit_code or (1 if missing else 0)

    def _inspect(self, runs: list[PlannedRun], console: Any) -> None:
        """Show why an agent chose its actions halfway through its training: the last strategy's at the largest size."""
        from bootdqn.inspector.inspect import inspect_run

        wanted = [run for run in runs if run.config.env.size == max(self.sizes) and run.config.run.seed == 0]
        path = self.out / wanted[-1].name
        steps = list(find_snapshots(path))
        if not steps:  # folders of results keep none
            return
        try:
            console.print(inspect_run(path, self.out / "inspect.html", checkpoint=str(steps[-1]), episodes=3))
        except (UsageError, TrainingError) as error:
            console.print(f"There is no inspector's page: {error}")


@dataclass(frozen=True)
class Sweep:
    """Make every run of an experiment."""

    name: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="NAME")]]
    """An experiment that comes with the package, or a .toml or .yaml file."""
    overrides: tyro.conf.Positional[Annotated[tuple[str, ...], tyro.conf.arg(metavar="[KEY=VALUE ...]")]] = ()
    """Settings to change; a list makes an axis, in quotes for the shell: 'seed=[0,1]' 'strategy=["greedy","gain"]'."""
    out: Path | None = None
    """Folder for the runs (None: runs/NAME); runs that are finished there are not made again."""
    workers: int | None = None
    """Runs at a time on this machine (None: as many as its cores and memory hold)."""
    retries: int = 1
    """How often a run that fails is tried again."""
    dry_run: bool = False
    """List the runs and what they will cost at most, and do nothing."""
    ray: str | None = None
    """Run on the Ray cluster at this address, or on the one that auto finds (extra: ray)."""
    gpus_per_run: float = 0.0
    """Share of a GPU that each run asks of Ray."""
    own: Flat[OwnCode] = field(default_factory=OwnCode)
    saving: Flat[SavingConfig] = field(default_factory=SavingConfig)

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise ValueError(f"--workers must be at least 1, got {self.workers}")
        if self.retries < 0:
            raise ValueError(f"--retries must not be negative, got {self.retries}")
        if self.gpus_per_run < 0:
            raise ValueError(f"--gpus-per-run must not be negative, got {self.gpus_per_run}")
        if self.ray is not None and self.workers is not None:
            raise ValueError("--workers is for this machine; on Ray the cluster's CPUs decide")
        if self.ray is None and self.gpus_per_run:
            raise ValueError("--gpus-per-run is for --ray; on this machine write device=cuda alone")

    def execute(self) -> int:
        """Make the runs; exit code 0 if every one finished."""
        from bootdqn.experiments.conduct import conduct, cost_table
        from bootdqn.experiments.plan import load_sweep

        sweep = load_sweep(self.name).with_overrides(self.overrides)
        runs, out = sweep.runs(self.own.imports), self.out or Path("runs") / sweep.name
        console = _console()
        changed = f"changed: {' '.join(self.overrides)}" if self.overrides else ""
        for line in (sweep.description, changed, f"{counted(len(runs), 'run')} in {out}"):
            if line:
                console.print(line)
        if self.dry_run:
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
        print(f"{finished} of {counted(len(runs), 'run')} finished in {out}")
        if finished < len(runs):
            print("the same command goes on with the others", file=sys.stderr)
        return outcome.stop_exit_code or (0 if finished == len(runs) else 1)


@dataclass(frozen=True)
class Evaluate:
    """Let the heads of a run vote, and tell the scores."""

    run_dir: tyro.conf.Positional[Path]
    """Folder of a run, finished or under way."""
    checkpoint: str | None = None
    """Step of a snapshot, or a file of weights (None: the weights saved last)."""
    episodes: int | None = None
    """The most episodes to play (None: as in the run's own evaluations, its --eval-episodes)."""
    max_steps: int | None = None
    """The most steps to play (None: the run's --eval-max-steps)."""
    vote: VoteRule | None = None
    """How the heads vote (None: by the run's --vote)."""
    seed: int = 0
    """Seed of the environment."""
    video: Path | None = None
    """File to film the episodes to, such as play.mp4 or play.gif."""
    own: Flat[OwnCode] = field(default_factory=OwnCode)

    def __post_init__(self) -> None:
        check_play(self.episodes, self.max_steps, self.seed)
        if self.video and self.video.suffix not in (".mp4", ".gif"):
            raise ValueError(f"--video must be an .mp4 or a .gif file, got {self.video}")

    def execute(self) -> int:
        """Evaluate and print."""
        from bootdqn.training.assess import assess
        from bootdqn.training.display import live_words

        with live_words(str(self.run_dir)) as show:
            found, step, rule = assess(
                self.run_dir,
                checkpoint=self.checkpoint,
                episodes=self.episodes,
                max_steps=self.max_steps,
                rule=self.vote,
                seed=self.seed,
                video=self.video,
                show=show,
            )
        cut = " (cut at --max-steps)" if found.cut else ""
        print(f"weights after {counted(step, 'step')}; {rule} vote of the heads")
        print(
            f"mean return {rounded(float(np.mean(found.returns)))} over {counted(len(found.returns), 'episode')}{cut}"
        )
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
        page = write_report(self.folder, out, default_settings())
        print(f"Open {page} in a browser; its figures and tables are in {page.with_name(f'{page.stem}_files')}.")
        return 0


@dataclass(frozen=True)
class Inspect:
    """Show why an agent chose each of its actions."""

    run_dir: tyro.conf.Positional[Path]
    """Folder of a run, finished or under way."""
    out: Path | None = None
    """The page (None: inspect.html)."""
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
    step: int | None = None
    """Which step to draw with --figure (None: the first, 0)."""
    own: Flat[OwnCode] = field(default_factory=OwnCode)

    def __post_init__(self) -> None:
        check_play(self.episodes, self.max_steps, self.seed)
        if self.out is not None and self.out.suffix != ".html":
            raise ValueError(f"--out must be an .html file, got {self.out}")
        if self.out is not None and self.figure is not None:
            raise ValueError("--figure is drawn instead of the page: leave out --out, or --figure")
        if self.step is not None and self.figure is None:
            raise ValueError("--step is which step --figure draws; the page has all, and PAGE.html#12 opens at step 12")
        if self.figure and self.figure.suffix not in (".png", ".svg", ".pdf"):
            raise ValueError(f"--figure must be a .png, .svg or .pdf file, got {self.figure}")

    def execute(self) -> int:
        """Play, write, and name what to open."""
        from bootdqn.inspector.inspect import inspect_run
        from bootdqn.training.display import live_words

        with live_words(str(self.run_dir)) as show:
            told = inspect_run(
                self.run_dir,
                self.out or Path("inspect.html"),
                checkpoint=self.checkpoint,
                episodes=self.episodes,
                max_steps=self.max_steps,
                strategy=self.strategy,
                head=self.head,
                seed=self.seed,
                figure=self.figure,
                step=self.step or 0,
                show=show,
            )
        print(told)
        return 0


def _resumption(config: TrainConfig[Any], path: Path) -> str:
    """Return the command that goes on with a run, with every flag for code of the user's own that it needs."""
    words = ["bootdqn", "resume", str(path)]
    words += ["--strategy-from", config.actor.strategy_from] if config.actor.strategy_from else []
    words += [word for module in getattr(config.env, "imports", ()) for word in ("--import", module)]
    return shlex.join(words)


def _console() -> Any:
    """Return rich's console on standard output, which cuts a table to the terminal's width and nowhere else."""
    from rich.console import Console

    console = Console(soft_wrap=True, markup=False, highlight=False)
    if not console.is_terminal:
        console.width = WIDER_THAN_ANY_TABLE
    return console
