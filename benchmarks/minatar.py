"""Steps a second of training on MinAtar, on one core, beside two peers, all taking turns in one run.

All play the same game with the same network (16 filters of 3 x 3, then 1024-128-A), batches of 32, and an update every
four steps. *plain* is BootDQN-EVOI with ten heads as public implementations have it: a Python loop over `nn.Sequential`
heads, PyTorch's Adam as it comes. *Stable-Baselines3* is its DQN, with one head. A step is: act, step the game, store,
and every fourth time sample and update. Where the processor has instructions for bfloat16, this program takes part a
second time with `--precision bf16`. How near this program is to the machine's limits is printed as well (limits.py).

    python -m benchmarks.minatar
    python -m benchmarks.minatar --game seaquest --rounds 15
"""

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from benchmarks import limits
from benchmarks.peers import BATCH_SIZE, LEARNING_RATE, LEARNING_STARTS, UPDATE_EVERY, Network, plain, stable_baselines3
from benchmarks.results import Row, show, write
from benchmarks.turns import Run, race, stepwise
from bootdqn.agent.learner import precision_warning
from bootdqn.config.agent import LearnerConfig
from bootdqn.config.envs import MinAtarConfig
from bootdqn.config.settings import from_flat
from bootdqn.config.train import TrainConfig, resolve
from bootdqn.envs.factory import make_environment
from bootdqn.training.loop import make_components, train

NETWORK = Network(convolutions=((16, 3, 1),), features=1024, hidden=128, scale=1.0)
PLAIN, PEER = "plain PyTorch, a loop over heads", "Stable-Baselines3, one head"


def make_game(name: str) -> gymnasium.Env[Any, int]:
    """Return a game for the peers, with bytes and channels first."""
    env = make_environment(MinAtarConfig(game=name))
    height, width, channels = env.observation_space.shape
    space = gymnasium.spaces.Box(0, 1, (channels, height, width), np.uint8)
    return gymnasium.wrappers.TransformObservation(
        env, lambda image: np.ascontiguousarray(image.transpose(2, 0, 1), np.uint8), space
    )


def settings(game: str, num_heads: int, precision: str) -> TrainConfig[Any]:
    """Return this program's settings: its preset, with the peers' learning rate and an early start."""
    flat = {"environment": "minatar", "game": game, "num_heads": num_heads, "precision": precision}
    varied = {"learning_rate": LEARNING_RATE, "learning_starts": LEARNING_STARTS, "target_every": 10_000}
    config = resolve(from_flat(flat | varied))
    assert (config.learner.batch_size, config.learner.update_every) == (BATCH_SIZE, UPDATE_EVERY)
    assert config.network.hidden_sizes == (NETWORK.hidden,)
    return config


def ours(game: str, num_heads: int, precision: str) -> Run:
    """Return this program."""
    config = settings(game, num_heads, precision)
    return stepwise(train(config, make_components(config)))


def plain_agent(game: str, num_heads: int) -> Run:
    """Return the plain implementation."""
    return stepwise(plain(partial(make_game, game), NETWORK, num_heads, capacity=100_000))


def peer(game: str) -> Run:
    """Return Stable-Baselines3's DQN."""
    return stable_baselines3(partial(make_game, game), NETWORK, capacity=100_000)


def measure(arguments: argparse.Namespace) -> list[Row]:
    """Return the rows of all comparisons, and print the parts of the least time."""
    game, heads = arguments.game, arguments.heads
    precisions = ["fp32"] + ["bf16"] * (not precision_warning(LearnerConfig(precision="bf16"), "cpu"))
    work = {name: limits.count_work(settings(game, heads, name)) for name in precisions}
    seconds = race(
        {PLAIN: partial(plain_agent, game, heads), PEER: partial(peer, game)}
        | {name: partial(ours, game, heads, name) for name in precisions}
        | limits.contestants(partial(make_game, game), work),
        rounds=arguments.rounds,
        steps=arguments.steps,
        warm_up=arguments.warm_up,
        plain=frozenset({PLAIN, PEER}),
    )
    rows = []
    for name in precisions:
        what, speed = f"MinAtar, {game}, K = {heads}, {name}", 1 / seconds[name]
        least = limits.least_seconds(work[name], name, seconds)
        print(f"{what}: {1000 * seconds[name]:.2f} ms a step; at least {limits.describe(least)} ms")
        bound = name == "fp32"
        rows += [
            Row(f"{what}, speed", PLAIN, speed, "steps/s", seconds[PLAIN] / seconds[name], ">= 4" if bound else None),
            Row(f"{what}, time", PEER, 1e6 * seconds[name], "us", seconds[name] / seconds[PEER], "<= 2.5"),
            Row(f"{what}, fraction of the limit", "machine", speed, "steps/s", sum(least.values()) / seconds[name]),
            *limits.rows(what, least, seconds, PLAIN, PEER),
        ]
    return rows


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--game", default="breakout", help="game of MinAtar (default: breakout)")
    parser.add_argument("--heads", type=int, default=10, help="K of this program and the plain one (default: 10)")
    parser.add_argument("--rounds", type=int, default=5, help="turns of every contestant (default: 5)")
    parser.add_argument("--steps", type=int, default=80, help="environment steps in a turn (default: 80)")
    parser.add_argument("--warm-up", type=int, default=200, help="steps before the first turn (default: 200)")
    parser.add_argument("--json", type=Path, help="write the rows and the machine to this file")
    arguments = parser.parse_args()
    rows = measure(arguments)
    show("One training step on MinAtar, one core", rows)
    write(arguments.json, rows)


if __name__ == "__main__":
    main()
