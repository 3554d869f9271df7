"""A checkpoint with a single wrong bit, or a single missing one, is always detected."""

import os
import random
import shutil
from pathlib import Path

import numpy as np
import pytest

from bootdqn.common.errors import DamagedFileError
from bootdqn.runs.checkpoint import Checkpoints
from bootdqn.runs.directory import RunDirectory
from torture.legs import results, stopping_at, train, train_unbroken, with_segments_of
from torture.settings import DEEP_SEA

SETTINGS = DEEP_SEA | {"max_episodes": 80, "replay_capacity": 160}
SMALL_SEGMENTS = with_segments_of(24)
OLDER, NEWER = "step-000000000300", "step-000000000345"


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """A run with two checkpoints whose replay has wrapped: some segments belong to both, some to one alone."""
    path = tmp_path_factory.mktemp("damage") / "stopped"
    saving = {"checkpoint_every_steps": 150}
    assert train(SETTINGS, path, SMALL_SEGMENTS, stopping_at(345), saving=saving).exit_code == 143
    found = sorted(directory.name for directory in RunDirectory(path).checkpoints.glob("step-*"))
    assert found == [OLDER, NEWER]
    return path


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    return train_unbroken(SETTINGS, tmp_path_factory.mktemp("damage") / "unbroken", SMALL_SEGMENTS)


@pytest.fixture(scope="module")
def users(stopped):
    """The checkpoints that each file belongs to, by its name below the directory of checkpoints."""
    checkpoints = RunDirectory(stopped).checkpoints
    files = sorted(str(path.relative_to(checkpoints)) for path in checkpoints.rglob("*") if path.is_file())
    manifests = {name: (checkpoints / name / "manifest.json").read_text() for name in (OLDER, NEWER)}

    def owners(file):
        directory, name = file.split("/")
        digest = name.removesuffix(".safetensors")
        return (directory,) if directory in manifests else tuple(own for own in manifests if digest in manifests[own])

    by_file = {file: owners(file) for file in files}
    assert set(by_file.values()) == {(OLDER,), (NEWER,), (OLDER, NEWER)}
    return by_file


def truncate(content, rng):
    return content[: rng.randrange(len(content))]


def flip_a_bit(content, rng):
    place = rng.randrange(len(content))
    return content[:place] + bytes([content[place] ^ 1 << rng.randrange(8)]) + content[place + 1 :]


def append(content, rng):
    return content + rng.randbytes(1 + rng.randrange(100))


def load(path):
    """Return the complete checkpoint in a run's directory, and the warnings about the others."""
    lines = []
    return Checkpoints(RunDirectory(path).checkpoints).load(lines.append), lines


def assert_detected(path, belongs_to):
    """Check that a file of the checkpoints `belongs_to` is reported as damaged, and nothing else is."""
    if belongs_to == (NEWER,):
        loaded, (line,) = load(path)
        assert loaded.path.name == OLDER
        assert line.startswith(f"CHECKPOINT {NEWER} is damaged")
        assert line.endswith(f"resuming from {OLDER}")
        return
    if belongs_to == (OLDER,):
        loaded, lines = load(path)
        assert (loaded.path.name, lines) == (NEWER, [])
        (RunDirectory(path).checkpoints / NEWER / "manifest.json").unlink()
    with pytest.raises(DamagedFileError, match=f"(?s){NEWER} is damaged.*{OLDER} is damaged.*--restart"):
        load(path)


def damage_all(stopped, users, path, damages, rng):
    """Damage a copy of the run in each way of `damages`, one file after the other; return how many were detected."""
    files = list(users)
    rng.shuffle(files)
    for number, damage in enumerate(damages):
        shutil.copytree(stopped, path)
        file = RunDirectory(path).checkpoints / files[number % len(files)]
        before = file.read_bytes()
        file.write_bytes(damage(before, rng))
        assert file.read_bytes() != before
        assert_detected(path, users[files[number % len(files)]])
        shutil.rmtree(path)
    return len(files)


