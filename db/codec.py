"""Raw samples of one measurement as one small blob, bit for bit exact.

A blob is zlib over: number of launches (u32), length of each launch (u32), then the values of all
launches in order. Integers are kept as differences in the narrowest width that holds them, with
the bytes of equal weight side by side (the "shuffle" of HDF5 and Blosc): times of one benchmark
differ in their low bytes only, so the high planes compress to nothing. The codec's name is stored
in the row:

    delta8, delta16, delta32, delta64   integers: the first value (i64), then differences
    float64                             floats as IEEE doubles, shuffled
    json                                integers of over 64 bits, or integers and floats mixed
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bench.errors import StoreError
from bench.model import Number

LEVEL = 6
WIDTHS = (8, 16, 32, 64)
_I64 = (-(2**63), 2**63 - 1)


def encode(launches: Sequence[Sequence[Number]]) -> tuple[str, bytes]:
    """Name of the codec and the blob. `launches[k]` are the samples of launch k; they may be ragged or empty."""
    lengths = [len(launch) for launch in launches]
    head = struct.pack(f"<{1 + len(lengths)}I", len(lengths), *lengths)
    flat = [value for launch in launches for value in launch]
    if all(isinstance(value, int) for value in flat) and all(_I64[0] <= value <= _I64[1] for value in flat):
        name, body = _encode_integers(flat)
    elif all(isinstance(value, float) for value in flat):
        name, body = "float64", _shuffle(np.array(flat, "<f8"))
    else:
        name, body = "json", json.dumps(flat).encode()
    return name, zlib.compress(head + body, LEVEL)


def decode(codec: str, data: bytes) -> tuple[tuple[Number, ...], ...]:
    """What `encode` was given. Raises StoreError for an unknown codec or a damaged blob."""
    try:
        raw = zlib.decompress(data)
        (count,) = struct.unpack_from("<I", raw)
        lengths = struct.unpack_from(f"<{count}I", raw, 4)
        flat = _decode_values(codec, raw[4 + 4 * count :], sum(lengths))
    except (zlib.error, struct.error, ValueError) as error:
        raise StoreError(f"stored samples are damaged ({error}); restore the database from a copy.") from None
    if len(flat) != sum(lengths):
        raise StoreError("stored samples are damaged (too few values); restore the database from a copy.")
    found, start = [], 0
    for length in lengths:
        found.append(tuple(flat[start : start + length]))
        start += length
    return tuple(found)


def _encode_integers(flat: list[Number]) -> tuple[str, bytes]:
    if not flat:
        return "delta8", b""
    values = np.array(flat, "<i8")
    # Modulo 2**64, so that a difference wider than 64 bits comes back as well.
    steps = np.diff(values.view("<u8")).view("<i8")
    low, high = (int(steps.min()), int(steps.max())) if steps.size else (0, 0)
    width = next(w for w in WIDTHS if -(2 ** (w - 1)) <= low and high < 2 ** (w - 1))
    return f"delta{width}", values[:1].tobytes() + _shuffle(steps.astype(f"<i{width // 8}"))


def _decode_values(codec: str, body: bytes, count: int) -> list[Number]:
    if codec == "json":
        found: list[Number] = json.loads(body)
        return found
    if codec == "float64":
        return _unshuffle(body, "<f8").tolist()  # type: ignore[no-any-return]
    if codec not in {f"delta{width}" for width in WIDTHS}:
        raise StoreError(f"samples are stored with the codec {codec!r}, unknown to this bench; upgrade bench.")
    if not count:
        return []
    values = np.empty(count, "<i8")
    values[0] = np.frombuffer(body[:8], "<i8")[0]
    values[1:] = _unshuffle(body[8:], f"<i{int(codec[5:]) // 8}")
    return np.cumsum(values.view("<u8"), dtype="<u8").view("<i8").tolist()  # type: ignore[no-any-return]


def _shuffle(values: NDArray[np.generic]) -> bytes:
    return values.view(np.uint8).reshape(-1, values.itemsize).T.tobytes()


def _unshuffle(body: bytes, kind: str) -> NDArray[np.generic]:
    size = np.dtype(kind).itemsize
    planes = np.frombuffer(body, np.uint8).reshape(size, -1)
    return np.ascontiguousarray(planes.T).reshape(-1).view(kind)
