"""Loads count what a user waits for: from the moment a request was due."""

from __future__ import annotations

import itertools
import statistics
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from suites.load import Load, closed_loop, nearest_rank, open_loop, poisson, sustained_rate


def done(answer=None) -> Future:
    future: Future = Future()
    future.set_result(answer)
    return future


def test_quantile_is_an_observed_latency():
    assert nearest_rank([3.0, 1.0, 2.0], 1 / 3) == 1.0
    assert nearest_rank([3.0, 1.0, 2.0], 0.34) == 2.0
    assert nearest_rank(range(1, 101), 0.99) == 99
    assert nearest_rank([5.0], 0.01) == 5.0


def test_load_knows_rate_and_mean():
    load = Load(latencies_s=(0.1, 0.3), wall_s=0.5)
    assert (load.rate, load.mean_s, load.quantile_s(0.5)) == (4.0, pytest.approx(0.2), 0.1)


def test_closed_loop_sends_every_request_once_with_that_many_clients():
    seen, running, most, guard = [], 0, 0, threading.Lock()

    def call(k: int) -> None:
        nonlocal running, most
        with guard:
            seen.append(k)
            running += 1
            most = max(most, running)
        time.sleep(0.003)
        with guard:
            running -= 1

    load = closed_loop(call, clients=4, requests=40)
    assert sorted(seen) == list(range(40))
    assert most == 4
    assert min(load.latencies_s) >= 0.003
    assert load.rate > 2 / 0.003 / 2  # far more than one client could send


def test_closed_loop_raises_what_a_call_raises():
    def call(k: int) -> None:
        if k == 3:
            raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        closed_loop(call, clients=2, requests=10)


def test_poisson_arrivals_repeat_and_have_the_rate():
    moments = poisson(200.0, 4000, 7)
    assert moments == poisson(200.0, 4000, 7)
    assert moments != poisson(200.0, 4000, 8)
    gaps = [b - a for a, b in itertools.pairwise(moments)]
    assert statistics.fmean(gaps) == pytest.approx(1 / 200, rel=0.05)
    assert statistics.pstdev(gaps) == pytest.approx(1 / 200, rel=0.1)  # an exponential's spread is its mean


def test_open_loop_does_not_wait_for_answers():
    with ThreadPoolExecutor(20) as pool:
        load = open_loop(lambda k: pool.submit(time.sleep, 0.05), [k * 0.001 for k in range(20)])
    assert load.wall_s < 0.5  # one after the other they take a second
    assert min(load.latencies_s) >= 0.05
    assert not load.given_up


def test_a_stall_is_charged_to_every_request_that_it_held_up():
    """The driver itself stands still in request 0; those that were due meanwhile waited, though unsent."""

    def submit(k: int) -> Future:
        if k == 0:
            time.sleep(0.1)
        return done()

    load = open_loop(submit, [k * 0.01 for k in range(20)])
    for k in range(1, 8):
        assert load.latencies_s[k] >= 0.1 - k * 0.01 - 0.001
    assert load.lag_s >= 0.08


def test_overload_is_given_up_and_what_was_sent_is_answered():
    with ThreadPoolExecutor(1) as pool:
        load = open_loop(lambda k: pool.submit(time.sleep, 0.01), [k * 0.001 for k in range(1000)], patience_s=0.03)
    assert load.given_up
    assert 3 <= len(load.latencies_s) < 500
    assert max(load.latencies_s) > 0.03


def test_open_loop_raises_what_a_request_raises():
    def submit(k: int) -> Future:
        future: Future = Future()
        future.set_exception(OSError("gone"))
        return future

    with pytest.raises(OSError, match="gone"):
        open_loop(submit, [0.0, 0.001])


@pytest.mark.parametrize("capacity", [3.0, 90.0, 100.0, 777.0])
def test_sustained_rate_is_found_from_either_side(capacity):
    asked = []

    def attempt(rate: float) -> Load:
        asked.append(rate)
        return Load(latencies_s=(0.01 if rate <= capacity else 0.06,), wall_s=1.0)

    found = sustained_rate(attempt, limit_s=0.05, start=100.0)
    assert capacity / 1.1 <= found <= capacity
    assert len(asked) < 30


def test_one_stall_does_not_refuse_a_rate_and_no_rate_is_zero():
    calls = 0

    def attempt(rate: float) -> Load:
        nonlocal calls
        calls += 1
        late = rate > 50.0 or calls % 2 == 1
        return Load(latencies_s=(0.06 if late else 0.01,), wall_s=1.0)

    assert 50 / 1.1 <= sustained_rate(attempt, limit_s=0.05, start=20.0) <= 50.0
    assert sustained_rate(lambda rate: Load(latencies_s=(1.0,), wall_s=1.0), limit_s=0.05, start=20.0) == 0.0
    given_up = Load(latencies_s=(0.01,), wall_s=1.0, given_up=True)
    assert sustained_rate(lambda rate: given_up, limit_s=0.05, start=20.0) == 0.0
