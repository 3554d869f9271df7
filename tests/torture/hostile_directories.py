"""Run directories that somebody made to do harm: each a change of a good one, with files beside it to be left alone."""

import hashlib
import json
import os
import shutil
import stat
import struct
import time
from functools import partial

import numpy as np

from bootdqn.common.tensor_files import read_tensors_and_metadata, write_tensors
from bootdqn.runs.directory import RunDirectory

NAME = "size-3/greedy/seed-0"
"""Where the demo and a sweep have the run."""
ENDLESS = 2**36


class Place:
    """A copy of a run directory to be changed, and beside it files that no command may touch."""

    def __init__(self, path, base):
        """Copy the run directory `base` twice: to be changed, and to be linked to."""
        self.out, self.canary = path / "runs", path / "canary"
        self.run, self.like = RunDirectory(self.out / NAME), RunDirectory(self.canary / "run")
        for copy in (self.run.path, self.like.path):
            shutil.copytree(base, copy)
        (self.canary / "file").write_text('{"kind": "episode", "episode": 1, "step": 3}\n' * 9)
        for name in (
            "thesis.txt",
            "step-000000000099.safetensors",
            f"{'0' * 64}.safetensors",
            "step-000000000000/a.txt",
        ):
            (self.canary / "directory" / name).parent.mkdir(parents=True, exist_ok=True)
            (self.canary / "directory" / name).write_text("years of work")

    def like_of(self, path):
        """Return what is at the same place in the run directory that is to be left alone, made if it is missing."""
        like = self.like.path / path.relative_to(self.run.path)
        if not like.exists():
            like.touch() if path.suffix else like.mkdir()
        return like

    def digest(self):
        """Return a digest of everything beside the run directory."""
        total = hashlib.sha256()
        for entry in sorted([self.canary, *self.canary.rglob("*")]):
            found = entry.lstat()
            total.update(f"{entry} {found.st_mode} {found.st_size} {found.st_mtime_ns}".encode())
            total.update(entry.read_bytes() if entry.is_file() else b"")
        return total.hexdigest()


def removed(path):
    """Remove a file or a directory, and return where it was."""
    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
    path.parent.mkdir(exist_ok=True)
    return path


def link(path, target):
    removed(path).symlink_to(target)


def grow(path, size=ENDLESS):
    path.touch()
    os.truncate(path, size)


def rewrite(path, **changes):
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


INSTEAD_OF_A_FILE = {
    "a named pipe": lambda _, path: os.mkfifo(removed(path)),
    "a directory": lambda _, path: removed(path).mkdir(),
    "a socket": lambda _, path: os.mknod(removed(path), stat.S_IFSOCK | 0o644),
    "a link to a file": lambda place, path: link(path, place.canary / "file"),
    "a link to its like": lambda place, path: link(path, place.like_of(path)),
    "a link to /dev/zero": lambda _, path: link(path, "/dev/zero"),
    "a link to nowhere": lambda place, path: link(path, place.canary / "nowhere"),
    "a link to itself": lambda _, path: link(path, path.name),
    "a second name of a file": lambda place, path: os.link(place.canary / "file", removed(path)),
    "a second name of its like": lambda place, path: os.link(place.like_of(path), removed(path)),
    "64 GiB of nothing": lambda _, path: grow(path),
    "nothing": lambda _, path: path.write_bytes(b""),
    "rubbish": lambda _, path: path.write_bytes(b"\xff\x00\x80" * 99),
}  # fmt: skip
FILES = ("config", "provenance", "metrics", "timing", "weights", "lock", "summary")
INSTEAD_OF_A_DIRECTORY = {
    "a link to another": lambda place, path: link(path, place.canary / "directory"),
    "a link to its like": lambda place, path: link(path, place.like_of(path)),
    "a link to /": lambda _, path: link(path, "/"),
    "a file": lambda _, path: removed(path).write_text("not a directory"),
    "a named pipe": lambda _, path: os.mkfifo(removed(path)),
}  # fmt: skip
DIRECTORIES = ("checkpoints", "checkpoints/segments", "snapshots", "tensorboard", "wandb")


def nested(depth):
    return json.loads("[" * depth + "]" * depth)


BAD_VALUES = {
    "an integer of 400 digits": 10**400,
    "1.7e308": 1.7e308,
    "a number that is none": float("nan"),
    "lists nested 900 deep": nested(900),
    "lists nested 31 deep": nested(31),
    "half a character": "\ud800",
    "a NUL": "\0",
    "a formula": r"$\frac{$",
    "escapes": "\x1b]0;owned\x07\x1b[2J\r\n",
    "a format": "{0.nothing}{:>400000000}",
    "10 MB": "x" * 10**7,
    "markup": "</script><script>alert(1)</script>",
    "a way out": "../../../canary/run",
    "null": None,
    "a mapping": {"a": {"b": 1}},
}


