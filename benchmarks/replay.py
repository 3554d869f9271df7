"""Memory and time of the replay of compressed frames, beside the same replay of frames as they are.

An Atari game is played at random with Gymnasium's own wrappers. Every step goes into two replays in turn: this
program's, and one whose frames lie uncompressed in one array. Both keep a frame once and rebuild the stacks, so they
differ in compression alone. Batches are then drawn from both, round by round, and must be the same byte for byte.
Times are processor time, which is what a clock shows when nothing else runs on the core. The C library is told to keep
the memory of a batch for the next one: whether it does by itself is chance, and new memory costs more than the work.

Each game has a process of its own, so that the growth of that process is a check on what the replays say they take.
The array of plain frames is filled before play begins; what the process grows by during play is the compressed replay,
and the little that the emulator and the plain replay's own arrays add.

Prioritized sampling is measured on its own, without frames: a batch and its new priorities from 10,000 transitions and
from a million must cost about the same.

The third row is computed, not run: the arrays that Stable-Baselines3's `ReplayBuffer` makes by default, which keep
every stack whole and every next stack again (uint8), an int64 action, and float32 reward, end and time-out.
"""

import gc
import importlib.util
import multiprocessing
import os
import sys
import time
from array import array
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.results import Row, write
from bootdqn.cli.arguments import parse_command
from bootdqn.common.specs import Array, Batch, BoxSpec, DiscreteSpec
from bootdqn.replay.buffer import ReplayBuffer

INSTALL = "pip install -c constraints.txt -e '.[atari]'"
NUM_HEADS, DISCOUNT, BATCH_SIZE = 10, 0.99, 32
STACK, SIDE = 4, 84
SPEC = BoxSpec((STACK, SIDE, SIDE), np.dtype(np.uint8), stacked=True)
GOAL_BYTES = 1200
"""Bytes a transition at which a million of them fit into 1.2 GB."""
PEER_BYTES = 2 * STACK * SIDE * SIDE + 8 + 3 * 4
"""Bytes a transition of Stable-Baselines3's default replay buffer."""
OURS, PLAIN = "bootdqn, compressed", "bootdqn, plain frames"
PRIORITIZED_SIZES = (10_000, 100_000, 1_000_000)

KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": "100000000", "MALLOC_TRIM_THRESHOLD_": "100000000"}
"""What tells glibc, as a process starts, not to give memory back."""

Seconds: TypeAlias = "array[float]"
"""One number a measurement; a list of them would show in the growth of the process."""


@dataclass(frozen=True)
class Options:
    """Measure memory and time of the replay on Atari frames, compressed and not."""

    games: tuple[str, ...] = ("Gravitar", "Hero")
    """Games, as the Arcade Learning Environment spells them."""
    transitions: int = 20_000
    """Steps of random play in each game, all of which the replays hold."""
    rounds: int = 20
    """Turns of each replay at drawing batches."""
    batches: int = 50
    """Batches of 32 in a turn; the median over all batches counts."""
    seed: int = 0
    """Seed of the play and of the draws."""
    json: Path | None = None
    """File for the rows and the machine."""


@dataclass(frozen=True)
class Measured:
    """One replay in one game."""

    bytes_per_transition: float
    """What the replay says it takes, for each transition that can be sampled."""
    grown_per_transition: float | None
    """What the process grew by, for each of them; None where the system does not tell."""
    sample_us: float
    """Median processor time of a batch of 32."""
    add_us: float
    """Median processor time of storing a step."""


