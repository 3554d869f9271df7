"""The numbers that bsuite scores a run by, counted as bsuite logs and analyses them."""

from dataclasses import dataclass

from bootdqn.common.text import format_count, format_number

_LOGGED = (10, 12, 14, 17, 20, 25, 30, 40, 50, 60, 70, 80, 90)
"""The episodes that bsuite logs, times 10 and divided by a power of ten."""
BAD_FRACTIONS = {"deep_sea": 0.9, "deep_sea_stochastic": 0.8}
"""DeepSea is solved at the first logged episode at which fewer than this fraction of the episodes so far were bad."""
FIRST_SCORED_EPISODES = {"deep_sea": 1, "deep_sea_stochastic": 100}
"""The first episode that is looked at: with wind, a few good episodes may be luck."""


def is_logged(episode: int) -> bool:
    """Return whether bsuite logs an episode: 1, 2, ..., 10, 12, 14, 17, 20, 25, 30, 40, ..., 100, 120, ..."""
    power = 10 ** (len(str(episode)) - 1)
    return 10 * episode in (ratio * power for ratio in _LOGGED)


@dataclass
class BsuiteCounts:
    """Counts of one run of an experiment; those of the other experiments stay as they are."""

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

    def describe(self) -> str:
        """Return the counts that matter, in words."""
        if self.experiment in BAD_FRACTIONS:
            bad = f"{self.bad_episodes / max(self.episodes, 1):.3f} of {format_count(self.episodes, 'episode')} bad"
            return bad if self.solved_at is None else f"solved by bsuite's rule at episode {self.solved_at:,}, {bad}"
        mean = format_number(self.total_return / max(self.episodes, 1))
        best = format_number(self.best_episode)
        return f"mean return {mean} of {format_count(self.episodes, 'episode')}, best {best}"
