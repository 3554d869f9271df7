"""Frames a second of Atari training on one core, beside two peers and this machine's limits, taking turns in one run.

*plain* is BootDQN-EVOI as public implementations have it: a Python loop over `nn.Sequential` heads, float32, PyTorch's
Adam as it comes, whole stacks in a ring buffer. *Stable-Baselines3* is its DQN, with one head. All play Gravitar, act,
store, sample and update once in four steps, with the paper's settings (K = 10, batch 32, 18 actions). Where the
processor has instructions for bfloat16, this program takes part a second time with `--precision bf16`. The limits are
the time that products, Adam's memory traffic, acting and the emulator must take (limits.py).

    python -m benchmarks.atari
    python -m benchmarks.atari --rounds 3 --heads 2 6 10 12 --strategies
"""

import argparse
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks import limits
from benchmarks.peers import LEARNING_STARTS, Network, plain, stable_baselines3
from benchmarks.results import Row, show, write
from benchmarks.turns import Make, Run, race, stepwise
from bootdqn.agent.learner import precision_warning
from bootdqn.config.agent import LearnerConfig
from bootdqn.config.envs import AtariConfig
from bootdqn.config.settings import from_flat
from bootdqn.config.train import TrainConfig, resolve
from bootdqn.envs.factory import make_environment
from bootdqn.reports.paper import RUNTIME_GROWTH
from bootdqn.training.loop import make_components, train

FRAMES_A_STEP = 4
NETWORK = Network(convolutions=((32, 8, 4), (64, 4, 2), (64, 3, 1)), features=3136, hidden=512, scale=1 / 255)
PLAIN, PEER = "plain PyTorch, a loop over heads", "Stable-Baselines3, one head"
MIN_FRACTION = ">= 0.8"


def settings(num_heads: int, strategy: str = "evoi", precision: str = "fp32") -> TrainConfig[Any]:
    """Return this program's settings: the paper's, with an early start and a small replay."""
    flat = {"environment": "atari", "game": "Gravitar", "learning_starts": LEARNING_STARTS, "replay_capacity": 10_000}
    return resolve(from_flat(flat | {"num_heads": num_heads, "strategy": strategy, "precision": precision}))


def ours(num_heads: int, strategy: str = "evoi", precision: str = "fp32") -> Run:
    """Return this program."""
    config = settings(num_heads, strategy, precision)
    return stepwise(train(config, make_components(config)))


def make_game() -> Any:
    """Return Gravitar."""
    return make_environment(AtariConfig())


def plain_agent(num_heads: int) -> Run:
    """Return the plain implementation."""
    return stepwise(plain(make_game, NETWORK, num_heads))


def peer() -> Run:
    """Return Stable-Baselines3's DQN."""
    return stable_baselines3(make_game, NETWORK)


def versus(num_heads: int, run_race: Any) -> list[Row]:
    """Compare each precision with the peers and the limits, and print the parts of the least time."""
    precisions = ["fp32"] + ["bf16"] * (not precision_warning(LearnerConfig(precision="bf16"), "cpu"))
    work = {name: limits.count_work(settings(num_heads, precision=name)) for name in precisions}
    makers: dict[str, Make] = {PLAIN: partial(plain_agent, num_heads), PEER: peer}
    makers |= {name: partial(ours, num_heads, precision=name) for name in precisions}
    seconds = run_race(makers | limits.contestants(make_game, work))
    rows = []
    for name in precisions:
        what, speed = f"Atari, K = {num_heads}, {name}", FRAMES_A_STEP / seconds[name]
        least = limits.least_seconds(work[name], name, seconds)
        print(f"{what}: {1000 * seconds[name]:.1f} ms a step; at least {limits.describe(least)} ms")
        rows += [
            Row(f"{what}, speed", PLAIN, speed, "frames/s", seconds[PLAIN] / seconds[name]),
            Row(f"{what}, time", PEER, 1e6 * seconds[name], "us", seconds[name] / seconds[PEER]),
            Row(
                f"{what}, fraction of the limit",
                "machine",
                speed,
                "frames/s",
                sum(least.values()) / seconds[name],
                MIN_FRACTION,
            ),
            *limits.rows(what, least, seconds, PLAIN, PEER),
        ]
    return rows


def by_heads(heads: list[int], run_race: Any) -> list[Row]:
    """Compare numbers of heads: the time of each against that of the one before it."""
    seconds = run_race({str(k): partial(ours, k) for k in heads})
    rows = [_heads_row(heads[0], seconds)] if heads else []
    for before, k in pairwise(heads):
        papers = f" (paper {1 + RUNTIME_GROWTH[k] / 100:.2f})" if k in RUNTIME_GROWTH else ""
        rows.append(
            _heads_row(k, seconds)._replace(
                peer=f"time at K = {before}{papers}", ratio=seconds[str(k)] / seconds[str(before)]
            )
        )
    return rows


def _heads_row(k: int, seconds: dict[str, float]) -> Row:
    return Row(f"Atari by heads, K = {k}", "", FRAMES_A_STEP / seconds[str(k)], "frames/s")


def by_strategy(strategies: list[str], run_race: Any) -> list[Row]:
    """Compare strategies at K = 10: the time of each against greedy BootDQN's."""
    seconds = run_race({name: partial(ours, 10, name) for name in strategies})
    return [
        Row(
            f"Atari by strategy, {name}",
            f"time of {strategies[0]}",
            FRAMES_A_STEP / seconds[name],
            "frames/s",
            seconds[name] / seconds[strategies[0]],
        )
        for name in strategies
    ]


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1, help="threads of every contestant (default: 1)")
    parser.add_argument("--rounds", type=int, default=5, help="turns of every contestant (default: 5)")
    parser.add_argument("--steps", type=int, default=20, help="environment steps in a turn (default: 20)")
    parser.add_argument("--warm-up", type=int, default=80, help="steps before the first turn (default: 80)")
    parser.add_argument("--heads", type=int, nargs="*", default=[2, 6, 10, 12], help="K to compare")
    parser.add_argument("--strategies", nargs="*", default=["greedy", "evoi"], help="strategies to compare")
    parser.add_argument("--json", type=Path, help="write the rows and the machine to this file")
    arguments = parser.parse_args()
    run_race = partial(
        race,
        rounds=arguments.rounds,
        steps=arguments.steps,
        warm_up=arguments.warm_up,
        threads=arguments.threads,
        plain=frozenset({PLAIN, PEER}),
    )
    rows = versus(10, run_race)
    rows += by_heads(arguments.heads, run_race) if arguments.heads else []
    rows += by_strategy(arguments.strategies, run_race) if arguments.strategies else []
    show(f"One training step on Atari, {arguments.threads} thread(s)", rows)
    write(arguments.json, rows)


if __name__ == "__main__":
    main()
