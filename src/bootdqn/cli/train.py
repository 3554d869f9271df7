"""`bootdqn train` and `bootdqn resume`: train one agent."""

import shlex
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Generic

from bootdqn.cli.arguments import UserCode
from bootdqn.common.fields import Flag, PositiveInt, check_fields
from bootdqn.config.defaults import with_preset
from bootdqn.config.envs import GymConfig, check_minigrid_id
from bootdqn.config.train import EnvT, LoggerConfig, Preset, SavingConfig, TrainConfig


@dataclass(frozen=True)
class TrainingOptions:
    """Options that change none of a run's numbers."""

    quiet: bool = False
    """Show no progress."""
    restart: bool = False
    """Start from scratch, even if this run was started or finished before; its results are removed."""
    loggers: LoggerConfig = field(default_factory=LoggerConfig)
    saving: SavingConfig = field(default_factory=SavingConfig)

    def train(self, config: TrainConfig[Any], path: Path) -> int:
        """Train in the run directory `path`, print where the results are, and return the exit code."""
        from bootdqn.runs.summary import summary_line
        from bootdqn.training.display import progress_line
        from bootdqn.training.run import train_run

        with progress_line(str(path), quiet=self.quiet) as callbacks:
            outcome = train_run(
                config,
                path,
                callbacks,
                saving=self.saving,
                restart=self.restart,
                tensorboard=self.loggers.tensorboard,
                wandb=self.loggers.wandb,
            )
        unsaved = "; NOT everything could be written" if outcome.exit_code == 1 else ""
        print(f"{path}: {'already ' if outcome.already_finished else ''}{summary_line(outcome.summary)}{unsaved}")
        if outcome.summary["status"] == "interrupted":
            print(f"{_resume_command(config, path)} resumes it", file=sys.stderr)
        return outcome.exit_code


@dataclass(frozen=True)
class TrainCommand(Generic[EnvT]):
    """Train one agent in one run directory."""

    config: TrainConfig[EnvT]
    run_dir: Path | None = None
    """Run directory (None: one under runs/ named after the configuration)."""
    options: TrainingOptions = field(default_factory=TrainingOptions)

    def with_preset(self, preset: Preset) -> "TrainCommand[EnvT]":
        """Return the command with the settings of a preset."""
        return replace(self, config=with_preset(self.config, preset))

    def execute(self) -> int:
        """Train; exit code 0 if the run finished."""
        from bootdqn.training.run import default_run_dir

        return self.options.train(self.config, self.run_dir or default_run_dir(self.config))


@dataclass(frozen=True)
class TrainMiniGridCommand(TrainCommand[GymConfig]):
    """Train one agent on one of MiniGrid's environments."""

    def __post_init__(self) -> None:
        check_minigrid_id(self.config.env.env_id)


@dataclass(frozen=True)
class ResumeCommand:
    """Resume a stopped run, or train a finished one for longer."""

    run_dir: Annotated[Path, Flag(positional=True)]
    """Run directory."""
    budget: PositiveInt | None = None
    """Train for longer: up to this many episodes on DeepSea, frames on Atari or steps elsewhere; a finished run must
    have been trained with --keep-checkpoint."""
    user_code: UserCode = field(default_factory=UserCode)
    options: TrainingOptions = field(default_factory=TrainingOptions)

    def __post_init__(self) -> None:
        check_fields(self)

    def execute(self) -> int:
        """Resume; exit code 0 if the run finished."""
        from bootdqn.runs.weights import read_run_config

        config = read_run_config(self.run_dir)
        if self.budget is not None:
            config = replace(config, env=replace(config.env, **{config.env.budget: self.budget}))
        return self.options.train(config, self.run_dir)


def _resume_command(config: TrainConfig[Any], path: Path) -> str:
    """Return the command that resumes a run, with every flag for user code."""
    words = ["bootdqn", "resume", str(path)]
    words += ["--strategy-from", config.actor.strategy_from] if config.actor.strategy_from else []
    words += [word for module in getattr(config.env, "imports", ()) for word in ("--import", module)]
    return shlex.join(words)
