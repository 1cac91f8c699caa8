"""What the machine does to a round: counters read before and after, null where the system is silent."""

from __future__ import annotations

import os
import resource
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Counters:
    """Counters that only grow."""

    involuntary_switches: int | None
    major_faults: int | None
    minor_faults: int | None
    voluntary_switches: int | None
    cpu_pressure_ns: int | None
    io_pressure_ns: int | None
    memory_pressure_ns: int | None
    steal_ns: int | None

    def since(self, earlier: Counters) -> dict[str, int | None]:
        """Differences by name; null where either reading is."""
        found: dict[str, int | None] = {}
        for name in self.__slots__:
            new, old = getattr(self, name), getattr(earlier, name)
            found[name] = None if new is None or old is None else new - old
        return found


def read_counters() -> Counters:
    """All counters now."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    cpu, io, memory = (_pressure_ns(waited_for) for waited_for in ("cpu", "io", "memory"))
    return Counters(usage.ru_nivcsw, usage.ru_majflt, usage.ru_minflt, usage.ru_nvcsw, cpu, io, memory, _steal_ns())


def _pressure_ns(waited_for: str) -> int | None:
    try:
        first = Path("/proc/pressure", waited_for).read_text().split("\n", 1)[0]
        return int(first.rpartition("total=")[2]) * 1000
    except (OSError, ValueError):
        return None


def _steal_ns() -> int | None:
    try:
        with Path("/proc/stat").open() as file:
            return int(file.readline().split()[8]) * (1_000_000_000 // os.sysconf("SC_CLK_TCK"))
    except (OSError, ValueError, IndexError):
        return None
