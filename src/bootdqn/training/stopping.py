"""Stopping rules: when a run is finished, how far it is, and the results in its summary."""

from collections import deque
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from bootdqn.common.text import format_count, format_number
from bootdqn.config.bsuite import BsuiteConfig
from bootdqn.config.envs import AtariConfig, DeepSeaConfig, EnvConfig, GymConfig, MinAtarConfig
from bootdqn.envs.deep_sea import SolvedRule, describe_solved
from bootdqn.runs.summary import RECENT_EPISODES, describe_bsuite_counts
from bootdqn.training.loop import StepResult

_LOGGED = (10, 12, 14, 17, 20, 25, 30, 40, 50, 60, 70, 80, 90)
"""The episodes that bsuite logs, times 10 and divided by a power of ten."""
BAD_FRACTIONS = {"deep_sea": 0.9, "deep_sea_stochastic": 0.8}
"""DeepSea is solved at the first logged episode at which fewer than this fraction of the episodes so far were bad."""
FIRST_SCORED_EPISODES = {"deep_sea": 1, "deep_sea_stochastic": 100}
"""The first logged episode at which it may be solved: with wind, a few good episodes may be luck."""
_EpisodeT = TypeVar("_EpisodeT")


def _split_at_cap(episodes: list[_EpisodeT], cap: int, counted: int) -> tuple[list[_EpisodeT], list[_EpisodeT]]:
    """Return the episodes that still count, of which `counted` did before, and those beyond the cap."""
    remaining = max(0, cap - counted)
    return episodes[:remaining], episodes[remaining:]


