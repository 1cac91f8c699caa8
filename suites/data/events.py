"""Events of users and the features made of them, by arithmetic: the same in a database and in numpy.

Event number n (from 1 on) has h = n · MULTIPLIER mod 2³², a sequence that looks random, and from it
the user who acted, the item, the price in cents and the kind of the event. So a server makes its
rows itself, and what it answers is compared with features that it had no part in.
"""

from __future__ import annotations

from typing import Any

from suites.imports import need

MULTIPLIER = 2654435761
"""The prime next to 2³² divided by the golden ratio (Knuth, The Art of Computer Programming 3, 6.4)."""

EVENTS_PER_USER = 20

ITEMS = 10_000

KINDS = 4
PURCHASE = 1

COLUMNS = ("events", "spent", "largest", "purchases", "items", "last")
"""Of a user: how many events, cents in all and at most, how many purchases and different items, the newest event."""

Row = tuple[int, ...]
"""One value for each of COLUMNS."""

AGGREGATE = (
    f"SELECT SQL_NO_CACHE COUNT(*), SUM(cents), MAX(cents), SUM(kind = {PURCHASE}), COUNT(DISTINCT item), MAX(number) "
    "FROM events WHERE user = %s"
)
"""The features of one user, out of the table that `create` makes."""


def users_of(events: int) -> int:
    """How many users so many events have."""
    return events // EVENTS_PER_USER


def create(cursor: Any, events: int, *, indexed: bool) -> None:
    """Make and fill the table `events` in the connection's database, by the user or not `indexed`."""
    cursor.execute(
        "CREATE TABLE events (number INT UNSIGNED PRIMARY KEY, user INT UNSIGNED NOT NULL, item INT UNSIGNED NOT NULL, "
        "cents INT UNSIGNED NOT NULL, kind TINYINT UNSIGNED NOT NULL) ENGINE=InnoDB"
    )
    cursor.execute(
        f"INSERT INTO events SELECT number, (h >> 8) % {users_of(events)}, (h >> 4) % {ITEMS}, h % 9973, "
        f"(h >> 3) % {KINDS} FROM (SELECT seq AS number, (seq * {MULTIPLIER}) & 0xFFFFFFFF AS h "
        f"FROM seq_1_to_{events}) AS hashed"
    )
    if indexed:
        cursor.execute("CREATE INDEX by_user ON events (user)")
    cursor.execute("ANALYZE TABLE events")
    cursor.fetchall()


def features(events: int) -> dict[int, Row]:
    """The features of every user who has any event, by numpy."""
    numpy = need("numpy", "pip install 'inference-bench[suites]'")
    number = numpy.arange(1, events + 1, dtype=numpy.uint64)
    h = number * numpy.uint64(MULTIPLIER) & numpy.uint64(0xFFFFFFFF)
    users = users_of(events)
    user = ((h >> numpy.uint64(8)) % numpy.uint64(users)).astype(numpy.int64)
    item = ((h >> numpy.uint64(4)) % numpy.uint64(ITEMS)).astype(numpy.int64)
    cents = (h % numpy.uint64(9973)).astype(numpy.int64)
    kind = ((h >> numpy.uint64(3)) % numpy.uint64(KINDS)).astype(numpy.int64)
    largest, last = numpy.zeros(users, numpy.int64), numpy.zeros(users, numpy.int64)
    numpy.maximum.at(largest, user, cents)
    numpy.maximum.at(last, user, number.astype(numpy.int64))
    pairs = numpy.unique(user * ITEMS + item)
    columns = (
        numpy.bincount(user, minlength=users),
        numpy.bincount(user, weights=cents, minlength=users).astype(numpy.int64),
        largest,
        numpy.bincount(user[kind == PURCHASE], minlength=users),
        numpy.bincount(pairs // ITEMS, minlength=users),
        last,
    )
    table = numpy.stack(columns, axis=1)
    return {user: tuple(row) for user, row in enumerate(table.tolist()) if row[0]}
