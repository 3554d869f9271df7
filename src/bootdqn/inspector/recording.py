"""Record episodes of a trained agent, with the Q-values of every head at every step."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bootdqn.common.errors import RenderModeError, UsageError, attribute_errors_to
from bootdqn.common.random_streams import random_stream
from bootdqn.common.specs import Array
from bootdqn.common.text import escape_unprintable, format_count
from bootdqn.config.variants import algorithm
from bootdqn.exploration.registry import parse_strategy
from bootdqn.exploration.strategies import (
    Boltzmann,
    Evoi,
    Gain,
    Greedy,
    Strategy,
    Ucb,
    Vote,
    follows_head,
)
from bootdqn.exploration.voting import vote, vote_diversity
from bootdqn.runs.threads import pinned_threads
from bootdqn.runs.weights import LoadedRun, open_run
from bootdqn.training.rollout import Rollout, mask_illegal_actions

METHODS = {
    "BootDQN": "greedy",
    "BootDQN-UCB": "ucb",
    "BootDQN-Gain": "gain",
    "BootDQN-EVOI": "evoi:reduce=sum",
    "vote": "vote",
}
"""Algorithms whose choices are shown beside the action taken, and the strategy that has their colour."""


@dataclass(frozen=True)
class Step:
    """One recorded step of an episode."""

    episode: int
    head: int
    q: Array
    """(K, A)"""
    scores: Array
    """(A,): scores of the strategy."""
    action: int
    reward: float
    frame: Array | None
    """Rendered image (height, width, 3) uint8; None on DeepSea, or if the environment cannot be rendered."""
    cell: tuple[int, int] | None
    """Row and column on DeepSea."""
    names: tuple[str, ...]
    """Names of the actions in this state."""


class ComparedStrategies(NamedTuple):
    """The strategies whose choices are shown beside those of the active head and of the vote."""

    ucb: Ucb
    gain: Gain
    evoi: Evoi


@dataclass(frozen=True)
class StepAnalysis:
    """Quantities computed from the Q-values of one step."""

    own: Array
    """(A,): the active head's Q-values."""
    gain: Array
    """(A,): gain of the active head, times the scale."""
    evoi: Array
    """(A,): EVOI, times the scale."""
    mean: Array
    """(A,): mean over heads."""
    choices: tuple[int, ...]
    """Action that each of `METHODS` would take."""
    vote_entropy: float
    """Entropy of the vote shares in nats."""


@dataclass(frozen=True)
class Recording:
    """Episodes played with one set of weights."""

    title: str
    strategy: Strategy
    strategy_text: str
    follows_head: bool
    """Whether the strategy depends on the active head; if not, the head of a step is only for comparison."""
    compared: ComparedStrategies
    weights_step: int
    steps: list[Step]

    def analysis(self, step: Step) -> StepAnalysis:
        """Return the quantities computed from the Q-values of `step`."""
        return analyse(step.q, step.head, self.compared)

    @property
    def methods(self) -> dict[str, str]:
        """Names and colours of the algorithms whose choices are shown: `METHODS`, and the strategy if it is another."""
        colours = {name: algorithm(text).colour for name, text in METHODS.items()}
        if not self._is_compared:
            played = algorithm(self.strategy_text)
            colours[played.label] = played.colour
        return colours

    def choices(self, step: Step) -> tuple[int, ...]:
        """Return the action that each of `methods` would take."""
        return self.analysis(step).choices + (() if self._is_compared else (step.action,))

    @property
    def scores_in_bars(self) -> bool:
        """Whether the bars of Q-values and bonuses show the scores already."""
        return type(self.strategy) in (Greedy, Gain, Evoi)

    @property
    def scores_are_log_probabilities(self) -> bool:
        """Whether the scores are log-probabilities from which an action is sampled."""
        return type(self.strategy) is Boltzmann

    @property
    def scores_start_at_zero(self) -> bool:
        """Whether the scores are shares or counts, whose bars must start at zero."""
        return type(self.strategy) in (Boltzmann, Vote)

    @property
    def score_title(self) -> str:
        """The title of the scores: what they are, and how the strategy chose by them."""
        if self.scores_are_log_probabilities:
            return f"probability by {self.strategy_text}: an action is sampled"
        rule = "the action with the highest is taken"
        if type(self.strategy) is Vote:
            rule = "the highest is taken, a tie goes to the higher mean"
        elif type(self.strategy).select is not Strategy.select:
            rule = "its own rule chooses by them"
        return f"score of {self.strategy_text}: {rule}"

    def decision_values(self, step: Step) -> Array:
        """Return the numbers (A,) by which the strategy chose: its scores, or probabilities."""
        return np.exp(step.scores) if self.scores_are_log_probabilities else step.scores

    def reference(self, step: Step) -> Array:
        """Return the reference Q-values (A,): the active head's, or the mean over heads if there is none."""
        values: Array = step.q[step.head] if self.follows_head else step.q.mean(axis=0)
        return values

    def reference_action(self, step: Step) -> int:
        """Return the action with the highest reference Q-value."""
        return int(np.argmax(self.reference(step)))

    def flip(self, step: Step) -> bool:
        """Return whether the strategy chose another action than the reference Q-values alone."""
        return step.action != self.reference_action(step)

    @property
    def _is_compared(self) -> bool:
        return type(self.strategy) in (Greedy, Ucb, Gain, Evoi) or self.strategy == Vote()


