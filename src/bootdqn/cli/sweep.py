"""Commands that train many agents."""

import shlex
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from bootdqn.cli.arguments import Repeated, UserCode
from bootdqn.common.errors import TrainingError, UsageError
from bootdqn.common.fields import Flag
from bootdqn.common.text import format_count
from bootdqn.config.train import SavingConfig, default_settings
from bootdqn.exploration.registry import registered_name
from bootdqn.runs.directory import find_snapshots
from bootdqn.sweeps.plan import PlannedRun, deep_sea_race

WIDER_THAN_ANY_TABLE = 10_000
"""Columns of what is no terminal: a file, or another program."""


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
    """Processes, of one thread each (None: as many as cores and memory hold)."""

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
        from bootdqn.report.deep_sea import read_results, summary_table
        from bootdqn.report.report import write_report
        from bootdqn.report.runs import read_runs
        from bootdqn.sweeps.events import check_is_directory
        from bootdqn.sweeps.executor import run_sweep

        console = _console()
        runs = self.plan()
        check_is_directory(self.out)
        most = format_count(self.max_episodes, "episode")
        console.print(f"{format_count(len(runs), 'run')} on DeepSea, at most {most} each, in {self.out}")
        outcome = run_sweep(runs, self.out, console, workers=self.workers)
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
            print(
                f"{missing} of {format_count(len(runs), 'run')} did not finish; the same command goes on",
                file=sys.stderr,
            )
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
            console.print(inspect_run(path, self.out / "inspect.html", weights=steps[-1], episodes=3))
        except (UsageError, TrainingError) as error:
            console.print(f"There is no inspector's page: {error}")


@dataclass(frozen=True)
class Sweep:
    """Make every run of an experiment."""

    name: Annotated[str, Flag(positional=True)]
    """An experiment that comes with the package, or a .toml or .yaml file."""
    overrides: Annotated[tuple[str, ...], Flag(positional=True, metavar="KEY=VALUE")] = ()
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
    own: UserCode = field(default_factory=UserCode)
    saving: SavingConfig = field(default_factory=SavingConfig)

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
        from bootdqn.sweeps.events import check_is_directory, split_done
        from bootdqn.sweeps.executor import run_sweep
        from bootdqn.sweeps.plan import load_sweep

        sweep = load_sweep(self.name).with_overrides(self.overrides)
        runs, out = sweep.runs(self.own.imports), self.out or Path("runs") / sweep.name
        check_is_directory(out)
        console = _console()
        changed = f"changed: {' '.join(self.overrides)}" if self.overrides else ""
        heading = [line for line in (sweep.description, changed, f"{format_count(len(runs), 'run')} in {out}") if line]
        if self.dry_run:
            return self._list_costs(runs, out, heading, console)
        for line in heading:
            console.print(line)
        outcome = run_sweep(
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
        print(f"{finished} of {format_count(len(runs), 'run')} finished in {out}")
        if finished:
            print(f"{shlex.join(['bootdqn', 'report', str(out)])} makes a page of their tables and figures")
        if split_done(runs, out)[0]:
            print("the same command goes on with the others", file=sys.stderr)
        return outcome.stop_exit_code or (0 if finished == len(runs) else 1)

    def _list_costs(self, runs: list[PlannedRun], out: Path, heading: list[str], console: Any) -> int:
        """Print what the runs cost at most; exit code 0 if every one can be made."""
        from bootdqn.sweeps.dry_run import dry_run
        from bootdqn.training.display import status_line

        keep = bool(self.saving.keep_checkpoint)
        with status_line("trying a little") as show:
            table, problems = dry_run(runs, out, self.workers, keeps_checkpoints=keep, show=show)
        for part in (*heading, table):
            console.print(part, soft_wrap=False)  # words and rows whole
        for line in problems:
            print(line, file=sys.stderr)
        return 2 if problems else 0


def _console() -> Any:
    """Return rich's console on standard output, which cuts a table to the terminal's width and nowhere else."""
    from rich.console import Console

    console = Console(soft_wrap=True, markup=False, highlight=False)
    if not console.is_terminal:
        console.width = WIDER_THAN_ANY_TABLE
    return console
