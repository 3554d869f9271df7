"""Contestants that take turns, each in a process of its own: how a process manages memory is part of its speed."""

import contextlib
import itertools
import math
import multiprocessing
import os
import statistics
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection

Run = Callable[[int], object]
"""Takes so many steps."""
Make = Callable[[], Run]
"""Builds a contestant in its process."""


def stepwise(steps: Iterator[object]) -> Run:
    """Return a contestant that takes its steps from an endless iterator."""
    return lambda count: deque(itertools.islice(steps, count), maxlen=0)


def race(
    makers: dict[str, Make], *, rounds: int, steps: int, warm_up: int, threads: int = 1, plain: frozenset[str]
) -> dict[str, float]:
    """Return the seconds of a step of each contestant: the median over rounds in which they take turns.

    A peer whose process ends is reported, and the others go on; its seconds are NaN.

    On one thread it is processor time, which is what a clock shows when nothing else runs there; all contestants are
    held to one core. On several threads it is the clock's.

    Args:
        makers: The contestants by name.
        rounds: Turns of each.
        steps: Steps in a turn.
        warm_up: Steps before the first turn.
        threads: Threads of each.
        plain: The contestants that run with PyTorch as it comes. The others have the threads, the memory allocation and
            the floating-point modes of this program's runs.
    """
    os.environ["OMP_NUM_THREADS"] = str(threads)  # read by the libraries of the new processes
    context = multiprocessing.get_context("spawn")
    core = max(os.sched_getaffinity(0)) if threads == 1 and hasattr(os, "sched_getaffinity") else None
    connections: dict[str, Connection] = {}
    seconds: dict[str, list[float]] = {name: [] for name in makers}
    processes = []
    try:
        for name, make in makers.items():
            connections[name], theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, make, threads, core, name in plain), daemon=True)
            process.start()
            processes.append(process)
            theirs.close()
        for turn in range(rounds + 1):  # the first one prepares
            for name in list(connections):
                try:
                    elapsed = _call(name, connections[name], steps if turn else warm_up)
                except ContestantError as error:
                    if name not in plain:
                        raise SystemExit(str(error)) from None
                    print(f"{error}; the comparison goes on without it", file=sys.stderr)
                    del connections[name]
                else:
                    seconds[name] += [elapsed / steps] if turn else []
    finally:
        for process in processes:
            process.terminate()
            process.join()
    return {name: statistics.median(taken) if name in connections else math.nan for name, taken in seconds.items()}


class ContestantError(Exception):
    """A contestant cannot take its turn: it raised an exception, or its process ended."""


def _call(name: str, connection: Connection, steps: int) -> float:
    """Return the seconds of so many steps of a contestant."""
    try:
        connection.send(steps)
        answer: float | str = connection.recv()
    except (EOFError, OSError):
        answer = "its process ended early"
    if isinstance(answer, str):
        raise ContestantError(f"{name}: {answer}")
    return answer


def _serve(connection: Connection, make: Make, threads: int, core: int | None, plain: bool) -> None:
    """Build a contestant, then answer each number of steps with the seconds that they took."""
    if core is not None:
        os.sched_setaffinity(0, {core})
    import torch

    from bootdqn.runs.threads import pinned_threads

    torch.set_num_threads(threads)
    clock = time.process_time if threads == 1 else time.perf_counter
    try:
        with contextlib.nullcontext() if plain else pinned_threads(threads):
            run = make()
            while True:
                steps = connection.recv()
                start = clock()
                run(steps)
                connection.send(clock() - start)
    except (EOFError, KeyboardInterrupt):
        pass  # the comparison was stopped
    except Exception as error:
        connection.send(repr(error))
