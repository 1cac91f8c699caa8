"""What pages show of thousands of series at once: narrow rows, no raw samples, no grouping over measurements.

Every function takes the connection of `SqlStore.read()`. Rows are named tuples in the units of their
metric: at 20,000 rows, making an object each costs more than the query. What a series is called is
the same for ever: ask for `labels` once and keep them.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from bench.history import Regression, Series
from db import history_queries
from db import tables as t
from db.engine import raw


class Latest(NamedTuple):
    """The latest values of a series; `value` is null where no estimate was derived."""

    series_id: int
    value: float | None
    low: float | None
    high: float | None
    points: int  # of its history


class CommitPair(NamedTuple):
    """The values of a series at two commits, with their intervals."""

    series_id: int
    base: float
    base_low: float | None
    base_high: float | None
    head: float
    head_low: float | None
    head_high: float | None


def labels(connection: sa.Connection) -> dict[int, Series]:
    """Every series that has a point, by the id that the rows here carry."""
    return history_queries.series(connection)


def latest(connection: sa.Connection) -> list[Latest]:
    """The latest values of every series, kept on ingest; in no order."""
    state = t.series_state.c
    query = sa.select(state.series_id, state.value, state.low, state.high, state.points)
    return list(map(Latest._make, raw(connection, query)))


def compare_commits(connection: sa.Connection, base: str, head: str) -> list[CommitPair]:
    """Values at two commits of all series that have a point at both.

    Of several runs at one commit the one measured last counts.
    """
    before = _at_commit(connection, base)
    after = _at_commit(connection, head)
    return [CommitPair(id_, *before[id_][1:], *row[1:]) for id_, row in after.items() if id_ in before]


def _at_commit(connection: sa.Connection, commit: str) -> dict[int, tuple[Any, ...]]:
    measured = t.measurement.c
    runs = sa.select(t.run.c.id).where(t.run.c.commit_id == commit).order_by(t.run.c.started_at, t.run.c.id)
    found: dict[int, tuple[Any, ...]] = {}
    for run_id in connection.scalars(runs).all():
        query = sa.select(measured.series_id, measured.value, measured.low, measured.high).where(
            measured.run_id == run_id, measured.at.is_not(None), measured.value.is_not(None)
        )
        found.update((row[0], row) for row in raw(connection, query))
    return found


def regressions_since(connection: sa.Connection, since: datetime) -> list[Regression]:
    """Regressions opened since a moment, newest first."""
    return history_queries.regressions(connection, now=datetime.now(UTC), since=since)
