"""`bench history`: series over commits or time, in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from bench.commands._shared import config_of, database_option, note, opened, width, write

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.errors import Exit
    from bench.history import Series
    from bench.ports import History

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
    from bench.reports.history import history_text, marks
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
        found_now = marks(series, points, [c for c in known if c.series.fingerprint == series.fingerprint])
        texts.append(history_text(series, points, found_now, width=width()))
        documents.append({**plain(series), "points": plain(points), "changes": plain(found_now)})
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
