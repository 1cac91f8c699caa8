"""SqlStore: bench.ports.Store on SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from datetime import datetime

import sqlalchemy as sa

from bench.errors import StoreError
from bench.model import ExperimentResult, Run, RunStatus
from bench.points import is_pair, point_at
from bench.ports import Added, RunInfo
from bench.runs import find_key
from bench.wire import canonical
from db import tables as t
from db.engine import chunks, place, reading, translated, writing
from db.gates import gates
from db.history import SqlHistory
from db.ingest import no_collection, write_runs
from db.loading import load
from db.mapping import ESTIMATE, NO_ESTIMATE, Rows, Summarise, Values, estimates_of, rows_of
from db.retention import Pruned, Reduce, prune
from db.schema import open_engine


def open_store(
    url: str, *, create: bool = True, summarise: Summarise | None = None, branches: Collection[str] = ()
) -> SqlStore:
    """Open a database at the newest schema.

    `create` makes a missing SQLite file, with its folders, and fills an empty database.
    `summarise` gives the estimates that are kept beside the raw samples; runs of other `branches` than these
    are no points of history (none named: all are).
    Raises ConfigError for a URL that cannot be read, SchemaError for an older or newer schema,
    StoreError for a database that cannot be used.
    """
    return SqlStore(open_engine(url, create=create), summarise=summarise, branches=branches)


class SqlStore:
    """Keeps runs; see bench.ports.Store. Safe to use from several threads and processes."""

    def __init__(
        self, engine: sa.Engine, *, summarise: Summarise | None = None, branches: Collection[str] = ()
    ) -> None:
        self._engine = engine
        self._branches = frozenset(branches)
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
        return self.add_many([run])[0]

    def add_many(self, runs: Sequence[Run]) -> list[Added]:
        """Store all of them in one transaction, or none: what `add` does, much quicker for many small ones.

        A few hundred runs, or some 100,000 measurements, are a good number. Raises what `add` raises.
        """
        try:
            with no_collection():
                prepared = [self._prepare(run) for run in runs]
                with writing(self._engine) as connection:
                    return write_runs(connection, prepared)
        except (ValueError, OverflowError) as error:  # lone surrogates, NUL in a name
            raise self._unkept(runs, error) from None

    def _prepare(self, run: Run) -> Rows:
        try:
            return rows_of(canonical(run), self._summarise, self._branches)
        except (ValueError, OverflowError) as error:
            raise self._unkept([run], error) from None

    def _unkept(self, runs: Sequence[Run], error: Exception) -> StoreError:
        which = f"run {runs[0].key}" if len(runs) == 1 else f"one of {len(runs)} runs"
        return StoreError(f"{which} holds a value that {self.place} cannot keep: {error}.")

    def get(self, key: str) -> Run:
        """The run as it was added, raw samples included. Raises MissingError."""
        with reading(self._engine) as connection:
            return load(connection, key)

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
            with writing(self._engine) as connection:
                _update_derived(connection, load(connection, key), self._summarise, self._branches)
        with writing(self._engine) as connection:
            _rebuild_states(connection)
        return len(keys)

    def gates(self, variant: str, version: str, machine: str, *, limit: int) -> Sequence[ExperimentResult]:
        """See bench.ports.PastGates."""
        with reading(self._engine) as connection:
            return gates(connection, variant, version, machine, limit)

    def prune(self, before: datetime, reduce: Reduce, *, dry_run: bool = False) -> Pruned:
        """Reduce the samples of runs measured before a moment; see db.retention."""
        return prune(self._engine, before, reduce, dry_run=dry_run)

    @property
    def history(self) -> SqlHistory:
        """What detection and triage keep, in the same database."""
        return SqlHistory(self._engine)

    def close(self) -> None:
        """Release all connections."""
        with translated(self._engine.url):
            self._engine.dispose()


NEWEST_FIRST = (t.run.c.started_at.desc(), t.run.c.run_key.desc())


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


def _update_derived(
    connection: sa.Connection, run: Run, summarise: Summarise | None, branches: Collection[str]
) -> None:
    """Estimates and places in history of one run. Where samples were reduced, the estimate stays as it is."""
    reduced = {(r.arm, r.metric) for r in run.reduced}
    whole: list[Values] = []
    placed: list[Values] = []
    for arm, (part, result) in enumerate(run.arms()):
        at = point_at(run, result, paired=is_pair(part.experiment), branches=branches)
        estimates = estimates_of(result, summarise)
        for position, measurement in enumerate(result.measurements):
            row = {"of_arm": arm, "of_position": position, "at": at}
            if (arm, measurement.metric.name) in reduced:
                placed.append(row)
                continue
            found = estimates.get(measurement.metric.name, NO_ESTIMATE)
            whole.append(row | dict(zip(ESTIMATE, found, strict=True)))
    measured = t.measurement.c
    update = sa.update(t.measurement).where(
        measured.run_id == connection.scalar(sa.select(t.run.c.id).where(t.run.c.run_key == run.key)),
        measured.arm == sa.bindparam("of_arm"), measured.position == sa.bindparam("of_position"),
    )  # fmt: skip
    for rows, names in ((whole, (*ESTIMATE, "at")), (placed, ("at",))):
        if rows:
            connection.execute(update.values({name: sa.bindparam(name) for name in names}), rows)


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
