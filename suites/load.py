"""Load on a service: clients that wait for their answer, and arrivals that wait for nobody.

A closed loop has a fixed number of clients; a slow answer makes them ask less often, so it shows
latency at a concurrency and hides what a queue would do. An open loop has arrivals at moments that
were drawn before; every latency counts from the moment a request was *due*, not from the moment the
driver got round to sending it, so a stall is charged to every request that it held up
(no coordinated omission).

All times are seconds of `time.perf_counter`.
"""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any

LEAD_S = 0.002
"""Between drawing up an open loop and its first arrival, so that the first one is not late already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What a load got: the latency of every request that was sent, in the order in which they were due.

    wall_s: from the first request to the last answer.
    lag_s: 99th percentile of how late the driver itself was; 0 for a closed loop. Where it is not small
    beside the latencies, the driver was the bottleneck, and not the service.
    given_up: the rest was not sent because the oldest unanswered request had waited too long.
    """

    latencies_s: tuple[float, ...]
    wall_s: float
    lag_s: float = 0.0
    given_up: bool = False

    @property
    def rate(self) -> float:
        """Answers per second."""
        return len(self.latencies_s) / self.wall_s

    @property
    def mean_s(self) -> float:
        """Mean latency."""
        return math.fsum(self.latencies_s) / len(self.latencies_s)

    def quantile_s(self, share: float) -> float:
        """The smallest latency that `share` of all requests did not exceed (0 < share <= 1)."""
        return nearest_rank(self.latencies_s, share)


def nearest_rank(values: Sequence[float], share: float) -> float:
    """Smallest of the values that at least `share` of them do not exceed; nothing is interpolated."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def closed_loop(call: Callable[[int], object], *, clients: int, requests: int) -> Load:
    """`clients` threads send `requests` in all; each sends its next one when it has its answer.

    `call(k)` returns when request k is answered. What it raises is raised here, once all threads ended.
    """
    numbers = iter(range(requests))
    latencies = [math.nan] * requests
    errors: list[BaseException] = []
    guard, gate = threading.Lock(), threading.Barrier(clients + 1)

    def client() -> None:
        gate.wait()
        while not errors:
            with guard:
                k = next(numbers, None)
            if k is None:
                return
            sent = time.perf_counter()
            try:
                call(k)
            except BaseException as error:  # noqa: BLE001 - whatever it is, the caller of the loop must see it
                errors.append(error)
                return
            latencies[k] = time.perf_counter() - sent

    threads = [threading.Thread(target=client, daemon=True) for _ in range(clients)]
    for thread in threads:
        thread.start()
    gate.wait()
    start = time.perf_counter()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return Load(latencies_s=tuple(latencies), wall_s=time.perf_counter() - start)


def poisson(rate: float, count: int, seed: int) -> tuple[float, ...]:
    """Moments of `count` arrivals that know nothing of each other, `rate` a second on average, from 0 on."""
    chance = random.Random(seed)
    moments, now = [], 0.0
    for _ in range(count):
        moments.append(now)
        now += chance.expovariate(rate)
    return tuple(moments)


def open_loop(submit: Callable[[int], Future[Any]], due: Sequence[float], *, patience_s: float = math.inf) -> Load:
    """Send request k at the moment `due[k]` (ascending), whatever became of those before it.

    `submit(k)` hands the request over and returns at once; the Future ends with the answer. After
    `patience_s` without an answer to the oldest open request no more are sent: the service is
    overloaded and its queue would only grow. Returns when all that was sent is answered; what a
    Future raises is raised here.
    """
    answered = [math.nan] * len(due)
    errors: list[BaseException] = []
    open_requests = threading.Semaphore(0)

    def note(k: int, future: Future[Any]) -> None:
        answered[k] = time.perf_counter()
        if (error := future.exception()) is not None:
            errors.append(error)
        open_requests.release()

    lags: list[float] = []
    oldest, given_up = 0, False
    start = time.perf_counter() + LEAD_S
    for k, moment in enumerate(due):
        while (early := start + moment - time.perf_counter()) > 0:
            time.sleep(early)
        lags.append(-early)
        while oldest < k and answered[oldest] == answered[oldest]:  # no NaN: it has its answer
            oldest += 1
        if errors or -early > patience_s or time.perf_counter() - start - due[oldest] > patience_s:
            given_up = True
            break
        submit(k).add_done_callback(partial(note, k))
    sent = len(lags) - given_up
    for _ in range(sent):
        open_requests.acquire()
    if errors:
        raise errors[0]
    latencies = tuple(end - start - moment for end, moment in zip(answered[:sent], due[:sent], strict=True))
    return Load(
        latencies_s=latencies, wall_s=max(answered[:sent], default=start) - start or math.inf,
        lag_s=nearest_rank(lags, 0.99), given_up=given_up,
    )  # fmt: skip


def sustained_rate(
    attempt: Callable[[float], Load],
    *,
    limit_s: float,
    share: float = 0.99,
    start: float,
    finest: float = 1.1,
    lowest: float = 1.0,
    tries: int = 2,
) -> float:
    """The highest rate at which `share` of the requests were answered within `limit_s`; 0 where none was.

    attempt: puts the service under an open loop of so many requests a second.
    start: the rate to begin with; it is doubled (or halved, not below `lowest`) until the answer
    changes, and the gap is then halved geometrically until it is no wider than the factor `finest`.
    tries: a rate is refused only when it fails so often: one stall of a shared machine is no capacity.
    """

    def holds(rate: float) -> bool:
        for _ in range(tries):
            load = attempt(rate)
            if not load.given_up and load.quantile_s(share) <= limit_s:
                return True
        return False

    rate, good, bad = start, 0.0, math.inf
    while not good or math.isinf(bad):
        if holds(rate):
            good, rate = rate, rate * 2
        elif rate <= lowest:
            return 0.0
        else:
            bad, rate = rate, max(lowest, rate / 2)
    while bad / good > finest:
        rate = math.sqrt(good * bad)
        if holds(rate):
            good = rate
        else:
            bad = rate
    return good
