"""What a run is after: when it is over, what its summary says, and what is worth showing meanwhile."""

from typing import Any, Protocol

from bootdqn.envs.config import DeepSeaConfig
from bootdqn.training.loop import Episode
from bootdqn.training.solved import SolvedRule


class Goal(Protocol):
    """Consumes finished episodes."""

    def add_episode(self, episode: Episode) -> None:
        """Take in one finished episode."""
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
    def note(self) -> str:
        """What to show beside the progress, in a few words."""
        ...

    def summary(self) -> dict[str, Any]:
        """Return what the run found, for `summary.json`."""
        ...


class DeepSeaGoal:
    """Solve DeepSea, by both readings, within a number of episodes."""

    def __init__(self, config: DeepSeaConfig) -> None:
        self._config = config
        self._rule = SolvedRule()

    def add_episode(self, episode: Episode) -> None:
        """Count a good or bad episode."""
        self._rule.add_episode(bad=episode.info["bad_episode"])

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
    def note(self) -> str:
        """The running regret, and where it was solved."""
        solved = "" if self._rule.solved_at is None else f", solved at episode {self._rule.solved_at:,}"
        return f"regret {self._rule.running_regret:.3f}{solved}"

    def summary(self) -> dict[str, Any]:
        """Return both readings of "solved" and the counts behind them."""
        rule = self._rule
        return {
            "solved_at": rule.solved_at,
            "solved_at_strict": rule.solved_at_strict,
            "first_good_episode": rule.first_good_episode,
            "good_episodes": rule.good_episodes,
            "bad_episodes": rule.bad_episodes,
        }
