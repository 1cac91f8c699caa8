"""Every store gives the features that numpy computes; one that gives others is caught."""

from __future__ import annotations

import sqlite3

import pytest

from bench.api import Wrong
from bench.testing import FakeDevice
from suites import caching, features
from suites.data import events

EVENTS = 2000

both_servers = [pytest.mark.service("redis"), pytest.mark.service("mariadb")]
with_servers = pytest.mark.parametrize("store", [pytest.param(s, marks=both_servers) for s in caching.STORES])


@pytest.fixture(autouse=True)
def _few(monkeypatch):
    monkeypatch.setattr(caching, "FEW", EVENTS)
    monkeypatch.setattr(caching, "MANY", EVENTS)


@pytest.fixture
def closing():
    works = []
    yield lambda work: works.append(work) or work
    for work in works:
        if work.close is not None:
            work.close()


def test_features_are_those_of_the_events_literally():
    """Against SQLite, over rows made by plain Python."""
    rows = []
    for number in range(1, EVENTS + 1):
        h = number * events.MULTIPLIER % 2**32
        rows.append((number, h // 256 % 100, h // 16 % events.ITEMS, h % 9973, h // 8 % events.KINDS))
    with sqlite3.connect(":memory:") as connection:
        connection.execute("CREATE TABLE events (number, user, item, cents, kind)")
        connection.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?)", rows)
        query = events.AGGREGATE.replace("SQL_NO_CACHE ", "").replace("%s", "?")
        found = {user: connection.execute(query, (user,)).fetchone() for user in {row[1] for row in rows}}
    connection.close()
    assert events.features(EVENTS) == found


@with_servers
def test_store_gives_every_users_features_and_a_stale_one_is_wrong(store, suite_servers, closing, monkeypatch):
    pytest.importorskip("redis")
    pytest.importorskip("pymysql")
    work = closing(caching.lookup(FakeDevice(), store))
    first = work.run()
    assert work.check(first) is True
    if store != "in_process":
        assert work.notes
        assert len(work.servers) == 1
    with pytest.raises(Wrong, match="the features of user"):
        work.check((*first[:-1], first[-1] - 1))
    user = caching.shuffled(events.features(EVENTS))[3]
    rows = {**events.features(EVENTS), user: (0, 0, 0, 0, 0, 0)}  # the first answer is right, another is not
    if not store.startswith(("sql_scan", "sql_index")):
        stale = caching.STORES[store]
        monkeypatch.setitem(caching.STORES, store, lambda count, _: stale(count, rows))
        broken = closing(caching.lookup(FakeDevice(), store))
        with pytest.raises(Wrong, match=f"the features of user {user}"):
            broken.check(broken.run())


@pytest.mark.service("redis")
@pytest.mark.service("mariadb")
@pytest.mark.parametrize("store", ["sql_key", "redis_tcp", "redis_unix", "in_process"])
def test_many_are_read_in_the_order_asked_for(store, suite_servers, closing):
    pytest.importorskip("redis")
    pytest.importorskip("pymysql")
    work = closing(caching.lookup_together(FakeDevice(), store))
    found = work.run()
    assert work.items == len(found) == caching.TOGETHER
    assert work.check(found) is True
    with pytest.raises(Wrong, match="the features of user"):
        work.check(found[::-1])


@pytest.mark.service("redis")
@pytest.mark.service("mariadb")
def test_nothing_is_left_in_the_servers(suite_servers):
    redis = pytest.importorskip("redis")
    pymysql = pytest.importorskip("pymysql")
    for store in ("sql_index", "sql_key", "redis_tcp"):
        caching.lookup(FakeDevice(), store).close()
    assert redis.Redis.from_url(suite_servers["BENCH_REDIS_URL"]).dbsize() == 0
    port = int(suite_servers["BENCH_MARIADB_URL"].rpartition(":")[2])
    with pymysql.connect(host="127.0.0.1", port=port, user="root") as connection, connection.cursor() as cursor:
        cursor.execute("SHOW DATABASES LIKE 'bench%'")
        assert len(cursor.fetchall()) == 1  # the one that the session's own handle keeps


def test_rows_survive_packing():
    row = (20, 199_000, 9972, 5, 20, 400_000)
    assert features.PACKED.unpack(features.PACKED.pack(*row)) == row
    assert features.PACKED.size == 24
