"""`bootdqn sweep` and `bootdqn demo`: train many agents."""

import shlex
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from bootdqn.checks import GpuShare, check_sweep
from bootdqn.cli.arguments import Repeated, UserCode
from bootdqn.common.errors import TrainingError, UsageError
from bootdqn.common.fields import Flag, NonNegativeInt, PositiveInt, check_fields
from bootdqn.common.text import format_count
from bootdqn.config.train import LoggerConfig, SavingConfig
from bootdqn.exploration.registry import registered_name
from bootdqn.runs.directory import find_snapshots
from bootdqn.sweeps.executor import Fault, SweepExit, describe_failures, split_remaining
from bootdqn.sweeps.sweep_file import PlannedRun, deep_sea_sweep, split_values


@dataclass(frozen=True)
class DemoCommand:
    """Compare strategies on DeepSea."""

    out: Path = Path("runs/demo")
    """Directory for the runs and the page; runs that are finished there are not run again."""
    strategies: tuple[str, ...] = ("greedy", "ucb", "gain", "evoi:reduce=sum")
    """The strategies to compare."""
    strategy_from: Repeated = ()
    """Also compare a strategy of your own, as in my_module.MyStrategy."""
    sizes: tuple[int, ...] = (10,)
    """Sizes N of the grid."""
    num_seeds: PositiveInt = 4
    """Runs of each strategy at each size, with seeds 0, 1, 2, ..."""
    max_episodes: PositiveInt = 2000
    """Stop a run after this many episodes, solved or not."""
    workers: PositiveInt | None = None
    """Runs at a time, in one process each (None: as many as cores and memory allow)."""

    def __post_init__(self) -> None:
        check_fields(self)
        for text in self.strategies:
            if "," in text.partition(":")[0]:
                spaced = " ".join(split_values(text))
                raise ValueError(f"--strategies are separated by spaces: {text} given; write --strategies {spaced}")
        if not self.plan():
            raise ValueError("--strategies and --sizes must have at least one value each")

    def plan(self) -> list[PlannedRun]:
        """Return the runs; strategies of the user come last, unless --strategies names them with their parameters."""
        named = {text.partition(":")[0] for text in self.strategies}
        added = [name for name in map(registered_name, self.strategy_from) if name not in named]
        return deep_sea_sweep([*self.strategies, *added], self.sizes, self.num_seeds, self.max_episodes).runs()

    def execute(self) -> int:
        """Run and compare them; exit code 0 if every run finished."""
        from bootdqn.reports.deep_sea import terminal_table
        from bootdqn.reports.report import write_report
        from bootdqn.reports.run_table import load_runs
        from bootdqn.sweeps.executor import check_is_directory
        from bootdqn.sweeps.run_sweep import output_console, run_sweep

        console = output_console()
        runs = self.plan()
        check_is_directory(self.out)
        most = format_count(self.max_episodes, "episode")
        console.print(f"{format_count(len(runs), 'run')} on DeepSea, at most {most} each, in {self.out}")
        outcome = run_sweep(runs, self.out, console, workers=self.workers)
        _print_failures(outcome, self.out)
        finished = {str(end.run.name) for end in outcome.ended if end.finished}
        if finished:
            table = load_runs(self.out)
            console.print(terminal_table(table[table.run.isin(finished)]))
            page = write_report(self.out, self.out / "report.html")
            self._inspect(runs, console)
            console.print(f"Open {page} in a browser.")
        _print_unfinished(runs, outcome, self.out)
        return outcome.stop_exit_code or (0 if len(finished) == len(runs) else 1)

    def _inspect(self, runs: list[PlannedRun], console: Any) -> None:
        """Inspect the last strategy at the largest size, while it explores: at its last snapshot but one."""
        from bootdqn.inspector.page import inspect_run

        wanted = [run for run in runs if run.config.env.size == max(self.sizes) and run.config.run.seed == 0]
        path = self.out / wanted[-1].name
        steps = list(find_snapshots(path))
        if not steps:  # published results keep none
            return
        try:
            console.print(inspect_run(path, self.out / "inspect.html", weights=steps[-2:][0], episodes=3))
        except (UsageError, TrainingError) as error:
            console.print(f"The inspector's page was not written: {error}")


def _print_failures(outcome: SweepExit, out: Path) -> None:
    for line in describe_failures(outcome.ended, out):
        print(f"failed: {line}", file=sys.stderr)


def _print_unfinished(runs: list[PlannedRun], outcome: SweepExit, out: Path) -> None:
    """Print how many runs the same command would resume: all but those that would fail again."""
    not_retryable = {end.run.name for end in outcome.ended if end.error is not None and end.fault is Fault.USAGE}
    if left := [run for run in split_remaining(runs, out)[0] if run.name not in not_retryable]:
        which = "them" if len(left) == len(runs) else format_count(len(left), "run")
        print(f"the same command resumes {which}", file=sys.stderr)


@dataclass(frozen=True)
class SweepCommand:
    """Train every run of an experiment."""

    name: Annotated[str, Flag(positional=True)]
    """An experiment that comes with the package, or a .toml file."""
    overrides: Annotated[tuple[str, ...], Flag(positional=True, metavar="KEY=VALUE")] = ()
    """Settings to change; a list makes an axis, in quotes for the shell: 'seed=[0,1]' 'strategy=["greedy","gain"]'."""
    out: Path | None = None
    """Directory for the runs (None: runs/NAME); runs that are finished there are not run again."""
    workers: PositiveInt | None = None
    """Runs at a time on this machine (None: as many as cores and memory allow)."""
    retries: NonNegativeInt = 1
    """How often a run that fails is tried again."""
    dry_run: bool = False
    """List the runs and their maximum cost, and train nothing."""
    cluster: Path | None = None
    """With --dry-run, simulate the runs on the cluster that a .toml file describes (docs/cluster.md)."""
    ray: str | None = None
    """Run on the Ray cluster at this address, or on the one that auto finds (extra: ray)."""
    gpus_per_run: GpuShare = 0.0
    """Share of a GPU that each run requests from Ray."""
    user_code: UserCode = field(default_factory=UserCode)
    loggers: LoggerConfig = field(default_factory=LoggerConfig)
    saving: SavingConfig = field(default_factory=SavingConfig)

    def __post_init__(self) -> None:
        check_fields(self)
        check_sweep(
            workers=self.workers,
            ray=self.ray,
            gpus_per_run=self.gpus_per_run,
            dry_run=self.dry_run,
            cluster=self.cluster,
            as_flags=True,
        )

    def execute(self) -> int:
        """Train the runs; exit code 0 if every one finished."""
        from bootdqn.sweeps.run_sweep import output_console, run_experiment

        plan, outcome, problems = run_experiment(
            self.name,
            self.overrides,
            output_console(),
            out=self.out,
            imports=self.user_code.imports,
            dry_run=self.dry_run,
            cluster_file=self.cluster,
            workers=self.workers,
            retries=self.retries,
            ray=self.ray,
            gpus_per_run=self.gpus_per_run,
            saving=self.saving,
            loggers=self.loggers,
        )
        if outcome is None:
            for line in problems:
                print(line, file=sys.stderr)
            return 2 if problems else 0
        runs, out = plan.runs, plan.out
        _print_failures(outcome, out)
        finished = sum(end.finished for end in outcome.ended)
        print(f"{finished} of {format_count(len(runs), 'run')} finished in {out}")
        if finished:
            print(f"{shlex.join(['bootdqn', 'report', str(out)])} writes a page with their tables and figures")
        _print_unfinished(runs, outcome, out)
        return outcome.stop_exit_code or (0 if finished == len(runs) else 1)
