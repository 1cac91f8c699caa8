"""SqlStore: bench.ports.Store on SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager

import sqlalchemy as sa

from bench.errors import MissingError, RunConflictError, StoreError
from bench.model import Run, RunStatus
from bench.points import point_at
from bench.ports import Added, RunInfo
from bench.runs import find_key
from bench.wire import canonical
from db import tables as t
from db.engine import chunks, place, reading, translated, upsert, writing
from db.history import SqlHistory
from db.mapping import NO_ESTIMATE, Rows, Summarise, Values, estimates_of, rows_of, run_from
from db.schema import open_engine

ESTIMATE = tuple(NO_ESTIMATE)


def open_store(url: str, *, create: bool = True, summarise: Summarise | None = None) -> SqlStore:
    """Open a database at the newest schema.

    `create` makes a missing SQLite file, with its folders, and fills an empty database.
    `summarise` gives the estimates that are kept beside the raw samples.
    Raises ConfigError for a URL that cannot be read, SchemaError for an older or newer schema,
    StoreError for a database that cannot be used.
    """
    return SqlStore(open_engine(url, create=create), summarise=summarise)


class SqlStore:
    """Keeps runs; see bench.ports.Store. Safe to use from several threads and processes."""

    def __init__(self, engine: sa.Engine, *, summarise: Summarise | None = None) -> None:
        self._engine = engine
        self._summarise = summarise

    def __enter__(self) -> SqlStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def place(self) -> str:
        """Where the database is, without a password."""
        return place(self._engine.url)

    def read(self) -> AbstractContextManager[sa.Connection]:
        """A connection for db.queries: `with store.read() as connection: queries.history(connection, id)`."""
        return reading(self._engine)

    def add(self, run: Run) -> Added:
        """Store in one transaction; when it returns, the run survives a power loss.

        Raises RunConflictError for the same key with other content, WireError for a run that is
        not well formed, StoreError when the database fails; then nothing is stored.
        """
        try:
            rows = rows_of(canonical(run), self._summarise)
            with writing(self._engine) as connection:
                known = _known(connection, rows)
                return known if known is not None else _insert(connection, rows)
        except (ValueError, OverflowError) as error:  # NaN in JSON, lone surrogates, NUL in a name
            raise StoreError(f"run {run.key} holds a value that {self.place} cannot keep: {error}.") from None

    def get(self, key: str) -> Run:
        """The run as it was added, raw samples included. Raises MissingError."""
        with reading(self._engine) as connection:
            return _load(connection, key)

    def find(self, ref: str) -> str:
        """Key of `latest`, `latest~N`, a key, or a unique beginning of one. Raises MissingError."""
        with reading(self._engine) as connection:
            keys = connection.scalars(sa.select(t.run.c.run_key).order_by(*NEWEST_FIRST)).all()
        return find_key(keys, ref)

    def runs(self, *, limit: int | None = None) -> Sequence[RunInfo]:
        """Newest first, without raw samples."""
        with reading(self._engine) as connection:
            return _infos(connection, limit)

    def rebuild(self) -> int:
        """Derive all estimates and the latest state of every series again; the number of runs.

        One transaction a run, so that writers are not held up for long. Safe to repeat.
        """
        with reading(self._engine) as connection:
            keys = connection.scalars(sa.select(t.run.c.run_key).order_by(t.run.c.id)).all()
        for key in keys:
            changes = _estimates_again(self.get(key), self._summarise)
            with writing(self._engine) as connection:
                _update_estimates(connection, key, changes)
        with writing(self._engine) as connection:
            _rebuild_states(connection)
        return len(keys)

    @property
    def history(self) -> SqlHistory:
        """What detection and triage keep, in the same database."""
        return SqlHistory(self._engine)

    def close(self) -> None:
        """Release all connections."""
        with translated(self._engine.url):
            self._engine.dispose()


NEWEST_FIRST = (t.run.c.started_at.desc(), t.run.c.run_key.desc())


def _known(connection: sa.Connection, rows: Rows) -> Added | None:
    key = rows.run["run_key"]
    sha = connection.scalar(sa.select(t.run.c.payload_sha).where(t.run.c.run_key == key))
    if sha is None:
        return None
    if sha != rows.run["payload_sha"]:
        raise RunConflictError(f"run {key} is stored with other content; a run is never changed.")
    return Added.REPLAY


def _insert(connection: sa.Connection, rows: Rows) -> Added:
    # One order of tables, and of keys inside each, for all writers: two of them never wait for each other.
    ids = {"machine": _intern(connection, t.machine, rows.machine)}
    ids["environment"] = _intern(connection, t.environment, rows.environment)
    ids["benchmark"] = _intern(connection, t.benchmark, rows.benchmark)
    ids["metric"] = _intern(connection, t.metric, rows.metric)
    run_id = connection.execute(
        upsert(connection, t.run).on_conflict_do_nothing(index_elements=["run_key"]).returning(t.run.c.id),
        _with_ids(rows.run, ids),
    ).scalar()
    if run_id is None:  # another process stored it since we looked
        known = _known(connection, rows)
        assert known is not None
        return known
    ids["series"] = _intern(connection, t.series, {k: _with_ids(v, ids) for k, v in rows.series.items()})
    for table, values in (
        (t.experiment, rows.experiments), (t.arm, rows.arms), (t.measurement, rows.measurements),
        (t.sample, rows.samples),
    ):  # fmt: skip
        if values:
            connection.execute(sa.insert(table), [{**_with_ids(v, ids), "run_id": run_id} for v in values])
    _advance_states(connection, rows, run_id, ids)
    return Added.NEW


def _with_ids(values: Values, ids: Mapping[str, Mapping[str, int]]) -> Values:
    """Replace `machine_fp: …` by `machine_id: …` and so on."""
    kept = {name: value for name, value in values.items() if not name.endswith("_fp")}
    return kept | {f"{name[:-3]}_id": ids[name[:-3]][values[name]] for name in values.keys() - kept.keys()}


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
        found.update(tuple(row) for row in connection.execute(query))
    return found


def _advance_states(connection: sa.Connection, rows: Rows, run_id: int, ids: Mapping[str, Mapping[str, int]]) -> None:
    """Point every series of the run at it, unless the series has a later run already, and count its points."""
    latest: dict[int, Values] = {}
    for measured in rows.measurements:
        if measured["arm"] in rows.unshown:
            continue
        series_id = ids["series"][measured["series_fp"]]
        points = latest[series_id]["points"] if series_id in latest else 0
        latest[series_id] = {
            "series_id": series_id, "run_id": run_id, "arm": measured["arm"], "started_at": rows.run["started_at"],
            "metric_id": ids["metric"][measured["metric_fp"]], **{name: measured[name] for name in ESTIMATE},
            "points": points + (measured["at"] is not None and measured["value"] is not None),
        }  # fmt: skip
    if not latest:
        return
    insert = upsert(connection, t.series_state)
    new, old = insert.excluded, t.series_state.c
    newer = sa.or_(old.started_at < new.started_at, sa.and_(old.started_at == new.started_at, old.run_id < new.run_id))
    kept = ("series_id", "points")
    names = [column.name for column in t.series_state.columns if column.name not in kept]
    advance = {name: sa.case((newer, new[name]), else_=old[name]) for name in names}
    connection.execute(
        insert.on_conflict_do_update(
            index_elements=["series_id"], set_={**advance, "points": old.points + new.points}
        ),
        [latest[series_id] for series_id in sorted(latest)],
    )  # fmt: skip


def _load(connection: sa.Connection, key: str) -> Run:
    run, measured = t.run.c, t.measurement.c
    head = connection.execute(
        sa.select(
            t.run, t.machine.c.facts.label("machine_facts"), t.environment.c.facts.label("environment_facts")
        )
        .join_from(t.run, t.machine, run.machine_id == t.machine.c.id)
        .join(t.environment, run.environment_id == t.environment.c.id)
        .where(run.run_key == key)
    ).first()  # fmt: skip
    if head is None:
        raise MissingError(f"run {key} is not stored; `bench show --list` lists the runs.")
    experiments = (
        sa.select(t.experiment, t.benchmark.c.description)
        .join(t.benchmark, t.experiment.c.benchmark_id == t.benchmark.c.id)
        .where(t.experiment.c.run_id == head.id)
        .order_by(t.experiment.c.position)
    )
    arms = sa.select(t.arm).where(t.arm.c.run_id == head.id).order_by(t.arm.c.position)
    metric = t.metric.c
    measurements = (
        sa.select(
            measured.arm, measured.loops, t.sample.c.codec, t.sample.c.data,
            metric.name, metric.unit, metric.better, metric.kind, metric.summary, metric.help,
        )
        .join_from(t.measurement, t.metric, measured.metric_id == metric.id)
        .join(
            t.sample,
            sa.and_(
                t.sample.c.run_id == measured.run_id, t.sample.c.arm == measured.arm,
                t.sample.c.position == measured.position,
            ),
        )
        .where(measured.run_id == head.id)
        .order_by(measured.arm, measured.position)
    )  # fmt: skip
    rows = ([row._asdict() for row in connection.execute(query)] for query in (experiments, arms, measurements))
    return run_from(head._asdict(), *rows)


def _infos(connection: sa.Connection, limit: int | None) -> list[RunInfo]:
    run = t.run.c
    rows = connection.execute(
        sa.select(
            t.run, t.machine.c.fingerprint.label("machine_fingerprint"), t.machine.c.label.label("machine_label"),
            t.environment.c.fingerprint.label("environment_fingerprint"),
        )
        .join_from(t.run, t.machine, run.machine_id == t.machine.c.id)
        .join(t.environment, run.environment_id == t.environment.c.id)
        .order_by(*NEWEST_FIRST)
        .limit(limit)
    ).mappings().all()  # fmt: skip
    suites: dict[int, dict[str, None]] = {}
    counts: dict[int, dict[str | None, int]] = {}
    for some in chunks([row["id"] for row in rows]):
        for run_id, suite in connection.execute(
            sa.select(t.experiment.c.run_id, t.benchmark.c.suite)
            .join(t.benchmark, t.experiment.c.benchmark_id == t.benchmark.c.id)
            .where(t.experiment.c.run_id.in_(some))
            .order_by(t.experiment.c.run_id, t.experiment.c.position)
        ):
            suites.setdefault(run_id, {})[suite] = None
        for run_id, kind, count in connection.execute(
            sa.select(t.arm.c.run_id, t.arm.c.failure_kind, sa.func.count())
            .where(t.arm.c.run_id.in_(some))
            .group_by(t.arm.c.run_id, t.arm.c.failure_kind)
        ):
            counts.setdefault(run_id, {})[kind] = count
    return [
        RunInfo(
            key=row["run_key"], started_at=row["started_at"], finished_at=row["finished_at"],
            status=RunStatus(row["status"]), profile=row["profile"], source=row["source"],
            machine_fingerprint=row["machine_fingerprint"], machine_label=row["machine_label"],
            environment_fingerprint=row["environment_fingerprint"], commit=row["commit_id"],
            dirty=bool(row["dirty"]), branch=row["branch"], suites=tuple(suites.get(row["id"], ())),
            arms=sum(counts.get(row["id"], {}).values()),
            failures={kind: n for kind, n in counts.get(row["id"], {}).items() if kind is not None},
            problems=len(row["problems"]),
        )
        for row in rows
    ]  # fmt: skip


def _estimates_again(run: Run, summarise: Summarise | None) -> list[Values]:
    return [
        {"of_arm": arm, "of_position": position, "at": at} | estimates.get(measurement.metric.name, NO_ESTIMATE)
        for arm, (part, result) in enumerate(run.arms())
        for at, estimates in [(point_at(run, part, result), estimates_of(result, summarise))]
        for position, measurement in enumerate(result.measurements)
    ]


def _update_estimates(connection: sa.Connection, key: str, changes: Sequence[Values]) -> None:
    if not changes:
        return
    measured = t.measurement.c
    run_id = connection.scalar(sa.select(t.run.c.id).where(t.run.c.run_key == key))
    connection.execute(
        sa.update(t.measurement)
        .where(
            measured.run_id == run_id, measured.arm == sa.bindparam("of_arm"),
            measured.position == sa.bindparam("of_position"),
        )
        .values({name: sa.bindparam(name) for name in (*ESTIMATE, "at")}),
        changes,
    )  # fmt: skip


def _rebuild_states(connection: sa.Connection) -> None:
    if connection.dialect.name == "postgresql":  # SQLite has one writer anyway
        connection.execute(sa.text("LOCK TABLE series_state IN EXCLUSIVE MODE"))
    measured = t.measurement.c
    names = ["series_id", "run_id", "arm", "metric_id", *ESTIMATE]
    order = [t.run.c.started_at.desc(), t.run.c.id.desc(), measured.arm.desc(), measured.position.desc()]
    ranked = (
        sa.select(
            *(measured[name] for name in names), t.run.c.started_at,
            sa.func.count(sa.case((measured.at.is_not(None), measured.value)))
            .over(partition_by=measured.series_id).label("points"),
            sa.func.row_number().over(partition_by=measured.series_id, order_by=order).label("rank"),
        )
        .join_from(t.measurement, t.run, measured.run_id == t.run.c.id)
        .join(t.arm, sa.and_(t.arm.c.run_id == measured.run_id, t.arm.c.position == measured.arm))
        .join(
            t.experiment,
            sa.and_(t.experiment.c.run_id == t.arm.c.run_id, t.experiment.c.position == t.arm.c.experiment),
        )
        .where(t.arm.c.failure_kind.is_(None), t.run.c.quarantine.is_(sa.null()), t.experiment.c.paired.is_(False))
        .subquery()
    )  # fmt: skip
    names += ["started_at", "points"]
    connection.execute(sa.delete(t.series_state))
    connection.execute(
        sa.insert(t.series_state).from_select(names, sa.select(*(ranked.c[n] for n in names)).where(ranked.c.rank == 1))
    )
