"""Whether a series is back where it was before a change. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from statistics import median

from bench.detectors.kernel import FEWEST
from bench.history import ChangePoint, Point
from bench.metrics import Better, Kind, Summary
from bench.series import position

REPAIRED = 0.25
"""Share of a change that may be left: less could not be told from the noise of the level before it."""


def recovered(change: ChangePoint, points: Sequence[Point], minimum: float) -> bool:
    """Whether the newest FEWEST of folded `points` lie at the old level or on its better side.

    Up to `minimum`, or REPAIRED of the change where that is more. An exact metric needs one point. Never
    where the change is so young that its own points are among them.
    """
    needed = 1 if change.series.metric.summary is Summary.EXACT else FEWEST
    newest = points[-needed:]
    if len(newest) < needed or len(points) - needed <= position(change, points):
        return False
    metric, old = change.series.metric, change.before.value
    values = [point.estimate.value for point in newest]
    if metric.kind is Kind.ACCURACY or min(old, change.after.value, *values) <= 0:
        moved, left = change.after.value - old, median(values) - old
        allowed = REPAIRED * abs(moved)
    else:
        moved, left = log(change.after.value / old), log(median(values) / old)
        allowed = max(minimum, REPAIRED * abs(moved))
    worse = left if metric.better is Better.LOWER else -left
    return worse <= allowed
