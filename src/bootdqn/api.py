"""The commands as Python functions, and tables of runs. PyTorch is imported when there is work to do, not before."""

import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bootdqn.checks import (
    FigureFile,
    GpuShare,
    HtmlFile,
    Port,
    VideoFile,
    check_inspection,
    check_report,
    check_sweep,
)
from bootdqn.common.errors import TrainingError
from bootdqn.common.fields import NonNegativeInt, PositiveInt, check_value
from bootdqn.common.specs import as_batch
from bootdqn.conversion import as_overrides, as_path, as_python, settings_from, strategy_text
from bootdqn.exploration.registry import script_warning
from bootdqn.exploration.voting import VoteRule
from bootdqn.results import Page, RunResult, SweepResult, TrainedEnsemble

if TYPE_CHECKING:
    import pandas as pd

    from bootdqn.exploration.strategies import Strategy
    from bootdqn.reports.run_table import Paths
    from bootdqn.training.evaluation import Evaluation


def train(
    environment: str | Mapping[str, Any],
    run_dir: str | Path | None = None,
    *,
    restart: bool = False,
    tensorboard: bool = False,
    wandb: bool = False,
    checkpoint_every_minutes: float | None = None,
    checkpoint_every_steps: int | None = None,
    keep_checkpoint: bool | None = None,
    progress: bool = True,
    **settings: Any,
) -> RunResult:
    """Train one run, and return its summary: `bootdqn train` from Python.

    As on the command line, a finished run is left alone and a stopped one is resumed. So is a finished one with a
    smaller budget of episodes, frames or steps, if it kept its checkpoint.

    Args:
        environment: What to train on (`deep-sea`, `atari`, `minatar`, `gym`, `bsuite`, `minigrid`), or a mapping of
            settings that has it under `environment`, as `config.json` is.
        run_dir: Run directory, created if it does not exist (None: one under runs/ named after the configuration).
        restart: Start from scratch, even if this run was started or finished before; its results are removed.
        tensorboard: Also write TensorBoard's event files into the run directory.
        wandb: Also log to Weights & Biases.
        checkpoint_every_minutes: Minutes from one checkpoint to the next (None: by environment).
        checkpoint_every_steps: Also one after every so many environment steps.
        keep_checkpoint: Keep the last checkpoint, from which a larger budget takes the finished run further (None: as
            the run was started; a new run does not keep it).
        progress: Show the progress, in a terminal or a notebook.
        settings: What differs from the defaults, by the names of the flags: `size=10`, `preset="explorer"`. The
            strategy may be an object, numbers may be NumPy's, and `env_options` a mapping.

    Raises:
        ValueError: A setting that does not exist, or a value that it does not take.
        UsageError: The directory holds another run, or the settings need a device or a package that is missing.
        TrainingError: The run cannot continue, and its last checkpoint is kept; or its results could not be written.
        KeyboardInterrupt: It was stopped by Ctrl-C, SIGTERM or SIGHUP, and is saved; the same call resumes it.

    Example:
        >>> train("deep-sea", "runs/first", size=10, seed=3)  # doctest: +SKIP
    """
    from bootdqn.config.settings import from_flat
    from bootdqn.config.train import SavingConfig
    from bootdqn.training.display import progress_line
    from bootdqn.training.run import default_run_dir, train_run

    config = from_flat(settings_from(environment, settings))
    if warning := script_warning(config.actor.strategy_from or ""):
        warnings.warn(warning, stacklevel=2)
    path = default_run_dir(config) if run_dir is None else Path(run_dir)
    with progress_line(str(path), quiet=not progress) as callbacks:
        outcome = train_run(
            config,
            path,
            callbacks._replace(warn=partial(warnings.warn, stacklevel=2)),
            saving=SavingConfig(checkpoint_every_minutes, checkpoint_every_steps, keep_checkpoint),
            restart=restart,
            tensorboard=tensorboard,
            wandb=wandb,
        )
    if outcome.summary["status"] == "interrupted":
        raise KeyboardInterrupt
    if outcome.exit_code:
        raise TrainingError(f"{path} could not be written in full; the same call resumes it")
    return RunResult(path, outcome.summary)