class PlainFrames:
    """The store of frames without compression: each frame once, in one array."""

    def __init__(self, num_slots: int) -> None:
        self.history = STACK - 1
        self._frames = np.full((num_slots, SIDE, SIDE), 255, np.uint8)  # writes to all of its memory

    def write(self, slot: int, observation: Any) -> None:
        """Keep the newest frame of the stack `observation` in `slot`."""
        self._frames[slot] = observation[-1]

    def read(self, slots: Array) -> Array:
        """Return the stacks (B, stack, height, width) of `slots` (B, stack)."""
        stacks: Array = self._frames[slots]
        return stacks

    def get_range(self, start: int, stop: int) -> dict[str, Array]:
        """Return a view of the frames."""
        return {"frames": self._frames[start:stop]}

    def set_range(self, start: int, stop: int, arrays: dict[str, Array]) -> None:
        """Put back what `get_range` returned."""
        self._frames[start:stop] = arrays["frames"]

    @property
    def nbytes(self) -> int:
        """Memory that the frames take."""
        return self._frames.nbytes

    @property
    def expected_nbytes(self) -> int:
        """Memory that they will take when every slot is written: the array is there from the start."""
        return self._frames.nbytes


def make_replay(transitions: int, *, compressed: bool) -> ReplayBuffer:
    """Return an empty replay for so many transitions."""
    replay = ReplayBuffer(SPEC, capacity=transitions, num_heads=NUM_HEADS, discount=DISCOUNT)
    if not compressed:
        replay._store = PlainFrames(len(replay._action))
    return replay


def make_env(game: str) -> Any:
    """Return the game as the paper plays it: four frames a step, greyscale, 84x84, stacks of four."""
    import ale_py
    import gymnasium
    from gymnasium.wrappers import AtariPreprocessing, FrameStackObservation

    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)  # no banner
    gymnasium.register_envs(ale_py)
    plain = gymnasium.make(f"ALE/{game}-v5", frameskip=1, repeat_action_probability=0.0, full_action_space=False)
    return FrameStackObservation(AtariPreprocessing(plain, frame_skip=4), STACK, padding_type="reset")


def play(env: Any, replays: Sequence[ReplayBuffer], steps: Iterable[int], seed: int) -> list[Seconds]:
    """Store steps of random play in every replay, and return each one's processor time for every step, in seconds."""
    rng = np.random.default_rng(seed)
    env.action_space.seed(seed)
    seconds: list[Seconds] = [array("d") for _ in replays]
    ended = True
    for step in steps:
        if ended:
            observation, _ = env.reset(seed=seed if step == 0 else None)
            for replay in replays:
                replay.start_episode(0, observation)
        action = env.action_space.sample()
        observation, reward, terminated, truncated, _ = env.step(action)
        mask = rng.random(NUM_HEADS) < 0.5
        for turn in range(len(replays)):
            which = (step + turn) % len(replays)  # who goes second finds the frame in the processor's cache
            start = time.thread_time()
            replays[which].add(0, action, reward, observation, mask, terminated=terminated, truncated=truncated)
            seconds[which].append(time.thread_time() - start)
        ended = terminated or truncated
    return seconds


def draw(replays: Sequence[ReplayBuffer], rounds: Iterable[int], batches: int, seed: int) -> list[Seconds]:
    """Draw batches from every replay in turn, and return each one's processor time for every batch, in seconds."""
    rngs = [np.random.default_rng(seed) for _ in replays]
    seconds: list[Seconds] = [array("d") for _ in replays]
    for _ in rounds:
        for replay, rng, times in zip(replays, rngs, seconds, strict=True):
            for _ in range(batches):
                start = time.thread_time()
                batch = replay.sample(BATCH_SIZE, rng)
                times.append(time.thread_time() - start)
                del batch
        check_same([replay.sample(BATCH_SIZE, rng) for replay, rng in zip(replays, rngs, strict=True)])
    return seconds


def check_same(batches: Sequence[Batch]) -> None:
    """Stop if the replays do not give the same batch, byte for byte."""
    first, second = batches
    bootstrapped = first.discount > 0
    next_observations = [batch.next_observation[bootstrapped] for batch in batches]
    fields = [*zip(first, second, strict=True)]
    del fields[Batch._fields.index("next_observation")]
    if not all(np.array_equal(one, other) for one, other in [*fields, next_observations]):
        raise SystemExit("the compressed replay and the plain one gave different batches: compression is not lossless")


def resident_bytes() -> int | None:
    """Return the memory this process occupies, where the system tells."""
    gc.collect()
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return None


