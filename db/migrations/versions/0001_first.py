"""The first tables.

Written out, not taken from db.tables: a migration says what was, the tables say what is.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def _moment() -> sa.DateTime:
    return sa.DateTime(timezone=True)


def _shared(name: str, *columns: sa.Column[Any]) -> None:
    """A table of rows that runs share, found by their fingerprint."""
    op.create_table(
        name,
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        *columns,
        sa.PrimaryKeyConstraint("id", name=f"pk_{name}"),
        sa.UniqueConstraint("fingerprint", name=f"uq_{name}_fingerprint"),
    )


def _estimate() -> list[sa.Column[Any]]:
    return [
        sa.Column("value", sa.Double(), nullable=True),
        sa.Column("low", sa.Double(), nullable=True),
        sa.Column("high", sa.Double(), nullable=True),
        sa.Column("n", sa.Integer(), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
    ]


def upgrade() -> None:
    _shared(
        "machine",
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
    )
    _shared("environment", sa.Column("facts", sa.JSON(), nullable=False))
    _shared(
        "benchmark",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("suite", sa.Text(), nullable=False),
        sa.Column("description", sa.JSON(), nullable=False),
    )
    op.create_index("ix_benchmark_name", "benchmark", ["name"])
    _shared(
        "metric",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("unit", sa.Text(), nullable=False),
        sa.Column("better", sa.String(16), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("summary", sa.String(16), nullable=False),
        sa.Column("help", sa.Text(), nullable=False),
    )
    op.create_table(
        "run",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("run_key", sa.String(64), nullable=False),
        sa.Column("payload_sha", sa.String(64), nullable=False),
        sa.Column("wire_version", sa.Integer(), nullable=False),
        sa.Column("stored_at", _moment(), nullable=False),
        sa.Column("started_at", _moment(), nullable=False),
        sa.Column("finished_at", _moment(), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("profile", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("bench_version", sa.Text(), nullable=False),
        sa.Column("machine_id", sa.Integer(), nullable=False),
        sa.Column("tags", sa.JSON(), nullable=False),
        sa.Column("environment_id", sa.Integer(), nullable=False),
        sa.Column("commit_id", sa.Text(), nullable=True),
        sa.Column("dirty", sa.Boolean(), nullable=True),
        sa.Column("branch", sa.Text(), nullable=True),
        sa.Column("committed_at", _moment(), nullable=True),
        sa.Column("conditions", sa.JSON(), nullable=False),
        sa.Column("problems", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_run"),
        sa.UniqueConstraint("run_key", name="uq_run_run_key"),
        sa.ForeignKeyConstraint(["machine_id"], ["machine.id"], name="fk_run_machine_id"),
        sa.ForeignKeyConstraint(["environment_id"], ["environment.id"], name="fk_run_environment_id"),
    )
    for column in ("started_at", "commit_id", "machine_id", "environment_id"):
        op.create_index(f"ix_run_{column}", "run", [column])
    op.create_table(
        "experiment",
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("benchmark_id", sa.Integer(), nullable=False),
        sa.Column("seed", sa.Text(), nullable=False),
        sa.Column("policy", sa.JSON(), nullable=False),
        sa.Column("launches", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "position", name="pk_experiment"),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_experiment_run_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["benchmark_id"], ["benchmark.id"], name="fk_experiment_benchmark_id"),
    )
    op.create_index("ix_experiment_benchmark_id", "experiment", ["benchmark_id"])
    op.create_table(
        "arm",
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("experiment", sa.Integer(), nullable=False),
        sa.Column("benchmark", sa.Text(), nullable=False),
        sa.Column("variant", sa.Text(), nullable=False),
        sa.Column("params", sa.JSON(), nullable=False),
        sa.Column("is_baseline", sa.Boolean(), nullable=False),
        sa.Column("target", sa.JSON(), nullable=False),
        sa.Column("commit_id", sa.Text(), nullable=True),
        sa.Column("items", sa.Double(), nullable=False),
        sa.Column("notes", sa.JSON(), nullable=False),
        sa.Column("failure_kind", sa.String(16), nullable=True),
        sa.Column("failure", sa.JSON(), nullable=True),
        sa.PrimaryKeyConstraint("run_id", "position", name="pk_arm"),
        sa.ForeignKeyConstraint(
            ["run_id", "experiment"],
            ["experiment.run_id", "experiment.position"],
            name="fk_arm_run_id_experiment",
            ondelete="CASCADE",
        ),
    )
    _shared(
        "series",
        sa.Column("benchmark", sa.Text(), nullable=False),
        sa.Column("benchmark_version", sa.Text(), nullable=False),
        sa.Column("suite", sa.Text(), nullable=False),
        sa.Column("variant", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("metric", sa.Text(), nullable=False),
        sa.Column("unit", sa.Text(), nullable=False),
        sa.Column("machine_id", sa.Integer(), sa.ForeignKey("machine.id", name="fk_series_machine_id"), nullable=False),
    )
    op.create_index("ix_series_variant", "series", ["variant"])
    op.create_table(
        "measurement",
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("arm", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("series_id", sa.Integer(), nullable=False),
        sa.Column("metric_id", sa.Integer(), nullable=False),
        sa.Column("loops", sa.BigInteger(), nullable=False),
        *_estimate(),
        sa.PrimaryKeyConstraint("run_id", "arm", "position", name="pk_measurement"),
        sa.ForeignKeyConstraint(["series_id"], ["series.id"], name="fk_measurement_series_id"),
        sa.ForeignKeyConstraint(["metric_id"], ["metric.id"], name="fk_measurement_metric_id"),
        sa.ForeignKeyConstraint(
            ["run_id", "arm"], ["arm.run_id", "arm.position"], name="fk_measurement_run_id_arm", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_measurement_series_id_run_id", "measurement", ["series_id", "run_id"])
    op.create_table(
        "sample",
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("arm", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("codec", sa.String(16), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "arm", "position", name="pk_sample"),
        sa.ForeignKeyConstraint(
            ["run_id", "arm", "position"],
            ["measurement.run_id", "measurement.arm", "measurement.position"],
            name="fk_sample_run_id_arm_position",
            ondelete="CASCADE",
        ),
    )
    op.create_table(
        "series_state",
        sa.Column("series_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("arm", sa.Integer(), nullable=False),
        sa.Column("started_at", _moment(), nullable=False),
        sa.Column("metric_id", sa.Integer(), nullable=False),
        *_estimate(),
        sa.PrimaryKeyConstraint("series_id", name="pk_series_state"),
        sa.ForeignKeyConstraint(["series_id"], ["series.id"], name="fk_series_state_series_id"),
        sa.ForeignKeyConstraint(["metric_id"], ["metric.id"], name="fk_series_state_metric_id"),
        sa.ForeignKeyConstraint(["run_id", "arm"], ["arm.run_id", "arm.position"], name="fk_series_state_run_id_arm"),
    )
    op.create_index("ix_series_state_run_id_arm", "series_state", ["run_id", "arm"])


def downgrade() -> None:
    raise NotImplementedError("restore the copy that `bench db upgrade` made")