class DeepSeaStoppingRule:
    """Stop when DeepSea is solved, by both rules, or after a number of episodes."""

    def __init__(self, config: DeepSeaConfig) -> None:
        self._config = config
        self._solved = SolvedRule()
        self._beyond_the_cap: list[bool] = []
        """Whether each episode beyond the cap was bad: a larger budget counts them."""

    def add_step(self, result: StepResult) -> None:
        """Count good and bad episodes; those that several environments finish beyond the cap do not count."""
        self._count([bool(episode.info["bad_episode"]) for episode in result.finished])

    def _count(self, bad: list[bool]) -> None:
        candidates = [*self._beyond_the_cap, *bad]
        counting, self._beyond_the_cap = _split_at_cap(candidates, self._config.max_episodes, self._solved.episodes)
        for is_bad in counting:
            self._solved.add_episode(bad=is_bad)

    def add_evaluation(self, mean_return: float) -> None:
        """Do nothing: evaluations do not decide whether DeepSea is solved."""

    @property
    def done(self) -> bool:
        """Whether it is solved, and that ends the run, or the cap is reached."""
        solved = self._config.stop_when_solved and self._solved.solved_by_both
        return solved or self._solved.episodes >= self._config.max_episodes

    @property
    def completed(self) -> float:
        """The fraction of the episodes."""
        return self._solved.episodes / self._config.max_episodes

    @property
    def position(self) -> str:
        """The episode."""
        return f"episode {self._solved.episodes:,}"

    @property
    def note(self) -> str:
        """The running regret, and the episode that solved it."""
        solved = describe_solved(self._solved.solved_at, self._solved.solved_at_strict, "not solved yet")
        return f"regret {self._solved.running_regret:.3f}, {solved}"

    def summary(self) -> dict[str, Any]:
        """Return when it was solved, by both rules, and the counts behind them."""
        solved = self._solved
        return {
            "episodes": solved.episodes,
            "solved_at": solved.solved_at,
            "solved_at_strict": solved.solved_at_strict,
            "first_good_episode": solved.first_good_episode,
            "good_episodes": solved.good_episodes,
            "bad_episodes": solved.bad_episodes,
        }

    def get_state(self) -> dict[str, Any]:
        """Return the counts."""
        return asdict(self._solved) | {"beyond_the_cap": self._beyond_the_cap}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the counts; episodes that were beyond a smaller cap count now."""
        counts = dict(state)
        self._beyond_the_cap = [bool(bad) for bad in counts.pop("beyond_the_cap")]
        self._solved = SolvedRule(**counts)
        self._count([])


class StepBudgetRule:
    """Stop after a number of frames; the results are the returns of training and of the evaluations."""

    def __init__(self, config: AtariConfig | MinAtarConfig | GymConfig) -> None:
        self._config = config
        self._frames = 0
        self._recent: deque[float] = deque(maxlen=RECENT_EPISODES)
        self._evaluations: list[float] = []

    def add_step(self, result: StepResult) -> None:
        """Count frames, and keep the recent returns."""
        self._frames = result.step * self._config.frames_per_step
        self._recent.extend(episode.total_reward for episode in result.finished)

    def add_evaluation(self, mean_return: float) -> None:
        """Keep the mean return."""
        self._evaluations.append(mean_return)

    @property
    def done(self) -> bool:
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
        note = "no episode finished yet" if recent is None else f"recent return {format_number(recent)}"
        return f"{note}, last evaluation {format_number(self._evaluations[-1])}" if self._evaluations else note

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
        """Restore them."""
        self._frames, self._evaluations = int(state["frames"]), [float(value) for value in state["evaluations"]]
        self._recent = deque(map(float, state["recent"]), RECENT_EPISODES)


def is_logged(episode: int) -> bool:
    """Return whether bsuite logs an episode: 1, 2, ..., 10, 12, 14, 17, 20, 25, 30, 40, ..., 100, 120, ..."""
    power = 10 ** (len(str(episode)) - 1)
    return 10 * episode in (ratio * power for ratio in _LOGGED)


@dataclass
class BsuiteCounts:
    """The counts that bsuite scores a run by, made as bsuite logs them; those of other experiments stay 0."""

    experiment: str
    episodes: int = 0
    total_return: float = 0.0
    best_episode: float = 0.0
    """The highest return of an episode, or 0 if that is higher."""
    bad_episodes: int = 0
    """Episodes in which the diver went left on the diagonal."""
    solved_at: int | None = None
    """The logged episode at which DeepSea was solved."""

    def add_episode(self, episode_return: float, *, bad: bool) -> None:
        """Count one finished episode."""
        self.episodes += 1
        self.total_return += episode_return
        self.best_episode = max(self.best_episode, episode_return)
        self.bad_episodes += bad
        if self.solved_at is None and self.experiment in BAD_FRACTIONS and is_logged(self.episodes):
            good_enough = self.bad_episodes / self.episodes < BAD_FRACTIONS[self.experiment]
            if good_enough and self.episodes >= FIRST_SCORED_EPISODES[self.experiment]:
                self.solved_at = self.episodes


class BsuiteStoppingRule:
    """Stop after a number of episodes, on DeepSea also once bsuite's score of the run is known."""

    def __init__(self, config: BsuiteConfig) -> None:
        self._stop_when_solved = config.stop_when_solved
        self._cap = config.max_episodes or config.default_max_episodes
        self._counts = BsuiteCounts(config.experiment)
        self._beyond_the_cap: list[tuple[float, bool]] = []
        """Return of each episode beyond the cap, and whether it was bad: a larger budget counts them."""

    def add_step(self, result: StepResult) -> None:
        """Count episodes; those that several environments finish beyond the cap do not count."""
        self._count([(end.total_reward, bool(end.info.get("bad_episode", False))) for end in result.finished])

    def _count(self, episodes: list[tuple[float, bool]]) -> None:
        candidates = [*self._beyond_the_cap, *episodes]
        counting, self._beyond_the_cap = _split_at_cap(candidates, self._cap, self._counts.episodes)
        for episode_return, bad in counting:
            self._counts.add_episode(episode_return, bad=bad)

    def add_evaluation(self, mean_return: float) -> None:
        """Do nothing: bsuite scores the episodes of training."""

    @property
    def done(self) -> bool:
        """Whether DeepSea is solved, and that ends the run, or the cap is reached."""
        return (self._stop_when_solved and self._counts.solved_at is not None) or self._counts.episodes >= self._cap

    @property
    def completed(self) -> float:
        """The fraction of the episodes."""
        return self._counts.episodes / self._cap

    @property
    def position(self) -> str:
        """The episode."""
        return f"episode {self._counts.episodes:,}"

    @property
    def note(self) -> str:
        """The counts that bsuite scores."""
        return describe_bsuite_counts(asdict(self._counts))

    def summary(self) -> dict[str, Any]:
        """Return the counts that bsuite scores."""
        return asdict(self._counts)

    def get_state(self) -> dict[str, Any]:
        """Return the counts."""
        return asdict(self._counts) | {"beyond_the_cap": [list(episode) for episode in self._beyond_the_cap]}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the counts; episodes that were beyond a smaller cap count now."""
        counts = dict(state)
        self._beyond_the_cap = [(float(value), bool(bad)) for value, bad in counts.pop("beyond_the_cap")]
        self._counts = BsuiteCounts(**counts)
        self._count([])


StoppingRule = DeepSeaStoppingRule | BsuiteStoppingRule | StepBudgetRule


def make_stopping_rule(config: EnvConfig) -> StoppingRule:
    """Return the stopping rule of runs on this environment."""
    if isinstance(config, BsuiteConfig):
        return BsuiteStoppingRule(config)
    return DeepSeaStoppingRule(config) if isinstance(config, DeepSeaConfig) else StepBudgetRule(config)
