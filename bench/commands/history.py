"""`bench history`: series over commits or time, in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from bench.commands._shared import config_of, database_option, note, opened, width, write

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.errors import Exit
    from bench.history import ChangePoint, Point, Series
    from bench.ports import History
    from bench.reports.history import Mark

MOST = 12
"""Series that are plotted; more are a question for the dashboard."""


@click.command("history")
@click.argument("selectors", nargs=-1, metavar="BENCHMARK...", required=True)
@click.option("--metric", default="time", show_default=True, help="Which metric; * and ? stand for any text.")
@click.option("--machine", metavar="FINGERPRINT", help="Only this machine: the beginning of its fingerprint.")
@click.option("--limit", type=click.IntRange(1), default=1000, show_default=True, help="Newest points of each series.")
@click.option("--json", "as_json", is_flag=True, help="Machine-readable output: every point with its interval.")
@database_option
def command(
    selectors: tuple[str, ...], metric: str, machine: str | None, limit: int, as_json: bool, database: str | None
) -> Exit:
    """Plot the history of BENCHMARK: a suite, a benchmark or a variant, with * and ?.

    Points stand in the order of their commits, else of their measurement. A line is a level; where it
    changed, the size of the change stands below with its interval.
    """
    import json

    from bench.errors import Exit, MissingError
    from bench.reports.history import history_text
    from bench.series import fold
    from bench.wire import plain

    with opened(config_of(database=database)) as store:
        history = store.history
        chosen = _chosen(history, selectors, metric, machine)
        if not chosen:
            raise MissingError(f"no series of {metric} matches {', '.join(selectors)}; `bench show --list` lists runs.")
        if len(chosen) > MOST and not as_json:
            note(f"{len(chosen)} series match; the first {MOST} are shown")
            chosen = chosen[:MOST]
        found = history.points([s.fingerprint for s in chosen], limit=limit)
        known = history.changes(series=[s.fingerprint for s in chosen])
    texts, documents = [], []
    for series in chosen:
        points = fold(found.get(series.fingerprint, []))
        marks = _marks(series, points, [c for c in known if c.series.fingerprint == series.fingerprint])
        texts.append(history_text(series, points, marks, width=width()))
        documents.append({**plain(series), "points": plain(points), "changes": plain(marks)})
    if as_json:
        document: dict[str, Any] = {"schema": "bench-history", "version": 1, "series": documents}
        write(json.dumps(document, indent=2), None)
    else:
        write("\n".join(texts), None)
    return Exit.OK


def _chosen(history: History, selectors: Sequence[str], metric: str, machine: str | None) -> list[Series]:
    from fnmatch import fnmatchcase

    def wanted(series: Series) -> bool:
        names = (series.variant, series.benchmark, series.suite)
        return (
            any(name == text or fnmatchcase(name, text) for name in names for text in selectors)
            and fnmatchcase(series.metric.name, metric)
            and (machine is None or series.machine_fingerprint.startswith(machine))
        )

    return [series for series in history.series() if wanted(series)]


def _marks(series: Series, points: Sequence[Point], known: Sequence[ChangePoint]) -> list[Mark]:
    """Changes as the detector sees them now, with the regression that one of them is part of."""
    from bench.detect import HISTORY, NEAR, exact_steps, steps
    from bench.metrics import Kind, Summary
    from bench.night import is_relative
    from bench.reports.history import Mark
    from bench.series import position
    from bench.sweep import is_sure

    values = [point.estimate.value for point in points]
    as_ratio = series.metric.kind is not Kind.ACCURACY
    exact = series.metric.summary is Summary.EXACT
    found = exact_steps(values, as_ratio=as_ratio) if exact else steps(values, HISTORY, as_ratio=as_ratio)
    sure = {position(c, points): c for c in known if is_sure(c)}
    marks = [
        Mark(
            index=c.index, before=c.before, after=c.after, effect=c.effect, relative=c.relative,
            regression=next((k.regression for at, k in sure.items() if abs(at - c.index) <= NEAR), None),
        )
        for c in found
    ]  # fmt: skip
    marks += [  # what a proof confirmed stands, though it was over before a detector could see it
        Mark(
            index=at, before=c.before, after=c.after, effect=c.effect, relative=is_relative(c), regression=c.regression
        )
        for at, c in sure.items()
        if at < len(points) and all(abs(at - m.index) > NEAR for m in marks)
    ]  # fmt: skip
    return sorted(marks, key=lambda mark: mark.index)
