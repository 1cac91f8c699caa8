"""Neighbours that take processor and memory in random bursts: the noise that a measurement is tried against."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

BURST_S = 1.5
"""Mean length of a burst and of the pause after it."""

COPY_BYTES = 64 * 2**20
"""Larger than the last-level cache's share of any core: copies go to memory."""


@contextmanager
def hogs(processors: int = 3, memory: int = 2) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Interpreter loops and memory copies, each a process of its own, while the block runs."""
    kinds = ["processor"] * processors + ["memory"] * memory
    started = [
        subprocess.Popen([sys.executable, "-m", "benchmarks.hogs", kind, str(seed)]) for seed, kind in enumerate(kinds)
    ]
    try:
        yield started
    finally:
        for process in started:
            process.kill()
            process.wait()


def _work(kind: str, source: bytearray) -> None:
    if kind == "processor":
        sum(i * i % 7 for i in range(20_000))
    else:
        bytearray(source)


def _serve(kind: str, seed: int) -> None:
    rng = random.Random(seed)
    source = bytearray(COPY_BYTES if kind == "memory" else 0)
    while True:
        end = time.monotonic() + rng.expovariate(1 / BURST_S)
        while time.monotonic() < end:
            _work(kind, source)
        time.sleep(rng.expovariate(1 / BURST_S))


if __name__ == "__main__":
    _serve(sys.argv[1], int(sys.argv[2]))
