"""Series as pages show them: folded points, the levels between changes, and short names. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from bench.detect import NEAR, REACH
from bench.history import ChangePoint, Point, Series
from bench.night import is_relative
from bench.reports.history import Mark, marks
from bench.series import fold, position
from dashboard.wording import short


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """The median of the points from `first` up to and without `end`."""

    first: int
    end: int
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """One series: a point for each commit and environment, oldest first, and where its level changed."""

    series: Series
    points: tuple[Point, ...]
    marks: tuple[Mark, ...]

    def levels(self) -> list[Level]:
        """One for each stretch between changes."""
        edges = [0, *(m.index for m in self.marks), len(self.points)]
        return [
            Level(first=first, end=end, value=median(p.estimate.value for p in self.points[first:end]))
            for first, end in pairwise(edges)
            if end > first
        ]


def track_of(series: Series, points: Sequence[Point], known: Sequence[ChangePoint]) -> Track:
    """From stored points and recorded change points; changes are the detector's at its sensitivity to show."""
    folded = fold(points)
    return Track(series=series, points=tuple(folded), marks=tuple(marks(series, folded, known)))


def around(track: Track, change: ChangePoint, reach: int = REACH) -> tuple[Track, int]:
    """The points up to `reach` before and after a change of the series, and the place of its first one there.

    The change itself has a mark, also where the detector no longer sees it.
    """
    at = min(position(change, track.points), max(0, len(track.points) - 1))
    start, end = max(0, at - reach), at + reach
    found = [replace(m, index=m.index - start) for m in track.marks if start < m.index < end]
    at -= start
    if at and all(abs(m.index - at) > NEAR for m in found):
        found.append(
            Mark(
                index=at, before=change.before, after=change.after, effect=change.effect,
                relative=is_relative(change), regression=change.regression,
            )
        )  # fmt: skip
    shown = Track(
        series=track.series, points=track.points[start:end], marks=tuple(sorted(found, key=lambda m: m.index))
    )
    return shown, at


def names_of(every: Iterable[Series]) -> dict[str, str]:
    """A name by fingerprint: what differs among these series, the whole variant where nothing does."""
    shown = list(every)
    benchmarks = {s.benchmark for s in shown}
    found = {}
    for series in shown:
        params = series.variant.removeprefix(series.benchmark).strip("[]")
        parts = [params if len(benchmarks) == 1 and params else series.variant]
        if len({s.target for s in shown}) > 1:
            parts.append(series.target)
        if len({s.machine_fingerprint for s in shown}) > 1:
            parts.append(f"{series.machine_label} ({short(series.machine_fingerprint)})")
        if len({s.benchmark_version for s in shown if s.variant == series.variant}) > 1:
            parts.append(f"version {short(series.benchmark_version)}")
        if len(parts) > 1 and len({s.variant for s in shown}) == 1:
            del parts[0]
        found[series.fingerprint] = " @ ".join(parts)
    return found
