"""The environments' flags, put together. `kind` is the word that stands for an environment on the command line."""

from bootdqn.envs.atari_config import AtariConfig
from bootdqn.envs.deep_sea_config import DeepSeaConfig
from bootdqn.envs.gym_config import GymConfig

EnvConfig = DeepSeaConfig | AtariConfig | GymConfig

__all__ = ["AtariConfig", "DeepSeaConfig", "EnvConfig", "GymConfig"]
