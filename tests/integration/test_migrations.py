"""Opening, checking and upgrading databases of every state."""

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext

from bench.errors import BenchError, ConfigError, SchemaError, StoreError
from bench.testing import make_run
from db import schema
from db.engine import make_engine, parse, reading, writing
from db.schema import upgrade
from db.status import database_status
from db.store import open_store
from db.tables import VERSION_TABLE, metadata

REBUILD = """
revision, down_revision = "0002", "0001"
import sqlalchemy as sa
from alembic import op
def upgrade():
    op.create_table("extra", sa.Column("id", sa.Integer(), primary_key=True))
    with op.batch_alter_table("run") as batch:
        batch.add_column(sa.Column("mood", sa.Text(), server_default="calm", nullable=False))
        batch.alter_column("profile", new_column_name="way")
{then}
"""


def scripts_with(folder: Path, then: str) -> Path:
    """The migrations and one more, which rebuilds `run`, the parent of everything, and then does `then`."""
    scripts = folder / "migrations"
    shutil.copytree(schema.SCRIPTS, scripts, ignore=shutil.ignore_patterns("__pycache__"))
    text = REBUILD.format(then="".join(f"    {x}\n" for x in then.splitlines()))
    (scripts / "versions" / "0002_more.py").write_text(text)
    return scripts


def fill(url: str, runs: int = 3) -> None:
    with open_store(url) as store:
        for seed in range(runs):
            store.add(make_run(seed=seed, launches=1))


def counts(url: str) -> dict[str, int]:
    engine = make_engine(parse(url))
    try:
        with reading(engine) as connection:
            names = sa.inspect(connection).get_table_names()
            return {n: connection.scalar(sa.select(sa.func.count()).select_from(sa.table(n))) or 0 for n in names}
    finally:
        engine.dispose()


def set_revision(url: str, revision: str) -> None:
    engine = make_engine(parse(url))
    with writing(engine) as connection:
        connection.execute(sa.text(f"UPDATE {VERSION_TABLE} SET version_num = :r"), {"r": revision})
    engine.dispose()


def test_the_migrations_make_exactly_the_tables(database_url: str) -> None:
    """Types, nullability, names of constraints and indexes: nothing left for autogenerate to do."""
    assert upgrade(database_url).before is None
    engine = make_engine(parse(database_url))
    options = {"version_table": VERSION_TABLE, "compare_type": True, "compare_server_default": True}
    with reading(engine) as connection:
        assert compare_metadata(MigrationContext.configure(connection, opts=options), metadata) == []
        made = sa.MetaData()
        made.reflect(connection)
    engine.dispose()

    def names(of: sa.MetaData) -> set[tuple[str, object]]:
        return {(t.name, c.name) for t in of.tables.values() if t.name in metadata.tables
                for c in (*t.constraints, *t.indexes)}  # fmt: skip

    assert names(made) == names(metadata)
    assert all(name for _, name in names(metadata))


def test_an_upgrade_of_the_newest_schema_does_nothing(database_url: str) -> None:
    fill(database_url)
    before = counts(database_url)
    done = upgrade(database_url)
    assert (done.before, done.after, done.backup) == (schema.head(), schema.head(), None)
    assert counts(database_url) == before


def test_an_upgrade_that_rebuilds_a_parent_keeps_every_row_below(database_url: str, tmp_path: Path) -> None:
    """With foreign keys on, SQLite would silently delete all children of the rebuilt table."""
    fill(database_url)
    before = counts(database_url)
    done = upgrade(database_url, scripts=scripts_with(tmp_path, ""))
    assert (done.before, done.after) == ("0001", "0002")
    assert counts(database_url) == before | {"extra": 0}


@pytest.mark.parametrize(
    ("then", "error"),
    [
        ("raise RuntimeError('half way')", RuntimeError),
        ("op.execute('INSERT INTO no_such_table VALUES (1)')", SchemaError),
        (
            "op.execute('DELETE FROM experiment') if op.get_bind().dialect.name == 'sqlite' else op.execute('x')",
            SchemaError,
        ),
    ],
    ids=["raises", "bad statement", "orphans"],
)
def test_an_upgrade_that_fails_half_way_changes_nothing(
    database_url: str, tmp_path: Path, then: str, error: type[Exception]
) -> None:
    fill(database_url)
    before = counts(database_url)
    with pytest.raises(error) as caught:
        upgrade(database_url, scripts=scripts_with(tmp_path, then))
    if error is SchemaError:
        assert "changed nothing" in str(caught.value)
    assert counts(database_url) == before
    with open_store(database_url, create=False) as store:
        assert store.get(make_run(seed=2, launches=1).key) == make_run(seed=2, launches=1)


