"""Commands that look at what was trained."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np

from bootdqn.cli.arguments import UserCode
from bootdqn.common.errors import UsageError, WriteError, check_writable
from bootdqn.common.fields import Flag
from bootdqn.common.files import write_json_atomically
from bootdqn.common.text import format_count, format_number
from bootdqn.config.train import check_play, default_settings
from bootdqn.exploration.voting import VoteRule


@dataclass(frozen=True)
class Evaluate:
    """Let the heads of a run vote, and tell the scores."""

    run_dir: Annotated[Path, Flag(positional=True)]
    """Folder of a run, finished or under way."""
    weights: str | None = None
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
    json: Path | None = None
    """File to write what was found to, with the keys of metrics.jsonl."""
    own: UserCode = field(default_factory=UserCode)

    def __post_init__(self) -> None:
        check_play(self.episodes, self.max_steps, self.seed)
        if self.video and self.video.suffix not in (".mp4", ".gif"):
            raise ValueError(f"--video must be an .mp4 or a .gif file, got {self.video}")
        if self.json is not None and not self.json.parent.is_dir():
            raise ValueError(f"--json {self.json}: there is no directory {self.json.parent}; make it first")

    def execute(self) -> int:
        """Evaluate and print."""
        from bootdqn.training.display import status_line
        from bootdqn.training.evaluation import evaluate_saved_run

        if self.json is not None:
            check_writable(self.json, "--json")
        with status_line(str(self.run_dir)) as show:
            found, step, rule = evaluate_saved_run(
                self.run_dir,
                weights=self.weights,
                episodes=self.episodes,
                max_steps=self.max_steps,
                rule=self.vote,
                seed=self.seed,
                video=self.video,
                show=show,
            )
        if self.json is not None:
            write_json_atomically(self.json, {"step": step, "vote": rule, "seed": self.seed, **found.record()})
        cut = " (cut at --max-steps)" if found.cut else ""
        print(f"weights after {format_count(step, 'step')}; {rule} vote of the heads")
        mean, episodes = format_number(float(np.mean(found.returns))), format_count(len(found.returns), "episode")
        print(f"mean return {mean} over {episodes}{cut}")
        print(f"returns: {', '.join(f'{value:g}' for value in found.returns)}")
        print(f"lengths: {', '.join(map(str, found.lengths))}")
        print("vote diversity: " + ", ".join(f"{name} {value:.3f}" for name, value in found.diversity.items()))
        return 0


@dataclass(frozen=True)
class Report:
    """Turn folders of runs into a page."""

    folders: Annotated[tuple[Path, ...], Flag(positional=True, metavar="DIR")]
    """Folders that hold runs, finished or not, at any depth."""
    out: Path | None = None
    """The page (None: report.html in the folder, with several here); figures and tables go to a folder beside it."""

    def __post_init__(self) -> None:
        if self.out is not None and self.out.suffix != ".html":
            raise ValueError(f"--out must be an .html file, got {self.out}")

    def execute(self) -> int:
        """Write the page and name it."""
        from bootdqn.report.report import write_report

        out = self.out or (self.folders[0] if len(self.folders) == 1 else Path()) / "report.html"
        try:
            page = write_report(self.folders, out, default_settings())
        except WriteError as error:
            raise UsageError(f"{error}; --out FILE.html writes it elsewhere") from error
        print(f"Open {page} in a browser; its figures and tables are in {page.with_name(f'{page.stem}_files')}.")
        return 0


@dataclass(frozen=True)
class Inspect:
    """Show why an agent chose each of its actions."""

    run_dir: Annotated[Path, Flag(positional=True)]
    """Folder of a run, finished or under way."""
    out: Path | None = None
    """The page (None: inspect.html)."""
    weights: str | None = None
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
    """Which step to draw with --figure (None: the first that is a flip, or 0)."""
    own: UserCode = field(default_factory=UserCode)

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
        from bootdqn.training.display import status_line

        with status_line(str(self.run_dir)) as show:
            told = inspect_run(
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
                show=show,
            )
        print(told)
        return 0