def bad_setting(name, value, place):
    rewrite(place.run.config, **{name: value})


def bad_weights(change, place):
    arrays, metadata = read_tensors_and_metadata(place.run.weights)
    place.run.weights.unlink()
    write_tensors(place.run.weights, {name: change(array) for name, array in arrays.items()}, metadata)


def huge_header(place):
    place.run.weights.write_bytes(struct.pack("<Q", 2**40) + b"{")
    grow(place.run.weights)


def lock_of(place, seconds_ahead=0, **changes):
    holder = {"host": "elsewhere", "boot_id": "another", "pid": 7, "since": "2024-05-06T07:08:09+00:00", "token": "x"}
    place.run.lock.write_text(json.dumps(holder | changes))
    os.utime(place.run.lock, (time.time() + seconds_ahead,) * 2)


def foreign_names(place):
    """Put things of the user's own everywhere."""
    for name in (
        "notes",
        "checkpoints/notes",
        "checkpoints/segments/notes",
        "snapshots/notes",
        "checkpoints/old/manifest.json",
    ):
        (place.run.path / name).parent.mkdir(parents=True, exist_ok=True)
        (place.run.path / name).write_text("mine")


def links_of_our_own_names(place):
    """Put links where half-written files, segments, snapshots and checkpoints have theirs."""
    run, target = place.run, place.canary / "directory"
    names = (
        *(
            run.path / name
            for name in (".weights.safetensors.part", ".summary.json.0123abcd.part", f".now.{'0' * 32}.part")
        ),
        *(run.checkpoints / name for name in (f".{'0' * 32}.part", "step-000000000000", "step-999999999999")),
        *(run.checkpoints / "segments" / name for name in (f".{'0' * 32}.part", f"{'0' * 64}.safetensors")),
        *(run.snapshots / name for name in (".step-000000000100.safetensors.part", "step-000000000001.safetensors")),
    )
    for name in names:
        name.parent.mkdir(exist_ok=True, parents=True)
        link(name, target)


def nested_directories(place):
    path = place.run.path
    for _ in range(500):
        path = path / "deep"
        path.mkdir()


def _cases():
    for file in FILES:
        for kind, make in INSTEAD_OF_A_FILE.items():
            yield f"{file}: {kind}", lambda place, file=file, make=make: make(place, getattr(place.run, file))
    for name in DIRECTORIES:
        for kind, make in INSTEAD_OF_A_DIRECTORY.items():
            yield f"{name}: {kind}", lambda place, name=name, make=make: make(place, place.run.path / name)
    for kind, value in BAD_VALUES.items():
        for setting in ("strategy", "size", "environment", "{0.nothing}"):
            yield f"config {setting}: {kind}", partial(bad_setting, setting, value)
        yield (
            f"summary: {kind}",
            lambda place, value=value: place.run.summary.write_text(
                json.dumps({"status": "finished", "solved_at": value, "solved_at_strict": value, "episodes": value})
            ),
        )
        yield (
            f"metrics: {kind}",
            lambda place, value=value: place.run.metrics.write_text(
                json.dumps({"kind": "episode", "episode": value, "step": value, "bad": value}) + "\n"
            ),
        )
        yield (
            f"timing: {kind}",
            lambda place, value=value: place.run.timing.write_text(
                json.dumps({"seconds": value, "step": value}) + "\n"
            ),
        )
        yield (
            f"provenance: {kind}",
            lambda place, value=value: place.run.provenance.write_text(
                json.dumps({"id": value, "packages": {"torch": value}, "machine": value, "keep_checkpoint": value})
            ),
        )
    yield from {
        "weights: all NaN": partial(bad_weights, lambda array: np.full_like(array, np.nan)),
        "weights: floats called integers": partial(bad_weights, lambda array: array.view(np.int32)),
        "weights: a huge header": huge_header,
        "lock: dated in the future": partial(lock_of, seconds_ahead=10**8),
        "lock: of a host with escapes": partial(lock_of, host="\x1b[2J\n" * 99),
        "lock: of an endless process": partial(lock_of, pid=10**400),
        "names that are not ours": foreign_names,
        "links of our own names": links_of_our_own_names,
        "directories in directories": nested_directories,
        "report_files: a link": lambda place: link(place.out / "report_files", place.canary / "directory"),
        "figures: a link": lambda place: link(place.out / "report_files/figures", place.canary / "directory"),
        "report.html: a link": lambda place: link(place.out / "report.html", place.canary / "file"),
        "inspect.html: a link": lambda place: link(place.out / "inspect.html", place.canary / "file"),
        "report.html: a directory": lambda place: (place.out / "report.html").mkdir(),
        "report.html: a named pipe": lambda place: os.mkfifo(place.out / "report.html"),
    }.items()  # fmt: skip


CASES = dict(_cases())
"""What is wrong with a run directory, and what makes it so."""
