"""p50, p90, p95 and p99 of single calls, and how those of two arms compare. Pure.

A sample of short calls is a batch, and a quantile of batch means is no quantile of calls. So tails come
from calls that were timed alone: the series taken for them, or samples of one call each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan, log

from bench.metrics import SINGLE_CALL, TAILS, TIME, Metric, Summary
from bench.model import ArmResult, Estimate, Measurement
from bench.stats.location import Interval, difference_interval, trimmed_interval
from bench.stats.tail import Tail, calls_in_launch, quantile, tail


@dataclass(frozen=True, slots=True, kw_only=True)
class TailChange:
    """One quantile of two arms. `interval` is on the log scale; null where `note` says why there is none."""

    metric: Metric
    base: Estimate
    head: Estimate
    interval: Interval | None
    note: str = ""


def single_calls(result: ArmResult) -> Measurement | None:
    """Calls of this arm that were timed one by one; null where there are none."""
    own = result.measurement(SINGLE_CALL.name)
    if own is not None:
        return own
    time = result.measurement(TIME.name)
    # An import may know one number a launch, which is no call.
    return time if time is not None and time.loops == 1 and time.metric.summary is Summary.QUARTILE else None


def why_none(result: ArmResult) -> str:
    """Why an arm has no tail; empty where it has one, or was not timed."""
    time = result.measurement(TIME.name)
    if time is None or single_calls(result) is not None:
        return ""
    return f"no single calls were timed: a sample is {time.loops} calls together"


def tail_estimates(result: ArmResult) -> dict[str, tuple[Metric, Estimate]]:
    """Quantiles by metric name, in ns; empty without single calls."""
    calls = single_calls(result)
    if calls is None or not any(calls.launches):
        return {}
    return {metric.name: (metric, _estimate(tail(calls.launches, q), calls)) for metric, q in TAILS.items()}


def tail_changes(base: ArmResult, head: ArmResult, *, paired: bool) -> list[TailChange]:
    """Quantiles that both arms have.

    The change is that of the launches' own quantiles, head / base: the same code has the same
    chances on both sides whatever bias a quantile of few calls has. So each launch must have enough
    calls to see its quantile.
    """
    left, right = single_calls(base), single_calls(head)
    if left is None or right is None:
        return []
    old, new = tail_estimates(base), tail_estimates(head)
    found = []
    for name, (metric, estimate) in new.items():
        if name in old:
            interval, note = _change(left, right, TAILS[metric], paired=paired)
            found.append(TailChange(metric=metric, base=old[name][1], head=estimate, interval=interval, note=note))
    return found


def launch_changes(base: ArmResult, head: ArmResult, metric: Metric) -> list[float]:
    """log(head / base) of that quantile in every launch; empty where some launch cannot see it."""
    left, right = single_calls(base), single_calls(head)
    if left is None or right is None or _unseen(left, right, TAILS[metric]):
        return []
    old, new = (_logs(side.launches, TAILS[metric]) for side in (left, right))
    return [y - x for x, y in zip(old, new, strict=False)]


def _unseen(left: Measurement, right: Measurement, q: float) -> str:
    """Why some launch cannot see its own quantile; empty where all can."""
    fewest, needed = min(len(row) for row in (*left.launches, *right.launches) if row), calls_in_launch(q)
    return f"not enough: {fewest} of {needed} single calls a launch" if fewest < needed else ""


def _change(left: Measurement, right: Measurement, q: float, *, paired: bool) -> tuple[Interval | None, str]:
    if note := _unseen(left, right, q):
        return None, note
    old, new = (_logs(side.launches, q) for side in (left, right))
    if paired:
        return trimmed_interval([y - x for x, y in zip(old, new, strict=False)]), ""
    return difference_interval(old, new), ""


def _logs(launches: Sequence[Sequence[float]], q: float) -> list[float]:
    return [log(max(1.0, quantile(row, q))) for row in launches if row]  # a clock may read 0 ns


def _estimate(found: Tail, calls: Measurement) -> Estimate:
    made, launches = found.interval.n, sum(1 for row in calls.launches if row)
    if found.enough:
        return Estimate(value=found.interval.value, low=found.interval.low, high=found.interval.high, n=made)
    assert isnan(found.interval.low)
    if made < found.needed:
        note = f"not enough: {made} of {found.needed} calls"
    elif launches < 2:
        note = "not enough: calls of one launch are alike, and 2 are needed"
    else:
        note = f"not enough: {made} calls of {launches} launches count as {found.effective} of {found.needed}"
    return Estimate(value=found.interval.value, n=made, note=note)
