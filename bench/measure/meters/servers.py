"""CPU time of servers that work for us, which is no foreign load. Linux; elsewhere none is told."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


class ServedClock:
    """Elapsed time here; CPU time of this process and of the servers, all threads of each, in ns.

    What others ask of the same servers meanwhile is counted too.
    """

    wall = staticmethod(time.perf_counter_ns)

    def __init__(self, servers: Iterable[int]) -> None:
        self._clocks = []
        for pid in servers:
            with suppress(OSError, AttributeError):
                time.clock_gettime_ns(clock_of(pid))
                self._clocks.append(clock_of(pid))

    def cpu(self) -> int:
        """Raises OSError when a server is gone."""
        return time.process_time_ns() + sum(map(time.clock_gettime_ns, self._clocks))


class ServedMeter:
    """CPU time of servers that were there before us, each since it was first followed. Lives in the parent."""

    def __init__(self) -> None:
        self._first: dict[int, int] = {}

    def follow(self, servers: Iterable[int]) -> None:
        """Count these from now on; who is followed already stays so."""
        for pid in servers:
            if pid not in self._first:
                with suppress(OSError, AttributeError):
                    self._first[pid] = time.clock_gettime_ns(clock_of(pid))

    def restart(self) -> None:
        """Follow nobody."""
        self._first.clear()

    def cpu_ns(self) -> int:
        """What all of them have used together; nothing for one that is gone."""
        used = 0
        for pid, first in self._first.items():
            with suppress(OSError, AttributeError):
                used += time.clock_gettime_ns(clock_of(pid)) - first
        return used


SERVED = ServedMeter()
"""One for the process: it has one run at a time."""


def strangers(servers: Iterable[int]) -> list[int]:
    """Those that aren't descendants of this process: nobody here waits for them and is told what they used."""
    return [pid for pid in servers if not _descends(pid)]


def _descends(pid: int) -> bool:
    while pid > 1:
        if pid == os.getpid():
            return True
        try:
            # The name, in brackets, may hold anything; after it come the state and the parent (proc(5)).
            pid = int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return False
    return False


def clock_of(pid: int) -> int:
    """The id of a process's CPU clock, as clock_getcpuclockid(3) of Linux makes it."""
    return (~pid << 3) | 2
