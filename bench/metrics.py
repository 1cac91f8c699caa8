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
    TAIL = "tail"  # a quantile of single calls of all launches; derived, never stored


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
ALLOCATION_PEAK = Metric(
    name="allocation_peak", unit="B", better=Better.LOWER, kind=Kind.MEMORY, summary=Summary.LAUNCH,
    help="most bytes that Python's allocators held at once during one call, above what they held before",
)  # fmt: skip
INSTRUCTIONS = Metric(
    name="instructions", unit="instructions", better=Better.LOWER, kind=Kind.COUNT, summary=Summary.EXACT,
    help="instructions of one call, counted by callgrind with a fixed hash seed and fixed addresses",
)  # fmt: skip
ENERGY = Metric(
    name="energy", unit="uJ", better=Better.LOWER, kind=Kind.ENERGY, summary=Summary.QUARTILE,
    help="energy of the processor packages, of whatever ran on them, for each call",
)  # fmt: skip
DEVICE_TIME = Metric(
    name="device_time", unit="ns", better=Better.LOWER, kind=Kind.TIME, summary=Summary.QUARTILE,
    help="one call on the device's own clock, between marks in its queue; gaps between its kernels included",
)  # fmt: skip
DEVICE_ENERGY = Metric(
    name="device_energy", unit="uJ", better=Better.LOWER, kind=Kind.ENERGY, summary=Summary.QUARTILE,
    help="energy of the whole device, of whatever ran on it, for each call",
)  # fmt: skip
SIZE = Metric(
    name="size", unit="B", better=Better.LOWER, kind=Kind.SIZE, summary=Summary.EXACT,
    help="bytes of the artifact on disk or on the wire",
)  # fmt: skip
THROUGHPUT = Metric(
    name="throughput", unit="1/s", better=Better.HIGHER, kind=Kind.THROUGHPUT, summary=Summary.QUARTILE,
    help="items per second: derived from time, never measured twice",
)  # fmt: skip

SINGLE_CALL = Metric(
    name="single_call", unit="ns", better=Better.LOWER, kind=Kind.TIME, summary=Summary.QUARTILE,
    help="wall clock of one call that was timed alone, for the tail",
)  # fmt: skip


def _quantile(percent: int) -> Metric:
    return Metric(
        name=f"p{percent}", unit="ns", better=Better.LOWER, kind=Kind.TIME, summary=Summary.TAIL,
        help=f"time that {percent} % of the single calls do not exceed",
    )  # fmt: skip


TAILS = {_quantile(percent): percent / 100 for percent in (50, 90, 95, 99)}
"""What is said of single calls, and which quantile it is: derived, never measured twice."""

HARNESS_METRICS = (
    TIME, CPU_TIME, FIRST_CALL, SET_UP, PEAK_MEMORY, MEMORY_GROWTH, SIZE, THROUGHPUT, SINGLE_CALL, *TAILS,
    ALLOCATION_PEAK, INSTRUCTIONS, ENERGY, DEVICE_TIME, DEVICE_ENERGY,
)  # fmt: skip
"""Metrics that the harness makes itself; a suite declares only its own."""