def load_run(run_dir: str | Path, *, weights: int | str | Path | None = None) -> TrainedEnsemble:
    """Return the ensemble of the run in the directory `run_dir`, finished or not.

    Args:
        run_dir: Run directory.
        weights: The step of one of its snapshots, or a file of weights (None: the weights saved last).

    Raises:
        UsageError: The directory holds no run, or no weights yet, or no such snapshot.
    """
    from bootdqn.config.settings import to_flat
    from bootdqn.runs.weights import open_run

    opened = open_run(Path(run_dir), weights)
    opened.close()  # only its networks are needed
    form = opened.spec.observation
    return TrainedEnsemble(to_flat(opened.config), opened.step, lambda seen: opened.q_values(as_batch(seen, form)))


def evaluate(
    run_dir: str | Path,
    *,
    weights: int | str | Path | None = None,
    episodes: int | None = None,
    max_steps: int | None = None,
    vote: VoteRule | None = None,
    seed: int = 0,
    video: str | Path | None = None,
    json: str | Path | None = None,
    progress: bool = True,
) -> "Evaluation":
    """Evaluate a run by the vote of its heads, and return the returns and the vote diversity: `bootdqn evaluate`.

    Args:
        run_dir: Run directory, of a run that is finished or not.
        weights: The step of one of its snapshots, or a file of weights (None: the weights saved last).
        episodes: The most episodes to play (None: the run's `eval_episodes`).
        max_steps: The most steps to play (None: the run's `eval_max_steps`).
        vote: How the heads vote (None: the run's `vote`).
        seed: Seed of the environment.
        video: File to record the episodes to, .mp4 or .gif.
        json: File to write the results to, with the keys of `metrics.jsonl`.
        progress: Show the progress, in a terminal or a notebook.
    """
    from bootdqn.training.display import status_line
    from bootdqn.training.evaluation import evaluate_saved_run

    film = check_value("video", VideoFile | None, as_path(video))
    with status_line(str(run_dir), quiet=not progress) as show:
        return evaluate_saved_run(
            Path(run_dir),
            episodes=episodes,
            max_steps=max_steps,
            rule=vote,
            seed=seed,
            weights=weights,
            video=film,
            json=as_path(json),
            show=show,
        ).evaluation


def sweep(
    name: str | Path,
    overrides: Sequence[str] | Mapping[str, Any] = (),
    *,
    out: str | Path | None = None,
    workers: int | None = None,
    retries: int = 1,
    dry_run: bool = False,
    cluster: str | Path | None = None,
    ray: str | None = None,
    gpus_per_run: float = 0.0,
    tensorboard: bool = False,
    wandb: bool = False,
    checkpoint_every_minutes: float | None = None,
    checkpoint_every_steps: int | None = None,
    keep_checkpoint: bool | None = None,
    progress: bool = True,
) -> SweepResult:
    """Train every run of an experiment, and return how they ended: `bootdqn sweep` from Python.

    The runs are trained in processes of their own, so a script needs `if __name__ == "__main__":` around this call; a
    notebook does not. Runs that are finished are not run again, and the same call resumes a sweep that was stopped.

    Args:
        name: An experiment that comes with the package, or a .toml file.
        overrides: Settings to change: `{"seed": [0, 1]}`, or as on the command line `["seed=[0, 1]"]`.
        out: Directory for the runs (None: runs/NAME).
        workers: Runs at a time on this machine (None: as many as cores and memory allow).
        retries: How often a run that fails is tried again.
        dry_run: List the runs and their maximum cost, and train nothing.
        cluster: With `dry_run`, simulate the runs on the cluster that a .toml file describes.
        ray: Run on the Ray cluster at this address, or on the one that `auto` finds.
        gpus_per_run: Share of a GPU that each run requests from Ray.
        tensorboard: Also write TensorBoard's event files into the run directories.
        wandb: Also log to Weights & Biases, as a group.
        checkpoint_every_minutes: Minutes from one checkpoint to the next, as for `train`.
        checkpoint_every_steps: Also one after every so many environment steps.
        keep_checkpoint: Keep the last checkpoints of finished runs, as for `train`.
        progress: Show the progress, in a terminal or a notebook.

    Raises:
        ValueError: An argument does not take its value, or two do not go together.
        UsageError: There is no such experiment, a setting does not exist, or `out` is a file.
        KeyboardInterrupt: It was stopped, and its runs are saved; the same call resumes them.
    """
    from bootdqn.config.train import LoggerConfig, SavingConfig
    from bootdqn.sweeps.run_sweep import output_console, run_experiment

    cluster_file = as_path(cluster)
    check_value("workers", PositiveInt | None, workers)
    check_value("retries", NonNegativeInt, retries)
    check_value("gpus_per_run", GpuShare, gpus_per_run)
    check_sweep(
        workers=workers, ray=ray, gpus_per_run=gpus_per_run, dry_run=dry_run, cluster=cluster_file, as_flags=False
    )
    plan, outcome, problems = run_experiment(
        str(name),
        as_overrides(overrides),
        output_console(quiet=not progress),
        out=out,
        dry_run=dry_run,
        cluster_file=cluster_file,
        workers=workers,
        retries=retries,
        ray=ray,
        gpus_per_run=gpus_per_run,
        saving=SavingConfig(checkpoint_every_minutes, checkpoint_every_steps, keep_checkpoint),
        loggers=LoggerConfig(tensorboard=tensorboard, wandb=wandb),
    )
    for problem in problems:
        warnings.warn(problem, stacklevel=2)
    if outcome is None:
        return _sweep_result(plan.out, [], {})
    if outcome.stop_exit_code:
        raise KeyboardInterrupt
    failed = {str(end.run.name): end.error for end in outcome.ended if end.error is not None}
    return _sweep_result(plan.out, [str(run.name) for run in plan.runs], failed)


