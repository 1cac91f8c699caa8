"""A service of threads: requests wait in one queue, each worker answers what it takes, alone or as a batch."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

Answer = Callable[[Sequence[int]], Sequence[Any]]
"""Answers to some requests, in their order."""


class Service:
    """`workers` threads that each take up to `batch` requests as soon as they are free, and wait for none to come.

    make: called once in every worker's thread, so that each has connections of its own.
    Raises what `make` raises.
    """

    def __init__(self, make: Callable[[], Answer], *, workers: int, batch: int = 1) -> None:
        self._make, self._batch = make, batch
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
            try:
                answers = answer([request for request, _ in taken])
            except BaseException as error:  # noqa: BLE001 - it is the answer
                for _, future in taken:
                    future.set_exception(error)
                continue
            for (_, future), each in zip(taken, answers, strict=True):
                future.set_result(each)

    def _more(self) -> list[tuple[int, Future[Any]]]:
        more: list[tuple[int, Future[Any]]] = []
        while len(more) < self._batch - 1:
            try:
                waiting = self._waiting.get_nowait()
            except queue.Empty:
                break
            if waiting is None:  # meant for a worker, and this one is not done yet
                self._waiting.put(None)
                break
            more.append(waiting)
        return more
