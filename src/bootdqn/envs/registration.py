"""The environments this package adds to Gymnasium's registry."""

import gymnasium


def register_environments() -> None:
    """Register `bootdqn/DeepSea-v0`; a second call changes nothing."""
    if "bootdqn/DeepSea-v0" not in gymnasium.registry:
        gymnasium.register("bootdqn/DeepSea-v0", entry_point="bootdqn.envs.deep_sea:DeepSea")
