"""What does a cache gain, and what does it cost: for features, for what changes, and in decoding?"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import cycle
from typing import Any

from bench.api import HIGHER, LOWER, Items, Metric, Work, Wrong, benchmark
from suites import features
from suites import invalidation as changing
from suites.data import events
from suites.data.events import Row
from suites.imports import need
from suites.services import mariadb, redis

FEW, MANY = 20_000, 400_000
"""Events behind the features, in the quick and in the full profile."""

TOGETHER = 64
"""Users whose features a batch of requests needs at once."""

SWEEPS = 5
"""Of all operations, for the share of reads that are fresh."""

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


@benchmark(
    axes={"strategy": ("none", "write_through", "delete", "ttl", "versioned")}, baseline={"strategy": "none"},
    metrics=(
        Metric("fresh", unit="1", better=HIGHER, exact=False, help="reads that gave the newest value"),
        Metric("oldest", unit="s", better=LOWER, kind="time", exact=False,
               help="for how long the oldest value that was read had been overwritten"),
    ),
    profiles=("full",), launches=5,
)  # fmt: skip
def invalidation(device: Any, strategy: str) -> Work:
    """180 reads and 20 writes of rows by key: what does it cost that a cache tells the truth after a write?"""
    with ExitStack() as stack:
        database = mariadb.serve()
        stack.callback(database.close)
        server = None if strategy == "none" else redis.serve()
        if server is not None:
            stack.callback(server.close)
        table, todo = changing.Table(database), changing.operations()
        read, write = changing.strategy(strategy, table, server)
        close = stack.pop_all().close
    bound_s = (changing.TTL_MS + changing.CLOCK_MS) / 1000 if strategy == "ttl" else 0.0

    def once() -> changing.Reads:
        return changing.sweep(table, read, write, todo)

    def check(found: changing.Reads) -> bool:
        for reads in (found, once(), once()):
            if reads.invented:
                raise Wrong(f"{reads.invented} reads gave a value that was never written")
            if reads.oldest_s > bound_s:
                raise Wrong(f"a value was read {reads.oldest_s * 1e3:.1f} ms after it was overwritten")
        return True

    def report(_: changing.Reads) -> dict[str, float | int | Items]:
        sweeps = [once() for _ in range(SWEEPS)]
        fresh, total = sum(s.fresh for s in sweeps), sum(s.total for s in sweeps)
        return {"fresh": fresh / total, "oldest": max(s.oldest_s for s in sweeps)}

    parts = [part for part in (database, server) if part is not None]
    return Work(
        run=once, items=len(todo), check=check, report=report, close=close,
        notes={name: text for part in parts for name, text in part.notes().items()},
        servers=tuple(part.pid for part in parts if part.pid is not None),
    )  # fmt: skip


@benchmark(
    axes={"cache": ("none", "kv"), "tokens": (8, 32, 128)}, baseline={"cache": "none"},
    metrics=(
        Metric("likeliest", unit="1", better=HIGHER, help="tokens that one pass over the finished text finds too"),
        Metric("cache_bytes", unit="B", better=LOWER, kind="memory", help="of keys and values when all is generated"),
    ),
    requires=("torch",), profiles=("full",), launches=5,
)  # fmt: skip
def decoding(device: Any, cache: str, tokens: int) -> Work:
    """A small decoder writes so many tokens after a prompt of 16: what does the cache of keys and values gain?"""
    torch = need("torch", "pip install 'inference-bench[torch]'")
    from suites.models import decoder

    torch.set_num_threads(device.threads)
    net, begin = decoder.network(), decoder.prompt()
    kept = decoder.empty_cache(len(begin) + tokens) if cache == "kv" else []

    def check(found: list[int]) -> bool:
        if len(found) != tokens:
            raise Wrong(f"{len(found)} tokens instead of {tokens}")
        right = decoder.likeliest(net, begin, found)
        if not all(right):
            raise Wrong(f"token {right.index(False)} is not the likeliest")
        return True

    return Work(
        run=lambda: decoder.generate(net, begin, tokens, cached=cache == "kv"), items=tokens, check=check,
        report=lambda found: {
            "likeliest": Items(decoder.likeliest(net, begin, found)),
            "cache_bytes": sum(part.nbytes for pair in kept for part in pair),
        },
        notes={"weights": "random"},
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
