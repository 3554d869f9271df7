"""Whatever stands in a run directory, every command ends in good time with a line, and touches nothing beside it."""

import contextlib
import csv
import io
import itertools
import re
import resource
import shutil
import signal
import traceback
from collections import Counter
from pathlib import Path

import pytest

from torture.hostile_directories import CASES, Place
from torture.legs import FreshProcess, replaced, stopping_at, train

SWEEP = """
[base]
environment = "deep-sea"
update_every = 1
max_episodes = 40
snapshot_every = "log"
[axes]
size = [3]
strategy = ["greedy"]
seed = [0]
"""
TRAIN = [
    "train",
    "deep-sea",
    "--update-every",
    "1",
    "--size",
    "3",
    "--strategy",
    "greedy",
    "--max-episodes",
    "40",
    "--snapshot-every",
    "log",
]
DEMO = ["demo", "--sizes", "3", "--strategies", "greedy", "--num-seeds", "1", "--max-episodes", "40", "--workers", "1"]
LONGEST_SECONDS = 120
MOST_MEMORY = 2 * 2**30
"""Bytes that a command may take beside what the process has: a file without an end takes more."""
NOT_WRITTEN = ("report_files: a link", "figures: a link", "report.html: a directory")
"""Where a report cannot go."""
COMMANDS = {
    "train": lambda place: [*TRAIN, "--quiet", "--run-dir", place.run.path],
    "train --restart": lambda place: [*TRAIN, "--quiet", "--restart", "--run-dir", place.run.path],
    "resume": lambda place: ["resume", place.run.path, "--quiet"],
    "evaluate": lambda place: ["evaluate", place.run.path, "--episodes", "1"],
    "inspect": lambda place: [
        "inspect",
        place.run.path,
        "--weights",
        place.run.weights,
        "--out",
        place.out / "inspect.html",
    ],
    "report": lambda place: ["report", place.out],
    "sweep": lambda place: ["sweep", place.out.parent / "mine.toml", "--out", place.out, "--retries", "0"],
    "demo": lambda place: [*DEMO, "--out", place.out],
}


class HungError(BaseException):
    """A command took too long."""


def train_here(runs, out, _workers, _on_event, **options):
    """Train runs in this process, in place of the worker processes."""
    from bootdqn.runs.user_code_imports import imported_user_code
    from bootdqn.sweeps.executor import SweepExit
    from bootdqn.sweeps.local import RunSettings, train_planned_run

    settings = RunSettings(out, imported_user_code(), options["saving"])
    return SweepExit([train_planned_run(planned, settings) for planned in runs])


def run_commands(send, bases, path, tasks):
    """Send what came of each command on each directory: its exit code, what it printed, and what it touched."""
    from bootdqn.cli.main import run_command_line
    from bootdqn.runs import provenance
    from bootdqn.sweeps import run_sweep

    def hung(*_):
        raise HungError

    signal.signal(signal.SIGALRM, hung)
    (path / "mine.toml").write_text(SWEEP)
    with replaced(run_sweep, "run_locally", train_here), replaced(provenance, "source_of", lambda _: {}):
        for number, (case, command) in enumerate(tasks):
            here = path / "place"
            place = Place(here, bases[number % len(bases)])
            CASES[case](place)
            shutil.copy(path / "mine.toml", here)
            before, printed = place.digest(), io.StringIO()
            words = [str(word) for word in COMMANDS[command](place)]
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed), limited_memory():
                signal.alarm(LONGEST_SECONDS)
                try:
                    code = run_command_line(words)
                except BaseException:  # nothing may end the process
                    code = traceback.format_exc()
                signal.alarm(0)
            send((case, command, code, printed.getvalue(), place.digest() == before))
            shutil.rmtree(here)


@contextlib.contextmanager
def limited_memory():
    size = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (size + MOST_MEMORY, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


@pytest.fixture(scope="module")
def bases(tmp_path_factory):
    """A run directory in the middle of a run, and a finished one."""
    settings = {
        "environment": "deep-sea",
        "update_every": 1,
        "size": 3,
        "strategy": "greedy",
        "max_episodes": 40,
        "snapshot_every": "log",
    }
    path = tmp_path_factory.mktemp("bases")
    assert train(settings, path / "stopped", stopping_at(70), saving={"checkpoint_every_steps": 30}).exit_code == 143
    assert train(settings, path / "finished", saving={"keep_checkpoint": True}).exit_code == 0
    return path / "stopped", path / "finished"


def assert_harmless(outcomes, tasks):
    """Check that every command ended with a line or two, and changed no files but its own."""
    assert [(case, command) for case, command, *_ in outcomes] == tasks, "the process ended at the next one"
    for case, command, code, printed, untouched in outcomes:
        here = f"{command} on {case}: {code}\n{printed}"
        assert code in (0, 1, 2), here
        assert "Traceback" not in printed, here
        assert "not enough memory" not in printed, here
        assert "\x1b" not in printed, here
        assert untouched, here
        if code and command not in ("sweep", "demo"):  # which list their runs
            assert re.search("^bootdqn: ", printed, re.MULTILINE), here
        if command == "report":
            assert code == (2 if case in NOT_WRITTEN else 0), here
    counts = Counter(f"{command}: exit code {code}" for _, command, code, *_ in outcomes)
    cases = {case for case, *_ in outcomes}
    print(f"{len(outcomes)} commands on {len(cases)} directories; {dict(sorted(counts.items()))}")


@pytest.mark.parametrize(
    ("commands", "stride"),
    [(("train", "train --restart", "resume", "evaluate", "sweep"), 13), (("inspect", "report", "demo"), 149)],
    ids=["quick", "slow"],
)
def test_no_command_hangs_raises_or_touches_what_is_not_its_own(tmp_path, bases, sized, commands, stride):
    tasks = list(itertools.product(CASES, commands))[:: sized(stride, 1)]
    assert_harmless(FreshProcess(run_commands, bases, tmp_path, tasks).messages(), tasks)


def test_a_report_on_all_of_them_at_once_is_written(tmp_path, bases):
    ((code, printed, why),) = FreshProcess(report_on_all, bases, tmp_path).messages()
    assert code == 0, printed
    assert len(why) > len(CASES)
    unreadable = [reason for reason in why.values() if reason.startswith("unreadable: ")]
    assert len(unreadable) > len(CASES) / 4
    print(f"{len(unreadable)} unreadable of {len(CASES)} directories")


def report_on_all(send, bases, path):
    """Send the exit code of a report on every directory there is, what it printed, and why runs do not count."""
    from bootdqn.cli.main import run_command_line

    for number, (case, base) in enumerate(zip(CASES, itertools.cycle(bases), strict=False)):
        CASES[case](Place(path / "all" / str(number), base))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed), limited_memory():
        signal.alarm(LONGEST_SECONDS)
        code = run_command_line(["report", str(path / "all"), "--out", str(path / "report.html")])
        signal.alarm(0)
    with (path / "report_files/tables/not-counted.csv").open(encoding="utf-8") as file:
        send((code, printed.getvalue(), {row["run"]: row["why"] for row in csv.DictReader(file)}))