def _with_legal_only(step: Step, legal: Array) -> Step:
    """Return the step with the legal actions, of these indices, as its only ones."""
    return replace(
        step,
        q=step.q[:, legal],
        scores=step.scores[legal],
        action=int(np.searchsorted(legal, step.action)),
        names=tuple(step.names[action] for action in legal),
    )


def compared_strategies(strategy: Strategy, *, on_deep_sea: bool) -> ComparedStrategies:
    """Return the strategies to compare: the run's own with its parameters, the others as in the paper."""
    return ComparedStrategies(
        ucb=strategy if type(strategy) is Ucb else Ucb(),
        gain=strategy if type(strategy) is Gain else Gain(),
        evoi=strategy if type(strategy) is Evoi else Evoi(reduce="sum" if on_deep_sea else "mean"),
    )


def analyse(q: Array, head: int, compared: ComparedStrategies) -> StepAnalysis:
    """Return the quantities computed from Q-values (K, A)."""
    strategies: tuple[Strategy, ...] = (Greedy(), *compared)
    choices = [int(strategy.select(q, head)) for strategy in strategies]
    return StepAnalysis(
        own=q[head],
        gain=compared.gain.bonus(q, head),
        evoi=compared.evoi.bonus(q),
        mean=q.mean(axis=0),
        choices=(*choices, int(vote(q))),
        vote_entropy=float(vote_diversity(q).vote_entropy),
    )


