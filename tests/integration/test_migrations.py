"""Opening, checking and upgrading databases of every state."""

import shutil
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from bench.compare import estimate
from bench.errors import BenchError, ConfigError, SchemaError, StoreError
from bench.model import ArmResult, Estimate, Failure, FailureKind, Revision, Run, RunStatus, Target
from bench.ports import Added
from bench.testing import make_pair, make_run
from db import schema
from db.engine import make_engine, parse, reading, writing
from db.schema import upgrade
from db.status import database_status
from db.store import open_store
from db.tables import VERSION_TABLE, metadata

REBUILD = """
revision, down_revision = "9000", "{head}"
import sqlalchemy as sa
from alembic import op
def upgrade():
    op.create_table("extra", sa.Column("id", sa.Integer(), primary_key=True))
    with op.batch_alter_table("run") as batch:
        batch.add_column(sa.Column("mood", sa.Text(), server_default="calm", nullable=False))
        batch.alter_column("profile", new_column_name="way")
{then}
"""


def estimates(result: ArmResult) -> dict[str, Estimate]:
    return {m.metric.name: estimate(m) for m in result.measurements}


def scripts_with(folder: Path, then: str) -> Path:
    """The migrations and one more, which rebuilds `run`, the parent of everything, and then does `then`."""
    scripts = folder / "migrations"
    shutil.copytree(schema.SCRIPTS, scripts, ignore=shutil.ignore_patterns("__pycache__"))
    text = REBUILD.format(head=schema.head(), then="".join(f"    {x}\n" for x in then.splitlines()))
    (scripts / "versions" / "9000_more.py").write_text(text)
    return scripts


def fill(url: str, runs: int = 3) -> None:
    with open_store(url) as store:
        for seed in range(runs):
            store.add(make_run(seed=seed, launches=1))


def fill_at(url: str, revision: str, runs: Sequence[Run], folder: Path) -> None:
    """A database at an earlier revision, filled.

    Today's store makes the rows, and of each the columns that `revision` knew are copied. A column
    that only `revision` has must have a default there.
    """
    today = f"sqlite:///{folder / 'today.db'}"
    with open_store(today, summarise=estimates) as store:
        for run in runs:
            store.add(run)
    new, old = make_engine(parse(today)), make_engine(parse(url), migrating=True)
    with reading(new) as source, writing(old) as target:
        command.upgrade(schema.alembic_config(target), revision)
        earlier = sa.MetaData()
        earlier.reflect(target)
        for known in earlier.sorted_tables:  # parents first, as they were then
            if known.name not in metadata.tables:
                continue
            table = metadata.tables[known.name]
            columns = [column for column in table.columns if column.name in known.columns]
            rows = [{str(k): v for k, v in row._asdict().items()} for row in source.execute(sa.select(*columns))]
            if rows:
                target.execute(sa.insert(table), rows)
            if "id" in known.columns and target.dialect.name == "postgresql":
                next_id = f"SELECT setval(pg_get_serial_sequence('{table.name}', 'id'), max(id)) FROM {table.name}"
                target.exec_driver_sql(next_id)
    new.dispose()
    old.dispose()


def everything(url: str) -> dict[str, list[tuple[object, ...]]]:
    """All rows of all tables of today, less when they were stored, in an order of their own."""
    engine = make_engine(parse(url))
    with reading(engine) as connection:
        found = {
            table.name: sorted(
                (tuple(row) for row in connection.execute(sa.select(*(c for c in table.c if c.name != "stored_at")))),
                key=repr,
            )
            for table in metadata.tables.values()
        }
    engine.dispose()
    return found


EARLIER = [found.revision for found in ScriptDirectory.from_config(schema.alembic_config()).walk_revisions()][1:]
"""Every revision but the newest."""


def eventful_runs() -> list[Run]:
    """Runs that differ in everything that migrations read: failures, states, revisions, gates."""
    committed = Revision(commit="c" * 40, branch="main", committed_at=datetime(2026, 2, 3, 4, 5, 6, 789, tzinfo=UTC))
    own = replace(make_run(seed=5, launches=2, speedups=(1.0,)), revision=replace(committed, dirty=True))
    (part,) = own.experiments
    arm = replace(part.results[0].arm, target=Target(revision=committed, variables={"A": "1"}))
    at_own = replace(
        part, experiment=replace(part.experiment, arms=(arm,)), results=(replace(part.results[0], arm=arm),)
    )
    twice = replace(part, experiment=replace(part.experiment, arms=part.experiment.arms * 2), results=part.results * 2)
    failure = Failure(kind=FailureKind.WRONG, phase="check", message="wrong")
    return [
        make_run(seed=0, launches=2),
        replace(make_run(seed=1, launches=2), revision=committed),
        replace(make_run(seed=2, launches=2), revision=replace(committed, dirty=True)),
        replace(make_run(seed=3, launches=2), status=RunStatus.INTERRUPTED),
        make_run(seed=4, launches=2, failure=failure),
        replace(own, experiments=(at_own,)),
        replace(make_run(seed=6), experiments=(make_pair(1.2, name="demo.net"),)),
        replace(make_run(seed=7), experiments=(twice,)),
    ]


@pytest.mark.parametrize("revision", EARLIER)
def test_an_upgrade_from(revision: str, database_url: str, tmp_path: Path) -> None:
    """Nothing is lost, and what is derived is what today's bench derives."""
    runs = eventful_runs()
    fill_at(database_url, revision, runs, tmp_path)
    before = counts(database_url)
    assert before["run"] == len(runs)
    done = upgrade(database_url)
    assert (done.before, done.after) == (revision, schema.head())
    after = counts(database_url)
    assert {name: after[name] for name in before} == before
    assert everything(database_url) == everything(f"sqlite:///{tmp_path / 'today.db'}")
    with open_store(database_url, create=False, summarise=estimates) as store:
        for run in runs:
            assert store.get(run.key) == run
            assert store.add(run) is Added.REPLAY
        assert store.add(make_run(seed=9)) is Added.NEW


@pytest.mark.parametrize("revision", EARLIER)
def test_an_upgrade_that_fails_at_its_last_statement_leaves_the_database_as_it_was(
    revision: str, database_url: str, tmp_path: Path
) -> None:
    fill_at(database_url, revision, eventful_runs(), tmp_path)
    before, tables = counts(database_url), schemas(database_url)
    with pytest.raises(SchemaError, match="changed nothing"):
        upgrade(database_url, scripts=scripts_with(tmp_path, "op.execute('INSERT INTO no_such_table VALUES (1)')"))
    assert (counts(database_url), schemas(database_url)) == (before, tables)
    assert upgrade(database_url).before == revision


def schemas(url: str) -> dict[str, list[str]]:
    """Columns and indexes of every table."""
    engine = make_engine(parse(url))
    with reading(engine) as connection:
        there = sa.inspect(connection)
        found = {
            name: [c["name"] for c in there.get_columns(name)] + [str(i["name"]) for i in there.get_indexes(name)]
            for name in there.get_table_names()
        }
    engine.dispose()
    return found


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
    assert (done.before, done.after) == (schema.head(), "9000")
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
    monkeypatch.setattr(schema, "head", lambda scripts=scripts: "9000")
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
