"""Evaluation by the vote of the heads, on environments and random streams of its own: training is not affected."""

from collections.abc import Callable
from contextlib import closing, nullcontext
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bootdqn.common.errors import TrainingError, attribute_errors_to, check_file_writable
from bootdqn.common.fields import NonNegativeInt, PositiveInt, check_value
from bootdqn.common.files import write_json_atomically
from bootdqn.common.random_streams import random_stream
from bootdqn.common.specs import Array
from bootdqn.common.text import format_count, format_number
from bootdqn.config.train import TrainConfig
from bootdqn.envs.factory import Environment, evaluation_config, new_environment
from bootdqn.exploration.voting import VoteDiversity, VoteRule, check_rule, vote, vote_diversity
from bootdqn.runs.threads import pinned_threads
from bootdqn.runs.weights import open_run
from bootdqn.training.rollout import Rollout, mask_illegal_actions
from bootdqn.training.video import VideoWriter

EVALUATION_ENVIRONMENT = "the environment of the evaluation"


class Evaluation(NamedTuple):
    """Result of an evaluation; returns are of raw rewards."""

    returns: list[float]
    lengths: list[int]
    cut: bool
    """Whether the only episode was cut by the limit on steps; an episode that is cut counts only if no other does."""
    diversity: dict[str, float]
    """The four measures of vote diversity, averaged over the steps."""

    def record(self) -> dict[str, Any]:
        """Return the evaluation as a record of `metrics.jsonl`."""
        return {
            "mean_return": float(np.mean(self.returns)),
            "returns": self.returns,
            "lengths": self.lengths,
            "cut": self.cut,
            **self.diversity,
        }

    def _repr_html_(self) -> str:
        """Return the evaluation for a notebook."""
        rows = {
            "mean return": format_number(float(np.mean(self.returns))),
            "returns": ", ".join(map(format_number, self.returns)),
            "lengths": ", ".join(map(str, self.lengths)),
            **{name.replace("_", " "): format_number(value) for name, value in self.diversity.items()},
        }
        cells = "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in rows.items())
        return f"<table>{cells}</table>"


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
        environment: Reset with a seed first; its rewards are raw.
        episodes: The most episodes, at least 1.
        max_steps: The most steps, of all episodes together, at least 1.
        rule: How the heads vote.
        rng: Seeds the environment.
        stop: Called before every step; True abandons the evaluation.
        on_step: Called after every reset and every step with the number of the episode, from 1.

    Returns:
        The evaluation, or None if it was abandoned.

    Raises:
        TrainingError: The environment raised, its observation is not in its space, or a return is not finite.
    """
    seed: int | None = int(rng.integers(2**31))
    finished: list[Rollout] = []
    measures, steps = np.zeros(4), 0
    while len(finished) < episodes and steps < max_steps:
        number, rollout, seed = len(finished) + 1, Rollout(environment, EVALUATION_ENVIRONMENT, seed), None
        on_step(number)
        while not rollout.done and steps < max_steps:
            if stop():
                return None
            q = mask_illegal_actions(q_values(rollout.observation()[None]), rollout.legal())
            measures += [float(measure[0]) for measure in vote_diversity(q)]
            rollout.step(int(vote(q, rule)[0]))
            steps += 1
            on_step(number)
        if rollout.done:
            finished.append(rollout)
    counted = finished or [rollout]
    returns = [episode.total_reward for episode in counted]
    if not np.isfinite(returns).all():
        raise TrainingError(f"{EVALUATION_ENVIRONMENT} gave returns that are not finite: {returns}")
    return Evaluation(
        returns=returns,
        lengths=[episode.length for episode in counted],
        cut=not finished,
        diversity=dict(zip(VoteDiversity._fields, (measures / steps).tolist(), strict=True)),
    )


class Evaluator:
    """Evaluates a run every so many frames.

    Each evaluation has a random stream named by its number, and a new environment: some environments keep state through
    a reset, and a resumed process has not made the earlier evaluations.
    """

    def __init__(self, config: TrainConfig[Any], q_values: Callable[[Array], Array]) -> None:
        self._config = config
        self._q_values = q_values
        self._number = 0

    def get_state(self) -> int:
        """Return the number of evaluations that were due so far."""
        return self._number

    def set_state(self, state: int) -> None:
        """Restore that number."""
        self._number = int(state)

    def is_due(self, step: int) -> bool:
        """Return whether an evaluation is due after `step` environment steps."""
        every = self._config.env.eval_every_frames
        return every is not None and step * self._config.env.frames_per_step // every > self._number

    def evaluate_if_due(
        self, step: int, stop: Callable[[], bool], on_progress: Callable[[int, int], None] = lambda _episode, _of: None
    ) -> dict[str, Any] | None:
        """Return the record of the evaluation that is due after `step` environment steps, if one is.

        Args:
            step: Environment steps so far.
            stop: Called before every step; True abandons the evaluation, which stays due.
            on_progress: Called after every step with the number of the episode, and the most episodes.
        """
        settings, env = self._config.evaluation, self._config.env
        if env.eval_every_frames is None or not self.is_due(step):
            return None
        frames = step * env.frames_per_step
        number = frames // env.eval_every_frames
        with attribute_errors_to("the evaluation"), new_environment(evaluation_config(env)) as environment:
            evaluation = evaluate(
                self._q_values,
                environment,
                episodes=settings.eval_episodes,
                max_steps=settings.eval_max_steps,
                rule=settings.vote,
                rng=random_stream(self._config.run.seed, f"evaluation/{number}"),
                stop=stop,
                on_step=lambda episode: on_progress(episode, settings.eval_episodes),
            )
        if evaluation is None:
            return None
        self._number = number
        return {"kind": "evaluation", "step": step, "frames": frames, **evaluation.record()}


class RunEvaluation(NamedTuple):
    """Evaluation of a run in its directory."""

    evaluation: Evaluation
    step: int
    """Environment steps before the weights were saved."""
    rule: VoteRule


def evaluate_saved_run(
    run_dir: Path,
    *,
    episodes: int | None,
    max_steps: int | None,
    rule: VoteRule | None,
    seed: int,
    weights: str | Path | int | None = None,
    video: Path | None = None,
    json: Path | None = None,
    show: Callable[[str], None] = lambda _words: None,
) -> RunEvaluation:
    """Evaluate the run in `run_dir` by the vote of its heads; None stands for the run's own setting.

    Args:
        run_dir: The run directory.
        episodes: The most episodes.
        max_steps: The most steps, of all episodes together.
        rule: How the heads vote.
        seed: Seed of the environment.
        weights: Step of a snapshot, or a file of weights; None is the weights saved last.
        video: File to record the episodes to.
        json: File to write the results to, with the keys of `metrics.jsonl`.
        show: Called after every step with the progress, in words.

    Raises:
        ValueError: The limits are below 1, or there is no such rule.
        UsageError: There is no such run, or no such weights of it, or a file cannot be written.
        TrainingError: The environment raised, or a return is not finite.
    """
    check_value("episodes", PositiveInt | None, episodes)
    check_value("max_steps", PositiveInt | None, max_steps)
    check_value("seed", NonNegativeInt, seed)
    if video:
        check_file_writable(video, "--video")
    if json:
        check_file_writable(json, "--json")
    if rule is not None:
        check_rule(rule, "vote")
    with closing(open_run(run_dir, weights, render_mode="rgb_array" if video else None)) as run:
        settings, calls = run.config.evaluation, count(1)
        rule = settings.vote if rule is None else rule
        max_episodes = settings.eval_episodes if episodes is None else episodes

        def on_step(episode: int) -> None:
            steps = next(calls) - episode  # every episode's reset is a call, too
            show(f"episode {episode:,} of at most {max_episodes:,}, {format_count(steps, 'step')}")
            if writer:
                writer.add_frame()

        recording = VideoWriter(video, run.environment.render) if video else nullcontext()
        with pinned_threads(run.config.run.threads), recording as writer:
            evaluation = evaluate(
                run.q_values,
                run.environment,
                episodes=max_episodes,
                max_steps=settings.eval_max_steps if max_steps is None else max_steps,
                rule=rule,
                rng=random_stream(seed, "assessment"),
                on_step=on_step,
            )
    assert evaluation is not None, "nothing stops this evaluation"
    if json:
        json.parent.mkdir(parents=True, exist_ok=True)
        write_json_atomically(json, {"step": run.step, "vote": rule, "seed": seed, **evaluation.record()})
    return RunEvaluation(evaluation, run.step, rule)
