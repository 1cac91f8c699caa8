"""Which revision a database has, and bringing it to the newest one."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from bench.errors import SchemaError, StoreError
from db.engine import file_of, make_engine, parse, place, reading, translated, use_wal, writing
from db.tables import VERSION_TABLE, metadata

SCRIPTS = Path(__file__).parent / "migrations"

LOCK = 0x62656E6368
"""Key of the PostgreSQL advisory lock under which one process at a time migrates ("bench")."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgraded:
    """What `upgrade` did: revisions before (null: empty) and after, and the copy of a SQLite file."""

    before: str | None
    after: str
    backup: Path | None = None


def alembic_config(connection: sa.Connection | None = None, scripts: Path = SCRIPTS) -> Config:
    """Alembic without an ini file; `connection` is where it works."""
    config = Config()
    config.set_main_option("script_location", str(scripts).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


def head(scripts: Path = SCRIPTS) -> str:
    """The newest revision that this bench knows."""
    found = ScriptDirectory.from_config(alembic_config(scripts=scripts)).get_current_head()
    assert found is not None
    return found


def revision_of(connection: sa.Connection) -> str | None:
    """The revision of a database; null for an empty one."""
    return MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE}).get_current_revision()


def is_known(revision: str, scripts: Path = SCRIPTS) -> bool:
    """Whether this bench has the migration of that name."""
    script = ScriptDirectory.from_config(alembic_config(scripts=scripts))
    return any(known.revision == revision for known in script.walk_revisions())


def check(connection: sa.Connection, where: str) -> bool:
    """True at the newest revision, False for an empty database. Raises SchemaError for any other state."""
    revision = revision_of(connection)
    if revision is None:
        _refuse_foreign(connection, where)
        return False
    if revision == head():
        return True
    _refuse_newer(revision, where)
    raise SchemaError(
        f"the database {where} has the schema {revision} of an older bench, this one needs {head()}; "
        "run `bench db upgrade`."
    )


def _refuse_newer(revision: str, where: str, scripts: Path = SCRIPTS) -> None:
    if not is_known(revision, scripts):
        raise SchemaError(f"the database {where} was written by a newer bench (schema {revision}); upgrade bench.")


def _refuse_foreign(connection: sa.Connection, where: str) -> None:
    found = set(sa.inspect(connection).get_table_names()) - {VERSION_TABLE}
    ours = found & set(metadata.tables)
    # A server's database may be shared, e.g. with the job queue; a SQLite file may not.
    alien = found if connection.dialect.name == "sqlite" else ours
    if alien:
        names = ", ".join(sorted(alien)[:3])
        raise SchemaError(f"the database {where} holds other tables already ({names}); name another database.")


def upgrade(url: str, *, scripts: Path = SCRIPTS) -> Upgraded:
    """Bring a database to the newest schema, making it where there is none.

    All in one transaction: it succeeds whole or changes nothing. A SQLite file that holds runs is
    copied beside itself first. Raises SchemaError (newer schema, someone else's tables, broken
    references afterwards) and StoreError.
    """
    parsed = parse(url)
    where, target = place(parsed), head(scripts)
    file = file_of(parsed)
    with translated(parsed):
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
        engine = make_engine(parsed, migrating=True)
        try:
            with reading(engine) as connection:
                before = revision_of(connection)
                if before is None:
                    _refuse_foreign(connection, where)
            if before == target:
                return Upgraded(before=before, after=target)
            backup = None
            if before is not None:
                _refuse_newer(before, where, scripts)
                backup = _copy(file, before) if file is not None else None
            use_wal(engine)
            with writing(engine) as connection:
                migrate(connection, where, scripts)
        finally:
            engine.dispose()
    return Upgraded(before=before, after=target, backup=backup)


def migrate(connection: sa.Connection, where: str, scripts: Path = SCRIPTS) -> None:
    """Run what is missing inside the caller's transaction, one process at a time."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(LOCK)))
    if revision_of(connection) is None:
        _refuse_foreign(connection, where)
    try:
        command.upgrade(alembic_config(connection, scripts), "head")
    except sa.exc.SQLAlchemyError as error:
        said = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
        raise SchemaError(f"the upgrade of {where} failed and changed nothing ({said}); please report it.") from None
    if connection.dialect.name == "sqlite":
        broken = connection.exec_driver_sql("PRAGMA foreign_key_check").fetchall()
        if broken:
            tables = ", ".join(sorted({row[0] for row in broken}))
            raise SchemaError(
                f"the upgrade of {where} would leave {len(broken)} rows of {tables} without their parent "
                "and changed nothing; please report it."
            )


def _copy(file: Path, revision: str) -> Path:
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    backup = file.with_name(f"{file.name}.{revision}.{stamp}.bak")
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("VACUUM INTO ?", (str(backup),))
    return backup


def open_engine(url: str, *, create: bool) -> sa.Engine:
    """An engine on a database at the newest schema; an empty or missing one is filled when `create`.

    Raises StoreError, SchemaError, ConfigError.
    """
    parsed = parse(url)
    where, file = place(parsed), file_of(parsed)
    with translated(parsed):
        if file is not None and not file.exists():
            if not create:
                raise StoreError(f"there is no database at {where}; `bench run` or `bench db upgrade` makes one.")
            file.parent.mkdir(parents=True, exist_ok=True)
        engine = make_engine(parsed)
        try:
            with reading(engine) as connection:
                ready = check(connection, where)
            if not ready and not create:
                raise StoreError(f"the database {where} is empty; `bench db upgrade` prepares it.")
            use_wal(engine)
            if not ready:
                with writing(engine) as connection:
                    migrate(connection, where)
        except BaseException:
            engine.dispose()
            raise
    return engine
