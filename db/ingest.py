"""Writing runs: one way for one run and for many, COPY on PostgreSQL, prepared statements on SQLite.

All writers take the tables, and the keys inside each, in one order, so that two of them never wait
for each other.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa

from bench.errors import RunConflictError
from bench.ports import Added
from db import tables as t
from db.engine import chunks, upsert
from db.mapping import ESTIMATE, Rows, Values
from db.tables import microseconds

Ids = dict[str, dict[str, int]]
"""Ids of shared rows by table and fingerprint."""

_SHARED = (t.machine, t.environment, t.benchmark, t.metric)


@contextmanager
def no_collection() -> Iterator[None]:
    """Without the garbage collector, which would look at 100,000 new rows again and again, for a third of the time."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


def write_runs(connection: sa.Connection, runs: Sequence[Rows]) -> list[Added]:
    """Store what is not there yet; what became of each. Raises RunConflictError."""
    known = _known(connection, runs)
    new: list[Rows] = []
    found = []
    for rows in runs:
        replay = _is_replay(rows, known)
        if not replay:
            known[rows.run["run_key"]] = {rows.run["payload_sha"]}
            new.append(rows)
        found.append(Added.REPLAY if replay else Added.NEW)
    if not new:
        return found
    ids: Ids = {table.name: _intern(connection, table, _gathered(new, table.name)) for table in _SHARED}
    run_ids = _add_runs(connection, new, ids)
    if len(run_ids) < len(new):  # another process stored some since we looked
        known = _known(connection, [rows for rows in new if rows.run["run_key"] not in run_ids])
        lost = {key for key in known if _is_replay(next(r for r in new if r.run["run_key"] == key), known)}
        found = [Added.REPLAY if rows.run["run_key"] in lost else was for rows, was in zip(runs, found, strict=True)]
        new = [rows for rows in new if rows.run["run_key"] in run_ids]
    series = {key: _with_ids(values, ids) for key, values in _gathered(new, "series").items()}
    ids["series"] = _intern(connection, t.series, series)
    _add_parts(connection, [(run_ids[rows.run["run_key"]], rows) for rows in new], ids)
    return found


def _known(connection: sa.Connection, runs: Sequence[Rows]) -> dict[str, set[str]]:
    """Content of those that are stored, by key: as they came, and as retention left them."""
    known: dict[str, set[str]] = {}
    for some in chunks([rows.run["run_key"] for rows in runs]):
        query = sa.select(t.run.c.run_key, t.run.c.payload_sha, t.run.c.reduced_sha).where(t.run.c.run_key.in_(some))
        known.update((key, {sha, reduced}) for key, sha, reduced in connection.execute(query))
    return known


def _is_replay(rows: Rows, known: Mapping[str, set[str]]) -> bool:
    key = rows.run["run_key"]
    if key in known and rows.run["payload_sha"] not in known[key]:
        raise RunConflictError(f"run {key} is stored with other content; a run is never changed.")
    return key in known


def _gathered(runs: Iterable[Rows], name: str) -> dict[str, Values]:
    return {fingerprint: values for rows in runs for fingerprint, values in getattr(rows, name).items()}


def _add_runs(connection: sa.Connection, runs: Sequence[Rows], ids: Ids) -> dict[str, int]:
    """Ids by key of those that were not there."""
    values = sorted((_with_ids(rows.run, ids) for rows in runs), key=lambda row: str(row["run_key"]))
    insert = upsert(connection, t.run).on_conflict_do_nothing(index_elements=["run_key"])
    return {row.run_key: row.id for row in connection.execute(insert.returning(t.run.c.run_key, t.run.c.id), values)}


def _add_parts(connection: sa.Connection, runs: Sequence[tuple[int, Rows]], ids: Ids) -> None:
    for table, name in ((t.experiment, "experiments"), (t.arm, "arms")):
        parts = [
            {**_with_ids(values, ids), "run_id": run_id} for run_id, rows in runs for values in getattr(rows, name)
        ]
        if parts:
            names = list(parts[0])
            values = [tuple(part.values()) for part in parts]
            _insert(connection, table, names, _bound(connection, [table.c[name] for name in names], values))
    series_ids, metric_ids = ids["series"], ids["metric"]
    measurements = [
        (run_id, m.arm, m.position, series_ids[m.series_fp], metric_ids[m.metric_fp], m.loops, microseconds(m.at),
         *m.estimate)
        for run_id, rows in runs
        for m in rows.measurements
    ]  # fmt: skip
    if len(runs) > 1 and connection.dialect.name == "sqlite":
        measurements.sort(key=lambda row: row[3])  # by series: each page of their index is written once
    names = ["run_id", "arm", "position", "series_id", "metric_id", "loops", "at", *ESTIMATE]
    _insert(connection, t.measurement, names, measurements)
    samples = [(run_id, *sample) for run_id, rows in runs for sample in rows.samples]
    _insert(connection, t.sample, ["run_id", "arm", "position", "codec", "data"], samples)
    _advance_states(connection, runs, ids)


def _with_ids(values: Values, ids: Mapping[str, Mapping[str, int]]) -> Values:
    """Replace `machine_fp: …` by `machine_id: …` and so on."""
    return {
        f"{name[:-3]}_id" if name.endswith("_fp") else name: ids[name[:-3]][value] if name.endswith("_fp") else value
        for name, value in values.items()
    }


