"""Loops, samples and warm-up: pure given a clock, so that a fake clock tests them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from bench.model import Policy

AGREE = 0.02
"""Steady: the median of the last WINDOW samples is within this of the WINDOW before (study, section 7)."""

WINDOW = 5

TAIL_CALLS = 1000
"""Most calls of one arm that are timed alone in a launch: ten are then expected beyond its p99."""

CLOCK_SHARE = 0.01
"""Reading the clock may be this share of a call that is timed alone."""

HUGE_NS = 800_000_000
"""A call whose first one in a process may serve as its sample (see is_sample)."""

Batch = Callable[[int], tuple[int, int]]
"""loops → (wall ns, CPU ns)."""


LONG_NS = 25_000_000
"""A call from which warm-up is counted in time alone: models are warm after four calls (study, section 5)."""

VERY_LONG_NS = 100_000_000
"""A call that is not repeated to calibrate: nothing can preempt so much of it that the loops would be wrong."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """Frozen for every launch of a variant: calls in a sample, samples in a round, rounds in a launch."""

    loops: int
    samples: int
    rounds: int
    call_ns: int
    first: bool = False  # the first call of a process is its only sample


def calibrate(batch: Batch, policy: Policy, first_call_ns: int = 0) -> Sampling:
    """Double the loops until a sample lasts long enough, then aim exactly.

    The smallest of three batches is believed, so that a preempted one does not shrink the loops. A
    first call of over VERY_LONG_NS is believed at once, after one more that is no first one.
    """
    if first_call_ns >= VERY_LONG_NS:
        call = max(1, batch(1)[0])
        if call >= policy.sample_ns:
            return Sampling(1, *_spread(call, policy), call)
    loops = 1
    while True:
        best = max(1, min(batch(loops)[0] for _ in range(3)))
        if best >= policy.sample_ns or loops >= 1 << 30:
            break
        loops = min(loops * 100, max(loops * 2, int(loops * policy.sample_ns / best * 1.05)))
    return Sampling(loops, *_spread(best, policy), max(1, round(best / loops)))


@dataclass(frozen=True, slots=True)
class Call:
    """What one call took: wall and CPU time in ns, and how often it waited (voluntary switches, if known)."""

    wall_ns: int
    cpu_ns: int
    waits: int | None


def is_sample(first: Call, second: Call) -> bool:
    """Whether the first call of a process is as good as a later one: long, and it has nothing to load.

    Their CPU time tells it where others take the processor, if the first call waits no oftener than the second.
    """
    if second.wall_ns < HUGE_NS:
        return False
    steady = abs(first.wall_ns - second.wall_ns) <= AGREE * second.wall_ns
    if steady or first.waits is None or second.waits is None:
        return steady
    return abs(first.cpu_ns - second.cpu_ns) <= AGREE * second.cpu_ns and first.waits <= second.waits


def _spread(sample_ns: int, policy: Policy) -> tuple[int, int]:
    """(samples a round, rounds) of one arm in one launch.

    After about 20 ms per side the rest of the difference belongs to the process (study, section 1):
    long calls get few samples and many launches.
    """
    fewest = 4 if sample_ns < VERY_LONG_NS else 2 if sample_ns < 5 * VERY_LONG_NS else 1
    wanted = max(fewest, min(policy.rounds * policy.samples, policy.side_ns // sample_ns))
    rounds = min(policy.rounds, wanted)
    return wanted // rounds, rounds


def calls_for_tail(sampling: Sampling, policy: Policy, cost_ns: int) -> tuple[int, str]:
    """(calls timed alone in each round, why there are none). `cost_ns`: what timing a call alone adds to it.

    None are wanted where the samples are single calls, and as many.
    """
    if policy.tail_ns == 0:
        return 0, ""
    if sampling.call_ns * CLOCK_SHARE < cost_ns:
        return 0, f"a call of {sampling.call_ns} ns is too short to be timed alone, which costs {cost_ns} ns"
    wanted = max(1, min(TAIL_CALLS, policy.tail_ns // sampling.call_ns))
    if sampling.loops == 1 and wanted <= sampling.samples * sampling.rounds:
        return 0, ""
    return -(-wanted // sampling.rounds), ""


def warm_up(batch: Batch, loops: int, call_ns: int, policy: Policy) -> tuple[int, bool]:
    """Run until steady. Returns (calls made, whether a steady state was seen before the cap).

    A long call is warm after fewer calls than a short one: its cap is shorter, and a call that is
    longer than that cap was warmed by its first call.
    """
    cap = policy.warm_up_long_ns if call_ns >= LONG_NS else policy.warm_up_cap_ns
    if call_ns >= cap:
        return 0, False
    calls, spent = 0, 0
    walls: list[int] = []
    while spent < cap:
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
