"""Time of one whole training step on DeepSea, on one core, beside bsuite's own Bootstrapped DQN.

A step is: act, step the environment, store, sample, update all 20 members. The peers are agents of
`bsuite.baselines.jax.boot_dqn` in bsuite's own environment and training loop: its default agent, and one *matched* to
the paper's settings (no prior networks, mask probability 0.5, target copy every N updates).

Every contestant lives in a process of its own and rests until it is called. All are held to the same core, and each
library to one thread. They take turns, round by round, and the median over the rounds counts. Times are processor
time, which on one core is what a clock shows when nothing else runs there; the clock's time is shown beside it.
Compilation is over before the first round. That every step made an update is checked.

This program's step grows with the number of different states in a batch, so it is timed at three ages, and the slowest
is the one compared. What is left unequal is to bsuite's favour: its replay is nearly empty; its target is the target
network's maximum instead of double DQN's; it acts by one member, where most strategies ask all of them.

The parts of a step are then timed one by one, and so is a step of a run that never updates.
"""

import importlib.util
import itertools
import math
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any, Literal, NamedTuple

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from benchmarks.results import Row, show, write
from bootdqn.cli.arguments import parse_command

ONE_THREAD = {
    "JAX_PLATFORMS": "cpu",
    "MKL_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}
PEER_PACKAGES = {"bsuite": "bsuite", "jax": "jax", "haiku": "dm-haiku", "optax": "optax", "rlax": "rlax"}
INSTALL = "run `make bench`, which installs what the comparison needs"
LEARNING_STARTS, REPLAY_CAPACITY = 128, 10_000
MATCHED_LIMITS = {10: 20, 30: 30}
"""How many times as long bsuite's matched agent should take, at each size."""
ROUNDS_OF_PARTS = 15
LIMITS: dict[tuple[str, int | None], float] = {
    ("select an action", None): 25,
    ("Q-values of one state", None): 12,
    ("sample a batch", None): 20,
    ("update", 10): 220,
    ("update", 30): 550,
    ("step without updates", 10): 1e6 / 12_000,
}
"""Microseconds that a part may take at a size, or at all of them."""

Run = Callable[[int], int]
"""Runs so many episodes of N steps to the end, and returns how many updates that made."""


@dataclass(frozen=True)
class Options:
    """Time a training step on DeepSea beside bsuite's Bootstrapped DQN, on one core."""

    sizes: tuple[int, ...] = (10, 30)
    """Sizes N of the grid."""
    rounds: int = 9
    """Turns of every contestant; the median over them counts."""
    steps: int = 150
    """Steps in a turn, rounded up to whole episodes."""
    strategy: str = "evoi:reduce=sum"
    """How this program acts; bsuite's agent follows the active member."""
    part_sizes: tuple[int, ...] = (10, 30, 50, 100)
    """Sizes N at which the parts of this program's step are timed."""
    json: Path | None = None
    """File for the rows of the tables, and the machine."""


class Contestant(NamedTuple):
    """One agent in its environment, to be built in a process of its own."""

    agent: str
    settings: str
    make: Callable[[], AbstractContextManager[Run]]
    start: int
    """Transitions before the first round, in whole episodes."""


class Turn(NamedTuple):
    """One round: seconds per step, by the processor's account and by the clock, and updates made."""

    processor: float
    clock: float
    updates: int


Results = dict[int, dict[str, list[Turn]]]
"""The turns of each contestant, at each size."""


def contestants(size: int, strategy: str) -> dict[str, Contestant]:
    """Return who is compared at one size, in the order of their turns; `ours` is this program's default engine."""
    start = LEARNING_STARTS + max(LEARNING_STARTS, 2 * size)
    compiled, autograd = partial(bootdqn, size, strategy, "auto"), partial(bootdqn, size, strategy, "autograd")
    default, matched = "default: prior, mask 1.0, target every 4", f"matched: no prior, mask 0.5, target every {size}"
    return {
        "ours": Contestant("bootdqn", f"{strategy}, replay nearly empty", compiled, start),
        "default": Contestant("bsuite", default, partial(bsuite, size, False), start),
        "matched": Contestant("bsuite", matched, partial(bsuite, size, True), start),
        "ours, older": Contestant("bootdqn", f"{strategy}, replay a fifth full", compiled, REPLAY_CAPACITY // 5),
        "ours, oldest": Contestant("bootdqn", f"{strategy}, replay full", compiled, REPLAY_CAPACITY),
        "autograd": Contestant("bootdqn", f"{strategy}, --engine autograd", autograd, start),
    }


@contextmanager
def bootdqn(size: int, strategy: str, engine: Literal["auto", "autograd"]) -> Iterator[Run]:
    """Train with this program's own loop and the paper's settings for DeepSea."""
    from bootdqn.config.defaults import DEEP_SEA
    from bootdqn.config.train import resolve
    from bootdqn.runs.threads import pinned_threads
    from bootdqn.training.loop import make_components, train

    env, actor = replace(DEEP_SEA.env, size=size), replace(DEEP_SEA.actor, strategy=strategy)
    config = resolve(
        replace(DEEP_SEA, env=env, actor=actor, learner=replace(DEEP_SEA.learner, update_every=1, engine=engine))
    )
    with pinned_threads(1):
        steps = train(config, make_components(config))
        yield lambda episodes: sum(len(step.updates) for step in itertools.islice(steps, episodes * size))


@contextmanager
def bsuite(size: int, matched: bool) -> Iterator[Run]:
    """Train bsuite's agent with bsuite's own loop: as it comes, or with the settings of the paper."""
    import jax
    import numpy as np
    from bsuite.baselines import experiment
    from bsuite.baselines.jax import boot_dqn
    from bsuite.environments.deep_sea import DeepSea

    np.random.seed(0)  # noqa: NPY002 - bsuite's agent draws from the global generator
    environment = DeepSea(size, mapping_seed=0)
    make_agent = matched_agent if matched else boot_dqn.default_agent
    agent = make_agent(environment.observation_spec(), environment.action_spec())

    def run(episodes: int) -> int:
        before = int(agent._ensemble[-1].step)
        experiment.run(agent, environment, episodes)
        jax.block_until_ready(agent._ensemble)  # JAX may return before the work is done
        return int(agent._ensemble[-1].step) - before

    yield run


def matched_agent(observations: Any, actions: Any) -> Any:
    """Return bsuite's agent for grids (N, N) with the paper's networks, masks and target period."""
    import haiku
    import optax
    from bsuite.baselines.jax.boot_dqn import BootstrappedDqn

    return BootstrappedDqn(
        observations,
        actions,
        network=lambda grid: haiku.nets.MLP([50, 50, actions.num_values])(haiku.Flatten()(grid)),
        num_ensemble=20,
        batch_size=128,
        discount=0.99,
        replay_capacity=REPLAY_CAPACITY,
        min_replay_size=LEARNING_STARTS,
        sgd_period=1,
        target_update_period=observations.shape[0],
        optimizer=optax.adam(1e-3),
        mask_prob=0.5,
        noise_scale=0.0,
        seed=0,
    )


def serve(calls: Connection, core: int | None, contestant: Contestant, size: int) -> None:
    """Build the contestant, then answer each number of episodes with a turn, or with the text of what went wrong."""
    if core is not None:
        os.sched_setaffinity(0, {core})
    try:
        with contestant.make() as run:
            while True:
                episodes = calls.recv()
                clock, processor = time.perf_counter(), time.process_time()
                updates = run(episodes)
                processor, clock = time.process_time() - processor, time.perf_counter() - clock
                calls.send(Turn(processor / (episodes * size), clock / (episodes * size), updates))
    except (EOFError, KeyboardInterrupt):
        pass  # the comparison was stopped
    except ImportError as error:
        calls.send(f"{error}; {INSTALL}")
    except Exception as error:
        calls.send(repr(error))


class ContestantError(Exception):
    """A contestant cannot take its turn: it raised an exception, or its process ended."""


@contextmanager
def child(contestant: Contestant, size: int, core: int | None) -> Iterator[Callable[[int], Turn]]:
    """Start the contestant's process, and give what calls it for so many episodes."""
    calls, theirs = multiprocessing.Pipe()
    spawn = multiprocessing.get_context("spawn")  # a new interpreter, whose libraries read ONE_THREAD as they load
    process = spawn.Process(target=serve, args=(theirs, core, contestant, size), daemon=True)

    def call(episodes: int) -> Turn:
        try:
            calls.send(episodes)
            answer: Turn | str = calls.recv()
        except (EOFError, OSError):
            process.join(10)
            answer = f"its process ended early (exit code {process.exitcode})"
        if isinstance(answer, str):
            raise ContestantError(f"{contestant.agent} ({contestant.settings}): {answer}")
        return answer

    process.start()
    theirs.close()
    try:
        yield call
    finally:
        process.terminate()
        process.join()


def measure(size: int, options: Options, core: int | None, tell: Callable[[str], None]) -> dict[str, list[Turn]]:
    """Return the turns of every contestant at one size; `tell` is called before each of them and each preparation."""
    entries, episodes = contestants(size, options.strategy), math.ceil(options.steps / size)
    turns: dict[str, list[Turn]] = {key: [] for key in entries}
    with ExitStack() as stack:
        calls = {key: stack.enter_context(child(entry, size, core)) for key, entry in entries.items()}
        for round_ in range(options.rounds + 1):  # the first one prepares
            for key in list(turns):
                tell(f"N={size}: round {round_} of {options.rounds}, {entries[key].agent}")
                try:
                    turn = calls[key](episodes if round_ else math.ceil(entries[key].start / size))
                except ContestantError as error:
                    if entries[key].agent == "bootdqn":
                        raise SystemExit(str(error)) from None
                    print(f"{error}; the comparison goes on without it", file=sys.stderr)
                    del turns[key]
                    continue
                if not round_:
                    continue
                turns[key].append(turn)
                if turn.updates != episodes * size:
                    raise SystemExit(f"{key}: {turn.updates} updates in {episodes * size} steps, so no whole steps")
    return turns


def measure_all(options: Options, core: int | None) -> Results:
    """Measure at every size, with a bar on the terminal that moves only between turns."""
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False) as progress:
        turns = len(options.sizes) * len(contestants(1, options.strategy)) * (options.rounds + 1)
        task = progress.add_task("", total=turns, completed=-1)

        def tell(text: str) -> None:
            progress.update(task, advance=1, description=text, refresh=True)

        return {size: measure(size, options, core, tell) for size in options.sizes}


def time_of(turns: list[Turn]) -> float:
    """Return the median processor time of a step."""
    return median(turn.processor for turn in turns)


def ratio(turns: dict[str, list[Turn]], key: str) -> float:
    """Return the time of `key` over this program's, at the age where that is slowest."""
    return time_of(turns[key]) / max(time_of(turns[ours]) for ours in turns if ours.startswith("ours"))


def table(options: Options, results: Results) -> Table:
    """Return the medians, one row a contestant."""
    shown = Table(title=f"One training step on DeepSea, median of {options.rounds} rounds")
    for heading in ("N", "agent", "settings", "transitions", "µs/step", "least - most", "clock", "steps/s", "ratio"):
        shown.add_column(heading, justify="left" if heading in ("agent", "settings") else "right", no_wrap=True)
    for size, turns in results.items():
        for key in turns:
            entry = contestants(size, options.strategy)[key]
            times = sorted(turn.processor * 1e6 for turn in turns[key])
            start = math.ceil(entry.start / size) * size
            end = start + options.rounds * math.ceil(options.steps / size) * size
            shown.add_row(
                str(size),
                entry.agent,
                entry.settings,
                f"{start:,} - {end:,}",
                f"{time_of(turns[key]) * 1e6:,.0f}",
                f"{times[0]:,.0f} - {times[-1]:,.0f}",
                f"{median(turn.clock for turn in turns[key]) * 1e6:,.0f}",
                f"{1 / time_of(turns[key]):,.0f}",
                f"{ratio(turns, key):.2f}",
            )
        shown.add_section()
    return shown


def last_line(results: Results) -> str:
    """Say how many times as long bsuite's agents take."""

    def ratios(key: str) -> str:
        return ", ".join(f"{ratio(turns, key):.1f}x at N={size}" for size, turns in results.items() if key in turns)

    return f"ratio to bsuite's default agent: {ratios('default')}; matched: {ratios('matched')}"


def parts(options: Options, core: int | None) -> list[Row]:
    """Return the processor time of each part of this program's step, with a fifth of the replay full."""
    context = multiprocessing.get_context("spawn")
    rows = []
    for size in options.part_sizes:
        ours, theirs = context.Pipe()
        process = context.Process(target=time_parts, args=(theirs, core, size, options.strategy), daemon=True)
        process.start()
        theirs.close()
        try:
            times: dict[str, float] = ours.recv()
        except EOFError:
            raise SystemExit(f"the process that times the parts at N={size} ended early") from None
        finally:
            process.join()
        for part, microseconds in times.items():
            limit = LIMITS.get((part, size)) or LIMITS.get((part, None))
            ratio = None if limit is None else microseconds / limit
            peer = "" if limit is None else f"{limit:,.0f} us"
            rows.append(
                Row(f"DeepSea N={size}: {part}", peer, microseconds, "us", ratio, None if ratio is None else "<= 1")
            )
    return rows


def time_parts(calls: Connection, core: int | None, size: int, strategy: str) -> None:
    """Send the microseconds of each part: the least of several rounds, since other work only adds to them."""
    import numpy as np

    from bootdqn.config.defaults import DEEP_SEA
    from bootdqn.config.train import resolve
    from bootdqn.runs.threads import pinned_threads
    from bootdqn.training.loop import make_components, train

    if core is not None:
        os.sched_setaffinity(0, {core})

    def least(run: Callable[[], object], calls: int) -> float:
        def once() -> float:
            start = time.process_time()
            for _ in range(calls):
                run()
            return (time.process_time() - start) / calls * 1e6

        return min(once() for _ in range(ROUNDS_OF_PARTS))

    def started(**settings: Any) -> tuple[Any, Iterator[object]]:
        env, actor = replace(DEEP_SEA.env, size=size), replace(DEEP_SEA.actor, strategy=strategy)
        config = resolve(
            replace(DEEP_SEA, env=env, actor=actor, learner=replace(DEEP_SEA.learner, **{"update_every": 1} | settings))
        )
        components = make_components(config)
        steps = train(config, components)
        for _ in range(REPLAY_CAPACITY // 5):
            next(steps)
        return components, steps

    with pinned_threads(1):
        components, steps = started()
        learner, replay, rng = components.learner, components.replay, np.random.default_rng(0)
        observations, batches = components.loop.observations, [replay.sample(128, rng) for _ in range(64)]
        turns = itertools.cycle(range(64))

        def update() -> None:
            number = next(turns)
            learner.update(batches[number])
            if number % size == 0:
                learner.update_target()

        q, select = learner.q_values(observations)[0], components.actor._strategy.select
        times = {
            "whole step": least(lambda: next(steps), 256),
            "select an action": least(lambda: select(q, 3, rng), 512),
            "Q-values of one state": least(lambda: learner.q_values(observations), 512),
            "sample a batch": least(lambda: replay.sample(128, rng), 512),
            "update": least(update, 128),
        }
        _, acting = started(update_every=10**9)
        calls.send(times | {"step without updates": least(lambda: next(acting), 512)})


def rows_of(results: Results) -> list[Row]:
    """Return the ratios to bsuite's agents."""
    return [
        Row(
            f"DeepSea N={size}: whole step beside bsuite's",
            f"{key} boot_dqn",
            max(time_of(turns[ours]) for ours in turns if ours.startswith("ours")) * 1e6,
            "us",
            ratio(turns, key),
            f">= {MATCHED_LIMITS[size]}" if key == "matched" and size in MATCHED_LIMITS else None,
        )
        for size, turns in results.items()
        for key in ("default", "matched")
        if key in turns
    ]


def checked(options: Options) -> Options:
    """Return `options` with the strategy written out, or stop and say what is wrong."""
    if missing := [module for module in PEER_PACKAGES if importlib.util.find_spec(module) is None]:
        raise SystemExit(f"{', '.join(missing)} not found; {INSTALL}")
    from bootdqn.exploration.registry import format_strategy, parse_strategy

    if not options.sizes or min(options.rounds, options.steps, *options.sizes) < 1:
        raise SystemExit("--sizes, --rounds and --steps must be at least 1, and there must be a size")
    try:
        return replace(options, strategy=format_strategy(parse_strategy(options.strategy)))
    except ValueError as error:
        raise SystemExit(f"--strategy: {error}") from None


def main() -> None:
    """Measure, and print the table and the ratios."""
    options = checked(parse_command(Options, sys.argv[1:], "benchmarks/deepsea.py"))
    os.environ.update(ONE_THREAD)
    core = max(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    results = measure_all(options, core)
    console = Console()
    console.width = max(console.width, 150)  # a table in a file or a narrow window is better wide than cut
    console.print(table(options, results))
    where = "any core" if core is None else f"core {core}"
    print(
        f"One thread on {where}. Processor time; clock: µs/step by the clock. Ratio: to the slowest of bootdqn's ages."
    )
    rows = [*rows_of(results), *parts(options, core)]
    show("DeepSea", rows)
    write(options.json, rows)
    print(last_line(results))


if __name__ == "__main__":
    main()
