"""A request gets the same answer in every batch, policies wait as they say, and a mixed-up batch is called wrong."""

from __future__ import annotations

import queue
import threading

import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
np = pytest.importorskip("numpy")

from bench.api import Wrong  # noqa: E402
from bench.testing import FakeDevice  # noqa: E402
from suites import batching  # noqa: E402
from suites.batching import Adaptive, Server, Waiting  # noqa: E402
from suites.load import Load, closed_loop  # noqa: E402
from suites.models import mlp  # noqa: E402
from suites.serving import Service  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def _short(tmp_path_factory):
    """A cache of our own and few requests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BENCH_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setattr(batching, "ROUNDS", 12)
        patch.setattr(batching, "ARRIVALS", 60)
        yield


@pytest.mark.parametrize("batch", [1, 8])
def test_perceptron_answers_as_numpy_does(batch):
    work = batching.throughput(FakeDevice(), batch)
    found = work.run()
    assert found.shape == (work.items, 64)
    assert work.check(found) is True
    with pytest.raises(Wrong, match="differ from those alone"):
        work.check(found[:, ::-1])


def test_rows_do_not_depend_on_the_batch():
    assert np.array_equal(mlp.inputs(3)[:2], mlp.inputs(2))


@pytest.mark.parametrize("policy", batching.POLICIES)
def test_every_policy_answers_every_request_rightly(policy):
    work = batching.closed(FakeDevice(), 4, policy)
    try:
        load = work.run()
        assert work.check(load) is True
        found = work.report(load)
        assert len(load.latencies_s) == work.items == 48
        assert found["p99_latency"] >= found["mean_latency"] > 0
        assert found["batch"] >= 1
        if policy == "none":
            assert found["batch"] == 1
    finally:
        work.close()


def test_arrivals_are_answered_and_an_overload_is_given_up(monkeypatch):
    monkeypatch.setattr(batching, "capacity", lambda: 200.0)
    monkeypatch.setattr(batching, "PATIENCE_S", 60.0)
    work = batching.arrivals(FakeDevice(), 0.5, "greedy")
    load = work.run()
    work.close()
    assert work.check(load) is True
    assert work.report(load)["kept_up"] == 1
    monkeypatch.setattr(batching, "capacity", lambda: 1e6)
    monkeypatch.setattr(batching, "PATIENCE_S", 0.1)
    monkeypatch.setattr(batching, "ARRIVALS", 5000)
    work = batching.arrivals(FakeDevice(), 1.5, "none")
    load = work.run()
    work.close()
    assert load.latencies_s
    assert work.report(load)["kept_up"] == 0


def test_answers_given_to_the_wrong_requests_are_called_wrong():
    """The classic mistake of a batcher: the right answers in the wrong order."""
    server = Server("greedy", 16)
    right = server._answer

    def mixed(requests):
        found = right(requests)
        server.answers[[k % 16 for k in requests]] = np.roll(np.stack(found), 1, axis=0)
        return found[-1:] + found[:-1]

    server.service.close()
    server.service = Service(lambda: mixed, workers=1, batch=8, policy=Waiting(0.05))
    load = closed_loop(lambda k: server.service.submit(k).result(), clients=8, requests=64)
    server.service.close()
    assert server.sizes[1] > server.sizes[0]
    with pytest.raises(Wrong, match="differ from those alone"):
        server.check(load)


def test_no_answer_at_all_is_wrong():
    server = Server("none", 4)
    server.service.close()
    with pytest.raises(Wrong, match="no request"):
        server.check(Load(latencies_s=(), wall_s=1.0))


def taken(policy, requests: int) -> list[int]:
    """Sizes of the batches of a service that is handed so many requests while it is busy with the first."""
    started, go, sizes = threading.Event(), threading.Event(), queue.SimpleQueue()

    def answer(chosen):
        started.set()
        go.wait(5)
        sizes.put(len(chosen))
        return chosen

    service = Service(lambda: answer, workers=1, batch=32, policy=policy)
    futures = [service.submit(0)]
    started.wait(5)
    futures += [service.submit(k) for k in range(1, requests)]
    go.set()
    assert [future.result(5) for future in futures] == list(range(requests))
    service.close()
    return [sizes.get() for _ in range(sizes.qsize())]


def test_worker_takes_what_came_while_it_was_busy():
    assert taken(None, 6) == [1, 5]
    assert taken(Adaptive(), 6) == [1, 5]


def test_waiting_policy_waits_for_a_second_request():
    sizes = []
    service = Service(
        lambda: lambda chosen: sizes.append(len(chosen)) or chosen, workers=1, batch=2, policy=Waiting(5.0)
    )
    first = service.submit(1)
    assert not first.done()
    second = service.submit(2)
    assert (first.result(5), second.result(5)) == (1, 2)
    service.close()
    assert sizes == [2]


def test_adaptive_policy_learns_who_is_about_and_waits_for_no_more():
    policy = Adaptive()
    assert policy.wanted() == (1, 0.0)
    for _ in range(20):
        policy.done(1, 0.001, 0)
    assert policy.wanted()[0] == 1
    for _ in range(20):
        policy.done(3, 0.002, 5)
    wanted, patience = policy.wanted()
    assert wanted == 8
    assert patience == pytest.approx(Adaptive.SHARE * 0.002, rel=0.01)


@pytest.mark.parametrize("pace", ["hot", "paced"])
def test_pace_changes_no_answer(pace):
    work = batching.pace(FakeDevice(), pace)
    work.prepare()
    assert work.check(work.run()) is True
