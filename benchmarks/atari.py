"""Frames a second of Atari training: this program against a plain implementation, alternating in one run.

The plain one is what public implementations do: a Python loop over `nn.Sequential` heads, float32, PyTorch's Adam as
it comes, whole stacks in a ring buffer. Both play real Gravitar, act by EVOI, which asks every head, store, sample and
update once in four steps, with the paper's settings (K = 10, batch 32, 18 actions) and the same number of threads, each
in a process of its own: how a process manages memory is part of its speed. Where the processor has instructions for
bfloat16, this program takes part a second time with `--precision bf16`.

    python benchmarks/atari.py
    python benchmarks/atari.py --rounds 3 --steps 40 --heads 2 6 10 12
"""

import argparse
import contextlib
import copy
import itertools
import json
import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import torch
from torch import nn

from bootdqn.agent.learner import precision_warning
from bootdqn.config.agent import LearnerConfig
from bootdqn.config.envs import AtariConfig
from bootdqn.config.train import from_flat, resolve
from bootdqn.envs.factory import make_environment
from bootdqn.exploration.formulas import evoi
from bootdqn.reports.paper import RUNTIME_GROWTH
from bootdqn.runs.threads import pinned_threads
from bootdqn.training.loop import make_components, train

WARM_UP_STEPS = 300
FRAMES_A_STEP = 4
PLAIN = "plain"


class PlainAgent:
    """BootDQN-EVOI with one module for each head and a loop over them."""

    def __init__(self, num_heads: int, num_actions: int) -> None:
        self.torso = nn.Sequential(
            nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 64, 3, 1), nn.ReLU(),
            nn.Flatten(),
        )  # fmt: skip
        self.heads = nn.ModuleList(
            nn.Sequential(nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, num_actions)) for _ in range(num_heads)
        )
        self.target_torso, self.target_heads = copy.deepcopy(self.torso), copy.deepcopy(self.heads)
        self.optimizer = torch.optim.Adam([*self.torso.parameters(), *self.heads.parameters()], lr=1e-4)

    def act(self, observation: np.ndarray, head: int) -> int:
        """Return the action that is best by one head's values and EVOI."""
        with torch.no_grad():
            features = self.torso(torch.from_numpy(observation[None]).float() / 255)
            q = torch.cat([each(features) for each in self.heads])
        return int((q[head] + evoi(q)).argmax())

    def update(self, batch: tuple[torch.Tensor, ...]) -> None:
        """Take one double-DQN step of every head."""
        observation, action, reward, next_observation, going_on, mask = batch
        features = self.torso(observation.float() / 255)
        with torch.no_grad():
            next_features = self.torso(next_observation.float() / 255)
            target_features = self.target_torso(next_observation.float() / 255)
        losses = []
        for index, (head, target_head) in enumerate(zip(self.heads, self.target_heads, strict=True)):
            with torch.no_grad():
                best = head(next_features).argmax(dim=1, keepdim=True)
                target = reward + 0.99 * going_on * target_head(target_features).gather(1, best)[:, 0]
            value = head(features).gather(1, action[:, None])[:, 0]
            loss = nn.functional.smooth_l1_loss(value, target, reduction="none")
            losses.append((mask[:, index] * loss).sum() / mask[:, index].sum().clamp(min=1))
        self.optimizer.zero_grad()
        torch.stack(losses).mean().backward()
        self.optimizer.step()


def plain(num_heads: int) -> Iterator[None]:
    """Train the plain agent for ever, a step at a time."""
    env = make_environment(AtariConfig())
    agent, rng, capacity = PlainAgent(num_heads, 18), np.random.default_rng(0), 2000
    observations = np.zeros((2, capacity, 4, 84, 84), np.uint8)
    actions, rewards = np.zeros(capacity, np.int64), np.zeros(capacity, np.float32)
    going_on, masks = np.zeros(capacity, np.float32), np.zeros((capacity, num_heads), np.float32)
    observation, head = env.reset(seed=0)[0], 0
    for step in itertools.count():
        action = agent.act(observation, head)
        following, reward, terminated, truncated, _ = env.step(action)
        slot = step % capacity
        observations[0, slot], observations[1, slot] = observation, following
        actions[slot], rewards[slot], going_on[slot] = action, np.sign(reward), not terminated
        masks[slot] = rng.random(num_heads) < 1.0
        observation = following
        if terminated or truncated:
            observation, head = env.reset()[0], int(rng.integers(num_heads))
        if step >= 50 and step % 4 == 0:
            chosen = rng.integers(0, min(step, capacity), 32)
            arrays = (observations[0], actions, rewards, observations[1], going_on, masks)
            agent.update(tuple(torch.from_numpy(array[chosen]) for array in arrays))
        yield


