"""Playing with a trained agent while writing down every head's opinion of every action."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bootdqn.common.errors import RenderModeError, UsageError, blamed_on
from bootdqn.common.random_streams import random_stream
from bootdqn.common.specs import Array
from bootdqn.common.text import printable
from bootdqn.config.envs import DeepSeaConfig
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
from bootdqn.training.evaluation import Rollout

CULPRIT = "the environment"
METHODS = {
    "BootDQN": "greedy",
    "BootDQN-UCB": "ucb",
    "BootDQN-Gain": "gain",
    "BootDQN-EVOI": "evoi:reduce=sum",
    "vote": "vote",
}
"""Whose choice is shown beside what was done, and which strategy has its colour."""


@dataclass(frozen=True)
class Step:
    """One decision."""

    episode: int
    head: int
    q: Array
    """(K, A)"""
    scores: Array
    """(A,): the strategy's own, by which it chose."""
    action: int
    reward: float
    frame: Array | None
    """What the environment showed, (height, width, 3) uint8; None on DeepSea."""
    cell: tuple[int, int] | None
    """Row and column on DeepSea."""
    names: tuple[str, ...]
    """What the actions are called here."""


class Compared(NamedTuple):
    """The strategies whose choices are shown, beside the active head's own and the vote."""

    ucb: Ucb
    gain: Gain
    evoi: Evoi


@dataclass(frozen=True)
class Opinions:
    """What follows from the Q-values of one step."""

    own: Array
    """(A,): the active head's Q-values."""
    gain: Array
    """(A,): what its gain, times the scale, adds to them."""
    evoi: Array
    """(A,): what EVOI, times the scale, adds to them."""
    mean: Array
    """(A,): the ensemble's mean."""
    choices: tuple[int, ...]
    """What each of `METHODS` would do."""
    vote_entropy: float
    """Entropy of the votes, in nats."""


@dataclass(frozen=True)
class Recording:
    """Episodes played with one set of weights."""

    title: str
    strategy: Strategy
    strategy_text: str
    follows_head: bool
    """Whether the strategy has an active head; if not, that of a step is only one to compare with."""
    compared: Compared
    weights_step: int
    steps: list[Step]

    def opinions(self, step: Step) -> Opinions:
        """Return what the formulas make of a step's Q-values."""
        return opinions(step.q, step.head, self.compared)

    @property
    def methods(self) -> dict[str, str]:
        """Whose choices are shown, with their colours: `METHODS`, and the strategy if it is none of them."""
        colours = {name: algorithm(text).colour for name, text in METHODS.items()}
        if not self._is_compared:
            played = algorithm(self.strategy_text)
            colours[played.label] = played.colour
        return colours

    def choices(self, step: Step) -> tuple[int, ...]:
        """Return what each of `methods` would do."""
        return self.opinions(step).choices + (() if self._is_compared else (step.action,))

    @property
    def scores_are_in_the_bars(self) -> bool:
        """Whether the scores are in the picture already, as the active head's Q-values or with a bonus on top."""
        return type(self.strategy) in (Greedy, Gain, Evoi)

    @property
    def scores_are_chances(self) -> bool:
        """Whether the scores are the logarithms of the probabilities by which an action is drawn."""
        return type(self.strategy) is Boltzmann

    @property
    def scores_begin_at_zero(self) -> bool:
        """Whether the scores are shares or counts, whose bars mean little if they do not begin at zero."""
        return type(self.strategy) in (Boltzmann, Vote)

    def deciding(self, step: Step) -> Array:
        """Return the numbers (A,) by which the strategy chose: its scores, or the probabilities."""
        return np.exp(step.scores) if self.scores_are_chances else step.scores

    def reference(self, step: Step) -> Array:
        """Return the Q-values (A,) that a flip is a flip from: the active head's, or the mean if there is none."""
        values: Array = step.q[step.head] if self.follows_head else step.q.mean(axis=0)
        return values

    def flip(self, step: Step) -> bool:
        """Return whether the strategy did something else than the reference alone would have done."""
        return step.action != int(np.argmax(self.reference(step)))

    @property
    def _is_compared(self) -> bool:
        return type(self.strategy) in (Greedy, Ucb, Gain, Evoi) or self.strategy == Vote()


