"""Arrays in files: the safetensors format, written as a stream and read with suspicion. Nothing in it is ever run."""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import safetensors.numpy

from bootdqn.common.errors import DamagedFileError
from bootdqn.common.specs import Array

_CODES = {
    "bool": "BOOL", "uint8": "U8", "int8": "I8", "uint16": "U16", "int16": "I16", "uint32": "U32", "int32": "I32",
    "uint64": "U64", "int64": "I64", "float16": "F16", "float32": "F32", "float64": "F64",
}  # fmt: skip
_CHUNK = 2**20


class Digest(NamedTuple):
    """What tells a file from another one."""

    sha256: str
    size: int


def write_tensors(path: Path, arrays: Mapping[str, Array], metadata: Mapping[str, str] | None = None) -> Digest:
    """Write `arrays` to a new file and see it safely on the disk.

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


def read_tensors(path: Path) -> dict[str, Array]:
    """Return the arrays in a safetensors file.

    Raises:
        DamagedFileError: It cannot be read as one.
    """
    try:
        return safetensors.numpy.load_file(path)
    except Exception as error:  # the library raises what it comes across, such as an AttributeError at a foreign type
        raise DamagedFileError(f"{path}: {type(error).__name__}: {error}") from error


def digest_of(path: Path) -> Digest:
    """Return the digest of a file; a DamagedFileError if it cannot be read."""
    digest, size = hashlib.sha256(), 0
    if not path.is_file():  # a device or a pipe may have no end
        raise DamagedFileError(f"{path} is not a file")
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
                size += len(chunk)
    except OSError as error:
        raise DamagedFileError(f"{path}: {error}") from error
    return Digest(digest.hexdigest(), size)


def bytes_of(array: Array) -> memoryview:
    """Return the bytes of a contiguous array, without a copy."""
    return array.reshape(-1).view(np.uint8).data if array.size else memoryview(b"")
