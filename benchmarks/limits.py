"""The least time of a training step on this machine: its products, Adam's memory traffic, acting, and the game.

Products are counted by PyTorch's own counter and take their time at the speed of one large product. An update moves at
least 28 bytes of every parameter for Adam (weights and two moments read and written, the gradient read), and choosing
an action for one state reads every weight once; both at the bandwidth of arrays as large as the parameters. All else
counts as zero. The speeds are measured by contestants that take turns with the one that is judged.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.results import Row
from benchmarks.turns import Make, Run
from bootdqn.config.train import TrainConfig
from bootdqn.training.loop import make_components

SIDE = 1024
ADAM_BYTES = 28
TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


class Work(NamedTuple):
    """The work of one run, per update and per parameter."""

    flops: int
    """Floating-point operations of the products of one update."""
    parameters: int
    weight_bytes: int
    """Bytes of one weight in the products."""
    update_every: int


def count_work(config: TrainConfig[Any]) -> Work:
    """Count the work of a run with one environment, as PyTorch does it."""
    components = make_components(replace(config, learner=replace(config.learner, engine="autograd")))
    replay, learner, rng = components.replay, components.learner, np.random.default_rng(0)
    spec = components.spec.observation
    observation = np.zeros(spec.shape, spec.dtype)
    replay.start_episode(0, observation)
    mask = np.ones(config.network.num_heads, np.bool_)
    replay.add(0, 0, 0.0, observation, mask, terminated=False, truncated=False)
    batch = replay.sample(config.learner.batch_size, rng)
    with FlopCounterMode(display=False) as counter:
        learner.update(batch)
    parameters = sum(parameter.numel() for parameter in learner.online.learned().values())
    width = torch.finfo(TYPES[config.learner.precision]).bits // 8
    return Work(counter.get_total_flops(), parameters, width, config.learner.update_every)


def contestants(make_env: Callable[[], gymnasium.Env[Any, int]], work: dict[str, Work]) -> dict[str, Make]:
    """Return the contestants that measure this machine's speeds, for the work in each precision."""
    parameters = max(each.parameters for each in work.values())
    products: dict[str, Make] = {f"product in {precision}": partial(product, precision) for precision in work}
    return products | {"memory": partial(memory, parameters), "game": partial(game, make_env)}


def product(precision: str) -> Run:
    """Return a contestant whose step is a product of two large matrices."""
    a, b = torch.rand(2, SIDE, SIDE).to(TYPES[precision])
    result = torch.empty_like(a)
    return lambda steps: [torch.mm(a, b, out=result) for _ in range(steps)]


def memory(parameters: int) -> Run:
    """Return a contestant whose step reads two arrays as large as the parameters and writes one, of four in turn."""
    arrays = torch.rand(4, parameters)
    return lambda steps: [arrays[step % 4].add_(arrays[(step + 1) % 4]) for step in range(steps)]


def game(make_env: Callable[[], gymnasium.Env[Any, int]]) -> Run:
    """Return a contestant whose step is a random step of the game."""
    env, rng = make_env(), np.random.default_rng(0)
    env.reset(seed=0)

    def run(steps: int) -> None:
        for _ in range(steps):
            _, _, terminated, truncated, _ = env.step(int(rng.integers(env.action_space.n)))
            if terminated or truncated:
                env.reset()

    return run


def least_seconds(work: Work, precision: str, seconds: dict[str, float]) -> dict[str, float]:
    """Return the parts of the least time of a step, from the seconds of the contestants above."""
    flops_a_second = 2 * SIDE**3 / seconds[f"product in {precision}"]
    bytes_a_second = 3 * 4 * work.parameters / seconds["memory"]
    return {
        "products": work.flops / flops_a_second / work.update_every,
        "Adam": ADAM_BYTES * work.parameters / bytes_a_second / work.update_every,
        "acting": work.weight_bytes * work.parameters / bytes_a_second,
        "game": seconds["game"],
    }


def rows(what: str, parts: dict[str, float], seconds: dict[str, float], plain: str, peer: str) -> list[Row]:
    """Return what a program at the limit would reach: its speed beside one peer, and its time beside another."""
    least = sum(parts.values())
    row = Row(f"{what}, machine's limit", "", 1e6 * least, "us")
    return [
        row._replace(peer=f"speed of {plain}", ratio=seconds[plain] / least),
        row._replace(peer=f"time of {peer}", ratio=least / seconds[peer]),
    ]


def describe(parts: dict[str, float]) -> str:
    """Return the parts of the least time in milliseconds, in a line."""
    return ", ".join(f"{name} {1000 * part:.2f}" for name, part in parts.items())