def measure(game: str, options: Options) -> dict[str, Measured]:
    """Play one game into both replays, then draw from them."""
    console = Console(stderr=True)

    def shown(count: int, what: str) -> Iterable[int]:
        hidden = not console.is_terminal
        return track(range(count), f"{game}: {what}", console=console, transient=True, disable=hidden)

    env = make_env(game)
    play(env, [make_replay(100, compressed=flag) for flag in (True, False)], range(200), options.seed)
    before = resident_bytes()
    plain = make_replay(options.transitions, compressed=False)
    between = resident_bytes()
    ours = make_replay(options.transitions, compressed=True)
    replays = {OURS: ours, PLAIN: plain}
    add = play(env, list(replays.values()), shown(options.transitions, "playing"), options.seed)
    after = resident_bytes()
    sample = draw(list(replays.values()), shown(options.rounds, "drawing"), options.batches, options.seed)
    env.close()
    grown = (None, None) if before is None or between is None or after is None else (after - between, between - before)
    return {
        name: Measured(
            bytes_per_transition=replay.nbytes / len(replay),
            grown_per_transition=None if growth is None else growth / len(replay),
            sample_us=median(sample_seconds) * 1e6,
            add_us=median(add_seconds) * 1e6,
        )
        for (name, replay), growth, sample_seconds, add_seconds in zip(replays.items(), grown, sample, add, strict=True)
    }


Results = dict[str, dict[str, Measured]]
"""What was measured in each game of each replay."""


def measure_all(options: Options) -> Results:
    """Measure every game, one after the other, each in a new process."""
    results = {}
    for game in options.games:
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
            try:
                results[game] = process.submit(measure, game, options).result()
            except BrokenProcessPool:
                raise SystemExit(
                    f"{game}: its process ended early; with too little memory, lower --transitions"
                ) from None
    return results


def measure_prioritized(options: Options) -> dict[int, float]:
    """Return the median processor time, in microseconds, of a prioritized batch and its new priorities, by size."""
    mask, rng = np.ones(NUM_HEADS, np.bool_), np.random.default_rng(options.seed)
    replays, seconds = {}, {size: array("d") for size in PRIORITIZED_SIZES}
    for size in PRIORITIZED_SIZES:
        replay = ReplayBuffer(DiscreteSpec(2), capacity=size, num_heads=NUM_HEADS, discount=DISCOUNT, alpha=0.6)
        replay.start_episode(0, 0)
        for _ in range(size):
            replay.add(0, 0, 0.0, 0, mask, terminated=False, truncated=False)
        replays[size] = replay
    for _ in range(options.rounds):
        for size, replay in replays.items():
            for _ in range(options.batches):
                error = rng.random(BATCH_SIZE, np.float32)
                start = time.thread_time()
                batch = replay.sample(BATCH_SIZE, rng, beta=0.4)
                replay.update_priorities(batch.slot, error)
                seconds[size].append(time.thread_time() - start)
    return {size: median(times) * 1e6 for size, times in seconds.items()}


def table(options: Options, results: Results) -> Table:
    """Return one row a replay and game."""
    shown = Table(title=f"Replay of {options.transitions:,} transitions of random play")
    headings = ("game", "replay", "bytes/transition", "process grew by", "GB a million", "µs/batch of 32", "µs/add")
    for heading in headings:
        shown.add_column(heading, justify="left" if heading in ("game", "replay") else "right", no_wrap=True)
    for game, replays in results.items():
        for name, row in replays.items():
            shown.add_row(
                game,
                name,
                f"{row.bytes_per_transition:,.0f}",
                "?" if row.grown_per_transition is None else f"{row.grown_per_transition:,.0f}",
                f"{row.bytes_per_transition / 1e3:.2f}",
                f"{row.sample_us:,.0f}",
                f"{row.add_us:.1f}",
            )
        peer = ("Stable-Baselines3, computed", f"{PEER_BYTES:,}", "", f"{PEER_BYTES / 1e3:.2f}", "", "")
        shown.add_row(game, *peer)
        shown.add_section()
    return shown


