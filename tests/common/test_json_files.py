"""Untrusted JSON: a value that could harm a reader is an error when the file is read."""

import json
import os

import pytest

from bootdqn.common import files
from bootdqn.common.errors import DamagedFileError
from bootdqn.common.files import CHECKPOINT, CONFIG, MAX_DEPTH, MAX_NUMBER, RECORD, parse_json_object
from bootdqn.runs.directory import RunDirectory


def nested(depth):
    return json.loads("[" * depth + "]" * depth)


REFUSED = {
    "a number of 400 digits": (10**400, "a number has 1,329 bits"),
    "one bit too many": (2**63, "a number has 64 bits"),
    "one bit too many below zero": (-(2**63), "a number has 64 bits"),
    "infinity": (float("inf"), "a number is inf"),
    "not a number": (float("nan"), "a number is nan"),
    "as large as a float can be": (1.7e308, r"a number is 1\.7e\+308"),
    "nested too deep": (nested(MAX_DEPTH), "nested more than 32 deep"),
    "nested 900 deep": (nested(900), "nested more than 32 deep"),
    "a text of ten million letters": ("x" * 10**7, "a text has 10,000,000 characters"),
    "half a character": ("a\ud800b", "a text contains NUL or unpaired surrogates"),
    "a NUL": ("a\0b", "a text contains NUL or unpaired surrogates"),
    "half a character in a name": ({"\udfff": 1}, "a text contains NUL or unpaired surrogates"),
    "a long name": ({"x" * 20_000: 1}, "a text has 20,000 characters"),
    "deep down": ([{"a": [10**30]}], "a number has 100 bits"),
}


@pytest.mark.parametrize(("value", "problem"), REFUSED.values(), ids=REFUSED)
def test_values_that_no_run_has_are_an_error_with_the_reason(value, problem):
    content = json.dumps({"before": 1, "setting": value}).encode()
    with pytest.raises(DamagedFileError, match=f"^here: .*{problem}"):
        parse_json_object(content, "here", RECORD)


@pytest.mark.parametrize(
    "value",
    [2**63 - 1, 1 - 2**63, MAX_NUMBER, -MAX_NUMBER, 5e-324, "ε 🎲\n", "x" * 10_000, nested(MAX_DEPTH - 1), None, True],
    ids=lambda value: str(value)[:20],
)
def test_values_that_a_run_may_have_are_read(value):
    assert parse_json_object(json.dumps({"setting": value}).encode(), "here", RECORD) == {"setting": value}


def test_the_state_of_a_random_stream_has_128_bits():
    content = json.dumps({"state": 2**128 - 1}).encode()
    assert parse_json_object(content, "here", CHECKPOINT) == {"state": 2**128 - 1}
    with pytest.raises(DamagedFileError, match="129 bits"):
        parse_json_object(json.dumps({"state": 2**128}).encode(), "here", CHECKPOINT)


@pytest.mark.parametrize("content", [b"", b"  \n", b"{", b"\xff", b"[]", b"NaN", b"[" * 100_000, b"9" * 5000])
def test_json_that_is_no_object_is_an_error(content):
    with pytest.raises(DamagedFileError, match=r"^here"):
        parse_json_object(content, "here", CONFIG)


@pytest.mark.parametrize(
    ("name", "value"),
    [("episodes", "many"), ("episodes", None), ("steps", 1.5), ("solved_at", True), ("status", 3), ("seconds", "x"),
     ("recent_return", []), ("error", {})],
)  # fmt: skip
def test_an_entry_of_a_summary_has_its_type(tmp_path, name, value):
    directory = RunDirectory(tmp_path)
    directory.summary.write_text(json.dumps({"status": "finished", name: value}))
    with pytest.raises(DamagedFileError, match=rf"summary\.json: {name} is "):
        directory.read_summary()


@pytest.mark.parametrize(
    ("name", "value"), [("hidden_sizes", [[1]]), ("env_options", {"a": 1}), ("strategy", [{}]), ("environment", [])]
)
def test_a_setting_is_a_value_or_a_list_of_values(tmp_path, name, value):
    directory = RunDirectory(tmp_path)
    directory.config.write_text(json.dumps({name: value}))
    with pytest.raises(DamagedFileError, match=rf"config\.json: {name} must be a string, .*, got"):
        directory.read_config()


def test_a_file_larger_than_its_kind_is_not_read(tmp_path):
    directory = RunDirectory(tmp_path)
    directory.config.write_text("{}")
    os.truncate(directory.config, 2**36)
    with pytest.raises(DamagedFileError, match=r"config\.json has 68,719,476,736 bytes, the limit is 262,144"):
        directory.read_config()


def test_a_file_without_an_end_of_line_is_not_read_whole(tmp_path):
    directory = RunDirectory(tmp_path)
    directory.metrics.write_text('{"kind": "episode"}\n')
    os.truncate(directory.metrics, 2**36)
    records = directory.read_metrics()
    assert next(records) == {"kind": "episode"}
    with pytest.raises(DamagedFileError, match="a line has more than"):
        next(records)
    with pytest.raises(DamagedFileError, match="a line has more than"):
        directory.last_metrics()


KINDS = {
    "a named pipe": os.mkfifo,
    "a directory": os.mkdir,
    "a symbolic link": lambda path: path.symlink_to("/dev/zero"),
    "a socket": lambda path: os.mknod(path, 0o140644),
}


@pytest.mark.parametrize(("kind", "make"), KINDS.items(), ids=KINDS)
def test_a_path_that_is_no_regular_file_is_named_and_not_opened(tmp_path, kind, make):
    directory = RunDirectory(tmp_path)
    reads = {
        directory.config: directory.read_config,
        directory.summary: directory.read_summary,
        directory.provenance: directory.read_provenance,
        directory.metrics: lambda: list(directory.read_metrics()),
        directory.timing: directory.last_timing,
    }
    for path, read in reads.items():
        make(path)
        with pytest.raises(DamagedFileError, match=f"{path.name} is {kind}, not a file; remove it"):
            read()


@pytest.mark.parametrize("block", [1, 7, 2**16])
def test_lines_are_the_same_from_either_end(tmp_path, monkeypatch, block):
    monkeypatch.setattr(files, "BLOCK", block)
    for content in (b"", b"\n", b"one", b"one\n", b"one\ntwo\nthr", b"\n\na\n\n"):
        (tmp_path / "file").write_bytes(content)
        forwards = list(files.read_lines(tmp_path / "file", 100))
        backwards = list(files.read_lines_backwards(tmp_path / "file", 100))
        assert [line + b"\n" for line in reversed(backwards)] == forwards