def test_every_truncation_and_every_flipped_bit_is_detected(tmp_path, stopped, users, sized):
    rng = random.Random(3)
    damages = rng.choices([truncate, flip_a_bit], k=sized(40, 240))
    num_files = damage_all(stopped, users, tmp_path / "damaged", damages, rng)
    kinds = ", ".join(f"{damages.count(kind)} {kind.__name__}" for kind in (truncate, flip_a_bit))
    print(f"{len(damages)} of {len(damages)} damages of {num_files} files found out: {kinds}")


def test_a_file_that_is_longer_empty_or_missing_is_detected(tmp_path, stopped, users):
    rng = random.Random(4)
    damage_all(stopped, users, tmp_path / "damaged", [append, lambda _content, _rng: b""] * len(users), rng)
    for file, belongs_to in users.items():
        shutil.copytree(stopped, tmp_path / "damaged")
        (RunDirectory(tmp_path / "damaged").checkpoints / file).unlink()
        assert_detected(tmp_path / "damaged", belongs_to)
        shutil.rmtree(tmp_path / "damaged")


def test_the_checkpoint_used_instead_is_the_one_that_was_written(tmp_path, stopped):
    shutil.copytree(stopped, tmp_path / "damaged")
    shutil.copytree(stopped, tmp_path / "without")
    (RunDirectory(tmp_path / "damaged").checkpoints / NEWER / "state.json").write_bytes(b"{}")
    shutil.rmtree(RunDirectory(tmp_path / "without").checkpoints / NEWER)
    (found, _), (expected, lines) = load(tmp_path / "damaged"), load(tmp_path / "without")
    assert lines == []
    assert found.state.values == expected.state.values
    assert found.segments == expected.segments
    for name, arrays in expected.state.arrays.items():
        np.testing.assert_equal(found.state.arrays[name], arrays)


def test_a_run_resumed_from_an_older_checkpoint_has_the_same_results(tmp_path, stopped, users, sized, expected):
    rng = random.Random(5)
    newer = [file for file, belongs_to in users.items() if belongs_to == (NEWER,)]
    for number in range(sized(1, 5)):
        path = tmp_path / f"damaged-{number}"
        shutil.copytree(stopped, path)
        file = RunDirectory(path).checkpoints / rng.choice(newer)
        file.write_bytes(flip_a_bit(file.read_bytes(), rng))
        leg = train(SETTINGS, path, SMALL_SEGMENTS)
        assert (leg.exit_code, leg.error, leg.resumed_from) == (0, None, int(OLDER.removeprefix("step-")))
        assert len(leg.warned) == 1
        assert f"CHECKPOINT {NEWER} is damaged" in leg.warned[0]
        assert results(path) == expected


def test_a_run_without_a_complete_checkpoint_is_an_error_and_left_unchanged(tmp_path, stopped):
    path = tmp_path / "damaged"
    shutil.copytree(stopped, path)
    for name in (OLDER, NEWER):
        (RunDirectory(path).checkpoints / name / "manifest.json").write_bytes(b"")
    before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    leg = train(SETTINGS, path)
    assert leg.error.startswith("DamagedFileError: no checkpoint in ")
    assert {file: file.read_bytes() for file in path.rglob("*") if file.is_file()} == before


def test_a_timing_file_cut_short_or_lost_costs_nothing_else(tmp_path, stopped, expected):
    for name, spoil in {"cut": lambda file: os.truncate(file, 1), "lost": Path.unlink}.items():
        shutil.copytree(stopped, tmp_path / name)
        spoil(RunDirectory(tmp_path / name).timing)
        leg = train(SETTINGS, tmp_path / name, SMALL_SEGMENTS)
        assert (leg.exit_code, leg.error, leg.warned) == (0, None, [])
        assert results(tmp_path / name) == expected


def test_truncated_metrics_are_detected(tmp_path, stopped):
    shutil.copytree(stopped, tmp_path / "cut")
    os.truncate(RunDirectory(tmp_path / "cut").metrics, 1)
    assert "has fewer bytes than its checkpoint recorded" in train(SETTINGS, tmp_path / "cut", SMALL_SEGMENTS).error