def compared_with(strategy: Strategy, *, on_deep_sea: bool) -> Compared:
    """Return the strategies to show: the run's own with its parameters, the others as in the paper."""
    return Compared(
        ucb=strategy if type(strategy) is Ucb else Ucb(),
        gain=strategy if type(strategy) is Gain else Gain(),
        evoi=strategy if type(strategy) is Evoi else Evoi(reduce="sum" if on_deep_sea else "mean"),
    )


def opinions(q: Array, head: int, compared: Compared) -> Opinions:
    """Return what the formulas make of Q-values (K, A)."""
    strategies: tuple[Strategy, ...] = (Greedy(), *compared)
    choices = [int(strategy.select(q, head)) for strategy in strategies]
    return Opinions(
        own=q[head],
        gain=compared.gain.bonus(q, head),
        evoi=compared.evoi.bonus(q),
        mean=q.mean(axis=0),
        choices=(*choices, int(vote(q))),
        vote_entropy=float(vote_diversity(q).vote_entropy),
    )


class Player:
    """An agent from a run folder, ready to play."""

    def __init__(self, path: Path, weights: str | Path | int | None = None, strategy: str | None = None) -> None:
        """Load the run in folder `path`.

        Args:
            path: The run.
            weights: Step of one of its snapshots, or a file of weights (None: the last saved).
            strategy: How to act (None: as in training).
        """
        self.blind: str | None = None
        """Why the environment cannot be shown, where it cannot."""
        self.opened = self._open(path, weights)
        self.config, self.environment = self.opened.config, self.opened.environment
        self.strategy_text = strategy or self.config.actor.strategy
        self.strategy = parse_strategy(self.strategy_text)
        self.compared = compared_with(self.strategy, on_deep_sea=isinstance(self.config.env, DeepSeaConfig))
        env = self.config.env
        self.title = printable(f"{path.name or path}, {env.kind} {env.label}")

    def record(
        self,
        *,
        episodes: int,
        max_steps: int,
        seed: int,
        head: int | None,
        show: Callable[[str], None] = lambda _words: None,
    ) -> Recording:
        """Play and write down; an episode has one active head, drawn unless `head` says which.

        Raises:
            UsageError: There is no such head, or the strategy follows none.
            TrainingError: The environment or the strategy raised something.
        """
        rng = random_stream(seed, "inspection")
        steps: list[Step] = []
        num_heads = self.config.network.num_heads
        with blamed_on("the strategy"):
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
                rollout = Rollout(self.environment, CULPRIT, seed=int(rng.integers(2**31)))
                while not rollout.done and len(steps) < max_steps:
                    observation = rollout.observation()
                    q = self.opened.q_values(observation[None])[0]
                    with blamed_on("the strategy"):
                        scores = np.asarray(self.strategy.scores(q, active), float)
                        action = int(self.strategy.select(q, active, rng))
                    frame, cell = self._shown(observation)
                    names, reward = self._names(cell), rollout.step(action)
                    steps.append(Step(episode, active, q, scores, action, reward, frame, cell, names))
                    show(f"episode {episode + 1:,} of {episodes:,}, {len(steps):,} of at most {max_steps:,} steps")
        return Recording(
            self.title, self.strategy, self.strategy_text, has_head, self.compared, self.opened.step, steps
        )

    def _open(self, path: Path, weights: str | Path | int | None) -> LoadedRun:
        try:
            return open_run(path, weights, render_mode="rgb_array")
        except RenderModeError as error:
            self.blind = str(error)
            return open_run(path, weights)

    def _shown(self, observation: Array) -> tuple[Array | None, tuple[int, int] | None]:
        if isinstance(self.config.env, DeepSeaConfig):
            row, column = divmod(int(observation), self.config.env.size)
            return None, (row, column)
        if self.blind is not None:
            return None, None
        try:
            return np.asarray(self.environment.render(), np.uint8), None
        except Exception as error:  # whatever an environment of somebody else raises
            self.blind = f"{type(error).__name__}: {error}"
            return None, None

    def _names(self, cell: tuple[int, int] | None) -> tuple[str, ...]:
        unwrapped: Any = getattr(self.environment, "unwrapped", self.environment)
        if cell is not None:
            right = unwrapped.optimal_action(*cell)
            return tuple(f"{action}: {'right' if action == right else 'left'}" for action in (0, 1))
        if hasattr(unwrapped, "get_action_meanings"):
            return tuple(str(name) for name in unwrapped.get_action_meanings())
        return tuple(str(action) for action in range(int(self.environment.action_space.n)))  # type: ignore[attr-defined]
