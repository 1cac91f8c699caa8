"""A whole run out of its rows."""

from __future__ import annotations

import sqlalchemy as sa

from bench.errors import MissingError
from bench.model import Run
from db import tables as t
from db.gates import measurements_with_samples
from db.mapping import run_from


def load(connection: sa.Connection, key: str) -> Run:
    """The run of that key, raw samples included. Raises MissingError."""
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
    measurements = measurements_with_samples().where(measured.run_id == head.id)
    rows = ([row._asdict() for row in connection.execute(query)] for query in (experiments, arms, measurements))
    return run_from(head._asdict(), *rows)
