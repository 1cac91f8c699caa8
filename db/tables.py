"""The tables, with every constraint named so that migrations can speak of it.

    machine ─┐                  benchmark ─┐
             ├─ run ─< experiment ─────────┘
    environment ┘      └─< arm ─< measurement >─ metric
                                   │   └── sample        raw samples, read when one point is opened
                          series >─┘──── series_state    latest point of each series, kept on ingest
                            ├──── detector_mark          how far the detector came
                            └───< change_point           what it found

    regression ─< regression_event        what people made of change points: the only thing that runs
    proof_request, notice                 cannot give again

Rows below `run` are keyed by their place in it (run, arm, position), so that a run is written
without asking for one generated id. Rows that runs share (machine, environment, benchmark, metric,
series) are found by a fingerprint of their content and are never changed.
"""

from __future__ import annotations

import json
import zlib
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

import sqlalchemy as sa

metadata = sa.MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)

VERSION_TABLE = "bench_schema"
"""Where Alembic notes the revision; not its default name, which other tools in one database use."""


def from_driver(value: datetime | str) -> datetime:
    """An aware UTC moment out of what a driver gives: text from SQLite, a moment of some zone from PostgreSQL."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Moment(sa.TypeDecorator[datetime]):
    """An aware UTC moment; SQLite keeps it as text that sorts."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        """To UTC; a moment without a zone is a bug of the caller."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value} has no time zone")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        """Aware UTC whatever the server's zone."""
        return None if value is None else from_driver(value)


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@lru_cache(maxsize=1024)
def microseconds(moment: datetime | None) -> int | None:
    """Since 1970, as the column keeps them."""
    return None if moment is None else (moment - EPOCH) // timedelta(microseconds=1)


def from_microseconds(value: int) -> datetime:
    """An aware UTC moment out of the column."""
    return EPOCH + timedelta(microseconds=value)


class Microseconds(sa.TypeDecorator[datetime]):
    """An aware UTC moment as microseconds since 1970: eight bytes that sort, where there are millions."""

    impl = sa.BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> int | None:
        """Exact: a moment has no finer digits."""
        return microseconds(value)

    def process_result_value(self, value: int | None, dialect: sa.Dialect) -> datetime | None:
        """Aware UTC."""
        return None if value is None else from_microseconds(value)


class Packed(sa.TypeDecorator[Any]):
    """Plain JSON values as zlib-compressed JSON, for what is read only with the whole run."""

    impl = sa.LargeBinary
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: sa.Dialect) -> bytes | None:
        """Compress."""
        return None if value is None else zlib.compress(json.dumps(value, separators=(",", ":")).encode())

    def process_result_value(self, value: bytes | None, dialect: sa.Dialect) -> Any:
        """Unpack."""
        return None if value is None else json.loads(zlib.decompress(value))


def _id() -> sa.Column[int]:
    return sa.Column("id", sa.Integer, primary_key=True)


machine = sa.Table(
    "machine", metadata, _id(),
    sa.Column("fingerprint", sa.String(64), nullable=False),
    sa.Column("label", sa.Text, nullable=False),
    sa.Column("facts", sa.JSON, nullable=False),  # less the tags, which belong to the run
    sa.UniqueConstraint("fingerprint"),
)  # fmt: skip

environment = sa.Table(
    "environment", metadata, _id(),
    sa.Column("fingerprint", sa.String(64), nullable=False),
    sa.Column("facts", sa.JSON, nullable=False),
    sa.UniqueConstraint("fingerprint"),
)  # fmt: skip

benchmark = sa.Table(
    "benchmark", metadata, _id(),
    sa.Column("fingerprint", sa.String(64), nullable=False),  # of the whole description
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("version", sa.Text, nullable=False),
    sa.Column("suite", sa.Text, nullable=False),
    sa.Column("description", sa.JSON, nullable=False),
    sa.UniqueConstraint("fingerprint"),
    sa.Index(None, "name"),
)  # fmt: skip

