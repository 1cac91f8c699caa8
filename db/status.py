"""What a person wants to know of a database, whatever state it is in."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import sqlalchemy as sa

from bench.errors import SchemaError
from db.engine import file_of, make_engine, parse, place, reading, translated
from db.queries import Totals, totals
from db.schema import check, head, is_known, revision_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """`state`: missing, empty, current, older (run `bench db upgrade`), newer (upgrade bench) or foreign."""

    place: str
    backend: str
    state: str
    revision: str | None
    head: str
    bytes: int | None = None
    totals: Totals | None = None

    def plain(self) -> dict[str, Any]:
        """Plain JSON values; moments in ISO 8601."""
        values = asdict(self)
        if self.totals is not None:
            for name in ("first_at", "last_at"):
                moment = getattr(self.totals, name)
                values["totals"][name] = moment.isoformat() if moment else None
        return values


def database_status(url: str) -> Status:
    """Look without changing anything, schema included. Raises StoreError when it cannot be reached."""
    parsed = parse(url)
    where, backend, newest = place(parsed), parsed.get_backend_name(), head()
    file = file_of(parsed)
    with translated(parsed):
        if file is not None and not file.exists():
            return Status(place=where, backend=backend, state="missing", revision=None, head=newest)
        engine = make_engine(parsed)
        try:
            with reading(engine) as connection:
                revision = revision_of(connection)
                state = _state(connection, where, revision)
                size = _size(connection)
                counted = totals(connection) if state == "current" else None
        finally:
            engine.dispose()
    return Status(
        place=where, backend=backend, state=state, revision=revision, head=newest, bytes=size, totals=counted
    )  # fmt: skip


def _state(connection: sa.Connection, where: str, revision: str | None) -> str:
    try:
        return "current" if check(connection, where) else "empty"
    except SchemaError:
        if revision is None:
            return "foreign"
        return "older" if is_known(revision) else "newer"


def _size(connection: sa.Connection) -> int | None:
    if connection.dialect.name == "sqlite":
        pages, size = (connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("page_count", "page_size"))
        return int(pages or 0) * int(size or 0)
    return connection.scalar(sa.select(sa.func.pg_database_size(sa.func.current_database())))
