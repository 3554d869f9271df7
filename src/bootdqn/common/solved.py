"""When DeepSea counts as solved: two readings of bsuite's rule."""

from dataclasses import dataclass

BAD_FRACTION = 0.9
"""An episode at which fewer than this fraction of the episodes so far were bad counts as solved."""
MIN_GOOD_EPISODES = 10


@dataclass
class SolvedRule:
    """Counts good and bad episodes; an episode is bad if the agent ever went left on the diagonal.

    `solved_at` is bsuite's: the first episode e with (bad episodes so far) / e < 0.9. It has no minimum, so one good
    episode among the first nine is enough. `solved_at_strict` asks for 10 good episodes as well.
    """

    good_episodes: int = 0
    bad_episodes: int = 0
    first_good_episode: int | None = None
    solved_at: int | None = None
    solved_at_strict: int | None = None

    @property
    def episodes(self) -> int:
        """How many episodes were counted."""
        return self.good_episodes + self.bad_episodes

    @property
    def running_regret(self) -> float:
        """The fraction of episodes that were bad; 1 before the first."""
        return self.bad_episodes / self.episodes if self.episodes else 1.0

    @property
    def holds_both_ways(self) -> bool:
        """Whether both readings say solved."""
        return self.solved_at is not None and self.solved_at_strict is not None

    def add_episode(self, *, bad: bool) -> None:
        """Count one finished episode."""
        self.bad_episodes += bad
        self.good_episodes += not bad
        if not bad and self.first_good_episode is None:
            self.first_good_episode = self.episodes
        if self.running_regret < BAD_FRACTION:
            self.solved_at = self.solved_at or self.episodes
            if self.good_episodes >= MIN_GOOD_EPISODES:
                self.solved_at_strict = self.solved_at_strict or self.episodes


def told_solved(solved_at: int | None, solved_at_strict: int | None, otherwise: str) -> str:
    """Say where DeepSea was solved, or `otherwise`; and where it was by bsuite's rule, if that is not the same.

    Example:
        >>> told_solved(53, 57, "not solved")
        "solved at episode 57 (by bsuite's rule, which does not ask for 10 good ones, at episode 53)"
    """
    told = otherwise if solved_at_strict is None else f"solved at episode {solved_at_strict:,}"
    if solved_at is None or solved_at == solved_at_strict:
        return told
    return f"{told} (by bsuite's rule, which does not ask for {MIN_GOOD_EPISODES} good ones, at episode {solved_at:,})"
