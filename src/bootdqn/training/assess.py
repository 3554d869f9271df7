"""Evaluate a run from its folder alone, finished or still running, and film it on request."""

from collections.abc import Callable
from contextlib import nullcontext, suppress
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from gymnasium.error import DependencyNotInstalled

from bootdqn.common.errors import UsageError, blamed_on, check_writable, how_to_install
from bootdqn.common.random_streams import random_stream
from bootdqn.common.specs import Array
from bootdqn.common.written import counted
from bootdqn.exploration.voting import VoteRule, check_rule
from bootdqn.training.config import check_play
from bootdqn.training.evaluation import Evaluation, evaluate
from bootdqn.training.opened import open_run
from bootdqn.training.threads import pinned_threads

STEPS_A_SECOND = 15


class Assessment(NamedTuple):
    """What an evaluation from a folder found, and of what."""

    found: Evaluation
    step: int
    """Environment steps before the weights were saved."""
    rule: VoteRule
    """How the heads voted."""


def assess(
    path: Path,
    *,
    episodes: int | None,
    max_steps: int | None,
    rule: VoteRule | None,
    seed: int,
    checkpoint: str | int | None = None,
    video: Path | None = None,
    show: Callable[[str], None] = lambda _words: None,
) -> Assessment:
    """Play the run in folder `path` by the vote of its heads; None is what the run's own evaluations have.

    Args:
        path: Folder of the run.
        episodes: The most episodes.
        max_steps: The most steps, of all episodes together.
        rule: How the heads vote.
        seed: Seed of the environment.
        checkpoint: Step of a snapshot, or a file of weights; None is the weights saved last.
        video: File to film the episodes to.
        show: Takes after every step what is going on, in words.

    Raises:
        ValueError: There is nothing to play, or no such rule.
        UsageError: There is no such run, or no such weights of it.
        TrainingError: The environment raised something.
    """
    check_play(episodes, max_steps, seed)
    if video:
        check_writable(video, "--video")
    opened = open_run(path, checkpoint, render_mode="rgb_array" if video else None)
    own = opened.config.evaluation
    rule = own.vote if rule is None else rule
    check_rule(rule, "vote")
    most = own.eval_episodes if episodes is None else episodes
    calls = count(1)

    def on_step(episode: int) -> None:
        steps = next(calls) - episode  # every episode's reset is a call, too
        show(f"episode {episode:,} of at most {most:,}, {counted(steps, 'step')}")
        if film:
            film.take()

    filming = _Film(video, opened.environment.render) if video else nullcontext()
    with pinned_threads(opened.config.run.threads), filming as film:
        found = evaluate(
            opened.q_values,
            opened.environment,
            episodes=most,
            max_steps=own.eval_max_steps if max_steps is None else max_steps,
            rule=rule,
            rng=random_stream(seed, "assessment"),
            on_step=on_step,
        )
    assert found is not None, "nothing asks this evaluation to stop"
    return Assessment(found, opened.step, rule)


class _Film:
    """A video of what an environment shows, written as it goes."""

    def __init__(self, path: Path, render: Callable[[], Any]) -> None:
        try:
            import imageio.v2 as imageio
        except ImportError:
            raise UsageError(f"--video needs imageio: {how_to_install('video')}") from None
        path.parent.mkdir(parents=True, exist_ok=True)
        self._render = render
        gif: dict[str, Any] = {"duration": 1000 / STEPS_A_SECOND}
        film: dict[str, Any] = {"fps": STEPS_A_SECOND, "macro_block_size": 2}
        self._writer = imageio.get_writer(path, **(gif if path.suffix == ".gif" else film))

    def take(self) -> None:
        """Add a frame.

        Raises:
            UsageError: The environment is drawn with a package that is not installed.
        """
        with blamed_on("the environment"):
            try:
                frame = _even_sides(np.asarray(self._render()))
            except DependencyNotInstalled as error:
                raise UsageError(f"--video: {error}, or {how_to_install('video')}") from error
        self._writer.append_data(frame)

    def __enter__(self) -> "_Film":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Finish the file; where something was raised, that is what counts."""
        with suppress(Exception) if kind else nullcontext():
            self._writer.close()


def _even_sides(frame: Array) -> Array:
    """Return the frame without an odd last row or column, which video encoders refuse."""
    return frame[: frame.shape[0] // 2 * 2, : frame.shape[1] // 2 * 2]
