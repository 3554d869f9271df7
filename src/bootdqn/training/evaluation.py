"""Evaluation: the heads vote, on an environment and random streams of their own; training is not affected."""

import contextlib
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from gymnasium.error import DependencyNotInstalled

from bootdqn.common.errors import TrainingError, UsageError, blamed_on, check_writable, how_to_install
from bootdqn.common.random_streams import random_stream
from bootdqn.common.specs import Array
from bootdqn.common.text import format_count
from bootdqn.config.train import TrainConfig, check_play
from bootdqn.envs.factory import Environment, for_evaluation, make_environment, spec_of
from bootdqn.exploration.voting import VoteDiversity, VoteRule, check_rule, vote, vote_diversity
from bootdqn.runs.threads import pinned_threads
from bootdqn.runs.weights import open_run
from bootdqn.training.loop import checked_observation


class Play:
    """An episode under way; whatever the environment does wrong is blamed on `culprit`."""

    def __init__(self, environment: Environment, culprit: str, seed: int | None = None) -> None:
        """Reset `environment`.

        Raises:
            TrainingError: It raised something.
        """
        self._environment, self._culprit = environment, culprit
        self._spec = spec_of(environment).observation
        self.over, self.length, self.total = False, 0, 0.0
        with blamed_on(culprit):
            self._shown: Any
            self._shown, _ = environment.reset(seed=seed)

    def look(self) -> Array:
        """Return what the environment shows, as the networks take it. What nobody looks at is not checked.

        Raises:
            TrainingError: It is not what the environment's space promised.
        """
        with blamed_on(self._culprit):
            return checked_observation(self._spec, self._culprit, self._shown)

    def step(self, action: int) -> float:
        """Take an action, and return its reward, which is raw.

        Raises:
            TrainingError: The environment raised something, or the reward is not a number.
        """
        with blamed_on(self._culprit):
            self._shown, given, terminated, truncated, _ = self._environment.step(action)
            reward, self.over = float(given), bool(terminated or truncated)
        self.length, self.total = self.length + 1, self.total + reward
        return reward


CULPRIT = "the environment of the evaluation"


class Evaluation(NamedTuple):
    """What an evaluation found; scores are raw."""

    returns: list[float]
    lengths: list[int]
    cut: bool
    """Whether the one episode counted was cut by the limit on steps; such an episode counts only if no other does."""
    diversity: dict[str, float]
    """The four measures of vote diversity, averaged over the steps of the evaluation."""

    def record(self) -> dict[str, Any]:
        """Return it for `metrics.jsonl`."""
        return {
            "mean_return": float(np.mean(self.returns)),
            "returns": self.returns,
            "lengths": self.lengths,
            "cut": self.cut,
            **self.diversity,
        }


def evaluate(
    q_values: Callable[[Array], Array],
    environment: Environment,
    *,
    episodes: int,
    max_steps: int,
    rule: VoteRule,
    rng: np.random.Generator,
    stop: Callable[[], bool] = lambda: False,
    on_step: Callable[[int], None] = lambda _episode: None,
) -> Evaluation | None:
    """Play `episodes` episodes or `max_steps` steps, whichever comes first, by the vote of the heads.

    Args:
        q_values: Maps observations (E, ...) to Q-values (E, K, A).
        environment: Played from a seeded reset on; its rewards are raw.
        episodes: The most episodes, at least 1.
        max_steps: The most steps, of all episodes together, at least 1.
        rule: How the heads vote.
        rng: Seeds the environment.
        stop: Asked at every step; where it answers yes the evaluation is abandoned.
        on_step: Called after every reset and every step with the number of the episode, from 1.

    Returns:
        What was found, or None if it was abandoned.

    Raises:
        TrainingError: The environment raised something, or showed what it should not.
    """
    seed: int | None = int(rng.integers(2**31))
    finished: list[Play] = []
    measures, steps = np.zeros(4), 0
    while len(finished) < episodes and steps < max_steps:
        number, play, seed = len(finished) + 1, Play(environment, CULPRIT, seed), None
        on_step(number)
        while not play.over and steps < max_steps:
            if stop():
                return None
            q = q_values(play.look()[None])
            measures += [float(measure[0]) for measure in vote_diversity(q)]
            play.step(int(vote(q, rule)[0]))
            steps += 1
            on_step(number)
        if play.over:
            finished.append(play)
    counted = finished or [play]
    return Evaluation(
        returns=[one.total for one in counted],
        lengths=[one.length for one in counted],
        cut=not finished,
        diversity=dict(zip(VoteDiversity._fields, (measures / steps).tolist(), strict=True)),
    )


class Evaluator:
    """Evaluates a run every so many frames.

    Each evaluation has a random stream of its own, named by its number, and an environment of its own: some keep
    something through a reset, and after a resumption the evaluations before are not there to have left it.
    """

    def __init__(self, config: TrainConfig[Any], q_values: Callable[[Array], Array]) -> None:
        self._config = config
        self._q_values = q_values
        self._number = 0

    def get_state(self) -> int:
        """Return the number of the last evaluation made."""
        return self._number

    def set_state(self, state: int) -> None:
        """Go on after that evaluation."""
        self._number = int(state)

    def is_due(self, step: int) -> bool:
        """Return whether an evaluation is due after `step` environment steps and has not been made."""
        every = self._config.env.eval_every_frames
        return every is not None and step * self._config.env.frames_per_step // every > self._number

    def evaluate_if_due(
        self, step: int, stop: Callable[[], bool], on_progress: Callable[[int, int], None] = lambda _episode, _of: None
    ) -> dict[str, Any] | None:
        """Return the record of the evaluation that is due after `step` environment steps, if one is.

        Args:
            step: Environment steps so far.
            stop: Asked at every step; where it answers yes the evaluation is abandoned, and is due still.
            on_progress: Called after every step with the episode it belongs to, and how many there will be at most.
        """
        settings, env = self._config.evaluation, self._config.env
        if env.eval_every_frames is None or not self.is_due(step):
            return None
        frames = step * env.frames_per_step
        number = frames // env.eval_every_frames
        with blamed_on("the evaluation"), _new_environment(self._config) as environment:
            found = evaluate(
                self._q_values,
                environment,
                episodes=settings.eval_episodes,
                max_steps=settings.eval_max_steps,
                rule=settings.vote,
                rng=random_stream(self._config.run.seed, f"evaluation/{number}"),
                stop=stop,
                on_step=lambda episode: on_progress(episode, settings.eval_episodes),
            )
        if found is None:
            return None
        if not np.isfinite(found.returns).all():
            raise TrainingError(f"the environment of the evaluation gave returns that are not finite: {found.returns}")
        self._number = number
        return {"kind": "evaluation", "step": step, "frames": frames, **found.record()}


@contextlib.contextmanager
def _new_environment(config: TrainConfig[Any]) -> Iterator[Environment]:
    environment = make_environment(for_evaluation(config.env))
    try:
        yield environment
    finally:
        with contextlib.suppress(Exception):  # of somebody else's, and it is done with
            environment.close()


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
    weights: str | Path | int | None = None,
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
        weights: Step of a snapshot, or a file of weights; None is the weights saved last.
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
    opened = open_run(path, weights, render_mode="rgb_array" if video else None)
    own = opened.config.evaluation
    rule = own.vote if rule is None else rule
    check_rule(rule, "vote")
    most = own.eval_episodes if episodes is None else episodes
    calls = count(1)

    def on_step(episode: int) -> None:
        steps = next(calls) - episode  # every episode's reset is a call, too
        show(f"episode {episode:,} of at most {most:,}, {format_count(steps, 'step')}")
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
