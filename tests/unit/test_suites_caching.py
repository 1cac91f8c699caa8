"""Every store gives the features that numpy computes; one that gives others is caught."""

from __future__ import annotations

import sqlite3

import pytest

from bench.api import Wrong
from bench.testing import FakeDevice
from suites import caching, features, invalidation
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


STRATEGIES = ["none", "write_through", "delete", "ttl", "versioned"]


@pytest.mark.service("redis")
@pytest.mark.service("mariadb")
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_strategy_tells_the_truth_that_it_promises(strategy, suite_servers, closing, monkeypatch):
    pytest.importorskip("redis")
    pytest.importorskip("pymysql")
    monkeypatch.setattr(invalidation, "TTL_MS", 400)  # of a busy machine's sweep, so that something is stale
    work = closing(caching.invalidation(FakeDevice(), strategy))
    first = work.run()
    assert work.items == invalidation.OPERATIONS == first.total + sum(writes for _, writes in invalidation.operations())
    assert work.check(first) is True
    values = work.report(first)
    if strategy == "ttl":
        assert 0 < values["fresh"] < 1
        assert 0 < values["oldest"] <= 0.405
    else:
        assert values == {"fresh": 1.0, "oldest": 0.0}


@pytest.mark.service("redis")
@pytest.mark.service("mariadb")
@pytest.mark.parametrize(
    ("strategy", "forgets"), [("write_through", "set"), ("delete", "delete"), ("versioned", "incr")]
)
def test_write_that_forgets_the_cache_is_wrong(strategy, forgets, suite_servers, closing, monkeypatch):
    pytest.importorskip("redis")
    pytest.importorskip("pymysql")
    honest = invalidation.strategy

    def forgetful(name, table, server):
        read, _ = honest(name, table, server)
        return read, table.write

    monkeypatch.setattr(invalidation, "strategy", forgetful)
    work = closing(caching.invalidation(FakeDevice(), strategy))
    with pytest.raises(Wrong, match="ms after it was overwritten"):
        work.check(work.run())


@pytest.mark.service("redis")
@pytest.mark.service("mariadb")
def test_entry_that_outlives_its_time_is_wrong(suite_servers, closing, monkeypatch):
    pytest.importorskip("redis")
    pytest.importorskip("pymysql")
    monkeypatch.setattr(invalidation, "TTL_MS", 60_000)
    work = closing(caching.invalidation(FakeDevice(), "ttl"))
    monkeypatch.setattr(invalidation, "TTL_MS", 1)
    work.run()
    broken = closing(caching.invalidation(FakeDevice(), "ttl"))  # checked against 1 ms
    with pytest.raises(Wrong, match="ms after it was overwritten"):
        broken.check(work.run())
    with pytest.raises(Wrong, match="3 reads gave a value that was never written"):
        broken.check(invalidation.Reads(total=5, fresh=2, oldest_s=0.0, invented=3))


@pytest.mark.parametrize("tokens", [4, 20])
def test_cache_of_keys_and_values_changes_no_token(tokens):
    pytest.importorskip("torch")
    found = {}
    for cache in ("none", "kv"):
        work = caching.decoding(FakeDevice(), cache, tokens)
        found[cache] = work.run()
        assert work.check(found[cache]) is True
        values = work.report(found[cache])
        assert values["likeliest"] == (1,) * tokens
        assert (values["cache_bytes"] > 0) == (cache == "kv")
    assert found["none"] == found["kv"]
    assert len(set(found["kv"])) > tokens / 2  # not one token for ever, which any cache would get right


def test_cache_that_forgets_a_position_is_wrong(monkeypatch):
    torch = pytest.importorskip("torch")
    from suites.models import decoder

    work = caching.decoding(FakeDevice(), "kv", 20)
    right = work.run()
    whole = decoder.Layer.forward

    def forgetful(self, hidden, kept, start):
        if kept is not None and start > decoder.PROMPT:
            kept[0][:, :, 3], kept[1][:, :, 3] = 0, 0
        return whole(self, hidden, kept, start)

    monkeypatch.setattr(decoder.Layer, "forward", forgetful)
    with torch.inference_mode():
        broken = work.run()
    monkeypatch.undo()
    assert broken != right
    with pytest.raises(Wrong, match="is not the likeliest"):
        work.check(broken)
    with pytest.raises(Wrong, match="19 tokens instead of 20"):
        work.check(right[1:])
