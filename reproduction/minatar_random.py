"""Measure random play of MinAtar's games: `python -m reproduction.minatar_random` writes results/minatar-random.

Uniformly random actions of the minimal set, with MinAtar's own sticky actions and difficulty ramping: what reports
normalise by.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from bootdqn.config.envs import MINATAR_GAMES, MinAtarConfig
from bootdqn.envs.factory import make_environment, spec_of

SCORES = Path(__file__).parent / "results/minatar-random/scores.json"
EPISODES = 1000
SEED = 0


def random_play(game: str, episodes: int = EPISODES, seed: int = SEED) -> dict[str, Any]:
    """Return the number of episodes, their mean return and its standard error."""
    environment, rng = make_environment(MinAtarConfig(game=game)), np.random.default_rng(seed)
    num_actions, first = spec_of(environment).num_actions, int(rng.integers(2**31))
    returns = []
    for episode in range(episodes):
        environment.reset(seed=first if episode == 0 else None)
        total, done = 0.0, False
        while not done:
            _, reward, terminated, truncated, _ = environment.step(int(rng.integers(num_actions)))
            total, done = total + float(reward), terminated or truncated
        returns.append(total)
    error = np.std(returns, ddof=1) / np.sqrt(episodes)
    return {"episodes": episodes, "mean_return": round(float(np.mean(returns)), 3), "error": round(float(error), 4)}


if __name__ == "__main__":
    SCORES.parent.mkdir(parents=True, exist_ok=True)
    SCORES.write_text(json.dumps({game: random_play(game) for game in MINATAR_GAMES}, indent=2) + "\n")