def test_a_sqlite_file_is_copied_before_it_is_changed(sqlite_url: str, tmp_path: Path) -> None:
    fill(sqlite_url)
    done = upgrade(sqlite_url, scripts=scripts_with(tmp_path, ""))
    assert done.backup is not None
    assert done.backup.parent == tmp_path
    with open_store(str(done.backup), create=False) as store:
        assert [store.get(info.key) for info in store.runs()] == [make_run(seed=k, launches=1) for k in (2, 1, 0)]


def test_an_older_schema_asks_for_an_upgrade(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(database_url)
    scripts = scripts_with(tmp_path, "")
    monkeypatch.setattr(schema, "head", lambda scripts=scripts: "0002")
    with pytest.raises(SchemaError, match="run `bench db upgrade`"):
        open_store(database_url)
    assert counts(database_url)["run"] == 3


def test_a_newer_schema_asks_for_a_newer_bench_and_is_left_alone(database_url: str) -> None:
    fill(database_url)
    set_revision(database_url, "9999")
    for attempt in (open_store, upgrade):
        with pytest.raises(SchemaError, match="written by a newer bench"):
            attempt(database_url)
    assert database_status(database_url).state == "newer"
    set_revision(database_url, schema.head())
    assert counts(database_url)["run"] == 3


def test_a_missing_file_is_made_with_its_folders_only_when_asked(tmp_path: Path) -> None:
    file = tmp_path / "a" / "b c%d" / "bench.db"
    with pytest.raises(StoreError, match="there is no database at"):
        open_store(str(file), create=False)
    assert not file.parent.exists()
    assert database_status(str(file)).state == "missing"
    assert not file.parent.exists()
    open_store(f"sqlite:///{file}").close()
    assert database_status(str(file)).state == "current"


def test_sqlite_is_set_so_that_no_acknowledged_run_is_lost(sqlite_url: str) -> None:
    with open_store(sqlite_url) as store, store.read() as connection:
        pragma = {n: connection.exec_driver_sql(f"PRAGMA {n}").scalar()
                  for n in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")}  # fmt: skip
    assert pragma == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 30_000}


def _text(file: Path) -> None:
    file.write_text("this is no database, only a long enough text file\n" * 100)


def _other_tables(file: Path) -> None:
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE photos(id)")
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    ("make", "says"), [(_text, "is not a SQLite database"), (_other_tables, "holds other tables already")]
)
def test_a_file_of_someone_else_is_refused_and_stays_as_it_is(
    tmp_path: Path, make: Callable[[Path], None], says: str
) -> None:
    file = tmp_path / "theirs.db"
    make(file)
    before = file.read_bytes()
    for attempt in (open_store, upgrade):
        with pytest.raises(StoreError, match=says):
            attempt(str(file))
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.service("postgresql")
def test_a_server_may_be_shared_but_not_our_names(postgresql_url: str) -> None:
    engine = make_engine(parse(postgresql_url))
    with writing(engine) as connection:
        connection.exec_driver_sql("CREATE TABLE jobs(id int)")
    open_store(postgresql_url).close()
    with writing(engine) as connection:
        connection.exec_driver_sql(f"DROP TABLE {VERSION_TABLE}")
    engine.dispose()
    with pytest.raises(SchemaError, match="holds other tables already"):
        open_store(postgresql_url)


@pytest.mark.parametrize(
    ("url", "kind", "says"),
    [
        ("postgresql://bench:s3cret@127.0.0.1:1/bench", StoreError, "check that the server runs"),
        ("postgresql://bench@127.0.0.1:1/bench?password=s3cret", StoreError, "check that the server runs"),
        ("mysql://bench:s3cret@127.0.0.1/bench", ConfigError, "not supported"),
        ("postgresql://bench:s3cret@127.0.0.1:port/bench", ConfigError, "cannot be read"),
        ("{folder}", StoreError, "cannot be opened"),
        ("{folder}/file/bench.db", StoreError, "cannot be made"),
    ],
)
def test_what_cannot_be_opened_is_one_sentence_without_the_password(
    url: str, kind: type[BenchError], says: str, tmp_path: Path
) -> None:
    pytest.importorskip("psycopg")
    (tmp_path / "file").write_text("")
    for attempt in (open_store, upgrade, database_status):
        if attempt is database_status and url.endswith("file/bench.db"):
            continue  # looks, makes nothing: "missing"
        with pytest.raises(kind, match=says) as caught:
            attempt(url.format(folder=tmp_path))
        assert "s3cret" not in str(caught.value)
        assert "\n" not in str(caught.value)
        assert caught.value.__cause__ is None
