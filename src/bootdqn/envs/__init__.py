"""The environments: DeepSea, TwoPaths, Atari and those of Gymnasium's registry, where this package adds its own."""

import gymnasium

ENTRY_POINTS = {
    "bootdqn/DeepSea-v0": "bootdqn.envs.deep_sea:DeepSea",
    "bootdqn/TwoPaths-v0": "bootdqn.envs.two_paths:TwoPaths",
}


def register_environments() -> None:
    """Register the environments of `ENTRY_POINTS`; a second call changes nothing."""
    for name, entry_point in ENTRY_POINTS.items():
        if name not in gymnasium.registry:
            # without a seed, training, evaluation and a resumed run would each have another map
            gymnasium.register(name, entry_point=entry_point, kwargs={"mapping_seed": 0})
