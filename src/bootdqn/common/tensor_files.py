"""Arrays in safetensors files, which never run code: written as a stream, and checked when read."""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import safetensors.numpy

from bootdqn.common.errors import DamagedFileError, is_out_of_memory
from bootdqn.common.files import open_regular, read_regular
from bootdqn.common.specs import Array

_CODES = {
    "bool": "BOOL", "uint8": "U8", "int8": "I8", "uint16": "U16", "int16": "I16", "uint32": "U32", "int32": "I32",
    "uint64": "U64", "int64": "I64", "float16": "F16", "float32": "F32", "float64": "F64",
}  # fmt: skip
_CHUNK = 2**20
MAX_BYTES = 2**40


class Digest(NamedTuple):
    """SHA-256 and size of a file."""

    sha256: str
    size: int


def write_tensors(path: Path, arrays: Mapping[str, Array], metadata: Mapping[str, str] | None = None) -> Digest:
    """Write `arrays` to a new file, flushed to the disk, and return its digest.

    The library's own writer first copies everything into one buffer; this one copies nothing, so that saving a large
    state needs no memory.
    """
    header: dict[str, object] = {"__metadata__": dict(metadata)} if metadata else {}
    contiguous = {name: np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(array.shape)
                  for name, array in arrays.items()}  # fmt: skip
    end = 0
    for name, array in contiguous.items():
        start, end = end, end + array.nbytes
        header[name] = {"dtype": _CODES[array.dtype.name], "shape": list(array.shape), "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    digest = hashlib.sha256()
    with path.open("xb", buffering=0) as file:
        for view in (memoryview(len(text).to_bytes(8, "little") + text), *map(bytes_of, contiguous.values())):
            digest.update(view)
            done = 0
            while done < len(view):
                done += file.write(view[done : done + _CHUNK])
        os.fsync(file.fileno())
    return Digest(digest.hexdigest(), 8 + len(text) + end)


def read_tensors(path: Path, max_bytes: int = MAX_BYTES) -> dict[str, Array]:
    """Return the arrays in a safetensors file.

    Raises:
        DamagedFileError: It cannot be read as one, or is larger than `max_bytes`.
    """
    try:
        return read_tensors_and_metadata(path, max_bytes)[0]
    except FileNotFoundError as error:
        raise DamagedFileError(f"{path} does not exist") from error


def read_tensors_and_metadata(path: Path, max_bytes: int = MAX_BYTES) -> tuple[dict[str, Array], dict[str, str]]:
    """Return the arrays in a safetensors file, and its metadata.

    Raises:
        FileNotFoundError: It does not exist.
        DamagedFileError: It cannot be read as one, or is larger than `max_bytes`.
    """
    try:
        content = read_regular(path, max_bytes)
        arrays = safetensors.numpy.load(content)
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    except (DamagedFileError, FileNotFoundError):
        raise
    except Exception as error:  # the library raises many types, such as an AttributeError for an unknown dtype
        if is_out_of_memory(error):
            raise  # the file may be fine
        raise DamagedFileError(f"{path}: {type(error).__name__}: {error}") from error
    return arrays, header.get("__metadata__", {})


def checked_array(arrays: Mapping[str, Array], name: str, expected: Array) -> Array:
    """Return the array `name`.

    Raises:
        ValueError: It is missing, or has not the shape and type of `expected`.
    """
    array = arrays.get(name)
    if array is None or array.shape != expected.shape or array.dtype != expected.dtype:
        found = "nothing" if array is None else f"{array.dtype} {array.shape}"
        raise ValueError(f"{name} should be {expected.dtype} {expected.shape}, found {found}")
    return array


def digest_of(path: Path) -> Digest:
    """Return the digest of a file; a DamagedFileError if it cannot be read."""
    digest, size = hashlib.sha256(), 0
    try:
        with os.fdopen(open_regular(path), "rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
                size += len(chunk)
    except OSError as error:
        raise DamagedFileError(f"{path} cannot be read: {error.strerror}") from error
    return Digest(digest.hexdigest(), size)


def bytes_of(array: Array) -> memoryview:
    """Return the bytes of a contiguous array, without a copy."""
    return array.reshape(-1).view(np.uint8).data if array.size else memoryview(b"")