def _sweep_result(out: Path, names: Sequence[str], failed: dict[str, str]) -> SweepResult:
    from bootdqn.reports.run_table import load_results

    runs = load_results(out if out.is_dir() else [])
    return SweepResult(out, runs[runs.run.isin(names)].reset_index(drop=True), failed)


def report(
    *directories: str | Path,
    out: str | Path | None = None,
    baseline: str | None = None,
    watch: bool = False,
    port: int | None = None,
) -> Page | None:
    """Write one page with the tables and figures of all runs below some directories: `bootdqn report` from Python.

    Args:
        directories: Directories that hold runs, finished or not, at any depth.
        out: The page (None: report.html in the directory, or here for several); figures and tables go to a directory
            beside it.
        baseline: Compare every algorithm with this one, by its label in the report (None: BootDQN, that with the
            fewest changed settings, where there are runs of it).
        watch: Instead of writing the page, serve one to this machine that follows the runs, until Ctrl-C.
        port: Port of that page (None: 8765; 0: any that is free).

    Raises:
        ValueError: No directory is given, or `watch` and `out` or `baseline` are given, or `port` without `watch`.
        UsageError: There is no such directory, or no run in it, or no algorithm with the label, or the page cannot be
            written, or the port is in use.
    """
    from bootdqn.reports.report import default_page, write_report
    from bootdqn.reports.watch import DEFAULT_PORT, watch_runs

    if not directories:
        raise ValueError("report needs a directory, as in bootdqn.report('runs/deepsea')")
    page = check_value("out", HtmlFile | None, as_path(out))
    check_value("port", Port | None, port)
    check_value("baseline", str | None, baseline)
    check_report(page, baseline, port, watch=watch, as_flags=False)
    roots = [Path(directory) for directory in directories]
    if watch:
        watch_runs(roots, DEFAULT_PORT if port is None else port)
        return None
    return Page(write_report(roots, page or default_page(roots), baseline))


