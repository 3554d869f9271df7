"""The environments: DeepSea, TwoPaths, CartpoleSwingup, Atari, MinAtar and those of Gymnasium's registry."""

import gymnasium

ENTRY_POINTS = {
    "bootdqn/DeepSea-v0": "bootdqn.envs.deep_sea:DeepSea",
    "bootdqn/TwoPaths-v0": "bootdqn.envs.two_paths:TwoPaths",
    "bootdqn/CartpoleSwingup-v0": "bootdqn.envs.cartpole_swingup:CartpoleSwingup",
}


def register_environments() -> None:
    """Register the environments of `ENTRY_POINTS`; a second call changes nothing."""
    for name, entry_point in ENTRY_POINTS.items():
        if name not in gymnasium.registry:
            # without a seed, training, evaluation and a resumed run would each have another map
            kwargs = {} if "CartpoleSwingup" in name else {"mapping_seed": 0}
            gymnasium.register(name, entry_point=entry_point, kwargs=kwargs)
