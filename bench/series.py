"""From the points of one series to its change points. Pure; bench.reconcile says what became of known ones."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from bench.causes import NO_ENVIRONMENTS, Environments, lasting_differences
from bench.detect import (
    MINIMUM,
    REACH,
    SUSPECT,
    SUSPECT_Z,
    Sensitivity,
    Step,
    exact_steps,
    is_suspect,
    step_between,
    steps,
)
from bench.detectors.kernel import FEWEST, GAMMA
from bench.history import Cause, ChangePoint, Direction, Point, Series
from bench.metrics import Better, Kind, Summary
from bench.model import Estimate, Scalar
from bench.stats.noise import as_values, median


def fold(points: Sequence[Point]) -> list[Point]:
    """One point for each commit and environment, in order of `at`, then of the first measurement.

    Several runs of one become their median, of the ends of their intervals too: a commit that was measured
    more often must not look faster, as a minimum would. It keeps the first run's key, so that a re-run moves nothing.
    """
    groups: dict[tuple[str, str], list[Point]] = {}
    for point in sorted(points, key=lambda p: (p.at, p.measured_at, p.run_key)):
        place = (point.commit or point.run_key, point.environment_fingerprint)
        groups.setdefault(place, []).append(point)
    return [group[0] if len(group) == 1 else _median_point(group) for group in groups.values()]


def find_changes(
    series: Series,
    points: Sequence[Point],
    *,
    at: datetime,
    environments: Environments = NO_ENVIRONMENTS,
    sensitivity: Sensitivity = SUSPECT,
    minimum: float = MINIMUM,
) -> list[ChangePoint]:
    """Change points in the last `sensitivity.window` of folded `points`, oldest first; found `at`.

    `environments` by fingerprint: where they are given, what differs lastingly is named.
    """
    shown = points[-sensitivity.window :]
    values = _values(shown)
    as_ratio = series.metric.kind is not Kind.ACCURACY
    if series.metric.summary is Summary.EXACT:
        found, parameters = exact_steps(values, as_ratio=as_ratio), {}
    else:
        found, parameters = steps(values, sensitivity, minimum, as_ratio=as_ratio), _parameters(sensitivity, minimum)
    return [_change(series, shown, step, parameters, at, environments) for step in found]


def find_suspect(
    series: Series,
    points: Sequence[Point],
    known: Sequence[ChangePoint],
    *,
    at: datetime,
    environments: Environments = NO_ENVIRONMENTS,
) -> ChangePoint | None:
    """The newest of folded `points` as a suspect, where it lies far off the level since the last `known` change.

    Never for an exact metric: there the first difference is a change already.
    """
    if series.metric.summary is Summary.EXACT or len(points) < 2:
        return None
    last = len(points) - 1
    since = max((position(c, points) for c in known if not c.suspect and c.superseded_by is None), default=0)
    values = _values(points)
    if since >= last or not is_suspect(values, since):
        return None
    before = median(as_values(values[max(since, last - REACH) : last]))
    as_ratio = series.metric.kind is not Kind.ACCURACY and min(before, values[last]) > 0
    step = Step(
        index=last, before=Estimate(value=before, n=min(REACH, last - since), note="level before a suspect"),
        after=points[last].estimate, relative=as_ratio, detector="newest point",
        effect=Estimate(value=values[last] / before if as_ratio else values[last] - before, note="one point"),
    )  # fmt: skip
    return replace(_change(series, points, step, {"z": SUSPECT_Z, "reach": REACH}, at, environments), suspect=True)


def find_method_change(
    old: Sequence[Point], series: Series, new: Sequence[Point], *, at: datetime, minimum: float = MINIMUM
) -> ChangePoint | None:
    """Where a benchmark's new version goes on at another level than the old one; both folded. Never an alarm.

    `series` and `new` are of the new version. Null where a side has under FEWEST points, or no change
    beyond `minimum` is sure.
    """
    before, after = old[-REACH:], new[:REACH]
    if min(len(before), len(after)) < FEWEST:
        return None
    joined = [*before, *after]
    as_ratio = series.metric.kind is not Kind.ACCURACY
    step = step_between(as_values(_values(before)), as_values(_values(after)), detector="version", as_ratio=as_ratio)
    none = 1.0 if step.relative else 0.0
    if step.effect.low is None or step.effect.high is None:
        return None
    if step.effect.low - minimum <= none <= step.effect.high + minimum:
        return None
    return replace(_change(series, joined, step, {}, at, NO_ENVIRONMENTS), cause=Cause.METHOD)


def position(change: ChangePoint, points: Sequence[Point]) -> int:
    """Where its first changed point is among folded `points`; where it would be if that is no longer there."""
    for i in range(len(points) - 1, -1, -1):
        if points[i].run_key == change.first_changed.run_key:
            return i
    return bisect_left(points, change.first_changed.at, key=lambda p: p.at)


def direction(better: Better, effect: Estimate, *, relative: bool) -> Direction:
    """Whether a user gains or loses by it."""
    up = effect.value > (1.0 if relative else 0.0)
    return Direction.WORSE if up == (better is Better.LOWER) else Direction.BETTER


def _values(points: Sequence[Point]) -> list[float]:
    return [point.estimate.value for point in points]


def _median_point(group: Sequence[Point]) -> Point:
    estimates = [point.estimate for point in group]
    lows = [e.low for e in estimates if e.low is not None]
    highs = [e.high for e in estimates if e.high is not None]
    whole = len(lows) == len(highs) == len(group)
    merged = Estimate(
        value=median(as_values([e.value for e in estimates])), n=sum(e.n for e in estimates),
        low=median(as_values(lows)) if whole else None, high=median(as_values(highs)) if whole else None,
        note="" if whole else next(e.note for e in estimates if e.low is None or e.high is None),
    )  # fmt: skip
    return replace(group[0], estimate=merged)


def _parameters(sensitivity: Sensitivity, minimum: float) -> dict[str, Scalar]:
    return {
        "sensitivity": sensitivity.name, "kernel": sensitivity.kernel, "distribution": sensitivity.distribution,
        "gamma": GAMMA, "window": sensitivity.window, "minimum": minimum,
    }  # fmt: skip


def _change(
    series: Series,
    points: Sequence[Point],
    step: Step,
    parameters: Mapping[str, Scalar],
    at: datetime,
    environments: Environments,
) -> ChangePoint:
    first = points[step.index]
    before = points[max(0, step.index - REACH) : step.index]
    after = points[step.index : step.index + REACH]
    return ChangePoint(
        key=hashlib.sha256(f"{series.fingerprint} {first.run_key}".encode()).hexdigest()[:32],
        series=series, detector=step.detector, parameters={**parameters, "relative": step.relative},
        last_good=before[-1], first_changed=first, before=step.before, after=step.after, effect=step.effect,
        direction=direction(series.metric.better, step.effect, relative=step.relative), detected_at=at,
        environment=lasting_differences(before, after, environments),
    )  # fmt: skip
