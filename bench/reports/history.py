"""A series as a small plot for a terminal: a dot a point, a line a level, a mark where it changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log

from bench.detect import HISTORY, NEAR, exact_steps, steps
from bench.history import ChangePoint, Direction, Point, Series
from bench.metrics import Better, Kind, Summary
from bench.model import Estimate
from bench.night import is_relative
from bench.reports.format import interval, quantity, ratio, title
from bench.reports.text import printable
from bench.series import direction, position
from bench.sweep import is_sure

HEIGHT = 9
LABEL = 11
"""Columns of the axis at the left."""

DOT, LEVEL, UP, DOWN = "•", "─", "▲", "▼"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A change to show: `index` is its first point; `effect` after / before, or after − before where not `relative`."""

    index: int
    before: Estimate
    after: Estimate
    effect: Estimate
    relative: bool
    regression: str | None = None


def marks(series: Series, points: Sequence[Point], known: Sequence[ChangePoint]) -> list[Mark]:
    """Changes of folded `points` as the detector sees them now, with the regression that one of them is part of.

    `known` are the recorded change points of the series.
    """
    values = [point.estimate.value for point in points]
    as_ratio = series.metric.kind is not Kind.ACCURACY
    exact = series.metric.summary is Summary.EXACT
    found = exact_steps(values, as_ratio=as_ratio) if exact else steps(values, HISTORY, as_ratio=as_ratio)
    sure = {position(c, points): c for c in known if is_sure(c)}
    shown = [
        Mark(
            index=c.index, before=c.before, after=c.after, effect=c.effect, relative=c.relative,
            regression=next((k.regression for at, k in sure.items() if abs(at - c.index) <= NEAR), None),
        )
        for c in found
    ]  # fmt: skip
    shown += [  # what a proof confirmed stands, though it was over before a detector could see it
        Mark(
            index=at, before=c.before, after=c.after, effect=c.effect, relative=is_relative(c), regression=c.regression
        )
        for at, c in sure.items()
        if at < len(points) and all(abs(at - m.index) > NEAR for m in shown)
    ]  # fmt: skip
    return sorted(shown, key=lambda mark: mark.index)


def history_text(series: Series, points: Sequence[Point], marks: Sequence[Mark], *, width: int | None = None) -> str:
    """The plot, and a line for each change, the newest first."""
    metric = series.metric
    head = f"{printable(series.variant)}  {title(metric)}  {printable(series.machine_label)}"
    if series.target != "cpu":
        head += f"  {printable(series.target)}"
    if not points:
        return f"{head}\nno point yet\n"
    last = points[-1]
    lines = [head, f"{len(points)} points, the last {interval(last.estimate, metric)} at {_when(last)}"]
    if len(points) > 1:
        lines += plot([p.estimate.value for p in points], [m.index for m in marks], series, width=width or 100)
        lines.append(f"{' ' * LABEL}{points[0].at:%Y-%m-%d} … {last.at:%Y-%m-%d}")
    for mark in reversed(marks):
        worse = is_worse(mark, metric.better)
        size = ratio(mark.effect, 3) if mark.relative else f"{mark.effect.value:+.4g}"
        levels = f"{quantity(mark.before.value, metric)} → {quantity(mark.after.value, metric)}"
        known = f"  regression {mark.regression[:8]}" if mark.regression else ""
        word = f"{DOWN} worse" if worse else f"{UP} better"
        lines.append(f"{word}  {size}  {levels}  at {_when(points[mark.index])}{known}")
    if not marks and len(points) > 1:
        lines.append("no change found")
    return "\n".join(lines) + "\n"


def is_worse(mark: Mark, better: Better) -> bool:
    """Whether a user loses by it."""
    return direction(better, mark.effect, relative=mark.relative) is Direction.WORSE


def plot(values: Sequence[float], changes: Sequence[int], series: Series, *, width: int) -> list[str]:
    """Rows from the top. `values` share `width` columns in order; a column shows every value that falls on it.

    The axis is logarithmic where all values are positive: 5 % look the same at every level.
    """
    from statistics import median

    columns = max(10, min(len(values), width - LABEL - 1))
    logarithmic = min(values) > 0
    heights = [log(v) for v in values] if logarithmic else list(values)
    low, high = min(heights), max(heights)
    if high == low:
        low, high = low - 0.5, high + 0.5

    def row_of(height: float) -> int:
        return round((high - height) / (high - low) * (HEIGHT - 1))

    def column_of(index: int) -> int:
        return index * columns // len(values) if len(values) > columns else index

    grid = [[" "] * columns for _ in range(HEIGHT)]
    edges = [0, *changes, len(values)]
    for start, end in pairwise(edges):
        level = row_of(median(heights[start:end]))
        for index in range(start, end):
            grid[level][column_of(index)] = LEVEL
    for index, height in enumerate(heights):
        grid[row_of(height)][column_of(index)] = DOT
    labels = {0: values[heights.index(max(heights))], HEIGHT - 1: values[heights.index(min(heights))]}
    texts = {row: quantity(value, series.metric) for row, value in labels.items()}
    rows = [f"{texts.get(row, ''):>{LABEL - 1}} {''.join(cells).rstrip()}" for row, cells in enumerate(grid)]
    if changes:
        marks = [" "] * columns
        for index in changes:
            marks[column_of(index)] = "│"
        rows.append(" " * LABEL + "".join(marks).rstrip())
    return rows


def _when(point: Point) -> str:
    day = f"{point.at:%Y-%m-%d}"
    return f"{point.commit[:9]} ({day})" if point.commit else day
