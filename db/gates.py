"""Gate experiments of one variant, whichever run they belong to."""

from __future__ import annotations

import sqlalchemy as sa

from bench.model import ExperimentResult
from db import tables as t
from db.mapping import experiment_from


def gates(connection: sa.Connection, variant: str, version: str, machine: str, limit: int) -> list[ExperimentResult]:
    """See bench.ports.PastGates."""
    experiment, arm, run = t.experiment.c, t.arm.c, t.run.c
    here = sa.and_(arm.run_id == experiment.run_id, arm.experiment == experiment.position)
    found = connection.execute(
        sa.select(t.experiment, t.benchmark.c.description)
        .join_from(t.experiment, t.benchmark, experiment.benchmark_id == t.benchmark.c.id)
        .join(t.run, experiment.run_id == run.id)
        .join(t.machine, run.machine_id == t.machine.c.id)
        .where(
            t.benchmark.c.version == version,
            t.machine.c.fingerprint == machine,
            sa.exists(sa.select(1).where(here, arm.variant == variant)),
            experiment.policy["gate"].as_boolean(),
        )
        .order_by(run.started_at.desc(), run.id.desc(), experiment.position.desc())
        .limit(limit)
    )  # fmt: skip
    return [_whole(connection, row._asdict()) for row in found.all()]


def _whole(connection: sa.Connection, row: dict[str, object]) -> ExperimentResult:
    arm, measured = t.arm.c, t.measurement.c
    arms = connection.execute(
        sa.select(t.arm)
        .where(arm.run_id == row["run_id"], arm.experiment == row["position"])
        .order_by(arm.position)
    ).all()  # fmt: skip
    measurements = connection.execute(
        measurements_with_samples()
        .where(measured.run_id == row["run_id"], measured.arm.in_([a.position for a in arms]))
    )  # fmt: skip
    return experiment_from(row, [a._asdict() for a in arms], [m._asdict() for m in measurements])


def measurements_with_samples() -> sa.Select[tuple[object, ...]]:
    """Measurements with metric and raw samples, in the order of a run; the caller says of which run."""
    measured, metric = t.measurement.c, t.metric.c
    return (
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
        .order_by(measured.arm, measured.position)
    )  # fmt: skip