def ratios(replays: dict[str, Measured]) -> dict[str, float]:
    """Return how much smaller this program's replay is, and how much longer it takes for it."""
    ours, plain = replays[OURS], replays[PLAIN]
    return {
        "memory, Stable-Baselines3 / ours": PEER_BYTES / ours.bytes_per_transition,
        "memory, plain / ours": plain.bytes_per_transition / ours.bytes_per_transition,
        "batch, ours / plain": ours.sample_us / plain.sample_us,
        "add, ours / plain": ours.add_us / plain.add_us,
    }


def last_lines(results: Results) -> str:
    """Say whether the goal is met, and the ratios, one line a game."""
    lines = []
    for game, replays in results.items():
        size = replays[OURS].bytes_per_transition
        verdict = "met" if size <= GOAL_BYTES else "missed"
        lines.append(f"{game}: goal of {GOAL_BYTES:,} bytes a transition {verdict} ({size:,.0f})")
    width = max(map(len, results))
    for game, replays in results.items():
        lines.append(f"ratios, {game:{width}}  " + "; ".join(f"{k}: {v:5.1f}x" for k, v in ratios(replays).items()))
    return "\n".join(lines)


def rows(results: Results, prioritized: dict[int, float]) -> list[Row]:
    """Return the rows of all comparisons."""
    found = []
    for game, replays in results.items():
        size, compared = replays[OURS].bytes_per_transition, ratios(replays)
        memory, limit = compared["memory, Stable-Baselines3 / ours"], f">= {PEER_BYTES / GOAL_BYTES:.1f}"
        found += [
            Row(f"Replay of {game}, memory", "Stable-Baselines3, computed", size, "bytes/transition", memory, limit),
            Row(f"Replay of {game}, batch", PLAIN, replays[OURS].sample_us, "us", compared["batch, ours / plain"]),
            Row(f"Replay of {game}, add", PLAIN, replays[OURS].add_us, "us", compared["add, ours / plain"]),
        ]
    smallest = min(prioritized)
    for size, taken in prioritized.items():
        name, limit = f"Prioritized batch, {size:,} transitions", "<= 1.5" if size == max(prioritized) else None
        found.append(Row(name, f"{smallest:,} transitions", taken, "us", taken / prioritized[smallest], limit))
    return found


def checked(options: Options) -> Options:
    """Return `options`, or stop and say what is wrong."""
    packages = {"ale_py": "ale-py", "cv2": "opencv-python-headless"}
    if missing := [name for module, name in packages.items() if importlib.util.find_spec(module) is None]:
        raise SystemExit(f"{' and '.join(missing)} not found: {INSTALL}")
    if not options.games or min(options.transitions, options.rounds, options.batches) < 1:
        raise SystemExit("--transitions, --rounds and --batches must be at least 1, and there must be a game")
    import ale_py
    import gymnasium

    gymnasium.register_envs(ale_py)
    for game in options.games:
        try:
            gymnasium.spec(f"ALE/{game}-v5")
        except gymnasium.error.Error as error:
            raise SystemExit(f"--games: no game {game!r} ({error})") from None
    return options


def main() -> None:
    """Measure, and print the table and the ratios."""
    options = checked(parse_command(Options, sys.argv[1:], "python -m benchmarks.replay"))
    os.environ.update(KEEP_MEMORY)
    results = measure_all(options)
    console = Console()
    console.width = max(console.width, 130)  # a table in a file or a narrow window is better wide than cut
    console.print(table(options, results))
    print("Median processor times, one thread; the batches of both replays were the same byte for byte.")
    prioritized = measure_prioritized(options)
    costs = ", ".join(f"{taken:.0f} us from {size:,}" for size, taken in prioritized.items())
    print(f"A prioritized batch of {BATCH_SIZE} and its new priorities: {costs} transitions")
    write(options.json, rows(results, prioritized))
    print(last_lines(results))


if __name__ == "__main__":
    main()
