"""Wall and CPU clocks, and the timed batch.

The call is unrolled ten times inside a `repeat` loop: about 1 ns of overhead a call against 8 ns
for a plain loop (measured in the study behind docs/measuring.md).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import repeat
from statistics import median
from typing import Any


class SystemClock:
    """Monotonic wall clock and CPU time of all threads of this process, both in ns."""

    wall = staticmethod(time.perf_counter_ns)
    cpu = staticmethod(time.process_time_ns)


def timed_batch(
    run: Callable[[], Any],
    loops: int,
    synchronize: Callable[[], None],
    wall: Callable[[], int],
    cpu: Callable[[], int],
) -> tuple[int, int]:
    """Call `run` `loops` times and wait for the device. Returns (wall ns, CPU ns) of the batch."""
    tens, ones = divmod(loops, 10)
    tens_loop, ones_loop = repeat(None, tens), repeat(None, ones)
    cpu_start = cpu()
    start = wall()
    for _ in tens_loop:
        run()
        run()
        run()
        run()
        run()
        run()
        run()
        run()
        run()
        run()
    for _ in ones_loop:
        run()
    synchronize()
    end = wall()
    return end - start, cpu() - cpu_start


def single_calls(
    run: Callable[[], Any],
    prepare: Callable[[], object] | None,
    count: int,
    synchronize: Callable[[], None],
    wall: Callable[[], int],
) -> list[int]:
    """Wall ns of `count` calls, each timed alone: every one of them pays for reading the clock."""
    spans = []
    for _ in repeat(None, count):
        if prepare is not None:
            prepare()
        start = wall()
        run()
        synchronize()
        spans.append(wall() - start)
    return spans


def cost_of_timing(synchronize: Callable[[], None], wall: Callable[[], int]) -> int:
    """Wall ns that `single_calls` adds to a call: the median of many calls of nothing."""
    return round(median(single_calls(_nothing, None, 101, synchronize, wall)))


def _nothing() -> None:
    pass


def prepared_batch(
    run: Callable[[], Any],
    prepare: Callable[[], object],
    loops: int,
    synchronize: Callable[[], None],
    wall: Callable[[], int],
    cpu: Callable[[], int],
) -> tuple[int, int]:
    """Like `timed_batch` for work that needs a fresh state: `prepare` before every call, outside its time.

    Every call pays for reading the clocks, about 0.1 µs of wall and 0.5 µs of CPU time.
    """
    spent = spent_cpu = 0
    for _ in repeat(None, loops):
        prepare()
        cpu_start = cpu()
        start = wall()
        run()
        synchronize()
        spent += wall() - start
        spent_cpu += cpu() - cpu_start
    return spent, spent_cpu