def _insert(connection: sa.Connection, table: sa.Table, names: Sequence[str], rows: list[tuple[Any, ...]]) -> None:
    """Insert rows whose values stand in the order of `names`, as the driver wants them."""
    if not rows:
        return
    columns = ", ".join(connection.dialect.identifier_preparer.quote(name) for name in names)
    if connection.dialect.name == "postgresql":
        _copy(connection, f"COPY {table.name} ({columns}) FROM STDIN", rows)
    else:
        marks = ", ".join("?" * len(names))
        connection.exec_driver_sql(f"INSERT INTO {table.name} ({columns}) VALUES ({marks})", rows)


def _bound(
    connection: sa.Connection, columns: Sequence[sa.Column[Any]], rows: list[tuple[Any, ...]]
) -> list[tuple[Any, ...]]:
    """Values as the driver wants them: what SQLAlchemy does for its own statements."""
    found: list[tuple[int, Callable[[Any], Any]]] = []
    for place, column in enumerate(columns):
        processor = column.type.dialect_impl(connection.dialect).bind_processor(connection.dialect)
        if processor is not None:
            found.append((place, processor))
    if not found:
        return rows
    values = list(zip(*rows, strict=True))
    for place, bind in found:
        values[place] = tuple(map(bind, values[place]))
    return list(zip(*values, strict=True))


def _copy(connection: sa.Connection, statement: str, rows: Iterable[tuple[Any, ...]]) -> None:
    import psycopg

    driver = connection.connection.driver_connection
    assert driver is not None
    try:
        with driver.cursor() as cursor, cursor.copy(statement) as copy:
            for row in rows:
                copy.write_row(row)
    except psycopg.Error as error:
        raise sa.exc.DBAPIError.instance(statement, None, error, psycopg.Error, dialect=connection.dialect) from error


def _intern(connection: sa.Connection, table: sa.Table, wanted: Mapping[str, Values]) -> dict[str, int]:
    """Ids of shared rows by fingerprint, adding what is new. Two processes may add the same row at once."""
    found = _ids(connection, table, list(wanted))
    new = sorted(wanted.keys() - found.keys())
    if new:
        connection.execute(
            upsert(connection, table).on_conflict_do_nothing(index_elements=["fingerprint"]),
            [{"fingerprint": fingerprint, **wanted[fingerprint]} for fingerprint in new],
        )
        found.update(_ids(connection, table, new))
    return found


def _ids(connection: sa.Connection, table: sa.Table, fingerprints: Sequence[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for some in chunks(fingerprints):
        query = sa.select(table.c.fingerprint, table.c.id).where(table.c.fingerprint.in_(some))
        found.update((fingerprint, id_) for fingerprint, id_ in connection.execute(query))
    return found


_STATE = ("series_id", "run_id", "arm", "started_at", "metric_id", *ESTIMATE, "points")
"""Columns of series_state, in their order."""


def _advance_states(connection: sa.Connection, runs: Sequence[tuple[int, Rows]], ids: Ids) -> None:
    """Point every series at the latest run, unless it has a later one already, and count its points."""
    latest: dict[int, tuple[Any, ...]] = {}
    points: dict[int, int] = {}
    for run_id, rows in sorted(runs, key=lambda pair: (pair[1].run["started_at"], pair[0])):
        started_at = rows.run["started_at"]
        for m in rows.measurements:
            if m.arm in rows.unshown:
                continue
            series_id = ids["series"][m.series_fp]
            counts = m.at is not None and m.estimate[0] is not None
            points[series_id] = points.get(series_id, 0) + counts
            latest[series_id] = (series_id, run_id, m.arm, started_at, ids["metric"][m.metric_fp], *m.estimate)
    if not latest:
        return
    insert = upsert(connection, t.series_state)
    new, old = insert.excluded, t.series_state.c
    newer = sa.or_(old.started_at < new.started_at, sa.and_(old.started_at == new.started_at, old.run_id < new.run_id))
    advance: dict[str, Any] = {name: sa.case((newer, new[name]), else_=old[name]) for name in _STATE[1:-1]}
    advance["points"] = old.points + new.points
    states = [(*latest[series_id], points[series_id]) for series_id in sorted(latest)]
    if connection.dialect.name == "postgresql":  # all in one statement
        types = [sa.ARRAY(t.series_state.c[name].type) for name in _STATE]
        arrays = [
            sa.cast(sa.literal(list(values), kind), kind)
            for kind, values in zip(types, zip(*states, strict=True), strict=True)
        ]
        given = sa.func.unnest(*arrays).table_valued(*_STATE).render_derived(name="given")
        insert = insert.from_select(list(_STATE), sa.select(*(given.c[name] for name in _STATE)))
        connection.execute(insert.on_conflict_do_update(index_elements=["series_id"], set_=advance))
        return
    statement = insert.values({name: sa.bindparam(name) for name in _STATE})
    compiled = statement.on_conflict_do_update(index_elements=["series_id"], set_=advance).compile(connection)
    connection.exec_driver_sql(compiled.string, _bound(connection, [old[name] for name in _STATE], states))
