"""One engine for SQLite and PostgreSQL, and every failure of either as one sentence.

SQLite runs in WAL mode with `synchronous=FULL`. Writers begin with `BEGIN IMMEDIATE`: a plain
`BEGIN` that reads first and writes later fails at once with "database is locked" under a second
writer, whatever the busy timeout (https://sqlite.org/lang_transaction.html). WAL needs a local disk.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.pool import StaticPool

from bench.errors import BenchError, ConfigError, StoreError

BUSY_MS = 30_000
"""How long a SQLite writer waits for another one."""

CACHE_KIB = 65_536
"""Pages of a SQLite file that a connection keeps: an index of millions of rows is touched all over."""

CONNECT_S = 10
"""How long to wait for a PostgreSQL server to answer."""

WRITE = {"bench_write": True}
"""Execution options of a connection that is going to write."""

CHUNK = 500
"""Values in one `IN (…)`: far below the limit of either database."""

T = TypeVar("T")

KNOWN = "sqlite:///FILE or postgresql://USER@HOST/NAME"


def parse(url: str) -> sa.URL:
    """A database URL, or the path of a SQLite file. Raises ConfigError."""
    if "://" not in url:
        return sa.URL.create("sqlite", database=url)
    scheme, rest = url.split("://", 1)
    if scheme in ("postgres", "postgresql"):
        scheme = "postgresql+psycopg"
    try:
        parsed = sa.make_url(f"{scheme}://{rest}")
    except (sa.exc.ArgumentError, ValueError):
        raise ConfigError(f"the database URL that begins with {scheme}:// cannot be read; write {KNOWN}.") from None
    if parsed.drivername not in ("sqlite", "sqlite+pysqlite", "postgresql+psycopg"):
        raise ConfigError(f"a database of the kind {scheme!r} is not supported; write {KNOWN}.")
    return parsed


def file_of(url: sa.URL) -> Path | None:
    """The SQLite file; null for a server and for a database in memory."""
    if url.get_backend_name() != "sqlite" or not url.database or url.database == ":memory:":
        return None
    return Path(url.database)


def place(url: sa.URL) -> str:
    """Where the database is, for a person: no password, no options."""
    if url.get_backend_name() == "sqlite":
        return str(file_of(url) or "the database in memory")
    return url.set(drivername="postgresql", password=None, query={}).render_as_string()


def make_engine(url: sa.URL, *, migrating: bool = False) -> sa.Engine:
    """An engine; connects on first use.

    `migrating` leaves foreign keys of SQLite unenforced: rebuilding a parent table with them on
    deletes every child row without a word. Raises StoreError when the driver is not installed.
    """
    options: dict[str, Any] = {"json_serializer": _json, "hide_parameters": True}
    if url.get_backend_name() == "sqlite":
        if file_of(url) is None:
            options["poolclass"] = StaticPool
            options["connect_args"] = {"check_same_thread": False}
        engine = sa.create_engine(url, **options)
        _prepare_sqlite(engine, foreign_keys=not migrating)
        return engine
    options["pool_pre_ping"] = True
    if "connect_timeout" not in url.query:
        options["connect_args"] = {"connect_timeout": CONNECT_S}
    try:
        return sa.create_engine(url, **options)
    except ModuleNotFoundError as error:
        raise StoreError(
            f"PostgreSQL needs the package {error.name}: pip install 'inference-bench[postgres]'."
        ) from None


def _json(value: Any) -> str:
    # NaN and infinity are no JSON: PostgreSQL refuses them, and our wire format too.
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _prepare_sqlite(engine: sa.Engine, *, foreign_keys: bool) -> None:
    @sa.event.listens_for(engine, "connect")
    def connect(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None  # the driver must not begin transactions by itself
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout={BUSY_MS}")
        cursor.execute(f"PRAGMA foreign_keys={'ON' if foreign_keys else 'OFF'}")
        cursor.execute("PRAGMA synchronous=FULL")
        cursor.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
        cursor.close()

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        writes = connection.get_execution_options().get("bench_write", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def use_wal(engine: sa.Engine) -> None:
    """Let readers and a writer of a SQLite file work side by side; it is kept in the file.

    Not done on connect: a file that turns out to be someone else's must stay as it is.
    """
    if file_of(engine.url) is None:
        return
    with closing(engine.raw_connection()) as connection:
        cursor = connection.cursor()
        # Asked first: the change needs the file for itself, and other processes may be at work.
        if cursor.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            cursor.execute("PRAGMA journal_mode=WAL")
        cursor.close()


@contextmanager
def reading(engine: sa.Engine) -> Iterator[sa.Connection]:
    """A connection in a transaction that only reads, so that it sees one state. Raises StoreError."""
    with translated(engine.url), engine.connect() as connection, connection.begin():
        yield connection


@contextmanager
def writing(engine: sa.Engine) -> Iterator[sa.Connection]:
    """A connection in a transaction that commits at the end, whole or not at all. Raises StoreError."""
    with translated(engine.url), engine.connect().execution_options(**WRITE) as connection, connection.begin():
        yield connection


def upsert(connection: sa.Connection, table: sa.Table) -> postgresql.Insert | sqlite.Insert:
    """An INSERT that knows ON CONFLICT."""
    return postgresql.insert(table) if connection.dialect.name == "postgresql" else sqlite.insert(table)


def chunks(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """For `IN (…)`, so many at a time."""
    for start in range(0, len(values), CHUNK):
        yield values[start : start + CHUNK]


def raw(connection: sa.Connection, query: sa.Select[Any]) -> Sequence[tuple[Any, ...]]:
    """Rows as the driver gives them, where numbers need no conversion: SQLAlchemy's own rows double the time."""
    cursor = connection.execute(query).cursor
    assert cursor is not None
    return cursor.fetchall()


@contextmanager
def translated(url: sa.URL) -> Iterator[None]:
    """Errors of drivers and of SQLAlchemy as StoreError: one sentence, never a password."""
    try:
        yield
    except BenchError:
        raise
    except (sa.exc.SQLAlchemyError, sqlite3.Error, OSError) as error:
        raise StoreError(_sentence(url, error)) from None


def _sentence(url: sa.URL, error: BaseException) -> str:
    cause = getattr(error, "orig", None) or error
    said = (str(cause).strip().splitlines() or [type(cause).__name__])[0].rstrip(".")
    secrets = [url.password, url.query.get("password")]
    for secret in secrets:
        if isinstance(secret, str) and secret:
            said = said.replace(secret, "***")
    where = place(url)
    if isinstance(error, OSError):
        return f"the database {where} cannot be made: {error.filename}: {error.strerror or said}."
    if "not a database" in said or "malformed" in said:
        return f"{where} is not a SQLite database ({said}); name another file or restore a copy."
    if "locked" in said:
        return f"the database {where} was held by another process for {BUSY_MS // 1000} s; try again."
    if "readonly" in said:
        return f"the database {where} may not be written ({said}); check its permissions."
    if "unable to open" in said:
        return f"the database {where} cannot be opened ({said}); check the folder and its permissions."
    if isinstance(error, sa.exc.OperationalError):
        hint = "" if url.get_backend_name() == "sqlite" else "; check that the server runs and the URL is right"
        return f"the database {where} cannot be used ({said}){hint}."
    return f"the database {where} refused a statement ({said})."
