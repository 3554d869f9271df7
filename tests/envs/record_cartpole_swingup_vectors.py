"""Record what bsuite's CartpoleSwingup does, so that ours can be compared with it where bsuite is not installed.

Usage, in an environment with bsuite 0.3.6 (or `pip install -e '.[bench]'`):

    python tests/envs/record_cartpole_swingup_vectors.py

It writes `cartpole_swingup_vectors.json` beside this file. The tests also call `record` directly where bsuite is
importable. The motion is chaotic, so that a sine rounded differently on another processor changes all that follows:
each recorded step has the motion before and after it.
"""

import json
import random
import warnings
from pathlib import Path
from typing import Any

VECTORS = Path(__file__).with_name("cartpole_swingup_vectors.json")


def record(settings: dict[str, float], seed: int, episodes: int, choice: random.Random) -> list[dict[str, Any]]:
    """Run bsuite's environment and return every step of every episode, its reset as a step without an action.

    Args:
        settings: height_threshold and x_reward_threshold.
        seed: seed of the starts.
        episodes: how many.
        choice: samples the actions; each is held for some steps, so that the pole is swung.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some of its dependencies warn on import
        from bsuite.experiments.cartpole_swingup.cartpole_swingup import CartpoleSwingup  # not installed everywhere

        env = CartpoleSwingup(**settings, seed=seed)
    steps = []
    for _ in range(episodes):
        timestep = env.reset()
        steps.append(_shown(env, timestep, None))
        action = 1
        while not timestep.last():
            if choice.random() < 0.05:
                action = choice.randrange(3)
            if abs(env._state.x) > 2 and choice.random() < 0.9:  # mostly stay on the track
                action = 0 if env._state.x > 0 else 2
            timestep = env.step(action)
            steps.append(_shown(env, timestep, action))
    return steps


def _shown(env: Any, timestep: Any, action: int | None) -> dict[str, Any]:
    return {
        "action": action,
        "motion": [float(value) for value in env._state],
        "observation": [float(value) for value in timestep.observation[0]],
        "reward": None if timestep.reward is None else float(timestep.reward),
        "last": bool(timestep.last()),
    }


def record_all() -> list[dict[str, Any]]:
    """Record every 25th step, the resets, every rewarded step and every last one, of an easy and a hard setting."""
    choice = random.Random(0)
    runs = []
    for n in (0, 10):
        settings, seed = {"height_threshold": n / 20, "x_reward_threshold": 1 - n / 20}, choice.randrange(2**32)
        steps = record(settings, seed, 3, choice)
        kept = [
            {"before": before["motion"], **after}
            for number, (before, after) in enumerate(zip([steps[0], *steps], steps, strict=False))
            if number % 25 == 0 or after["action"] is None or after["last"] or after["reward"] > 0.5
        ]
        runs.append({"settings": settings, "seed": seed, "steps": kept})
    return runs


if __name__ == "__main__":
    lines = ",\n".join(json.dumps(run) for run in record_all())
    VECTORS.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
