"""What pages ask for: lists without raw samples, raw samples of one point.

Every function takes the connection of `SqlStore.read()` and returns frozen values in the units of
their metric. Nothing here groups over all measurements: the latest of each series is kept on ingest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from bench.errors import MissingError
from bench.metrics import Metric
from bench.model import Environment, Estimate, Failure, FailureKind, Machine, Measurement, Scalar, Target
from bench.wire import convert
from db import codec
from db import tables as t
from db.mapping import METRIC, estimate_from, metric_from


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesRow:
    """A series and its latest point; `estimate` is null where none was derived."""

    id: int
    suite: str
    benchmark: str
    benchmark_version: str
    variant: str
    target: str
    metric: Metric
    machine_fingerprint: str
    machine_label: str
    run_key: str
    started_at: datetime
    estimate: Estimate | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One measurement of a series. A failed arm's values are shown, never taken for history."""

    run_key: str
    arm: int
    started_at: datetime
    commit: str | None
    dirty: bool
    branch: str | None
    committed_at: datetime | None
    environment_fingerprint: str
    status: str
    estimate: Estimate | None
    failure: FailureKind | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmRow:
    """One arm of a run with the estimates of its metrics (null where none was derived)."""

    position: int
    experiment: int
    suite: str
    benchmark: str
    benchmark_version: str
    title: str
    variant: str
    params: dict[str, Scalar]
    is_baseline: bool
    target: Target
    items: float
    notes: dict[str, str]
    failure: Failure | None
    metrics: tuple[tuple[Metric, Estimate | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """How much a database holds."""

    runs: int
    arms: int
    measurements: int
    series: int
    machines: int
    first_at: datetime | None
    last_at: datetime | None


def series(
    connection: sa.Connection,
    *,
    suite: str | None = None,
    variant: str | None = None,
    metric: str | None = None,
    machine: str | None = None,
) -> list[SeriesRow]:
    """All series with their latest point, by variant, metric, then newest first. `machine` is a fingerprint."""
    s, state = t.series.c, t.series_state.c
    query = (
        sa.select(
            s.id, s.suite, s.benchmark, s.benchmark_version, s.variant, s.target, *_metric_columns(),
            t.machine.c.fingerprint.label("machine_fingerprint"), t.machine.c.label.label("machine_label"),
            t.run.c.run_key, state.started_at, *_estimate_columns(t.series_state),
        )
        .join_from(t.series_state, t.series, state.series_id == s.id)
        .join(t.metric, state.metric_id == t.metric.c.id)
        .join(t.machine, s.machine_id == t.machine.c.id)
        .join(t.run, state.run_id == t.run.c.id)
        .order_by(s.variant, s.metric, state.started_at.desc(), s.id)
    )  # fmt: skip
    for column, wanted in (
        (s.suite, suite), (s.variant, variant), (s.metric, metric), (t.machine.c.fingerprint, machine),
    ):  # fmt: skip
        if wanted is not None:
            query = query.where(column == wanted)
    return [
        SeriesRow(
            id=row["id"], suite=row["suite"], benchmark=row["benchmark"], benchmark_version=row["benchmark_version"],
            variant=row["variant"], target=row["target"], metric=metric_from(row),
            machine_fingerprint=row["machine_fingerprint"], machine_label=row["machine_label"],
            run_key=row["run_key"], started_at=row["started_at"], estimate=estimate_from(row),
        )
        for row in _rows(connection, query)
    ]  # fmt: skip


def history(
    connection: sa.Connection, series_id: int, *, branch: str | None = None, limit: int | None = None
) -> list[Point]:
    """Points of a series, oldest first; with `limit` the newest so many."""
    measured, run = t.measurement.c, t.run.c
    query = (
        sa.select(
            run.run_key, measured.arm, run.started_at, t.arm.c.commit_id, run.dirty, run.branch, run.committed_at,
            t.environment.c.fingerprint, run.status, t.arm.c.failure_kind, t.arm.c.target,
            *_estimate_columns(t.measurement),
        )
        .join_from(t.measurement, t.run, measured.run_id == run.id)
        .join(t.arm, sa.and_(t.arm.c.run_id == measured.run_id, t.arm.c.position == measured.arm))
        .join(t.environment, run.environment_id == t.environment.c.id)
        .where(measured.series_id == series_id)
        .order_by(run.started_at.desc(), run.id.desc(), measured.arm.desc())
        .limit(limit)
    )  # fmt: skip
    if branch is not None:
        query = query.where(run.branch == branch)
    return [_point(row) for row in reversed(_rows(connection, query))]


def _point(row: dict[str, Any]) -> Point:
    dirty, branch, committed_at = row["dirty"], row["branch"], row["committed_at"]
    own = convert(row["target"], Target, "a stored target").revision
    if own is not None:  # an arm at a revision of its own, e.g. the base of a pull request
        dirty, branch, committed_at = own.dirty, own.branch, own.committed_at
    return Point(
        run_key=row["run_key"], arm=row["arm"], started_at=row["started_at"], commit=row["commit_id"],
        dirty=bool(dirty), branch=branch, committed_at=committed_at, environment_fingerprint=row["fingerprint"],
        status=row["status"], estimate=estimate_from(row),
        failure=FailureKind(row["failure_kind"]) if row["failure_kind"] else None,
    )  # fmt: skip


def arms(connection: sa.Connection, run_key: str) -> list[ArmRow]:
    """All arms of a run in order, failed ones too. Empty for a run without arms. Raises MissingError."""
    run_id = _run_id(connection, run_key)
    measured = t.measurement.c
    metrics: dict[int, list[tuple[Metric, Estimate | None]]] = {}
    for row in _rows(
        connection,
        sa.select(measured.arm, *_metric_columns(), *_estimate_columns(t.measurement))
        .join_from(t.measurement, t.metric, measured.metric_id == t.metric.c.id)
        .where(measured.run_id == run_id)
        .order_by(measured.arm, measured.position),
    ):
        metrics.setdefault(row["arm"], []).append((metric_from(row), estimate_from(row)))
    query = (
        sa.select(t.arm, t.benchmark.c.suite, t.benchmark.c.version, t.benchmark.c.description)
        .join_from(
            t.arm, t.experiment,
            sa.and_(t.experiment.c.run_id == t.arm.c.run_id, t.experiment.c.position == t.arm.c.experiment),
        )
        .join(t.benchmark, t.experiment.c.benchmark_id == t.benchmark.c.id)
        .where(t.arm.c.run_id == run_id)
        .order_by(t.arm.c.position)
    )  # fmt: skip
    return [
        ArmRow(
            position=row["position"], experiment=row["experiment"], suite=row["suite"], benchmark=row["benchmark"],
            benchmark_version=row["version"], title=row["description"]["title"], variant=row["variant"],
            params=row["params"], is_baseline=row["is_baseline"], items=row["items"], notes=row["notes"],
            target=convert(row["target"], Target, "a stored target"),
            failure=convert(row["failure"], Failure, "a stored failure") if row["failure"] else None,
            metrics=tuple(metrics.get(row["position"], ())),
        )
        for row in _rows(connection, query)
    ]  # fmt: skip


def samples(connection: sa.Connection, run_key: str, arm: int, metric: str) -> Measurement:
    """Raw samples of one point: `Point.arm` or `ArmRow.position`, and the metric's name. Raises MissingError."""
    measured = t.measurement.c
    query = (
        sa.select(measured.loops, t.sample.c.codec, t.sample.c.data, *_metric_columns())
        .join_from(t.measurement, t.run, measured.run_id == t.run.c.id)
        .join(t.metric, measured.metric_id == t.metric.c.id)
        .join(
            t.sample,
            sa.and_(
                t.sample.c.run_id == measured.run_id, t.sample.c.arm == measured.arm,
                t.sample.c.position == measured.position,
            ),
        )
        .where(t.run.c.run_key == run_key, measured.arm == arm, t.metric.c.name == metric)
        .order_by(measured.position)
    )  # fmt: skip
    found = _rows(connection, query)
    if not found:
        raise MissingError(f"run {run_key} has no {metric} of arm {arm}.")
    row = found[0]
    return Measurement(metric=metric_from(row), launches=codec.decode(row["codec"], row["data"]), loops=row["loops"])


def machines(connection: sa.Connection) -> list[Machine]:
    """Every machine that has a run, in the order of their first. Tags belong to runs and are left out."""
    facts = connection.scalars(sa.select(t.machine.c.facts).order_by(t.machine.c.id))
    return [convert({**fact, "tags": []}, Machine, "a stored machine") for fact in facts]


def environment(connection: sa.Connection, fingerprint: str) -> Environment:
    """An environment by its fingerprint. Raises MissingError."""
    facts = connection.scalar(sa.select(t.environment.c.facts).where(t.environment.c.fingerprint == fingerprint))
    if facts is None:
        raise MissingError(f"no run was made in the environment {fingerprint}.")
    return convert(facts, Environment, "a stored environment")


def totals(connection: sa.Connection) -> Totals:
    """How much the database holds."""

    def count(table: sa.Table) -> int:
        return connection.scalar(sa.select(sa.func.count()).select_from(table)) or 0

    first, last = connection.execute(sa.select(sa.func.min(t.run.c.started_at), sa.func.max(t.run.c.started_at))).one()
    return Totals(
        runs=count(t.run), arms=count(t.arm), measurements=count(t.measurement), series=count(t.series),
        machines=count(t.machine), first_at=first, last_at=last,
    )  # fmt: skip


def _run_id(connection: sa.Connection, run_key: str) -> int:
    found: int | None = connection.scalar(sa.select(t.run.c.id).where(t.run.c.run_key == run_key))
    if found is None:
        raise MissingError(f"run {run_key} is not stored; `bench show --list` lists the runs.")
    return found


def _metric_columns() -> list[sa.ColumnElement[Any]]:
    return [t.metric.c[name].label(f"metric_{name}") for name in METRIC]


def _estimate_columns(table: sa.Table) -> list[sa.ColumnElement[Any]]:
    return [table.c[name] for name in ("value", "low", "high", "n", "note")]


def _rows(connection: sa.Connection, query: sa.Select[Any]) -> Sequence[dict[str, Any]]:
    return [row._asdict() for row in connection.execute(query)]
