"""Loops, samples and warm-up: pure given a clock, so that a fake clock tests them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from bench.model import Policy

AGREE = 0.02
"""Steady: the median of the last WINDOW samples is within this of the WINDOW before (study, section 7)."""

WINDOW = 5

Batch = Callable[[int], tuple[int, int]]
"""loops → (wall ns, CPU ns)."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """Frozen for every launch of a variant: calls in a sample, samples in a round."""

    loops: int
    samples: int
    call_ns: int


def calibrate(batch: Batch, policy: Policy) -> Sampling:
    """Double the loops until a sample lasts long enough, then aim exactly.

    The smallest of three batches is believed, so that a preempted one does not shrink the loops.
    """
    loops = 1
    while True:
        best = max(1, min(batch(loops)[0] for _ in range(3)))
        if best >= policy.sample_ns or loops >= 1 << 30:
            break
        loops = min(loops * 100, max(loops * 2, int(loops * policy.sample_ns / best * 1.05)))
    call = best / loops
    samples = int(policy.round_ns / (call * loops))
    return Sampling(loops, max(policy.min_samples, min(policy.samples, samples)), max(1, round(call)))


def warm_up(batch: Batch, loops: int, policy: Policy) -> tuple[int, bool]:
    """Run until steady. Returns (calls made, whether a steady state was seen before the cap)."""
    calls, spent = 0, 0
    walls: list[int] = []
    while spent < policy.warm_up_cap_ns:
        wall, _ = batch(loops)
        walls.append(wall)
        calls += loops
        spent += wall
        enough = calls >= policy.warm_up_calls and spent >= policy.warm_up_ns and len(walls) >= 2 * WINDOW
        if enough and _steady(walls):
            return calls, True
    return calls, False


def _steady(walls: list[int]) -> bool:
    last, before = median(walls[-WINDOW:]), median(walls[-2 * WINDOW : -WINDOW])
    return abs(last - before) <= AGREE * before