def ours(num_heads: int, strategy: str = "evoi", precision: str = "fp32") -> Iterator[object]:
    """Train this program's agent for ever, a step at a time."""
    settings = {"environment": "atari", "game": "Gravitar", "learning_starts": 50, "replay_capacity": 10_000}
    varied = {"num_heads": num_heads, "strategy": strategy, "precision": precision}
    config = resolve(from_flat(settings | varied))
    return train(config, make_components(config))


def precisions() -> list[str]:
    """Return the precisions that this processor has instructions for, float32 first."""
    return ["fp32"] + ["bf16"] * (not precision_warning(LearnerConfig(precision="bf16"), "cpu"))


def perform(connection: Connection, name: str, make: Callable[[], Iterator[object]], threads: int) -> None:
    """Train as one contestant: for each number of steps received, send the seconds they took."""
    torch.set_num_threads(threads)
    settings = contextlib.nullcontext() if name == PLAIN else pinned_threads(threads)
    with settings:
        contestant = make()
        while steps := connection.recv():
            start = time.perf_counter()
            for _ in itertools.islice(contestant, steps):
                pass
            connection.send(time.perf_counter() - start)


def race(makers: dict[str, Callable[[], Iterator[object]]], rounds: int, steps: int, threads: int) -> dict[str, float]:
    """Return frames a second of each contestant: the median over rounds in which they take turns."""
    context = multiprocessing.get_context("spawn")
    connections, times = {}, {name: [] for name in makers}
    for name, make in makers.items():
        connections[name], theirs = context.Pipe()
        context.Process(target=perform, args=(theirs, name, make, threads), daemon=True).start()
    for round_ in range(rounds + 1):
        for name, connection in connections.items():
            connection.send(steps if round_ else WARM_UP_STEPS)
            taken = connection.recv()
            if round_:
                times[name].append(taken)
    for connection in connections.values():
        connection.send(0)
    return {name: FRAMES_A_STEP * steps / statistics.median(taken) for name, taken in times.items()}


def main() -> None:
    """Measure and print; the ratio comes last."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2, help="threads of every contestant (default: 2)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of taking turns (default: 5)")
    parser.add_argument("--steps", type=int, default=60, help="environment steps in a round (default: 60)")
    parser.add_argument("--heads", type=int, nargs="*", default=[2, 6, 10, 12], help="K to compare")
    parser.add_argument("--strategies", nargs="*", default=["greedy", "ucb", "gain", "evoi", "ids"])
    parser.add_argument("--json", type=Path, help="write the numbers to this file")
    arguments = parser.parse_args()
    size = (arguments.rounds, arguments.steps, arguments.threads)
    by_precision = {name: partial(ours, 10, precision=name) for name in precisions()}
    versus = race({PLAIN: partial(plain, 10)} | by_precision, *size)
    by_heads = race({str(k): partial(ours, k) for k in arguments.heads}, *size)
    by_strategy = race({name: partial(ours, 10, name) for name in arguments.strategies}, *size)
    print("frames/s by number of heads (time against the K before; the paper's growth):")
    before = None
    for k, speed in by_heads.items():
        growth = "" if before is None else f"  {100 * (before / speed - 1):+.0f} %"
        papers = f"  (paper {RUNTIME_GROWTH[int(k)]:+d} %)" if growth and int(k) in RUNTIME_GROWTH else ""
        print(f"  K = {k:>2}: {speed:7.1f}{growth}{papers}")
        before = speed
    print("frames/s by strategy at K = 10 (the paper: BootDQN about 10 % faster than EVOI):")
    for name, speed in by_strategy.items():
        print(f"  {name:<6} {speed:7.1f}")
    print(f"frames/s at K = 10 of the plain implementation: {versus[PLAIN]:.1f}")
    for name in by_precision:
        print(f"frames/s at K = 10 of ours in {name}: {versus[name]:.1f}, ratio: {versus[name] / versus[PLAIN]:.2f}x")
    if arguments.json:
        measured = {"versus": versus, "by_heads": by_heads, "by_strategy": by_strategy}
        results = measured | {"threads": arguments.threads, "instructions": torch.backends.cpu.get_cpu_capability()}
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