metric = sa.Table(
    "metric", metadata, _id(),
    sa.Column("fingerprint", sa.String(64), nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("unit", sa.Text, nullable=False),
    sa.Column("better", sa.String(16), nullable=False),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("summary", sa.String(16), nullable=False),
    sa.Column("help", sa.Text, nullable=False),
    sa.UniqueConstraint("fingerprint"),
)  # fmt: skip

run = sa.Table(
    "run", metadata, _id(),
    sa.Column("run_key", sa.String(64), nullable=False),
    sa.Column("payload_sha", sa.String(64), nullable=False),
    sa.Column("wire_version", sa.Integer, nullable=False),
    sa.Column("stored_at", Moment, nullable=False),
    sa.Column("started_at", Moment, nullable=False),
    sa.Column("finished_at", Moment, nullable=False),
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("profile", sa.Text, nullable=False),
    sa.Column("source", sa.Text, nullable=False),
    sa.Column("bench_version", sa.Text, nullable=False),
    sa.Column("machine_id", sa.ForeignKey("machine.id"), nullable=False),
    sa.Column("tags", sa.JSON, nullable=False),
    sa.Column("environment_id", sa.ForeignKey("environment.id"), nullable=False),
    sa.Column("commit_id", sa.Text),  # these four are null where no revision is known
    sa.Column("dirty", sa.Boolean),
    sa.Column("branch", sa.Text),
    sa.Column("committed_at", Moment),
    sa.Column("conditions", sa.JSON, nullable=False),
    sa.Column("problems", sa.JSON, nullable=False),
    sa.Column("quarantine", sa.JSON(none_as_null=True)),  # null: none
    sa.Column("reduced_sha", sa.String(64)),  # of what retention left; null: it was not here yet
    sa.UniqueConstraint("run_key"),
    sa.Index(None, "started_at"),
    sa.Index(None, "commit_id"),
    sa.Index(None, "machine_id"),
    sa.Index(None, "environment_id"),
)  # fmt: skip

experiment = sa.Table(
    "experiment", metadata,
    sa.Column("run_id", sa.ForeignKey("run.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True),
    sa.Column("benchmark_id", sa.ForeignKey("benchmark.id"), nullable=False),
    sa.Column("seed", sa.Text, nullable=False),  # decimal digits: may be wider than 64 bits
    sa.Column("policy", sa.JSON, nullable=False),
    sa.Column("launches", Packed, nullable=False),
    sa.Column("paired", sa.Boolean, nullable=False, server_default=sa.false()),  # bench.points.is_pair
    sa.Index(None, "benchmark_id"),
)  # fmt: skip

arm = sa.Table(
    "arm", metadata,
    sa.Column("run_id", sa.Integer, primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True),  # over the whole run
    sa.Column("experiment", sa.Integer, nullable=False),
    sa.Column("benchmark", sa.Text, nullable=False),
    sa.Column("variant", sa.Text, nullable=False),
    sa.Column("params", sa.JSON, nullable=False),
    sa.Column("is_baseline", sa.Boolean, nullable=False),
    sa.Column("target", sa.JSON, nullable=False),
    sa.Column("commit_id", sa.Text),  # of the target, else of the run
    sa.Column("items", sa.Double, nullable=False),
    sa.Column("notes", sa.JSON, nullable=False),
    sa.Column("absent", sa.JSON(none_as_null=True)),  # metric → reason; null: nothing is
    sa.Column("failure_kind", sa.String(16)),  # null: measured
    sa.Column("failure", sa.JSON(none_as_null=True)),  # JSON, since what a process printed may hold NUL
    sa.ForeignKeyConstraint(
        ["run_id", "experiment"], ["experiment.run_id", "experiment.position"], ondelete="CASCADE"
    ),
)  # fmt: skip

series = sa.Table(
    "series", metadata, _id(),
    sa.Column("fingerprint", sa.String(64), nullable=False),  # of what follows
    sa.Column("benchmark", sa.Text, nullable=False),
    sa.Column("benchmark_version", sa.Text, nullable=False),
    sa.Column("suite", sa.Text, nullable=False),
    sa.Column("variant", sa.Text, nullable=False),
    sa.Column("target", sa.Text, nullable=False),  # device, requirements and variables, less the revision
    sa.Column("metric", sa.Text, nullable=False),
    sa.Column("unit", sa.Text, nullable=False),
    sa.Column("machine_id", sa.ForeignKey("machine.id"), nullable=False),
    sa.UniqueConstraint("fingerprint"),
    sa.Index(None, "variant"),
)  # fmt: skip

measurement = sa.Table(
    "measurement", metadata,
    sa.Column("run_id", sa.Integer, primary_key=True),
    sa.Column("arm", sa.Integer, primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True),
    sa.Column("series_id", sa.Integer, nullable=False),  # ids of rows that are written just before and never deleted:
    sa.Column("metric_id", sa.Integer, nullable=False),  # keys would cost more than the row (migration 0003)
    sa.Column("loops", sa.BigInteger, nullable=False),
    # The estimate: derived from the samples by whoever opened the store, may be rebuilt at any time.
    sa.Column("value", sa.Double),
    sa.Column("low", sa.Double),
    sa.Column("high", sa.Double),
    sa.Column("n", sa.Integer),
    sa.Column("note", sa.Text),
    sa.Column("at", Microseconds),  # where it stands in its series' history; null: nowhere (bench.points.point_at)
    sa.ForeignKeyConstraint(["run_id", "arm"], ["arm.run_id", "arm.position"], ondelete="CASCADE"),
    # PostgreSQL reads a history from the index alone: its points lie on as many pages as there are nights.
    sa.Index(
        None, "series_id", "at",
        postgresql_include=["run_id", "arm", "position", "value", "low", "high", "n", "note"],
    ),
)  # fmt: skip

sample = sa.Table(
    "sample", metadata,  # of the measurement with the same key
    sa.Column("run_id", sa.Integer, primary_key=True),
    sa.Column("arm", sa.Integer, primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True),
    sa.Column("codec", sa.String(16), nullable=False),
    sa.Column("data", sa.LargeBinary, nullable=False),
)  # fmt: skip

series_state = sa.Table(
    "series_state", metadata,
    sa.Column("series_id", sa.ForeignKey("series.id"), primary_key=True, autoincrement=False),
    sa.Column("run_id", sa.Integer, nullable=False),
    sa.Column("arm", sa.Integer, nullable=False),
    sa.Column("started_at", Moment, nullable=False),  # of the run: a late import of an old run is not the latest
    sa.Column("metric_id", sa.ForeignKey("metric.id"), nullable=False),  # direction and kind as declared last
    sa.Column("value", sa.Double),
    sa.Column("low", sa.Double),
    sa.Column("high", sa.Double),
    sa.Column("n", sa.Integer),
    sa.Column("note", sa.Text),
    sa.Column("points", sa.Integer, nullable=False, server_default="0"),  # how many its history has
    # No key and no index on what every night rewrites, and room for it in the page (migration 0006).
    postgresql_with={"fillfactor": "50"},
)  # fmt: skip

detector_mark = sa.Table(
    "detector_mark", metadata,
    sa.Column("series_id", sa.ForeignKey("series.id"), primary_key=True, autoincrement=False),
    sa.Column("points", sa.Integer, nullable=False),  # how many it has seen
)  # fmt: skip

change_point = sa.Table(
    "change_point", metadata,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("series_id", sa.ForeignKey("series.id"), nullable=False),
    sa.Column("at", Microseconds, nullable=False),  # of the first changed point
    sa.Column("last_good", sa.String(64), nullable=False),  # keys of runs
    sa.Column("first_changed", sa.String(64), nullable=False),
    sa.Column("regression", sa.Text),
    sa.Column("superseded_by", sa.Text),
    sa.Column("facts", sa.JSON, nullable=False),  # the whole value, less its series
    sa.Index(None, "series_id"),
    sa.Index(None, "regression"),
)  # fmt: skip

regression = sa.Table(
    "regression", metadata,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("opened_at", Moment, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),  # as the events left it: an expected one may be past its date
    sa.Column("opened", sa.JSON, nullable=False),  # the value before its first event
    sa.Column("facts", sa.JSON, nullable=False),  # what the events made of it: derived
    sa.Index(None, "opened_at"),
)  # fmt: skip

regression_event = sa.Table(
    "regression_event", metadata,
    sa.Column("regression", sa.ForeignKey("regression.key"), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("facts", sa.JSON, nullable=False),
)  # fmt: skip

proof_request = sa.Table(
    "proof_request", metadata,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("change", sa.Text, nullable=False),
    sa.Column("base", sa.Text, nullable=False),
    sa.Column("head", sa.Text, nullable=False),
    sa.Column("selector", sa.Text, nullable=False),
    sa.Column("machine_fingerprint", sa.String(64), nullable=False),
    sa.Column("made_at", Moment, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("taken_at", Moment),
    sa.Column("options", sa.JSON, nullable=False),
    sa.Index(None, "machine_fingerprint", "state"),
)  # fmt: skip

profile = sa.Table(
    "profile", metadata,
    sa.Column("change", sa.Text, primary_key=True),  # key of a change point, which may be found anew
    sa.Column("engine", sa.String(32), primary_key=True),
    sa.Column("made_at", Moment, nullable=False),
    sa.Column("document", sa.JSON, nullable=False),
)  # fmt: skip

notice = sa.Table(
    "notice", metadata,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("claimed_at", Moment, nullable=False),
)  # fmt: skip
