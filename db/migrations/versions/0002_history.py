"""What detection and triage keep; which measurements are points of history, and when; quarantine.

Rows that are there get their place in history from what their run says, and the latest state of
every series is derived anew: arms of a pair (two targets in one experiment) stand in it no more.
"""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

CHUNK = 500
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _moment() -> sa.DateTime:
    return sa.DateTime(timezone=True)


def upgrade() -> None:
    op.add_column("run", sa.Column("quarantine", sa.JSON(), nullable=True))
    op.add_column("experiment", sa.Column("paired", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.add_column("measurement", sa.Column("at", sa.BigInteger(), nullable=True))
    op.add_column("series_state", sa.Column("points", sa.Integer(), server_default="0", nullable=False))
    _make_tables()
    _place_measurements(op.get_bind())
    _derive_states(op.get_bind())
    op.drop_index("ix_measurement_series_id_run_id", "measurement")
    op.create_index("ix_measurement_series_id_at", "measurement", ["series_id", "at"])


def _make_tables() -> None:
    op.create_table(
        "detector_mark",
        sa.Column("series_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("points", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("series_id", name="pk_detector_mark"),
        sa.ForeignKeyConstraint(["series_id"], ["series.id"], name="fk_detector_mark_series_id"),
    )
    op.create_table(
        "change_point",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("series_id", sa.Integer(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("last_good", sa.String(64), nullable=False),
        sa.Column("first_changed", sa.String(64), nullable=False),
        sa.Column("regression", sa.Text(), nullable=True),
        sa.Column("superseded_by", sa.Text(), nullable=True),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_change_point"),
        sa.ForeignKeyConstraint(["series_id"], ["series.id"], name="fk_change_point_series_id"),
    )
    for column in ("series_id", "regression"):
        op.create_index(f"ix_change_point_{column}", "change_point", [column])
    op.create_table(
        "regression",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("opened_at", _moment(), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("opened", sa.JSON(), nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_regression"),
    )
    op.create_index("ix_regression_opened_at", "regression", ["opened_at"])
    op.create_table(
        "regression_event",
        sa.Column("regression", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("regression", "number", name="pk_regression_event"),
        sa.ForeignKeyConstraint(["regression"], ["regression.key"], name="fk_regression_event_regression"),
    )
    op.create_table(
        "proof_request",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("change", sa.Text(), nullable=False),
        sa.Column("base", sa.Text(), nullable=False),
        sa.Column("head", sa.Text(), nullable=False),
        sa.Column("selector", sa.Text(), nullable=False),
        sa.Column("machine_fingerprint", sa.String(64), nullable=False),
        sa.Column("made_at", _moment(), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("options", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_proof_request"),
    )
    op.create_index("ix_proof_request_machine_fingerprint_state", "proof_request", ["machine_fingerprint", "state"])
    op.create_table(
        "notice",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("claimed_at", _moment(), nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_notice"),
    )


def _place_measurements(connection: sa.Connection) -> None:
    """Set `experiment.paired` and `measurement.at`, run by run."""
    run = sa.table("run", *map(sa.column, ("id", "status", "dirty", "commit_id")),
                   sa.column("started_at", _moment()), sa.column("committed_at", _moment()))  # fmt: skip
    for row in connection.execute(sa.select(run).order_by(run.c.id)).all():
        paired = _mark_pairs(connection, row.id)
        if row.status == "interrupted":
            continue
        arm = sa.table("arm", *map(sa.column, ("run_id", "position", "experiment", "failure_kind")),
                       sa.column("target", sa.JSON()))  # fmt: skip
        arms = sa.select(arm).where(arm.c.run_id == row.id, arm.c.failure_kind.is_(None))
        places: dict[int, list[int]] = {}
        for found in connection.execute(arms).all():
            at = _at(row, found.target)
            if at is not None and found.experiment not in paired:
                places.setdefault(at, []).append(found.position)
        for at, positions in places.items():
            _place(connection, row.id, at, positions)


def _mark_pairs(connection: sa.Connection, run_id: int) -> set[int]:
    experiment = sa.table("experiment", *map(sa.column, ("run_id", "position", "paired")),
                          sa.column("policy", sa.JSON()))  # fmt: skip
    arm = sa.table("arm", *map(sa.column, ("run_id", "experiment", "variant")), sa.column("target", sa.JSON()))
    labels: dict[int, list[str]] = {}
    for row in connection.execute(sa.select(arm).where(arm.c.run_id == run_id)).all():
        target = row.target
        label = [row.variant, target["device"], sorted(target["requirements"]), sorted(target["variables"].items())]
        labels.setdefault(row.experiment, []).append(json.dumps(label))
    gates = {
        row.position
        for row in connection.execute(sa.select(experiment).where(experiment.c.run_id == run_id)).all()
        if row.policy.get("gate")
    }
    paired = gates | {position for position, found in labels.items() if len(set(found)) < len(found)}
    if paired:
        connection.execute(
            sa.update(experiment)
            .where(experiment.c.run_id == run_id, experiment.c.position.in_(paired))
            .values(paired=sa.true())
        )
    return paired


def _at(run: Any, target: dict[str, Any]) -> int | None:
    own = target["revision"]
    if run.dirty or (own is not None and (own["commit"], own["dirty"]) != (run.commit_id, bool(run.dirty))):
        return None
    moment: datetime = run.committed_at or run.started_at
    if moment.tzinfo is None:  # SQLite
        moment = moment.replace(tzinfo=UTC)
    return (moment - EPOCH) // timedelta(microseconds=1)


def _place(connection: sa.Connection, run_id: int, at: int, arms: list[int]) -> None:
    measurement = sa.table("measurement", *map(sa.column, ("run_id", "arm", "at")))
    for start in range(0, len(arms), CHUNK):
        some = arms[start : start + CHUNK]
        connection.execute(
            sa.update(measurement).where(measurement.c.run_id == run_id, measurement.c.arm.in_(some)).values(at=at)
        )


def _derive_states(connection: sa.Connection) -> None:
    """The latest measured of every series, of arms without a failure and outside pairs; and its points."""
    names = "series_id, run_id, arm, metric_id, value, low, high, n, note, started_at, points"
    connection.exec_driver_sql("DELETE FROM series_state")
    connection.exec_driver_sql(
        f"""
        INSERT INTO series_state ({names})
        SELECT {names} FROM (
            SELECT m.*, r.started_at,
                   count(CASE WHEN m.at IS NOT NULL THEN m.value END) OVER (PARTITION BY m.series_id) AS points,
                   row_number() OVER (
                       PARTITION BY m.series_id
                       ORDER BY r.started_at DESC, r.id DESC, m.arm DESC, m.position DESC
                   ) AS place
            FROM measurement m
            JOIN run r ON r.id = m.run_id
            JOIN arm a ON a.run_id = m.run_id AND a.position = m.arm
            JOIN experiment e ON e.run_id = a.run_id AND e.position = a.experiment
            WHERE a.failure_kind IS NULL AND NOT e.paired
        ) AS ranked
        WHERE place = 1
        """
    )


def downgrade() -> None:
    raise NotImplementedError("restore the copy that `bench db upgrade` made")
