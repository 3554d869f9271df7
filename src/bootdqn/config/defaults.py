"""Default configurations of every environment, with the paper's values, and the presets on top of them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bootdqn.config.agent import ActorConfig, LearnerConfig, NetworkConfig, ReplayConfig
from bootdqn.config.bsuite import BsuiteConfig
from bootdqn.config.envs import AtariConfig, DeepSeaConfig, GymConfig, MinAtarConfig
from bootdqn.config.train import EnvT, EvaluationConfig, Preset, RunConfig, TrainConfig, config_parts, replace_known

DEEP_SEA = TrainConfig(env=DeepSeaConfig(), actor=ActorConfig(strategy="evoi:reduce=sum"))
"""The paper's DeepSea experiment (Appendix A); EVOI is the sum over heads there."""

ATARI = TrainConfig(
    env=AtariConfig(),
    actor=ActorConfig(strategy="evoi"),
    network=NetworkConfig(num_heads=10, ensemble="shared", hidden_sizes=(512,)),
    learner=LearnerConfig(
        batch_size=32,
        learning_rate=1e-4,
        loss="huber",
        learning_starts=50_000,
        update_every=4,
        target_every=10_000,
    ),
    replay=ReplayConfig(replay_capacity=1_000_000, mask_probability=1.0),
    run=RunConfig(threads=2),
)
"""The paper's Atari experiments (Section IV)."""

MINATAR = TrainConfig(
    env=MinAtarConfig(),
    actor=ATARI.actor,
    network=replace(ATARI.network, hidden_sizes=(128,)),
    learner=replace(ATARI.learner, learning_rate=1e-3, learning_starts=5_000, target_every=1_000),
    replay=replace(ATARI.replay, replay_capacity=100_000),
    evaluation=EvaluationConfig(eval_max_steps=50_000),
)
"""The paper's Atari experiments, scaled to MinAtar; ours, the paper has none."""

GYM = TrainConfig(
    env=GymConfig(),
    actor=ActorConfig(strategy="evoi", before_learning="uniform"),
    network=NetworkConfig(num_heads=10, ensemble="auto", hidden_sizes=(64, 64)),
    learner=LearnerConfig(
        batch_size=64, learning_rate=1e-3, loss="huber", learning_starts=1000, update_every=1, target_every=250
    ),
    replay=ReplayConfig(replay_capacity=100_000, mask_probability=0.5),
)
"""Settings for small tasks; ours, the paper has none.

Where rewards are sparse, heads that all learn from the same few thousand silent steps agree before they have seen one:
half the data each, and a uniform start, keep them apart.
"""

MINIGRID = TrainConfig(
    env=GymConfig(env_id="MiniGrid-DoorKey-5x5-v0"),
    actor=ActorConfig(
        strategy="greedy", before_learning="uniform", epsilon=1.0, epsilon_end=0.05, epsilon_steps=25_000
    ),
    network=NetworkConfig(num_heads=10, ensemble="auto", hidden_sizes=(128, 64)),
    learner=LearnerConfig(
        batch_size=64,
        learning_rate=5e-4,
        loss="huber",
        n_step=5,
        learning_starts=1_000,
        update_every=4,
        target_every=500,
    ),
    replay=ReplayConfig(replay_capacity=100_000, mask_probability=1.0, replay="prioritized"),
)
"""Settings for MiniGrid, environments of kind `gym`; ours, the paper has none. `docs/minigrid.md` has their search.

Rewards are rare: a random agent solves DoorKey-5x5 in 8 % of its episodes. An epsilon that decreases finds some
while the heads already learn, prioritized replay and five-step targets carry them back along their episodes.
"""

BSUITE = TrainConfig(
    env=BsuiteConfig(),
    actor=ActorConfig(strategy="evoi:reduce=sum"),
    learner=LearnerConfig(update_every=1, target_every=4),
)
"""The paper's DeepSea settings, with the target copy every 4 steps of bsuite's own Bootstrapped DQN.

bsuite scores one agent on all of its experiments, so they have the same settings.
"""

DEFAULTS: dict[str, TrainConfig[Any]] = {config.env.kind: config for config in (DEEP_SEA, ATARI, MINATAR, GYM, BSUITE)}
ENVIRONMENTS = DEFAULTS | {"minigrid": MINIGRID}
"""Default settings by what `environment` may be: a kind, or `minigrid` for one of kind `gym`."""

_ENSEMBLE = {"strategy": "gain", "mask_probability": 1.0, "prior_scale": 3.0, "embedding_scale": 1.0}
_LARGE_REPLAY = {"replay_capacity": 1_000_000}
EXPLORER: Mapping[str, Mapping[str, Any]] = {
    "deep-sea": _ENSEMBLE | _LARGE_REPLAY | {"update_every": 1, "target_every": 4},
    "bsuite": _ENSEMBLE | _LARGE_REPLAY,
    "atari": {"strategy": "gain"},
    "minatar": {"strategy": "gain"},
    "gym": _ENSEMBLE,
}
"""Settings that solved the largest grids in our experiments, by the kind of the environment; ours.

DeepSea's settings are those around which reproduction/sweeps/deep-sea-search.toml searches. Other vector environments
take only the ensemble settings; image environments, untested, only the strategy.
"""


def preset_settings(preset: Preset, kind: str) -> Mapping[str, Any]:
    """Return the settings of a preset that differ from the defaults of an environment of this kind."""
    return EXPLORER[kind] if preset == "explorer" else {}


def with_preset(config: TrainConfig[EnvT], preset: Any) -> TrainConfig[EnvT]:
    """Return `config` with the settings of a preset for its environment.

    Raises:
        ValueError: There is no such preset.
    """
    run = replace(config.run, preset=preset)
    changes = preset_settings(preset, config.env.kind)
    parts = {name: replace_known(part, changes) for name, part in config_parts(replace(config, run=run)).items()}
    return replace(config, **parts)
