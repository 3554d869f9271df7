"""`bootdqn evaluate` and `bootdqn inspect`: play a trained agent."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np

from bootdqn.checks import FigureFile, HtmlFile, VideoFile, check_inspection
from bootdqn.cli.arguments import UserCode
from bootdqn.common.fields import Flag, NonNegativeInt, PositiveInt, check_fields
from bootdqn.common.text import format_count, format_number
from bootdqn.exploration.voting import VoteRule


@dataclass(frozen=True)
class EvaluateCommand:
    """Evaluate a run by the vote of its heads."""

    run_dir: Annotated[Path, Flag(positional=True)]
    """Run directory, of a run that is finished or not."""
    weights: str | None = None
    """Step of a snapshot, or a file of weights (None: the weights saved last)."""
    episodes: PositiveInt | None = None
    """Maximum number of episodes (None: the run's --eval-episodes)."""
    max_steps: PositiveInt | None = None
    """Maximum number of steps (None: the run's --eval-max-steps)."""
    vote: VoteRule | None = None
    """Voting rule of the heads (None: the run's --vote)."""
    seed: NonNegativeInt = 0
    """Seed of the environment."""
    video: VideoFile | None = None
    """File to record the episodes to, such as play.mp4 or play.gif."""
    json: Path | None = None
    """File to write the results to, with the keys of metrics.jsonl."""
    user_code: UserCode = field(default_factory=UserCode)

    def __post_init__(self) -> None:
        check_fields(self)

    def execute(self) -> int:
        """Evaluate and print the returns."""
        from bootdqn.training.display import status_line
        from bootdqn.training.evaluation import evaluate_saved_run

        with status_line(str(self.run_dir)) as show:
            found, step, rule = evaluate_saved_run(
                self.run_dir,
                weights=self.weights,
                episodes=self.episodes,
                max_steps=self.max_steps,
                rule=self.vote,
                seed=self.seed,
                video=self.video,
                json=self.json,
                show=show,
            )
        cut = " (cut at --max-steps)" if found.cut else ""
        print(f"weights after {format_count(step, 'step')}; {rule} vote of the heads")
        mean, episodes = format_number(float(np.mean(found.returns))), format_count(len(found.returns), "episode")
        print(f"mean return {mean} over {episodes}{cut}")
        print(f"returns: {', '.join(f'{value:g}' for value in found.returns)}")
        print(f"lengths: {', '.join(map(str, found.lengths))}")
        print("vote diversity: " + ", ".join(f"{name} {value:.3f}" for name, value in found.diversity.items()))
        return 0


@dataclass(frozen=True)
class InspectCommand:
    """Show why an agent chose each of its actions."""

    run_dir: Annotated[Path, Flag(positional=True)]
    """Run directory, of a run that is finished or not."""
    out: HtmlFile | None = None
    """The page (None: inspect.html)."""
    weights: str | None = None
    """Step of a snapshot, or a file of weights (None: the weights saved last)."""
    episodes: PositiveInt = 1
    """Maximum number of episodes."""
    max_steps: PositiveInt = 1000
    """Maximum number of steps."""
    strategy: str | None = None
    """How to act (None: as in training)."""
    head: int | None = None
    """The active head (None: sampled for each episode)."""
    seed: NonNegativeInt = 0
    """Seed of the environment and the heads."""
    figure: FigureFile | None = None
    """Instead of the page, plot one step as the paper's Fig. 1 to this .png, .svg or .pdf file."""
    step: int | None = None
    """Step to plot with --figure (None: the first that is a flip, or 0)."""
    user_code: UserCode = field(default_factory=UserCode)

    def __post_init__(self) -> None:
        check_fields(self)
        check_inspection(self.out, self.figure, self.step, as_flags=True)

    def execute(self) -> int:
        """Play, write the page or the figure, and print its name."""
        from bootdqn.inspector.page import inspect_run
        from bootdqn.training.display import status_line

        with status_line(str(self.run_dir)) as show:
            message = inspect_run(
                self.run_dir,
                self.out or Path("inspect.html"),
                weights=self.weights,
                episodes=self.episodes,
                max_steps=self.max_steps,
                strategy=self.strategy,
                head=self.head,
                seed=self.seed,
                figure=self.figure,
                step=self.step,
                progress=show,
            )
        print(message)
        return 0
