"""A table in MariaDB behind a cache in Redis: what a cache may say after the table has changed, by strategy."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from suites.services.mariadb import MariaDB
from suites.services.redis import LIFE_S, Redis

USERS = 200
OPERATIONS = 200
WRITES = 0.1
"""Share of the operations that write; who is read and written follows Zipf's law, so that some are asked for often."""

TTL_MS = 50
"""How long an entry lives where nothing else removes it."""

CLOCK_MS = 5
"""How late Redis may find that an entry's time is over: it looks at its clock once for all that waits."""

Read = Callable[[int], int]
Write = Callable[[int, int], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reads:
    """What the reads of some operations gave. oldest_s: for how long the oldest value read had been overwritten."""

    total: int
    fresh: int
    oldest_s: float
    invented: int = 0  # values that were never written


class Table:
    """The values of all users in MariaDB, each with the moment when it was overwritten."""

    def __init__(self, server: MariaDB) -> None:
        self._cursor = server.connect().cursor()
        # In memory: the wait for the disk of a commit is the same for all strategies, and hides what they differ by.
        self._cursor.execute("CREATE TABLE versions (user INT PRIMARY KEY, value INT NOT NULL) ENGINE=MEMORY")
        self._cursor.executemany("INSERT INTO versions VALUES (%s, 0)", [(user,) for user in range(USERS)])
        self.newest = dict.fromkeys(range(USERS), 0)
        self.overwritten: dict[tuple[int, int], float] = {}

    def read(self, user: int) -> int:
        """The value that is stored."""
        self._cursor.execute("SELECT SQL_NO_CACHE value FROM versions WHERE user = %s", (user,))
        return int(self._cursor.fetchone()[0])

    def write(self, user: int, value: int) -> None:
        """Store a value, newer than all before."""
        self._cursor.execute("UPDATE versions SET value = %s WHERE user = %s", (value, user))


def strategy(name: str, table: Table, server: Redis | None) -> tuple[Read, Write]:
    """How to read and to write.

    none: the table only; write_through: a write sets the entry; delete: a write removes it; ttl: a
    write leaves it, it lives TTL_MS; versioned: a write counts a version up, which is part of the
    entry's name, so that an old entry is never asked for again.
    """
    if server is None:
        return table.read, table.write
    client: Any = server.client()
    key, life = server.key, TTL_MS if name == "ttl" else LIFE_S * 1000

    def filled(entry: str, user: int) -> int:
        if (value := client.get(entry)) is None:
            value = table.read(user)
            client.set(entry, value, px=life)
        return int(value)

    def version_of(user: int) -> str:
        return key(f"{user}.{(client.get(key(f'version.{user}')) or b'0').decode()}")

    after: dict[str, Write] = {
        "write_through": lambda user, value: client.set(key(user), value, px=life),
        "delete": lambda user, _: client.delete(key(user)),
        "ttl": lambda user, _: None,
        "versioned": lambda user, _: client.incr(key(f"version.{user}")),
    }
    follow = after[name]

    def write(user: int, value: int) -> None:
        table.write(user, value)  # first: an entry set before its commit could tell what is never stored
        follow(user, value)

    if name == "versioned":
        return lambda user: filled(version_of(user), user), write
    return lambda user: filled(key(user), user), write


def operations() -> list[tuple[int, bool]]:
    """(user, whether to write), the same in every process."""
    chance = random.Random(0)
    weights = [1 / (rank + 1) for rank in range(USERS)]
    users = chance.choices(range(USERS), weights, k=OPERATIONS)
    return [(user, chance.random() < WRITES) for user in users]


def sweep(table: Table, read: Read, write: Write, todo: list[tuple[int, bool]]) -> Reads:
    """Do all operations, one after the other, and look at what the reads gave."""
    total = fresh = invented = 0
    oldest = 0.0
    for user, writes in todo:
        newest = table.newest[user]
        if writes:
            write(user, newest + 1)
            table.newest[user] = newest + 1
            table.overwritten[user, newest] = time.perf_counter()
            continue
        asked = time.perf_counter()
        value = read(user)
        total += 1
        if value == newest:
            fresh += 1
        elif (moment := table.overwritten.get((user, value))) is None:
            invented += 1
        else:
            oldest = max(oldest, asked - moment)
    return Reads(total=total, fresh=fresh, oldest_s=oldest, invented=invented)
