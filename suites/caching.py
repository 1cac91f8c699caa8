"""What does a cache gain, and what does it cost: for features, for what changes, and in decoding?"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import cycle
from typing import Any

from bench.api import Work, Wrong, benchmark
from suites import features
from suites.data import events
from suites.data.events import Row

FEW, MANY = 20_000, 400_000
"""Events behind the features, in the quick and in the full profile."""

TOGETHER = 64
"""Users whose features a batch of requests needs at once."""

PROBE = 20
"""Users whose features the check reads."""

Rows = dict[int, Row]

STORES: dict[str, Callable[[int, Rows], features.Store]] = {
    "sql_scan": lambda count, _: features.aggregated(count, indexed=False),
    "sql_index": lambda count, _: features.aggregated(count, indexed=True),
    "sql_key": lambda _, rows: features.by_key(rows),
    "redis_tcp": lambda _, rows: features.in_redis(rows),
    "redis_unix": lambda _, rows: features.in_redis(rows, unix=True),
    "in_process": lambda _, rows: features.in_process(rows),
}


@benchmark(
    axes={"store": ("sql_scan", "sql_key", "redis_tcp")},
    baseline={"store": "sql_scan"},
    requires=("numpy",),
    launches=5,
)
def lookup_few(device: Any, store: str) -> Work:
    """Features of one user, of 20,000 events: what do a finished row and Redis gain over computing them?"""
    return lookup_of(store, FEW)


@benchmark(
    axes={"store": tuple(STORES)}, baseline={"store": "sql_scan"}, requires=("numpy",), profiles=("full",), launches=5
)
def lookup(device: Any, store: str) -> Work:
    """Features of one user, of 400,000 events: is it the cache that is fast, or the missing index that is slow?"""
    return lookup_of(store, MANY)


@benchmark(
    axes={"store": ("sql_key", "redis_tcp", "redis_unix", "in_process")}, baseline={"store": "sql_key"},
    requires=("numpy",), profiles=("full",), launches=5,
)  # fmt: skip
def lookup_together(device: Any, store: str) -> Work:
    """Features of 64 users by one request (IN, MGET): what remains of Redis's gain when the way is shared?"""
    rows = events.features(MANY)
    opened = STORES[store](MANY, rows)
    assert opened.reader_of_many is not None
    read, order = opened.reader_of_many(), shuffled(rows)
    groups = [order[k : k + TOGETHER] for k in range(0, len(order) - TOGETHER + 1, TOGETHER)]
    upcoming = cycle(groups)

    def check(found: list[Row]) -> bool:
        compare(found, groups[0], rows)
        compare([row for group in groups[:3] for row in read(group)], [u for group in groups[:3] for u in group], rows)
        return True

    return Work(
        run=lambda: read(next(upcoming)), items=TOGETHER, check=check, notes=opened.notes, close=opened.close,
        servers=opened.servers,
    )  # fmt: skip


def lookup_of(store: str, count: int) -> Work:
    """Each call reads the features of another user, in an order that no cache of a processor likes."""
    rows = events.features(count)
    opened = STORES[store](count, rows)
    read, order = opened.reader(), shuffled(rows)
    upcoming = cycle(order)

    def check(found: Row) -> bool:
        compare([found], order[:1], rows)
        compare([read(user) for user in order[:PROBE]], order[:PROBE], rows)
        return True

    return Work(
        run=lambda: read(next(upcoming)), check=check, notes=opened.notes, close=opened.close, servers=opened.servers
    )


def shuffled(rows: Rows) -> list[int]:
    """All users, in the same random order in every process."""
    order = sorted(rows)
    random.Random(0).shuffle(order)
    return order


def compare(found: Sequence[Row], users: Sequence[int], rows: Rows) -> None:
    """Raises Wrong when the features found of these users aren't those that numpy computes."""
    for user, row in zip(users, found, strict=True):
        if row != rows[user]:
            raise Wrong(f"the features of user {user} are {row} and not {rows[user]}")
