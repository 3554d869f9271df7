"""The exploration experiments of bsuite 0.3.6 (Osband et al. 2020) by bsuite's ids, and the flags of a run on one."""

# ruff: noqa: D102 - most properties are documented in their base

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from bootdqn.common.fields import Flag, PositiveInt, check_fields
from bootdqn.common.text import did_you_mean
from bootdqn.config.env_base import EpisodeBudget

DEEP_SEA_SETTINGS = tuple({"size": size, "mapping_seed": 42} for size in range(10, 51, 2))
SWINGUP_SETTINGS = tuple({"height_threshold": n / 20, "x_reward_threshold": 1 - n / 20} for n in range(20))


@dataclass(frozen=True)
class Experiment:
    """An experiment: one environment in several settings, from easy to hard."""

    settings: tuple[Mapping[str, Any], ...]
    """Arguments of the environment in each setting."""
    episodes: int
    """Episodes of a run."""


EXPERIMENTS = {
    "deep_sea": Experiment(DEEP_SEA_SETTINGS, episodes=10_000),
    "deep_sea_stochastic": Experiment(DEEP_SEA_SETTINGS, episodes=10_000),
    "cartpole_swingup": Experiment(SWINGUP_SETTINGS, episodes=1000),
}
"""The members of bsuite's tag `exploration`."""
BSUITE_IDS = tuple(
    f"{name}/{index}" for name, experiment in EXPERIMENTS.items() for index in range(len(experiment.settings))
)


@dataclass(frozen=True)
class BsuiteConfig(EpisodeBudget):
    """A setting of one of bsuite's exploration experiments, and when to stop."""

    kind: ClassVar[str] = "bsuite"
    required_field: ClassVar[str | None] = "bsuite_id"
    bsuite_id: Annotated[str, Flag(name="id", metavar="EXPERIMENT/INDEX")] = "deep_sea/0"
    """deep_sea/0 to deep_sea/20 and deep_sea_stochastic/0 to /20 (N = 10, 12, ..., 50), or cartpole_swingup/0 to /19
    (the pole must be higher than INDEX/20, and the cart within 1 - INDEX/20 of the middle)."""
    max_episodes: PositiveInt | None = None
    """Stop after this many episodes (None: as in bsuite, 10,000 on DeepSea and 1,000 on CartPole)."""
    stop_when_solved: bool = True
    """Stop on DeepSea once bsuite's score of the run is known: it does not depend on later episodes."""
    eval_every_steps: PositiveInt | None = None
    """Environment steps from one evaluation to the next (None: no evaluation)."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.bsuite_id not in BSUITE_IDS:
            last = {name: len(experiment.settings) - 1 for name, experiment in EXPERIMENTS.items()}
            listed = ", ".join(f"{name}/0 to /{index}" for name, index in last.items())
            hint = did_you_mean(self.bsuite_id, BSUITE_IDS)
            raise ValueError(f"--id must be one of {listed}; got {self.bsuite_id!r}{hint}")

    @property
    def experiment(self) -> str:
        """Name of the experiment."""
        return self.bsuite_id.partition("/")[0]

    @property
    def settings(self) -> Mapping[str, Any]:
        """Arguments of the environment."""
        return EXPERIMENTS[self.experiment].settings[int(self.bsuite_id.partition("/")[2])]

    @property
    def default_max_episodes(self) -> int:
        """Default of `max_episodes`."""
        return EXPERIMENTS[self.experiment].episodes

    @property
    def size(self) -> int | None:
        """N of DeepSea; None on CartPole."""
        return self.settings.get("size")

    @property
    def label(self) -> str:
        return self.bsuite_id

    @property
    def cost_key(self) -> str:
        return self.experiment if self.size is None else f"DeepSea {self.size}"

    @property
    def max_episode_steps(self) -> int:
        return 1001 if self.size is None else self.size  # rounding makes the 10 seconds of CartPole 1001 steps of 0.01

    @property
    def max_training_steps(self) -> int:
        return (self.max_episodes or self.default_max_episodes) * self.max_episode_steps
