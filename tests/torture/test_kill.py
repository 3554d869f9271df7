"""DeepSea, killed repeatedly, often while it writes a checkpoint, has the results of a run never killed."""

import contextlib
import os
import random
import signal
import time
from pathlib import Path

from bootdqn.runs.directory import RunDirectory
from torture.legs import end_leg, results, start_leg, train_unbroken

SETTINGS = {
    "environment": "deep-sea",
    "update_every": 1,
    "size": 10,
    "deterministic": False,
    "stop_when_solved": False,
    "num_heads": 10,
    "hidden_sizes": [32, 32],
    "batch_size": 32,
    "replay_capacity": 6000,
    "log_every": 50,
}
SAVING = {"checkpoint_every_steps": 100}
"""Not by the clock: on a fast, quiet machine a run would end before it had a second checkpoint."""
POLL_SECONDS = 0.0005
LONGEST_PAUSE_SECONDS = 0.02
LONGEST_PAUSE_BETWEEN_CHECKPOINTS_SECONDS = 0.45
FEWEST_WHILE_WRITING = 0.3


def newest_step(path):
    """Return the step of the newest checkpoint that is complete; -1 if there is none or the run needs none."""
    if RunDirectory(path).summary.exists():  # it was killed at its end, before it had removed its checkpoints
        return -1
    checkpoints = RunDirectory(path).checkpoints
    return max((int(directory.name.removeprefix("step-")) for directory in checkpoints.glob("step-*")), default=-1)


def is_writing(path):
    """Return whether a checkpoint, or a segment for one, is half written."""
    directory = RunDirectory(path).checkpoints
    with contextlib.suppress(FileNotFoundError):  # a run at its end removes them
        return any(path.suffix == ".part" for place in (directory, directory / "segments") for path in place.iterdir())
    return False


def freeze(process):
    """Halt the process where it is, and return once it stands still; False if it has ended."""
    with contextlib.suppress(ProcessLookupError, FileNotFoundError):
        os.kill(process.pid, signal.SIGSTOP)
        while (state := Path(f"/proc/{process.pid}/stat").read_text(encoding="ascii").rsplit(") ")[1][0]) not in "ZX":
            if state == "T":
                return True
    return False


def kill_after_a_new_checkpoint(process, path, rng, *, while_writing):
    """Kill the process; return whether it was writing then, or None if it had ended before."""
    before = newest_step(path)
    while newest_step(path) <= before:
        if not process.is_alive():
            return None
        time.sleep(POLL_SECONDS)
    pause = rng.uniform(0, LONGEST_PAUSE_SECONDS if while_writing else LONGEST_PAUSE_BETWEEN_CHECKPOINTS_SECONDS)
    while process.is_alive():
        if while_writing and not is_writing(path):
            time.sleep(POLL_SECONDS)
            continue
        time.sleep(pause)
        if not freeze(process):
            return None
        writing = is_writing(path)
        if writing or not while_writing:
            process.kill()
            return writing
        os.kill(process.pid, signal.SIGCONT)
        pause /= 2
    return None


def test_a_run_killed_repeatedly_has_the_results_of_one_never_killed(tmp_path, sized):
    settings, wanted = SETTINGS | {"max_episodes": sized(600, 2000)}, sized(3, 100)
    expected = train_unbroken(settings, tmp_path / "unbroken")
    rng = random.Random(7)
    kills, while_writing, runs = 0, 0, 0
    while kills < wanted:
        path, newest = tmp_path / f"killed-{runs}", -1
        runs += 1
        assert runs <= wanted, "runs end before they can be killed"
        while True:
            process = start_leg(settings, path, saving=SAVING)
            writing = None
            if kills < wanted:
                writing = kill_after_a_new_checkpoint(process, path, rng, while_writing=kills % 3 != 2)
            leg = end_leg(process)
            assert (leg.error, leg.warned) == (None, [])
            assert (-1 if leg.resumed_from is None else leg.resumed_from) == newest
            if writing is None:
                break
            newest = newest_step(path)
            kills, while_writing = kills + 1, while_writing + writing
        assert leg.exit_code == 0
        assert results(path) == expected
    print(f"{kills} kills of {runs} runs, {while_writing} while a checkpoint was being written")
    assert while_writing >= FEWEST_WHILE_WRITING * kills
