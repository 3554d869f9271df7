"""Arrays in files: whatever this package writes the safetensors library reads, and the other way round."""

import hashlib
import json
import os

import numpy as np
import pytest
import safetensors
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from bootdqn.common.errors import DamagedFileError
from bootdqn.common.tensor_files import Digest, bytes_of, digest_of, read_tensors, write_tensors

DTYPES = [
    np.bool_, np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32, np.uint64, np.int64, np.float16, np.float32,
    np.float64,
]  # fmt: skip
ODD = {
    "zero-dimensional": np.array(7, np.int64),
    "empty": np.zeros(0, np.float32),
    "empty with axes": np.zeros((3, 0, 2), np.uint8),
    "one": np.ones((1, 1, 1), np.bool_),
    "transposed": np.arange(12, dtype=np.int32).reshape(3, 4).T,
    "every other": np.arange(20, dtype=np.float64)[::2],
    "backwards": np.arange(5, dtype=np.int16)[::-1],
    "broadcast": np.broadcast_to(np.float16(2.5), (2, 3)),
    "not finite": np.array([np.nan, np.inf, -0.0, 5e-324]),
}

arrays = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8).filter(lambda name: name != "__metadata__"),
    hnp.arrays(st.sampled_from(DTYPES), hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)),
    max_size=5,
)


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape), name
        assert found[name].tobytes() == array.tobytes(), name


@given(arrays)
def test_what_is_written_here_the_library_reads(tmp_path_factory, written):
    path = tmp_path_factory.mktemp("tensors") / "file.safetensors"
    write_tensors(path, written)
    assert_same(safetensors.numpy.load_file(path), written)
    assert_same(read_tensors(path), written)


@given(arrays)
def test_what_the_library_writes_is_read_here(tmp_path_factory, written):
    path = tmp_path_factory.mktemp("tensors") / "file.safetensors"
    safetensors.numpy.save_file(written, path)
    assert_same(read_tensors(path), written)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
def test_every_type_keeps_every_bit(tmp_path, dtype):
    bits = np.random.default_rng(3).integers(0, 2 if dtype == np.bool_ else 256, 480, np.uint8)
    written = {"values": bits.view(dtype).reshape(2, -1)}
    write_tensors(tmp_path / "file", written)
    assert_same(read_tensors(tmp_path / "file"), written)
    assert_same(safetensors.numpy.load_file(tmp_path / "file"), written)


def test_arrays_of_any_memory_layout_are_written_with_their_values(tmp_path):
    write_tensors(tmp_path / "file", ODD)
    assert_same(read_tensors(tmp_path / "file"), ODD)
    assert_same(safetensors.numpy.load_file(tmp_path / "file"), ODD)


def test_numbers_of_the_other_byte_order_are_the_same_numbers(tmp_path):
    write_tensors(tmp_path / "file", {"a": np.array([1, -2, 300], ">i4")})
    assert_same(read_tensors(tmp_path / "file"), {"a": np.array([1, -2, 300], np.int32)})


def test_an_unsupported_type_is_an_error_before_anything_is_written(tmp_path):
    for array in (np.array([1j]), np.array(["a"]), np.array([object()])):
        with pytest.raises(KeyError):
            write_tensors(tmp_path / "file", {"a": array})
    assert not (tmp_path / "file").exists()


def test_an_empty_file_of_arrays_can_be_written(tmp_path):
    write_tensors(tmp_path / "file", {})
    assert read_tensors(tmp_path / "file") == safetensors.numpy.load_file(tmp_path / "file") == {}


def test_metadata_stays_with_the_arrays(tmp_path):
    write_tensors(tmp_path / "file", ODD, {"step": "12", "ü": "\n"})
    with safetensors.safe_open(tmp_path / "file", framework="numpy") as file:
        assert file.metadata() == {"step": "12", "ü": "\n"}
    assert_same(read_tensors(tmp_path / "file"), ODD)


def test_the_data_begins_at_a_multiple_of_eight(tmp_path):
    for length in range(1, 20):
        path = tmp_path / str(length)
        write_tensors(path, {"a" * length: np.arange(3)})
        header = int.from_bytes(path.read_bytes()[:8], "little")
        assert header % 8 == 0
        json.loads(path.read_bytes()[8 : 8 + header])


def test_the_digest_of_what_was_written_is_that_of_the_file(tmp_path):
    for name, written in {"odd": ODD, "large": {"a": np.arange(3 * 2**17 + 1)}, "nothing": {}}.items():
        digest = write_tensors(tmp_path / name, written)
        content = (tmp_path / name).read_bytes()
        assert digest == digest_of(tmp_path / name) == Digest(hashlib.sha256(content).hexdigest(), len(content))


def test_a_disk_that_takes_a_little_at_a_time_gets_everything(tmp_path, monkeypatch):
    class Slow:
        def __init__(self, file):
            self._file = file

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self._file.close()

        def write(self, content):
            return self._file.write(content[:7])

        def fileno(self):
            return self._file.fileno()

    with monkeypatch.context() as patches:
        open_ = type(tmp_path).open
        patches.setattr(type(tmp_path), "open", lambda *arguments, **keywords: Slow(open_(*arguments, **keywords)))
        digest = write_tensors(tmp_path / "file", ODD)
    assert_same(read_tensors(tmp_path / "file"), ODD)
    assert digest == digest_of(tmp_path / "file")


def test_an_existing_file_is_not_overwritten(tmp_path):
    (tmp_path / "file").write_text("something of value")
    with pytest.raises(FileExistsError):
        write_tensors(tmp_path / "file", ODD)
    assert (tmp_path / "file").read_text() == "something of value"


def test_an_invalid_safetensors_file_is_reported_as_damaged(tmp_path):
    whole = tmp_path / "whole"
    write_tensors(whole, ODD)
    contents = [b"", b"\0" * 8, b"\xff" * 100, whole.read_bytes()[:-1], whole.read_bytes() + b"x", b"\x80\x04N."]
    foreign = json.dumps({"a": {"dtype": "F8_E4M3", "shape": [1], "data_offsets": [0, 1]}}).encode()
    for content in (*contents, len(foreign).to_bytes(8, "little") + foreign + b"x"):
        (tmp_path / "file").write_bytes(content)
        with pytest.raises(DamagedFileError, match="file"):
            read_tensors(tmp_path / "file")


def test_a_digest_is_taken_of_files_only(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "endless").symlink_to("/dev/zero")
    for name in ("pipe", "endless", "missing", "."):
        with pytest.raises(DamagedFileError):
            digest_of(tmp_path / name)


def test_the_bytes_of_an_array_are_not_a_copy():
    for array in (np.arange(6.0).reshape(2, 3), np.array(3), np.zeros((0, 4))):
        view = bytes_of(array)
        assert bytes(view) == array.tobytes()
        assert len(view) == array.nbytes
    array = np.arange(4)
    view = bytes_of(array)
    array[0] = 255
    assert view[0] == 255
