"""The canary: fixed reference work in every run. Where it moves, the machine moved, not the code.

Four kinds, since a machine rarely gets slower in one way: clock and scheduling (interpreter),
memory bandwidth (memory), vector units (matrix) and the disk that the cache lies on (disk).
Changing any of this starts new series: say so in docs/decisions.md.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bench.api import Skip, Work, benchmark

if TYPE_CHECKING:
    from bench.ports import Device

COPY_BYTES = 16_000_000
"""Beyond the level-2 cache of any CPU, and together with its copy beyond most level-3 slices."""

DISK_BYTES = 262_144
"""Small enough to be kind to a flash disk, large enough that the transfer is seen beside the flush."""


@benchmark(axes={"work": ("interpreter", "memory", "matrix", "disk")})
def reference(device: Device, work: str) -> Work:
    """Fixed work that tells whether the machine itself moved."""
    makers: dict[str, Callable[[], Work]] = {
        "interpreter": _interpreter, "memory": _memory, "matrix": _matrix, "disk": _disk,
    }  # fmt: skip
    return makers[work]()


def _interpreter() -> Work:
    rows: list[tuple[str, int]] = [(f"user-{i % 97}", i * 7 % 1013) for i in range(500)]

    def run() -> int:
        totals: dict[str, int] = {}
        for name, score in rows:
            totals[name] = totals.get(name, 0) + score
        return sum(totals.values())

    expected = run()
    return Work(run=run, check=lambda total: total == expected)


def _memory() -> Work:
    source, target = bytearray(os.urandom(4096) * (COPY_BYTES // 4096)), bytearray(COPY_BYTES // 4096 * 4096)
    view = memoryview(target)

    def run() -> None:
        view[:] = source

    return Work(run=run, check=lambda _: target == source)


def _matrix() -> Work:
    try:
        import numpy as np
    except ImportError:
        raise Skip("numpy is not installed; the matrix canary needs it") from None
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 256, 256), dtype=np.float32)
    out = np.empty_like(a)
    return Work(run=lambda: np.matmul(a, b, out=out))


def _disk() -> Work:
    folder = os.environ.get("BENCH_CACHE") or None
    if folder is not None:
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103 - the worker's start-up cost counts
    file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed by the harness
    data = os.urandom(DISK_BYTES)

    def run() -> Any:
        file.seek(0)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())

    def right(_: object) -> bool:
        file.seek(0)
        return file.read() == data

    return Work(run=run, check=right, size_bytes=DISK_BYTES, close=file.close)
