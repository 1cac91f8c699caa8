"""What the machine did to an experiment, and what of it may explain an answer. Pure.

It explains and deletes nothing: whatever is said here, every sample counts.
"""

from __future__ import annotations

from collections.abc import Callable

from bench.model import ExperimentResult, RoundConditions

BUSY = 0.2
"""Share of rounds with an involuntary switch from which the machine counts as busy."""

STALLED = 0.1
"""Share of the rounds' time in which some task waited for a disk or for memory, from which it is worth a word."""

UNSTEADY = 1.1
"""Fastest clock / slowest clock of the rounds from which it is worth a word: more than any margin explains."""


def disturbance(result: ExperimentResult) -> float:
    """Share of rounds in which some measured process lost its processor involuntarily; 0 where unknown."""
    known = [r for r in _rounds(result) if r.involuntary_switches is not None]
    return sum(1 for r in known if r.involuntary_switches) / len(known) if known else 0.0


def causes(result: ExperimentResult) -> list[str]:
    """What was unusual, in words for a person; empty where nothing was, or the system tells nothing."""
    found = []
    if (disturbed := disturbance(result)) >= BUSY:
        loads = [launch.load for launch in result.launches if launch.load is not None]
        found.append(
            f"{disturbed:.0%} of the rounds were disturbed" + (f" (load up to {max(loads):.1f})" if loads else "")
        )
    for what, waited in (("a disk", lambda r: r.io_pressure_ns), ("memory", lambda r: r.memory_pressure_ns)):
        if (share := _share(result, waited)) >= STALLED:
            found.append(f"some task waited for {what} {share:.0%} of the time")
    clocks = [r.clock_mhz for r in _rounds(result) if r.clock_mhz is not None]
    if clocks and max(clocks) > UNSTEADY * min(clocks):
        heat = [r.temperature_c for r in _rounds(result) if r.temperature_c is not None]
        words = f"the clock ran between {min(clocks) / 1e3:.1f} and {max(clocks) / 1e3:.1f} GHz"
        found.append(words + (f" at up to {max(heat):.0f} °C" if heat else ""))
    devices = [r.device for r in _rounds(result) if r.device is not None]
    if held := sorted({why for device in devices for why in device.throttled or ()}):
        found.append(f"the device held its clock down ({', '.join(held)})")
    if foreign := max((device.foreign or 0 for device in devices), default=0):
        found.append(f"up to {foreign} other process{'' if foreign == 1 else 'es'} on the device")
    return found


def _rounds(result: ExperimentResult) -> list[RoundConditions]:
    return [r for launch in result.launches for r in launch.rounds]


def _share(result: ExperimentResult, waited: Callable[[RoundConditions], int | None]) -> float:
    known = [(ns, r.wall_ns) for r in _rounds(result) if (ns := waited(r)) is not None]
    whole = sum(wall for _, wall in known)
    return min(1.0, sum(ns for ns, _ in known) / whole) if whole else 0.0
