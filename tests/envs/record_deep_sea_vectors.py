"""Record what bsuite's DeepSea does, so that ours can be compared with it where bsuite is not installed.

Usage, in an environment with bsuite 0.3.6 (or `pip install -e '.[bench]'`):

    python tests/envs/record_deep_sea_vectors.py

It writes `deep_sea_vectors.json` beside this file. The tests also call `record` directly where bsuite is importable.

A run is one environment and its episodes. Columns are those after each step, the last one included, where bsuite's own
observation is empty. An episode with fewer actions than rows was abandoned, and bsuite does not judge it.
"""

import json
import random
import warnings
from pathlib import Path
from typing import Any

VECTORS = Path(__file__).with_name("deep_sea_vectors.json")


def record(settings: dict[str, Any], seed: int, episodes: int, choice: random.Random) -> dict[str, Any]:
    """Run bsuite's environment and return all it shows.

    Args:
        settings: size, deterministic, randomize_actions, mapping_seed and unscaled_move_cost.
        seed: seed of wind and noise.
        episodes: how many.
        choice: samples the actions.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some of its dependencies warn on import, and it warns of an undrawn map
        from bsuite.environments.deep_sea import DeepSea  # here, because the tests import this file without bsuite

        env = DeepSea(**settings, seed=seed)
    mapping = env._action_mapping.astype(int).tolist()
    return {
        "settings": settings,
        "seed": seed,
        "optimal_return": env._optimal_return,
        "action_mapping": ["".join(map(str, row)) for row in mapping],
        "episodes": [_episode(env, mapping, choice) for _ in range(episodes)],
    }


def _episode(env: Any, mapping: list[list[int]], choice: random.Random) -> dict[str, Any]:
    size = len(mapping)
    probability_of_right = choice.choice([0.5, 0.8, 1.0])
    length = choice.choice([choice.randint(1, size), size, size, size])
    before = env.bsuite_info()
    env.reset()
    actions, columns, rewards = "", [], []
    for row in range(length):
        right = mapping[row][columns[-1] if columns else 0]
        action = right if choice.random() < probability_of_right else 1 - right
        timestep = env.step(action)
        actions += str(action)
        columns.append(int(env._column))
        rewards.append(float(timestep.reward))
        assert timestep.last() == (row == size - 1)
        assert timestep.last() or timestep.observation[row + 1, columns[-1]] == timestep.observation.sum() == 1
    after = env.bsuite_info()
    return {
        "actions": actions,
        "columns": columns,
        "rewards": rewards,
        "treasures": int(after["denoised_return"] - before["denoised_return"]),
        "bad": after["total_bad_episodes"] - before["total_bad_episodes"] == 1 if length == size else None,
    }


def record_all() -> list[dict[str, Any]]:
    """Record every kind of DeepSea: sizes from 1, both versions, random and fixed maps, free and costly moves."""
    choice = random.Random(0)
    runs = []
    for size, episodes in [(1, 20), (2, 20), (3, 15), (5, 12), (10, 8), (20, 4)]:
        for deterministic in (True, False):
            for mapping_seed, move_cost in [(42, 0.01), (choice.randrange(2**32), choice.choice([0.0, 0.3, 1.7]))]:
                settings = {
                    "size": size,
                    "deterministic": deterministic,
                    "randomize_actions": True,
                    "mapping_seed": mapping_seed,
                    "unscaled_move_cost": move_cost,
                }
                runs.append(record(settings, choice.randrange(2**32), episodes, choice))
        undrawn = {**settings, "randomize_actions": False}
        runs.append(record(undrawn, 7, episodes // 2, choice))
    return runs


if __name__ == "__main__":
    lines = ",\n".join(json.dumps(run) for run in record_all())
    VECTORS.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
