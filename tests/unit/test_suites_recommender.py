"""Every stage recommends what the reference does and logs every impression; a broken one is caught."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("pymysql")
pytest.importorskip("redis")
pytest.importorskip("confluent_kafka")

from bench.api import Items, Skip, Wrong
from bench.testing import FakeDevice
from suites import impressions, recommender
from suites.load import Load
from suites.models import towers
from suites.services import kafka
from suites.serving import Service

with_servers = [pytest.mark.service("redis"), pytest.mark.service("mariadb")]
EVENTS, ITEMS = 2000, 3000


@pytest.fixture(autouse=True)
def _small(monkeypatch, request):
    monkeypatch.setattr(recommender, "FEW_EVENTS", EVENTS)
    monkeypatch.setattr(recommender, "FEW_ITEMS", ITEMS)
    monkeypatch.setenv(kafka.VARIABLE, kafka.MOCK)


@pytest.fixture
def case(suite_servers):
    made = []

    def make(stage: recommender.Stage) -> recommender.Case:
        made.append(recommender.Case(stage, EVENTS, ITEMS))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_each_step_adds_one_thing_and_takes_nothing_back():
    stages = list(recommender.STAGES.values())
    assert stages[0] == recommender.Stage()
    for before, after in pairwise(stages):
        assert (
            sum(getattr(before, f) != getattr(after, f) for f in ("store", "items", "precision", "log", "batch")) == 1
        )
    assert stages[-1] == recommender.Stage(
        store="redis", items="precomputed", precision="int8", log="kafka", batch=recommender.BATCH
    )


@pytest.mark.parametrize("stage", [pytest.param(s, marks=with_servers) for s in recommender.STAGES])
def test_stage_answers_like_the_reference(stage, case):
    made = case(recommender.STAGES[stage])
    work = made.work(lambda: {"sustained": 7.0})
    first = work.run()
    assert len(set(first.tolist())) == towers.BEST
    assert work.check(first) is True
    values = work.report(first)
    assert isinstance(values["recall"], Items)
    assert len(values["recall"]) == recommender.PROBE * towers.BEST
    assert values["sustained"] == 7.0
    assert 0 < values["log_delay"] < 5
    assert work.notes["weights"] == "random"
    assert ("mock" in work.notes.get("kafka", "")) == (made.stage.log == "kafka")
    with pytest.raises(Wrong, match="first answer"):
        work.check(np.arange(towers.BEST))


@pytest.mark.service("redis")
@pytest.mark.service("mariadb")
@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_stale_vectors_are_wrong(precision, case, monkeypatch):
    """A sixth of the catalogue still has the vectors of an older tower."""

    def stale(self) -> object:
        vectors = np.load(self.made / towers.VECTORS)
        vectors[::6] = vectors[1::6][: len(vectors[::6])]
        return lambda numbers: vectors[numbers]

    monkeypatch.setattr(recommender.Case, "_vectors", stale)
    work = case(replace(recommender.PRECOMPUTED, precision=precision)).work(dict)
    with pytest.raises(Wrong, match=r"of the reference's best items were found|less than half"):
        work.check(work.run())


@pytest.mark.service("redis")
@pytest.mark.service("mariadb")
def test_lost_impression_is_wrong(case, monkeypatch):
    monkeypatch.setattr(recommender, "PATIENCE_S", 0.3)
    made = case(recommender.LOGGED)
    work = made.work(dict)
    insert, losses = made.log._insert, iter([1])

    def insert_but_one(cursor, values):
        insert(cursor, values[next(losses, 0) :] or values)

    monkeypatch.setattr(made.log, "_insert", insert_but_one)
    made.log.writer()([(made.users[0], made.candidates[0][:10])] * 3)  # so that the first batch can spare one
    made.answered += 3
    with pytest.raises(Wrong, match="requests were answered, and"):
        work.check(work.run())


@pytest.mark.service("redis")
@pytest.mark.service("mariadb")
def test_a_failing_consumer_is_told(case, monkeypatch):
    made = case(recommender.LOGGED)

    def fail(cursor, values):
        raise OSError("disk full")

    monkeypatch.setattr(made.log, "_insert", fail)
    made.ask(made.users[0]).result()
    with pytest.raises(OSError, match="disk full"):
        made.log.drained(1, 5.0)


@pytest.mark.service("redis")
@pytest.mark.service("mariadb")
def test_a_rate_is_not_sustained_while_the_log_grows(case, monkeypatch):
    made = case(recommender.LOGGED)
    rates = []

    def search(attempt, **settings):
        load = attempt(200.0)
        rates.append((len(load.latencies_s), load.given_up))
        return 200.0

    monkeypatch.setattr(recommender, "sustained_rate", search)
    made.sustained()
    monkeypatch.setattr(made.log, "drained", lambda written, patience_s: False)
    made.sustained()
    assert rates[0][0] == recommender.FEWEST
    assert [given_up for _, given_up in rates] == [False, True]


@pytest.mark.service("mariadb")
@pytest.mark.service("redis")
def test_nothing_is_left_when_a_part_cannot_be_had(suite_servers, monkeypatch):
    pymysql = pytest.importorskip("pymysql")

    def nowhere() -> None:
        raise Skip("no broker")

    monkeypatch.setattr(kafka, "serve", nowhere)
    with pytest.raises(Skip, match="no broker"):
        recommender.request(FakeDevice(), "batched")
    port = int(suite_servers["BENCH_MARIADB_URL"].rpartition(":")[2])
    with pymysql.connect(host="127.0.0.1", port=port, user="root") as connection, connection.cursor() as cursor:
        cursor.execute("SHOW DATABASES LIKE 'bench%'")
        assert len(cursor.fetchall()) == 1  # the one that the session's own handle keeps


def test_towers_in_onnx_are_those_in_numpy(tmp_path, monkeypatch):
    from suites import engines

    monkeypatch.setenv("BENCH_CACHE", str(tmp_path))
    made = towers.built(600)
    inputs = np.random.default_rng(0).standard_normal((3, towers.USER[0]), np.float32)
    expected = towers.forward(towers.user_network(), inputs)
    for name, error in ((towers.USER_FP32, 1e-5), (towers.USER_INT8, 0.1)):
        found = engines.ort_session(made / name, 1).run(None, {towers.INPUT: inputs})[0]
        assert np.linalg.norm(found - expected) < error * np.linalg.norm(expected)
    attributes = np.load(made / towers.ATTRIBUTES)
    found = engines.ort_session(made / towers.ITEM_FP32, 1).run(None, {towers.INPUT: attributes})[0]
    assert np.allclose(found, np.load(made / towers.VECTORS), rtol=1e-4, atol=1e-4)
    assert (made / towers.USER_INT8).stat().st_size < (made / towers.USER_FP32).stat().st_size / 3.5


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_user_tower_alone_is_close_and_one_of_other_weights_is_wrong(precision, tmp_path, monkeypatch):
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path))
    work = recommender.user_tower(FakeDevice(), precision, 8)
    found = work.run()
    assert work.check(found) is True
    assert found.shape == (work.items, towers.WIDTH) == (8, towers.WIDTH)
    assert 0.995 < work.report(found)["cosine"] <= 1.00001
    with pytest.raises(Wrong, match="mean cosine"):
        work.check(found[::-1])


def test_candidates_are_different_items_all_over_the_catalogue():
    found = towers.candidates(50, 3000)
    assert found.shape == (50, towers.CANDIDATES)
    assert all(len(set(row)) == towers.CANDIDATES for row in found.tolist())
    assert (found.min(), found.max()) >= (0, 2900)
    assert found.max() < 3000


def test_best_are_the_largest_products_in_order():
    vectors = np.random.default_rng(1).standard_normal((200, towers.WIDTH), np.float32)
    user = np.random.default_rng(2).standard_normal(towers.WIDTH).astype(np.float32)
    assert towers.best_of(vectors, user).tolist() == np.argsort(-(vectors @ user))[: towers.BEST].tolist()


def test_service_takes_what_waits_as_one_batch_and_never_more_than_it_may():
    batches, gate = [], threading.Event()

    def make():
        def answer(requests):
            gate.wait(5)
            batches.append(list(requests))
            return [request * 10 for request in requests]

        return answer

    service = Service(make, workers=1, batch=4)
    futures: list[Future] = [service.submit(k) for k in range(1)]
    while service._waiting.qsize():
        time.sleep(0.001)
    futures += [service.submit(k) for k in range(1, 8)]
    gate.set()
    assert [future.result(5) for future in futures] == [k * 10 for k in range(8)]
    assert batches == [[0], [1, 2, 3, 4], [5, 6, 7]]
    service.close()


def test_service_raises_what_its_parts_raise_and_answers_what_waits_before_it_ends():
    def broken():
        raise Skip("no server")

    with pytest.raises(Skip, match="no server"):
        Service(broken, workers=3)

    def answer(requests):
        if requests[0] == 1:
            raise OSError("gone")
        return requests

    service = Service(lambda: answer, workers=2, batch=1)
    futures = [service.submit(k) for k in range(5)]
    service.close()
    with pytest.raises(OSError, match="gone"):
        futures[1].result(0)
    assert [futures[k].result(0) for k in (0, 2, 3, 4)] == [0, 2, 3, 4]


def test_messages_say_when_and_who():
    assert impressions.HEADER.unpack(impressions.HEADER.pack(1.5, 7)) == (1.5, 7)
    assert Load(latencies_s=(1.0,), wall_s=1.0).given_up is False
