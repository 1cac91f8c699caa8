"""Where the features of users are kept and how they are read: the stores that `caching` and `recommender` compare."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from suites.data import events
from suites.data.events import Row
from suites.services import mariadb, redis

PACKED = struct.Struct(f"<{len(events.COLUMNS)}I")
"""A row as Redis keeps it: 24 bytes."""

BY_KEY = f"SELECT SQL_NO_CACHE {', '.join(events.COLUMNS)} FROM features WHERE user = %s"

Reader = Callable[[int], Row]
ReaderOfMany = Callable[[Sequence[int]], list[Row]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """Features behind one connection per reader, which one thread may use.

    servers: processes that answer (see Work.servers).
    """

    reader: Callable[[], Reader]
    reader_of_many: Callable[[], ReaderOfMany] | None = None
    notes: Mapping[str, str] = field(default_factory=dict)
    servers: tuple[int, ...] = ()
    close: Callable[[], object] = lambda: None


def in_process(rows: Mapping[int, Row]) -> Store:
    """A dict of this process."""
    table = dict(rows)
    return Store(reader=lambda: table.__getitem__, reader_of_many=lambda: lambda users: [table[user] for user in users])


def aggregated(count: int, *, indexed: bool) -> Store:
    """MariaDB computes them from `count` events whenever they are asked for, with or without an index by user."""
    with _opened() as (server, stack):
        with server.connect() as connection, connection.cursor() as cursor:
            events.create(cursor, count, indexed=indexed)
        return Store(
            reader=lambda: row_reader(server.connect(), events.AGGREGATE), notes=server.notes(),
            servers=_pids(server.pid), close=stack.pop_all().close,
        )  # fmt: skip


def by_key(rows: Mapping[int, Row]) -> Store:
    """MariaDB keeps one finished row a user under its primary key; many are read by one statement."""
    with _opened() as (server, stack):
        with server.connect() as connection, connection.cursor() as cursor:
            columns = ", ".join(f"{column} INT UNSIGNED NOT NULL" for column in events.COLUMNS)
            cursor.execute(f"CREATE TABLE features (user INT UNSIGNED PRIMARY KEY, {columns}) ENGINE=InnoDB")
            cursor.executemany(
                f"INSERT INTO features VALUES (%s{', %s' * len(events.COLUMNS)})",
                [(u, *row) for u, row in rows.items()],
            )

        def many() -> ReaderOfMany:
            cursor = server.connect().cursor()

            def read(users: Sequence[int]) -> list[Row]:
                cursor.execute(
                    f"SELECT SQL_NO_CACHE user, {', '.join(events.COLUMNS)} FROM features WHERE user IN %s", (users,)
                )
                found = {row[0]: row[1:] for row in cursor.fetchall()}
                return [found[user] for user in users]

            return read

        return Store(
            reader=lambda: row_reader(server.connect(), BY_KEY), reader_of_many=many, notes=server.notes(),
            servers=_pids(server.pid), close=stack.pop_all().close,
        )  # fmt: skip


def in_redis(rows: Mapping[int, Row], *, unix: bool = False) -> Store:
    """Redis keeps one packed row a user; over TCP or its Unix socket. Many are read by one MGET."""
    server = redis.serve(unix=unix)
    try:
        server.fill({user: PACKED.pack(*row) for user, row in rows.items()})
    except BaseException:
        server.close()
        raise

    def reader() -> Reader:
        get = server.client(unix=unix).get
        return lambda user: PACKED.unpack(get(server.key(user)))

    def many() -> ReaderOfMany:
        mget = server.client(unix=unix).mget
        return lambda users: [PACKED.unpack(value) for value in mget([server.key(user) for user in users])]

    return Store(
        reader=reader, reader_of_many=many, notes=server.notes(), servers=_pids(server.pid), close=server.close
    )


def row_reader(connection: Any, query: str) -> Reader:
    """The one row that a query gives for a user, as integers."""
    cursor = connection.cursor()

    def read(user: int) -> Row:
        cursor.execute(query, (user,))
        return tuple(map(int, cursor.fetchone()))  # SUM gives decimals

    return read


@contextmanager
def _opened() -> Iterator[tuple[mariadb.MariaDB, ExitStack]]:
    """A MariaDB that is closed at the end of the block, unless `stack.pop_all()` took over."""
    with ExitStack() as stack:
        server = mariadb.serve()
        stack.callback(server.close)
        yield server, stack


def _pids(pid: int | None) -> tuple[int, ...]:
    return () if pid is None else (pid,)
