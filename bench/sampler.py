"""What accumulates for one arm while it is measured, and the measurements that become of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bench.metrics import (
    ALLOCATION_PEAK,
    CPU_TIME,
    DEVICE_ENERGY,
    DEVICE_TIME,
    ENERGY,
    FIRST_CALL,
    INSTRUCTIONS,
    MEMORY_GROWTH,
    PEAK_MEMORY,
    SET_UP,
    SINGLE_CALL,
    SIZE,
    TIME,
    Metric,
    Summary,
)
from bench.model import EMULATED, ESTIMATED, REAL, Arm, Benchmark, DeviceConditions, Failure, Measurement, Number

UNTIMED_LIMIT_NS = 50_000_000
"""Longest call that is made once untimed after a switch between arms: cold caches cost longer calls under 0.1 %."""

TIMELESS = {EMULATED: "a time would be that of the emulator", ESTIMATED: "nothing ran that could be timed"}
"""Why what is not real has no time."""

ROWS = (
    TIME, CPU_TIME, SINGLE_CALL, FIRST_CALL, SET_UP, PEAK_MEMORY, MEMORY_GROWTH, ALLOCATION_PEAK, ENERGY,
    DEVICE_TIME, DEVICE_ENERGY,
)  # fmt: skip
"""What every launch gives, where it can be had."""


@dataclass
class Sampler:
    """One arm: its plan, frozen after the rehearsal, and its rows, one a launch."""

    arm: Arm
    loops: int = 1
    samples: int = 1
    rounds: int = 1
    call_ns: int = 0
    singles: int = 0
    first: bool = False  # the first call of a launch is its sample
    items: float = 1.0
    notes: dict[str, str] = field(default_factory=dict)
    size_bytes: int | None = None
    values: dict[str, Any] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    instructions: int | None = None
    failure: Failure | None = None
    kind: str = REAL
    rows: dict[str, list[tuple[Number, ...]]] = field(default_factory=dict)

    @property
    def launched(self) -> bool:
        """Whether it takes part in launches: only what is real can be timed."""
        return self.failure is None and self.kind == REAL

    def describe(self, answer: Mapping[str, Any]) -> None:
        """Take what the set-up said of the work."""
        self.items, self.notes, self.size_bytes = float(answer["items"]), answer["notes"], answer["size_bytes"]
        self.kind = answer["kind"]
        if self.kind != REAL:
            self.notes = {**self.notes, "kind": self.kind}
            self.absent = {TIME.name: f"{self.kind}: {TIMELESS[self.kind]}"}

    def plan(self, chosen: Mapping[str, Any]) -> None:
        """Take what the calibration chose."""
        self.loops, self.samples, self.rounds = chosen["loops"], chosen["samples"], chosen["rounds"]
        self.call_ns, self.singles, self.first = chosen["call_ns"], chosen["singles"], chosen["first"]

    def plan_like(self, other: Sampler, *, loops: int = 0) -> None:
        """One variant has one plan, whichever target it runs at. `loops`: of a comparison that is continued; 0: own."""
        self.loops, self.samples, self.rounds = loops or other.loops, other.samples, other.rounds
        self.call_ns, self.singles, self.first = other.call_ns, other.singles, other.first

    @property
    def untimed(self) -> bool:
        """Whether a round begins with a call that nothing times."""
        return self.call_ns < UNTIMED_LIMIT_NS

    @property
    def calls_in_round(self) -> int:
        """All of them, timed or not."""
        return self.loops * self.samples + self.singles + int(self.untimed)

    def keep(self, rows: Mapping[str, Sequence[Number]]) -> None:
        """What one launch gave, by metric name."""
        for name, row in rows.items():
            self.rows.setdefault(name, []).append(tuple(row))

    def keep_device(self, row: dict[str, list[Number]], told: Mapping[str, Any] | None) -> DeviceConditions | None:
        """What the device told of a round goes into `row`; returns its conditions, where it told any."""
        if told is None:
            return None
        row.setdefault(DEVICE_TIME.name, []).extend(told["spans"])
        if told["energy_uj"] is not None:
            row.setdefault(DEVICE_ENERGY.name, []).append(told["energy_uj"])
        seen = told["conditions"]
        throttled = seen.get("throttled")
        return DeviceConditions(**{**seen, "throttled": None if throttled is None else tuple(throttled)})

    def measurements(self, benchmark: Benchmark) -> tuple[Measurement, ...]:
        """All that was measured, the harness's own metrics first."""
        found = [m for metric in ROWS if (m := self._of_launches(metric)) is not None]
        if self.instructions is not None:
            found.append(Measurement(metric=INSTRUCTIONS, launches=((self.instructions,),)))
        if self.size_bytes is not None:
            found.append(Measurement(metric=SIZE, launches=((self.size_bytes,),)))
        for metric in benchmark.metrics:
            value = self.values.get(metric.name)
            if isinstance(value, dict):
                items = replace(metric, summary=Summary.ITEMS)
                found.append(Measurement(metric=items, launches=(tuple(value["items"]),)))
            elif rows := self.rows.get(metric.name):
                found.append(Measurement(metric=metric, launches=tuple(rows)))
            elif value is not None:
                found.append(Measurement(metric=metric, launches=((value,),)))
        return tuple(found)

    def _of_launches(self, metric: Metric) -> Measurement | None:
        rows = self.rows.get(metric.name, [])
        # A counter that went silent in some launch would shift the pairs of the others.
        if not rows or not all(rows):
            return None
        calls = {
            TIME: self.loops, CPU_TIME: self.loops, DEVICE_TIME: self.loops, ENERGY: self.calls_in_round,
            DEVICE_ENERGY: self.loops * self.samples,
        }  # fmt: skip
        loops = calls.get(metric, 1)
        return Measurement(metric=metric, launches=tuple(rows), loops=loops)