class Recorder:
    """A trained agent that is recorded while it acts."""

    def __init__(self, path: Path, weights: str | Path | int | None = None, strategy: str | None = None) -> None:
        """Load a run.

        Args:
            path: The run directory.
            weights: Step of one of its snapshots, or a file of weights (None: the last saved).
            strategy: Strategy to act by (None: as in training).

        Raises:
            ValueError: `strategy` is not valid.
            UsageError: The run cannot be loaded.
        """
        self.render_error: str | None = None
        """Why the environment cannot be rendered, if it cannot."""
        self.run = self._open(path, weights)
        self.config, self.environment = self.run.config, self.run.environment
        self.strategy_text = strategy or self.config.actor.strategy
        try:
            self.strategy = parse_strategy(self.strategy_text)
        except ValueError:
            self.close()
            raise
        env = self.config.env
        self.size: int | None = getattr(env, "size", None)
        """N of DeepSea; None in other environments."""
        self.compared = compared_strategies(self.strategy, on_deep_sea=self.size is not None)
        self.title = escape_unprintable(f"{path.name or path}, {env.kind} {env.label}")

    def close(self) -> None:
        """Close the environment."""
        self.run.close()

    def record(
        self,
        *,
        episodes: int,
        max_steps: int,
        seed: int,
        head: int | None,
        progress: Callable[[str], None] = lambda _text: None,
    ) -> Recording:
        """Record episodes.

        Args:
            episodes: Number of episodes.
            max_steps: Limit on the steps of all episodes together.
            seed: Seed of the environment, the heads and sampled actions.
            head: Active head (None: sampled for each episode).
            progress: Called with a line of text after every step.

        Raises:
            UsageError: There is no such head, or the strategy follows none, or no step has two legal actions.
            TrainingError: The environment or the strategy raised an exception.
        """
        rng = random_stream(seed, "inspection")
        steps: list[Step] = []
        played = 0
        num_heads = self.config.network.num_heads
        with attribute_errors_to(f"strategy {self.strategy_text}"):
            has_head = follows_head(self.strategy)
        if head is not None and not has_head:
            raise UsageError(
                f"--head: {self.strategy_text} follows no head, the ensemble acts as one; leave out --head"
            )
        if head is not None and not 0 <= head < num_heads:
            raise UsageError(f"--head must be in 0..{num_heads - 1}, got {head}")
        with pinned_threads(self.config.run.threads):
            for episode in range(episodes):
                active = int(rng.integers(num_heads)) if head is None else head
                rollout = Rollout(self.environment, "the environment", seed=int(rng.integers(2**31)))
                while not rollout.done and played < max_steps:
                    observation = rollout.observation()
                    legal = rollout.legal()
                    q = mask_illegal_actions(self.run.q_values(observation[None]), legal)[0]
                    with attribute_errors_to(f"strategy {self.strategy_text}"):
                        scores = np.asarray(self.strategy.scores(q, active), float)
                        action = int(self.strategy.select(q, active, rng))
                    frame, cell = self._frame_and_cell(observation)
                    names, reward = self._action_names(cell), rollout.step(action)
                    step = Step(episode, active, q, scores, action, reward, frame, cell, names)
                    step = step if legal is None else _with_legal_only(step, np.flatnonzero(legal[0]))
                    if len(step.q[0]) > 1:  # a single legal action is no choice to explain
                        steps.append(step)
                    played += 1
                    progress(f"episode {episode + 1:,} of {episodes:,}, {played:,} of at most {max_steps:,} steps")
        if not steps:
            raise UsageError(f"no choice to show: a single action was legal in each of {format_count(played, 'step')}")
        return Recording(self.title, self.strategy, self.strategy_text, has_head, self.compared, self.run.step, steps)

    def _open(self, path: Path, weights: str | Path | int | None) -> LoadedRun:
        try:
            return open_run(path, weights, render_mode="rgb_array")
        except RenderModeError as error:
            self.render_error = str(error)
            return open_run(path, weights)

    def _frame_and_cell(self, observation: Array) -> tuple[Array | None, tuple[int, int] | None]:
        if self.size is not None:
            row, column = divmod(int(observation), self.size)
            return None, (row, column)
        if self.render_error is not None:
            return None, None
        try:
            return np.asarray(self.environment.render(), np.uint8), None
        except Exception as error:  # an environment may raise anything
            self.render_error = f"{type(error).__name__}: {error}"
            return None, None

    def _action_names(self, cell: tuple[int, int] | None) -> tuple[str, ...]:
        unwrapped: Any = getattr(self.environment, "unwrapped", self.environment)
        if cell is not None:
            right = unwrapped.optimal_action(*cell)
            return tuple(f"{action}: {'right' if action == right else 'left'}" for action in (0, 1))
        for environment in (self.environment, unwrapped):
            if hasattr(environment, "get_action_meanings"):
                return tuple(str(name) for name in environment.get_action_meanings())
        return tuple(str(action) for action in range(int(self.environment.action_space.n)))  # type: ignore[attr-defined]
