"""Raw samples of one measurement as one small blob, bit for bit exact.

A blob is zlib over: number of launches (u32), length of each launch (u32), then the values of all
launches in order. Integers are kept as differences in the narrowest width that holds them, with
the bytes of equal weight side by side (the "shuffle" of HDF5 and Blosc): times of one benchmark
differ in their low bytes only, so the high planes compress to nothing. The codec's name is stored
in the row:

    delta8, delta16, delta32, delta64   integers: the first value (i64), then differences
    float64                             floats as IEEE doubles, shuffled
    json                                integers of over 64 bits, or integers and floats mixed

A name that ends in `-raw` says that the blob is not compressed, since a handful of values gains nothing;
its CRC-32 (u32) stands before it, where zlib has a sum of its own. A name that begins with `r-` says that
retention left one value a launch: before the blob stand the number of launches (u32) and how many
samples each had (u32).
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from bench.errors import StoreError
from bench.model import Number

LEVEL = 3
"""Of zlib: on samples of benchmarks within 2 % of the size of level 6, which takes up to twice its time."""

RAW, RAW_BYTES = "-raw", 64
"""Up to so many bytes are not compressed."""

REDUCED = "r-"

FEW = 64
"""Up to so many integers are encoded without numpy, whose calls would cost more than the work."""

_FORMATS = {8: "b", 16: "h", 32: "i", 64: "q"}
_I64 = (-(2**63), 2**63 - 1)


def encode(launches: Sequence[Sequence[Number]]) -> tuple[str, bytes]:
    """Name of the codec and the blob. `launches[k]` are the samples of launch k; they may be ragged or empty."""
    lengths = [len(launch) for launch in launches]
    head = struct.pack(f"<{1 + len(lengths)}I", len(lengths), *lengths)
    flat = [value for launch in launches for value in launch]
    kinds = set(map(type, flat))
    if kinds <= {int} and (not flat or (_I64[0] <= min(flat) and max(flat) <= _I64[1])):
        name, body = _encode_integers(flat)  # type: ignore[arg-type]
    elif kinds == {float}:
        name, body = "float64", _shuffle(struct.pack(f"<{len(flat)}d", *flat), 8)
    else:
        name, body = "json", json.dumps(flat).encode()
    blob = head + body
    if len(blob) > RAW_BYTES:
        return name, zlib.compress(blob, LEVEL)
    return name + RAW, struct.pack("<I", zlib.crc32(blob)) + blob


def encode_reduced(launches: Sequence[Sequence[Number]], counts: Sequence[int]) -> tuple[str, bytes]:
    """As `encode`, with how many samples each launch had before it was reduced."""
    name, data = encode(launches)
    return REDUCED + name, struct.pack(f"<{1 + len(counts)}I", len(counts), *counts) + data


def counts(codec: str, data: bytes) -> tuple[int, ...] | None:
    """How many samples each launch had before it was reduced; null where it was not. Raises StoreError."""
    if not codec.startswith(REDUCED):
        return None
    try:
        (launches,) = struct.unpack_from("<I", data)
        return struct.unpack_from(f"<{launches}I", data, 4)
    except struct.error as error:
        raise StoreError(f"stored samples are damaged ({error}); restore the database from a copy.") from None


def decode(codec: str, data: bytes) -> tuple[tuple[Number, ...], ...]:
    """What `encode` was given. Raises StoreError for an unknown codec or a damaged blob."""
    reduced = counts(codec, data)
    if reduced is not None:
        codec, data = codec.removeprefix(REDUCED), data[4 + 4 * len(reduced) :]
    try:
        raw = _checked(data) if codec.endswith(RAW) else zlib.decompress(data)
        (count,) = struct.unpack_from("<I", raw)
        lengths = struct.unpack_from(f"<{count}I", raw, 4)
        flat = _decode_values(codec.removesuffix(RAW), raw[4 + 4 * count :], sum(lengths))
    except (zlib.error, struct.error, ValueError) as error:
        raise StoreError(f"stored samples are damaged ({error}); restore the database from a copy.") from None
    if len(flat) != sum(lengths):
        raise StoreError("stored samples are damaged (too few values); restore the database from a copy.")
    found, start = [], 0
    for length in lengths:
        found.append(tuple(flat[start : start + length]))
        start += length
    return tuple(found)


def _checked(data: bytes) -> bytes:
    (expected,) = struct.unpack_from("<I", data)
    if zlib.crc32(data[4:]) != expected:
        raise ValueError("its check sum is wrong")
    return data[4:]


def _encode_integers(flat: list[int]) -> tuple[str, bytes]:
    if not flat:
        return "delta8", b""
    first = struct.pack("<q", flat[0])
    if len(flat) <= FEW:
        gaps = [after - before for before, after in pairwise(flat)]
        width = _width(min(gaps, default=0), max(gaps, default=0))
        if width is not None:
            packed = struct.pack(f"<{len(gaps)}{_FORMATS[width]}", *gaps)
            return f"delta{width}", first + _shuffle(packed, width // 8)
    # Modulo 2**64, so that a difference wider than 64 bits comes back as well.
    steps = np.diff(np.array(flat, "<i8").view("<u8")).view("<i8")
    width = _width(int(steps.min()), int(steps.max()))
    assert width is not None
    return f"delta{width}", first + _shuffle(steps.astype(f"<i{width // 8}").tobytes(), width // 8)


def _width(low: int, high: int) -> int | None:
    return next((w for w in _FORMATS if -(2 ** (w - 1)) <= low and high < 2 ** (w - 1)), None)


def _decode_values(codec: str, body: bytes, count: int) -> list[Number]:
    if codec == "json":
        found: list[Number] = json.loads(body)
        return found
    if codec == "float64":
        return _unshuffle(body, "<f8").tolist()  # type: ignore[no-any-return]
    if codec not in {f"delta{width}" for width in _FORMATS}:
        raise StoreError(f"samples are stored with the codec {codec!r}, unknown to this bench; upgrade bench.")
    if not count:
        return []
    values = np.empty(count, "<i8")
    values[0] = np.frombuffer(body[:8], "<i8")[0]
    values[1:] = _unshuffle(body[8:], f"<i{int(codec[5:]) // 8}")
    return np.cumsum(values.view("<u8"), dtype="<u8").view("<i8").tolist()  # type: ignore[no-any-return]


def _shuffle(packed: bytes, size: int) -> bytes:
    return b"".join(packed[plane::size] for plane in range(size)) if size > 1 else packed


def _unshuffle(body: bytes, kind: str) -> NDArray[np.generic]:
    size = np.dtype(kind).itemsize
    planes = np.frombuffer(body, np.uint8).reshape(size, -1)
    return np.ascontiguousarray(planes.T).reshape(-1).view(kind)
