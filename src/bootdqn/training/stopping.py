"""What a run is after: when it is over, what its summary says, and what is worth showing meanwhile."""

from collections import deque
from dataclasses import asdict
from typing import Any, Protocol

from bootdqn.common.text import format_count, format_number
from bootdqn.config.envs import AtariConfig, DeepSeaConfig, EnvConfig, GymConfig
from bootdqn.envs.deep_sea import SolvedRule, describe_solved
from bootdqn.training.loop import Round

RECENT_EPISODES = 100
"""Over how many episodes of training, at most, the recent return is the mean."""


class StoppingRule(Protocol):
    """Consumes rounds and evaluations."""

    def add_round(self, round_: Round) -> None:
        """Take in one round of steps."""
        ...

    def add_evaluation(self, mean_return: float) -> None:
        """Take in the result of an evaluation."""
        ...

    @property
    def over(self) -> bool:
        """Whether the run has nothing left to do."""
        ...

    @property
    def completed(self) -> float:
        """How much of the longest possible run is done, from 0 to 1."""
        ...

    @property
    def position(self) -> str:
        """How far the run is, in its own unit."""
        ...

    @property
    def note(self) -> str:
        """What else to show, in a few words."""
        ...

    def summary(self) -> dict[str, Any]:
        """Return what the run found, for `summary.json`."""
        ...

    def get_state(self) -> dict[str, Any]:
        """Return what was taken in so far, ready for JSON."""
        ...

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from what `get_state` returned."""
        ...


class DeepSeaStoppingRule:
    """Solve DeepSea, by both readings, within a number of episodes."""

    def __init__(self, config: DeepSeaConfig) -> None:
        self._config = config
        self._rule = SolvedRule()
        self._beyond_the_cap: list[bool] = []
        """Of the episodes that do not count, whether each was bad: a larger cap counts them."""

    def add_round(self, round_: Round) -> None:
        """Count good and bad episodes; what several environments finish beyond the cap does not count."""
        self._count([bool(episode.info["bad_episode"]) for episode in round_.finished])

    def _count(self, bad: list[bool]) -> None:
        waiting = [*self._beyond_the_cap, *bad]
        room = self._config.max_episodes - self._rule.episodes
        for one in waiting[:room]:
            self._rule.add_episode(bad=one)
        self._beyond_the_cap = waiting[room:]

    def add_evaluation(self, mean_return: float) -> None:
        """Evaluations do not decide whether DeepSea is solved."""

    @property
    def over(self) -> bool:
        """Whether it is solved, and that ends the run, or the cap is reached."""
        solved = self._config.stop_when_solved and self._rule.holds_both_ways
        return solved or self._rule.episodes >= self._config.max_episodes

    @property
    def completed(self) -> float:
        """The fraction of the cap."""
        return self._rule.episodes / self._config.max_episodes

    @property
    def position(self) -> str:
        """The episode."""
        return f"episode {self._rule.episodes:,}"

    @property
    def note(self) -> str:
        """The running regret, and where it was solved."""
        solved = describe_solved(self._rule.solved_at, self._rule.solved_at_strict, "not solved yet")
        return f"regret {self._rule.running_regret:.3f}, {solved}"

    def summary(self) -> dict[str, Any]:
        """Return both readings of "solved" and the counts behind them."""
        rule = self._rule
        return {
            "episodes": rule.episodes,
            "solved_at": rule.solved_at,
            "solved_at_strict": rule.solved_at_strict,
            "first_good_episode": rule.first_good_episode,
            "good_episodes": rule.good_episodes,
            "bad_episodes": rule.bad_episodes,
        }

    def get_state(self) -> dict[str, Any]:
        """Return the counts."""
        return asdict(self._rule) | {"beyond_the_cap": self._beyond_the_cap}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on counting."""
        counts = dict(state)
        self._beyond_the_cap = [bool(bad) for bad in counts.pop("beyond_the_cap")]
        self._rule = SolvedRule(**counts)
        self._count([])


class StepBudgetRule:
    """Train for a number of frames; how well it goes is told by the episodes of training, and by the evaluations."""

    def __init__(self, config: AtariConfig | GymConfig) -> None:
        self._config = config
        self._frames = 0
        self._recent: deque[float] = deque(maxlen=RECENT_EPISODES)
        self._evaluations: list[float] = []

    def add_round(self, round_: Round) -> None:
        """Count frames, and remember the returns."""
        self._frames = round_.step * self._config.frames_per_step
        self._recent.extend(episode.total_reward for episode in round_.finished)

    def add_evaluation(self, mean_return: float) -> None:
        """Remember the mean return."""
        self._evaluations.append(mean_return)

    @property
    def over(self) -> bool:
        """Whether all frames are played."""
        return self._frames >= self._config.total_frames

    @property
    def completed(self) -> float:
        """The fraction of the frames."""
        return self._frames / self._config.total_frames

    @property
    def position(self) -> str:
        """The frames, which are steps where a step is one."""
        return format_count(self._frames, "frame" if self._config.frames_per_step > 1 else "step")

    @property
    def note(self) -> str:
        """The return of the recent episodes, and the last evaluation."""
        recent = self._recent_return
        told = "no episode finished yet" if recent is None else f"recent return {format_number(recent)}"
        return f"{told}, last evaluation {format_number(self._evaluations[-1])}" if self._evaluations else told

    @property
    def _recent_return(self) -> float | None:
        return sum(self._recent) / len(self._recent) if self._recent else None

    def summary(self) -> dict[str, Any]:
        """Return the frames, the recent return and the evaluations in short."""
        return {
            "frames": self._frames,
            "recent_return": self._recent_return,
            "evaluations": len(self._evaluations),
            "max_evaluation": max(self._evaluations, default=None),
            "last_evaluation": self._evaluations[-1] if self._evaluations else None,
        }

    def get_state(self) -> dict[str, Any]:
        """Return the frames, the recent returns and the evaluations."""
        return {"frames": self._frames, "recent": list(self._recent), "evaluations": list(self._evaluations)}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from them."""
        self._frames, self._evaluations = int(state["frames"]), [float(value) for value in state["evaluations"]]
        self._recent = deque(map(float, state["recent"]), RECENT_EPISODES)


def make_stopping_rule(config: EnvConfig) -> StoppingRule:
    """Return what a run on this environment is after."""
    return DeepSeaStoppingRule(config) if isinstance(config, DeepSeaConfig) else StepBudgetRule(config)
