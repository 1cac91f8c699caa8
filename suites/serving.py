"""A service of threads: requests wait in one queue, each worker answers what it takes, alone or as a batch."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, Protocol

Answer = Callable[[Sequence[int]], Sequence[Any]]
"""Answers to some requests, in their order."""


class Policy(Protocol):
    """For how many requests a free worker waits, and how long; what it took and waited for it may learn from."""

    def wanted(self) -> tuple[int, float]:
        """(requests worth waiting for, seconds to wait for them at most), asked when the first one is there."""

    def done(self, size: int, seconds: float, waiting: int) -> None:
        """A batch of `size` was computed in `seconds`; `waiting` requests came meanwhile."""


class Greedy:
    """Take what is there and wait for nothing."""

    def wanted(self) -> tuple[int, float]:
        """The first request is enough."""
        return 1, 0.0

    def done(self, size: int, seconds: float, waiting: int) -> None:
        """There is nothing to learn."""


class Service:
    """`workers` threads that each take up to `batch` requests when they are free.

    make: called once in every worker's thread, so that each has connections of its own.
    policy: whether a worker waits for more requests than are there.
    Raises what `make` raises.
    """

    def __init__(
        self, make: Callable[[], Answer], *, workers: int, batch: int = 1, policy: Policy | None = None
    ) -> None:
        self._make, self._batch, self._policy = make, batch, policy or Greedy()
        self._waiting: queue.SimpleQueue[tuple[int, Future[Any]] | None] = queue.SimpleQueue()
        ready: list[Future[None]] = [Future() for _ in range(workers)]
        self._threads = [threading.Thread(target=self._work, args=(each,), daemon=True) for each in ready]
        for thread in self._threads:
            thread.start()
        try:
            for each in ready:
                each.result()
        except BaseException:
            self.close()
            raise

    def submit(self, request: int) -> Future[Any]:
        """Put a request into the queue; the Future ends with its answer."""
        future: Future[Any] = Future()
        self._waiting.put((request, future))
        return future

    def close(self) -> None:
        """Answer what waits, then end all workers."""
        for _ in self._threads:
            self._waiting.put(None)
        for thread in self._threads:
            thread.join()

    def _work(self, ready: Future[None]) -> None:
        try:
            answer = self._make()
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that made the service
            ready.set_exception(error)
            return
        ready.set_result(None)
        while (first := self._waiting.get()) is not None:
            taken = [first, *self._more()]
            start = time.perf_counter()
            try:
                answers = answer([request for request, _ in taken])
            except BaseException as error:  # noqa: BLE001 - it is the answer
                for _, future in taken:
                    future.set_exception(error)
                continue
            self._policy.done(len(taken), time.perf_counter() - start, self._waiting.qsize())
            for (_, future), each in zip(taken, answers, strict=True):
                future.set_result(each)

    def _more(self) -> list[tuple[int, Future[Any]]]:
        wanted, patience_s = self._policy.wanted()
        more: list[tuple[int, Future[Any]]] = []
        deadline = time.perf_counter() + patience_s
        while len(more) < self._batch - 1:
            left = deadline - time.perf_counter() if len(more) + 1 < wanted else 0.0
            try:
                waiting = self._waiting.get(timeout=left) if left > 0 else self._waiting.get_nowait()
            except queue.Empty:
                break
            if waiting is None:  # meant for a worker, and this one is not done yet
                self._waiting.put(None)
                break
            more.append(waiting)
        return more
