"""The environments: DeepSea, TwoPaths, Atari and any of Gymnasium's; this package registers its own with Gymnasium."""

import gymnasium

ENTRY_POINTS = {
    "bootdqn/DeepSea-v0": "bootdqn.envs.deep_sea:DeepSea",
    "bootdqn/TwoPaths-v0": "bootdqn.envs.two_paths:TwoPaths",
}


def register_environments() -> None:
    """Register the environments of `ENTRY_POINTS`; a second call changes nothing."""
    for name, entry_point in ENTRY_POINTS.items():
        if name not in gymnasium.registry:
            # or each environment would have a map of its own: one to train on, others to evaluate and to resume on
            gymnasium.register(name, entry_point=entry_point, kwargs={"mapping_seed": 0})