def inspect(
    run_dir: str | Path,
    *,
    out: str | Path | None = None,
    weights: int | str | Path | None = None,
    episodes: int = 1,
    max_steps: int = 1000,
    strategy: "str | Strategy | None" = None,
    head: int | None = None,
    seed: int = 0,
    figure: str | Path | None = None,
    step: int | None = None,
    progress: bool = True,
) -> Page:
    """Play a trained agent, and write one page that shows why it chose each action: `bootdqn inspect` from Python.

    Args:
        run_dir: Run directory, of a run that is finished or not.
        out: The page (None: inspect.html).
        weights: The step of one of its snapshots, or a file of weights (None: the weights saved last).
        episodes: The most episodes to play.
        max_steps: The most steps to play.
        strategy: How to act: an object, or its text (None: as in training).
        head: The active head (None: sampled for each episode).
        seed: Seed of the environment and the heads.
        figure: Instead of the page, plot one step as the paper's Fig. 1 to this .png, .svg or .pdf file.
        step: Step to plot (None: the first that is a flip, or 0).
        progress: Show the progress, in a terminal or a notebook.

    Raises:
        ValueError: An argument does not take its value, or two do not go together.
        UsageError: The run, the weights, the strategy, the head or the step do not exist, or a file cannot be written.
        TrainingError: The environment or the strategy raised an exception.
    """
    from bootdqn.inspector.page import inspect_run
    from bootdqn.training.display import status_line

    check_value("episodes", PositiveInt, episodes)
    check_value("max_steps", PositiveInt, max_steps)
    check_value("seed", NonNegativeInt, seed)
    head = check_value("head", int | None, as_python(head))
    step = check_value("step", int | None, as_python(step))
    page = check_value("out", HtmlFile | None, as_path(out))
    plotted = check_value("figure", FigureFile | None, as_path(figure))
    check_inspection(page, plotted, step, as_flags=False)
    page = page or Path("inspect.html")
    with status_line(str(run_dir), quiet=not progress) as show:
        inspect_run(
            Path(run_dir),
            page,
            weights=weights,
            episodes=episodes,
            max_steps=max_steps,
            strategy=check_value("strategy", str | None, strategy_text(strategy)),
            head=head,
            seed=seed,
            figure=plotted,
            step=step,
            progress=show,
        )
    return Page(plotted or page)


def load_results(path: "Paths") -> "pd.DataFrame":
    """Return a table with a row for each run at or below a directory, finished or not.

    Numbers are numbers: whole ones are nullable integers (`Int64`), switches nullable booleans, texts strings.

    Args:
        path: A directory, or several.

    Returns:
        The columns describe the run: `run` (its name: the path below the directory), `path`, `environment`, `task` (the
        size of DeepSea, the game, or the environment's id with its options), `strategy`, `algorithm` (the name of the
        strategy with the settings that differ from the defaults), `seed`, `budget` (episodes, frames or steps),
        `status` (`finished`, `interrupted`, `failed`; `under way` or `stopped` where there is no summary; `unreadable`)
        and `problem` (why it is unreadable, else empty). All settings follow by the names of their flags, then the
        values of the summary, and `solved` (by the strict rule of DeepSea). Values are missing where the environment
        has no such setting, or the run is unreadable; a setting of several values is a text, as on the command line.

    Raises:
        UsageError: There is no such directory.

    Example:
        >>> runs = load_results("runs/deepsea")  # doctest: +SKIP
        >>> runs[runs.status == "finished"].groupby(["size", "algorithm"]).solved_at.median()  # doctest: +SKIP
    """
    from bootdqn import reports

    return reports.load_results(path)


def load_metrics(runs: "Paths | pd.DataFrame", kind: str | None = None) -> "pd.DataFrame":
    """Return the metrics of runs as a long table: a row for each line of `metrics.jsonl`, with what identifies the run.

    Args:
        runs: A directory, or several, or rows of `load_results`.
        kind: `episode`, `update` or `evaluation` (None: all; their keys differ, and are missing in the others).

    Returns:
        The columns are `run`, `environment`, `task`, `strategy`, `algorithm` and `seed`, then the keys of the metrics.

    Raises:
        UsageError: There is no such directory, or no such kind.
        DamagedFileError: A line is not a JSON object.

    Example:
        >>> episodes = load_metrics("runs/deepsea", kind="episode")  # doctest: +SKIP
        >>> episodes.groupby("run")["return"].max()  # doctest: +SKIP
    """
    from bootdqn import reports

    return reports.load_metrics(runs, kind)
