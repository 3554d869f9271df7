"""Evaluation: the heads vote, on an environment and random streams of their own, so that training never notices."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from bootdqn.common.errors import TrainingError, blamed_on
from bootdqn.common.random_streams import random_stream
from bootdqn.common.specs import Array
from bootdqn.envs.make import Environment, for_evaluation, make_environment
from bootdqn.exploration.voting import VoteDiversity, VoteRule, vote, vote_diversity
from bootdqn.training.config import TrainConfig
from bootdqn.training.play import Play

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
