"""Where a series of values changed, by how much, and what its newest value is worth. Pure.

`change_points` on values alone; bench.series does the same on points and makes ChangePoints of it.
docs/detecting.md says what it finds and what not, beside the best tools in use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, isnan, log, log1p

import numpy as np

from bench.detectors.distribution import DistributionDetector
from bench.detectors.kernel import KernelDetector
from bench.model import Estimate
from bench.ports import Detector
from bench.stats.location import Interval
from bench.stats.noise import Values, as_values, median, newest_z, relative, standardize
from bench.stats.shift import level, shift

MINIMUM = 0.01
"""Changes that are surely smaller than 1 % are nobody's problem; a policy may say otherwise."""

REACH = 40
"""Points on each side that an effect is taken from: more would bring in slow drift."""

NEAR = 10
"""Changes within 10 points are the same change: of the second detector, and of a later run."""

SUSPECT_Z = 3.0
"""A newest value this far from the last REACH ones asks for a re-run: 73 % to 77 % of the changes of real
histories are suspects at their first point, and 9 % to 10 % of quiet points."""

EXACT = "exact: the same every time"
FEW = "too few points for an interval"

FEWEST_BEFORE_SUSPECT = 10
"""Points at one level before the next one can be a suspect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """What a change must gain, as a multiple of ln n, and how far back one looks."""

    name: str
    kernel: float
    distribution: float
    window: int

    def detectors(self, n: int) -> tuple[Detector, Detector]:
        """For a series of n values: the first one decides, the second is asked between its changes."""
        return KernelDetector(self.kernel * log(n)), DistributionDetector(self.distribution * log(n))


HISTORY = Sensitivity(name="history", kernel=0.8, distribution=12.0, window=1000)
"""To show a history."""
SUSPECT = Sensitivity(name="suspect", kernel=1.0, distribution=12.0, window=200)
"""For changes that a re-run confirms."""
ALARM = Sensitivity(name="alarm", kernel=1.3, distribution=15.0, window=200)
"""For alarms that nobody checks."""
SENSITIVITIES = (HISTORY, SUSPECT, ALARM)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One change: `index` is the first value of the new level.

    `effect` is after / before where `relative`, else after − before; it need not equal the ratio of the
    two levels, as it is estimated from all pairs of values.
    """

    index: int
    before: Estimate
    after: Estimate
    effect: Estimate
    relative: bool
    detector: str = "kernel"


def change_points(
    values: Sequence[float] | Values, sensitivity: Sensitivity = HISTORY, minimum: float = MINIMUM
) -> list[int]:
    """First indices of new levels, ascending. `values` has shape (n,), oldest first, in any unit.

    Levels last at least 5 values. Changes whose whole 95 % interval lies within ± `minimum` are left out.
    Raises UsageError for a value that is not finite.
    """
    return list(_found(relative(as_values(values)), sensitivity, minimum))


def steps(
    values: Sequence[float] | Values,
    sensitivity: Sensitivity = HISTORY,
    minimum: float = MINIMUM,
    *,
    as_ratio: bool = True,
) -> list[Step]:
    """The same with levels and effects. Without `as_ratio` (accuracy) the effect is a difference."""
    array = as_values(values)
    found = _found(relative(array), sensitivity, minimum)
    edges = [0, *found, len(array)]
    return [
        step_between(_before(array, edges, i), _after(array, edges, i), index=at, detector=found[at], as_ratio=as_ratio)
        for i, at in enumerate(found)
    ]


def exact_steps(values: Sequence[float] | Values, *, as_ratio: bool = True) -> list[Step]:
    """Changes of a metric that is the same every time (sizes, counts): every difference is one.

    Nothing is estimated, so no number here has an interval.
    """
    array = as_values(values)
    edges = [0, *(int(i) + 1 for i in np.flatnonzero(np.diff(array))), len(array)]
    found = []
    for start, at, end in zip(edges, edges[1:], edges[2:], strict=False):
        before, after = float(array[at - 1]), float(array[at])
        ratio = as_ratio and before != 0
        effect = after / before if ratio else after - before
        sides = (Estimate(value=v, n=n, note=EXACT) for v, n in ((before, at - start), (after, end - at)))
        found.append(
            Step(index=at, before=next(sides), after=next(sides), relative=ratio, detector="exact",
                   effect=Estimate(value=effect, note=EXACT))
        )  # fmt: skip
    return found


def step_between(before: Values, after: Values, *, detector: str, as_ratio: bool, index: int | None = None) -> Step:
    """The step from one side to the other; `index` is the number of values before it unless given."""
    ratio = bool(as_ratio and min(before.min(), after.min()) > 0)
    moved = shift(np.log(before), np.log(after)) if ratio else shift(before, after)
    if ratio:
        moved = Interval(exp(moved.value), exp(moved.low), exp(moved.high), moved.n)
    return Step(
        index=len(before) if index is None else index, before=_estimate(level(before)), after=_estimate(level(after)),
        effect=_estimate(moved), relative=ratio, detector=detector,
    )  # fmt: skip


def is_suspect(values: Sequence[float] | Values, since: int = 0) -> bool:
    """Whether the newest value lies far from the level before it; `since` is where that level began.

    False where the level has fewer than FEWEST_BEFORE_SUSPECT values.
    """
    array = relative(as_values(values))[max(since, len(values) - 1 - REACH) :]
    return len(array) > FEWEST_BEFORE_SUSPECT and abs(newest_z(array)) > SUSPECT_Z


def _found(x: Values, sensitivity: Sensitivity, minimum: float) -> dict[int, str]:
    """Changes in ascending order, and the detector that found each."""
    if len(x) == 0:
        return {}
    first, second = sensitivity.detectors(len(x))
    z = standardize(x)
    main = first.changes(z)
    found = dict.fromkeys(main, first.name)
    for start, end in pairwise([0, *main, len(z)]):
        extra = (start + i for i in second.changes(z[start:end]))
        found |= {at: second.name for at in extra if all(abs(at - other) > NEAR for other in main)}
    return {at: found[at] for at in _large(x, sorted(found), log1p(minimum))}


def _estimate(interval: Interval) -> Estimate:
    if isnan(interval.low):
        return Estimate(value=interval.value, n=interval.n, note=FEW)
    return Estimate(value=interval.value, low=interval.low, high=interval.high, n=interval.n)


def _large(x: Values, found: list[int], minimum: float) -> list[int]:
    """Drop what is surely smaller than `minimum` (in x), smallest first; its neighbours are measured again."""
    large: set[int] = set()
    while True:
        edges = [0, *found, len(x)]
        sides = [(_before(x, edges, i), _after(x, edges, i)) for i in range(len(found))]
        sizes = [(abs(median(after) - median(before)), i) for i, (before, after) in enumerate(sides)]
        size, smallest = min(((s, i) for s, i in sizes if found[i] not in large), default=(minimum, -1))
        if size >= minimum:
            return found
        interval = shift(*sides[smallest])
        if -minimum < interval.low and interval.high < minimum:
            large.clear()
            found = found[:smallest] + found[smallest + 1 :]
        else:
            large.add(found[smallest])


def _before(x: Values, edges: Sequence[int], i: int) -> Values:
    """Up to REACH values before the i-th change, back to the one before it."""
    return x[max(edges[i], edges[i + 1] - REACH) : edges[i + 1]]


def _after(x: Values, edges: Sequence[int], i: int) -> Values:
    return x[edges[i + 1] : min(edges[i + 2], edges[i + 1] + REACH)]
