"""Commands that train one agent."""

import shlex
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Generic

from bootdqn.cli.arguments import UserCode
from bootdqn.common.fields import Flag
from bootdqn.config.train import EnvT, SavingConfig, TrainConfig


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
    saving: SavingConfig = field(default_factory=SavingConfig)

    def train(self, config: TrainConfig[Any], path: Path) -> int:
        """Train in the folder `path`, say where the results are, and return the exit code."""
        from bootdqn.training.display import progress_line, summary_line
        from bootdqn.training.run import run

        with progress_line(str(path), quiet=self.quiet) as callbacks:
            outcome = run(
                config,
                path,
                callbacks,
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

    config: TrainConfig[EnvT]
    run_dir: Path | None = None
    """Folder of the run (None: one under runs/ named after the configuration)."""
    options: TrainingOptions = field(default_factory=TrainingOptions)

    def execute(self) -> int:
        """Train, and say where the results are."""
        from bootdqn.training.run import default_run_dir

        return self.options.train(self.config, self.run_dir or default_run_dir(self.config))

    def following(self, strategy: str) -> "Train[EnvT]":
        """Return the command with another strategy to start from."""
        return replace(self, config=replace(self.config, actor=replace(self.config.actor, strategy=strategy)))


@dataclass(frozen=True)
class Resume:
    """Go on with a stopped run, or take a finished one further."""

    run_dir: Annotated[Path, Flag(positional=True)]
    """Folder of the run."""
    budget: int | None = None
    """Take it further, to so many episodes on DeepSea, frames on Atari or steps elsewhere; a finished run needs to have
    been trained with --keep-checkpoint."""
    own: UserCode = field(default_factory=UserCode)
    options: TrainingOptions = field(default_factory=TrainingOptions)

    def __post_init__(self) -> None:
        if self.budget is not None and self.budget < 1:
            raise ValueError(f"--budget must be at least 1, got {self.budget}")

    def execute(self) -> int:
        """Train on, and say where the results are."""
        from bootdqn.runs.weights import read_run_config

        config = read_run_config(self.run_dir)
        if self.budget is not None:
            config = replace(config, env=replace(config.env, **{config.env.budget: self.budget}))
        return self.options.train(config, self.run_dir)


def _resumption(config: TrainConfig[Any], path: Path) -> str:
    """Return the command that goes on with a run, with every flag for code of the user's own."""
    words = ["bootdqn", "resume", str(path)]
    words += ["--strategy-from", config.actor.strategy_from] if config.actor.strategy_from else []
    words += [word for module in getattr(config.env, "imports", ()) for word in ("--import", module)]
    return shlex.join(words)
