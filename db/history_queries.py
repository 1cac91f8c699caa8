"""What SqlHistory reads: rows to the values of bench.history. Every function takes an open connection."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from bench.errors import MissingError
from bench.history import ChangePoint, Point, ProofRequest, Regression, Series, State
from bench.model import Estimate
from bench.triage import as_of
from bench.wire import convert
from db import tables as t
from db.engine import chunks, raw
from db.mapping import ESTIMATE, METRIC, metric_from
from db.tables import from_driver, from_microseconds

LEAST_DIGITS = 4
"""Of a key that is not written out."""

_POINT = (t.measurement.c.at.is_not(None), t.measurement.c.value.is_not(None))
"""What makes a measurement a point (bench.points.point_at; without an estimate it says nothing)."""

_ORDER = (t.measurement.c.at, t.run.c.started_at, t.run.c.run_key, t.measurement.c.arm, t.measurement.c.position)
"""Of the points of one series."""

REQUESTS = sa.select(t.proof_request).order_by(t.proof_request.c.made_at, t.proof_request.c.key)


def series(
    connection: sa.Connection,
    *,
    changed: bool = False,
    machine: str | None = None,
    ids: Sequence[int] | None = None,
) -> dict[int, Series]:
    """Series with a point by id; the metric as it was declared last."""
    s, state, mark = t.series.c, t.series_state.c, t.detector_mark.c
    query = (
        sa.select(
            s.id, s.fingerprint, s.suite, s.benchmark, s.benchmark_version, s.variant, s.target, state.metric_id,
            t.machine.c.fingerprint.label("machine_fingerprint"), t.machine.c.label.label("machine_label"),
        )
        .join_from(t.series_state, t.series, state.series_id == s.id)
        .join(t.machine, s.machine_id == t.machine.c.id)
        .where(state.points > 0)
    )  # fmt: skip
    if changed:
        query = query.outerjoin(t.detector_mark, mark.series_id == s.id)
        query = query.where(sa.or_(mark.points.is_(None), mark.points != state.points))
    if machine is not None:
        query = query.where(t.machine.c.fingerprint == machine)
    if ids is not None:
        query = query.where(s.id.in_(ids))
    columns = [t.metric.c.id, *(t.metric.c[name].label(f"metric_{name}") for name in METRIC)]
    metrics = {row.id: metric_from(row._asdict()) for row in connection.execute(sa.select(*columns))}
    return {
        row.id: Series(
            fingerprint=row.fingerprint, suite=row.suite, benchmark=row.benchmark,
            benchmark_version=row.benchmark_version, variant=row.variant, target=row.target,
            metric=metrics[row.metric_id], machine_fingerprint=row.machine_fingerprint,
            machine_label=row.machine_label,
        )
        for row in connection.execute(query)
    }  # fmt: skip


def series_ids(connection: sa.Connection, fingerprints: Sequence[str]) -> dict[str, int]:
    """Ids of those that are there, by fingerprint."""
    found: dict[str, int] = {}
    for some in chunks(list(dict.fromkeys(fingerprints))):
        query = sa.select(t.series.c.fingerprint, t.series.c.id).where(t.series.c.fingerprint.in_(some))
        found.update((fingerprint, id_) for fingerprint, id_ in connection.execute(query))
    return found


def points(connection: sa.Connection, fingerprints: Sequence[str], limit: int | None) -> dict[str, list[Point]]:
    """Points of each series, oldest first; with `limit` the newest so many of each."""
    found: dict[str, list[Point]] = {fingerprint: [] for fingerprint in fingerprints}
    names = {id_: fingerprint for fingerprint, id_ in series_ids(connection, fingerprints).items()}
    for some in chunks(list(names)):
        rows = raw(connection, _points_query(some, limit))
        for id_, run_key, at, measured_at, commit, environment_fp, value, low, high, n, note in rows:
            found[names[id_]].append(
                Point(
                    run_key=run_key, at=from_microseconds(at), measured_at=from_driver(measured_at), commit=commit,
                    environment_fingerprint=environment_fp,
                    estimate=Estimate(value=value, low=low, high=high, n=n, note=note),
                )
            )  # fmt: skip
    if limit is not None:
        found = {fingerprint: there[max(0, len(there) - limit) :] for fingerprint, there in found.items()}
    return found


def _points_query(ids: Sequence[int], limit: int | None) -> sa.Select[Any]:
    """With `limit` the newest so many of each by `at`, and all that stand where the last of them stands."""
    measured = t.measurement.c
    rank = sa.func.rank().over(partition_by=measured.series_id, order_by=measured.at.desc())
    columns = (measured[name] for name in ("series_id", "run_id", "arm", "position", "at", *ESTIMATE))
    inner = sa.select(*columns, rank.label("place")).where(measured.series_id.in_(ids), *_POINT).subquery()
    query = (
        sa.select(
            inner.c.series_id, t.run.c.run_key, inner.c.at, t.run.c.started_at, t.run.c.commit_id,
            t.environment.c.fingerprint, *(inner.c[name] for name in ESTIMATE),
        )
        .join_from(inner, t.run, inner.c.run_id == t.run.c.id)
        .join(t.environment, t.run.c.environment_id == t.environment.c.id)
        .order_by(inner.c.series_id, inner.c.at, t.run.c.started_at, t.run.c.run_key, inner.c.arm, inner.c.position)
    )  # fmt: skip
    return query if limit is None else query.where(inner.c.place <= limit)


def newest(connection: sa.Connection, fingerprints: Sequence[str]) -> dict[str, Any]:
    """`id`, `points` (how many) and `run_key` (of the newest) of each series that is there."""
    measured, state = t.measurement.c, t.series_state.c
    latest = (
        sa.select(t.run.c.run_key)
        .join_from(t.measurement, t.run, measured.run_id == t.run.c.id)
        .where(measured.series_id == t.series.c.id, *_POINT)
        .order_by(*(column.desc() for column in _ORDER))
        .limit(1)
        .correlate(t.series)
        .scalar_subquery()
        .label("run_key")
    )
    found: dict[str, Any] = {}
    for some in chunks(fingerprints):
        query = (
            sa.select(t.series.c.fingerprint, t.series.c.id, state.points, latest)
            .join_from(t.series, t.series_state, state.series_id == t.series.c.id)
            .where(t.series.c.fingerprint.in_(some))
        )
        found.update({row.fingerprint: row for row in connection.execute(query)})
    return found


def changes(
    connection: sa.Connection,
    *,
    series: Sequence[str] | None = None,
    regression: str | None = None,
    superseded: bool = False,
) -> list[ChangePoint]:
    """Change points, oldest first by their first changed point."""
    change = t.change_point.c
    query = sa.select(change.series_id, change.facts)
    if regression is not None:
        query = query.where(change.regression == regression)
    if not superseded:
        query = query.where(change.superseded_by.is_(None))
    if series is None:
        return _changes(connection, [query])
    ids = list(series_ids(connection, series).values())
    return _changes(connection, [query.where(change.series_id.in_(some)) for some in chunks(ids)])


def changes_by_key(connection: sa.Connection, keys: Sequence[str], *, lock: bool = False) -> list[ChangePoint]:
    """Those that are there, superseded or not."""
    change = t.change_point.c
    query = sa.select(change.series_id, change.facts).order_by(change.key)
    if lock:
        query = query.with_for_update()
    return _changes(connection, [query.where(change.key.in_(some)) for some in chunks(sorted(set(keys)))])


def _changes(connection: sa.Connection, wanted: Sequence[sa.Select[Any]]) -> list[ChangePoint]:
    rows = [tuple(row) for query in wanted for row in connection.execute(query)]
    known: dict[int, Series] = {}
    for some in chunks(sorted({id_ for id_, _ in rows})):
        known.update(series(connection, ids=some))
    found = [_change(known[id_], facts) for id_, facts in rows]
    return sorted(found, key=lambda c: (c.first_changed.at, c.detected_at, c.key))


def _change(series: Series, facts: dict[str, Any]) -> ChangePoint:
    return convert({**facts, "series": series}, ChangePoint, "a stored change point")


def regressions(
    connection: sa.Connection, *, now: datetime, states: Sequence[State] = (), since: datetime | None = None
) -> list[Regression]:
    """Newest first; opened since a moment, in one of some states as of `now`."""
    regression = t.regression.c
    query = sa.select(regression.facts).order_by(regression.opened_at.desc(), regression.key)
    if since is not None:
        query = query.where(regression.opened_at >= since)
    if states:
        stored = {*states, *((State.EXPECTED,) if State.OPEN in states else ())}
        query = query.where(regression.state.in_(sorted(state.value for state in stored)))
    found = [_regression(facts, now) for facts in connection.scalars(query)]
    return [r for r in found if not states or r.state in states]


def regression(connection: sa.Connection, ref: str, *, now: datetime) -> Regression:
    """By its key or a unique beginning of it. Raises MissingError."""
    column = t.regression.c
    facts = connection.scalar(sa.select(column.facts).where(column.key == ref))
    if facts is not None:
        return _regression(facts, now)
    if len(ref) < LEAST_DIGITS:
        raise no_regression(ref)
    starts = sa.select(column.facts).where(sa.func.substr(column.key, 1, len(ref)) == ref).limit(2)
    found = connection.scalars(starts).all()
    if len(found) > 1:
        raise MissingError(f"regression {ref!r}: several begin with it; write more of its key.")
    if not found:
        raise no_regression(ref)
    return _regression(found[0], now)


def no_regression(ref: str) -> MissingError:
    """For a regression that is not there."""
    return MissingError(f"regression {ref!r}: none has that key, or begins with it (at least {LEAST_DIGITS} digits).")


def _regression(facts: dict[str, Any], now: datetime) -> Regression:
    return as_of(convert(facts, Regression, "a stored regression"), now)


def request_from(row: sa.Row[Any]) -> ProofRequest:
    """A row of REQUESTS as a value."""
    return convert({str(name): value for name, value in row._asdict().items()}, ProofRequest, "a stored proof request")
