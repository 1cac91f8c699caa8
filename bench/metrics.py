"""What is measured: the metric as a value, and the metrics that the harness makes itself.

No I/O, standard library only: the worker imports this inside whatever interpreter is measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Better(StrEnum):
    """Direction in which a metric improves."""

    LOWER = "lower"
    HIGHER = "higher"


class Kind(StrEnum):
    """What a metric is about; decides how it is formatted and which policy applies."""

    TIME = "time"
    THROUGHPUT = "throughput"
    MEMORY = "memory"
    SIZE = "size"
    ACCURACY = "accuracy"
    COUNT = "count"
    ENERGY = "energy"


class Summary(StrEnum):
    """How raw samples become one number (bench.stats holds the mathematics)."""

    QUARTILE = "quartile"  # lower quartile inside a launch, trimmed mean of logarithms across launches
    LAUNCH = "launch"  # one value a launch, trimmed mean across launches
    ITEMS = "items"  # 0/1 per item, one row; a proportion with a binomial interval
    EXACT = "exact"  # deterministic: one value, no statistics


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A quantity with its unit and direction.

    `unit` is "ns", "B", "1" (a ratio or a share) or any text for counts.
    """

    name: str
    unit: str
    better: Better
    kind: Kind
    summary: Summary
    help: str = ""


TIME = Metric(
    name="time", unit="ns", better=Better.LOWER, kind=Kind.TIME, summary=Summary.QUARTILE,
    help="wall clock of one call",
)  # fmt: skip
CPU_TIME = Metric(
    name="cpu_time", unit="ns", better=Better.LOWER, kind=Kind.TIME, summary=Summary.QUARTILE,
    help="CPU time of one call over all threads of the process",
)  # fmt: skip
FIRST_CALL = Metric(
    name="first_call", unit="ns", better=Better.LOWER, kind=Kind.TIME, summary=Summary.LAUNCH,
    help="wall clock of the first call in a fresh process",
)  # fmt: skip
SET_UP = Metric(
    name="set_up", unit="ns", better=Better.LOWER, kind=Kind.TIME, summary=Summary.LAUNCH,
    help="from the start of the set-up (imports, loading) to a callable",
)  # fmt: skip
PEAK_MEMORY = Metric(
    name="peak_memory", unit="B", better=Better.LOWER, kind=Kind.MEMORY, summary=Summary.LAUNCH,
    help="largest resident memory of the process, set-up included",
)  # fmt: skip
MEMORY_GROWTH = Metric(
    name="memory_growth", unit="B", better=Better.LOWER, kind=Kind.MEMORY, summary=Summary.LAUNCH,
    help="peak memory less what the bare interpreter held before the set-up",
)  # fmt: skip
SIZE = Metric(
    name="size", unit="B", better=Better.LOWER, kind=Kind.SIZE, summary=Summary.EXACT,
    help="bytes of the artifact on disk or on the wire",
)  # fmt: skip
THROUGHPUT = Metric(
    name="throughput", unit="1/s", better=Better.HIGHER, kind=Kind.THROUGHPUT, summary=Summary.QUARTILE,
    help="items per second: derived from time, never measured twice",
)  # fmt: skip

HARNESS_METRICS = (TIME, CPU_TIME, FIRST_CALL, SET_UP, PEAK_MEMORY, MEMORY_GROWTH, SIZE, THROUGHPUT)
"""Metrics that the harness makes itself; a suite declares only its own."""
