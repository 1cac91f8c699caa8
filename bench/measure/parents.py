"""Where the workers of one launch come from: fresh processes, or forks of one that imported their suite.

Importing a suite may cost far more than measuring it. So where the import is expensive, a launch starts
one process per target, the parent, which imports the module once, and every variant of that module
is measured in a fork of it. Each launch has new parents: the layout of a parent persists in all its
forks, so forks of one parent are no launches of their own (study behind docs/measuring.md).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress

from bench.measure.channel import Message
from bench.measure.session import ArmFailed, Session, WorkerProcess
from bench.metrics import PEAK_MEMORY
from bench.model import Benchmark, Failure, Target

START_S = 300.0
"""What starting an interpreter and importing a suite may take, on top of a benchmark's own timeout.

Suites exist that compute their data when they are imported: networkx's needs 20 s of CPU time for it.
"""

EXPENSIVE_NS = 250_000_000
"""CPU time of an import that is made once a launch instead of once a variant.

A bare worker costs 0.07 s. Below this, a process of its own for each variant is as quick and the simplest thing.
"""


class Parents:
    """The workers of one launch, which share one hash seed. Close it, or kill it when something went wrong."""

    def __init__(
        self,
        session: Session,
        benchmark: Benchmark,
        path: Sequence[str],
        hash_seed: int,
        *,
        under: Sequence[str] = (),
        slower: float = 1.0,
    ) -> None:
        """`benchmark`: any of those that are measured; they have one module, loader and number of threads.

        `under`: the program that runs them, which makes everything so many times `slower`.
        """
        self.hash_seed = hash_seed
        self.seconds = 0.0
        self.shared = False
        self.obstacle = ""
        self._session = session
        self._benchmark = benchmark
        self._path = list(path)
        self._under = under
        self._slower = slower
        self._open: dict[str, WorkerProcess] = {}
        self._failures: dict[str, Failure] = {}

    def open(self, targets: Iterable[Target]) -> None:
        """Import the suite at each target, at all of them at once, and see whether forking pays and is safe.

        `shared` says so afterwards; `obstacle` why not, where it would pay. One answer for all targets:
        arms that are compared must come about alike. Whatever fails here fails again in `worker`.
        """
        start = time.monotonic()
        answers: list[Message] = []
        for target in targets:
            worker = self._start(target)
            self._open[_key(target)] = worker
            with suppress(ArmFailed):
                self._request(worker)
        for key, worker in list(self._open.items()):
            try:
                answers.append(worker.next_message("import", self._patience))
            except ArmFailed as failed:
                self._failures[key] = failed.failure
                del self._open[key]
        if any(answer["cpu_ns"] >= EXPENSIVE_NS for answer in answers):
            self.obstacle = next((answer["obstacle"] for answer in answers if answer["obstacle"]), "")
            if not self.obstacle and self._benchmark.primary == PEAK_MEMORY.name:
                self.obstacle = "it is measured for its peak of memory, which a fork knows only in part"
            self.shared = not self.obstacle
        self.seconds = time.monotonic() - start

    def worker(self, target: Target) -> WorkerProcess:
        """A worker that imported the suite and did nothing else. Raises ArmFailed.

        A parent that is gone is replaced: what killed it may have been another variant's doing.
        """
        key = _key(target)
        if key in self._failures:
            raise ArmFailed(self._failures[key])
        if not self.shared:
            return self._open.pop(key, None) or self._imported(target)
        if key in self._open:
            with suppress(ArmFailed):
                return self._open[key].fork()
            self._open.pop(key).kill()
        self._open[key] = self._imported(target)
        return self._open[key].fork()

    def close(self) -> None:
        """End the processes that are still here, and with them their forks."""
        for worker in self._open.values():
            worker.kill()
        self._open.clear()

    def _imported(self, target: Target) -> WorkerProcess:
        worker = self._start(target)
        self._request(worker)
        worker.next_message("import", self._patience)
        return worker

    def _start(self, target: Target) -> WorkerProcess:
        return self._session.start(target, threads=self._benchmark.threads, hash_seed=self.hash_seed, under=self._under)

    def _request(self, worker: WorkerProcess) -> None:
        worker.send(
            "import", loader=self._benchmark.loader, source=self._benchmark.source, suite=self._benchmark.suite,
            path=self._path,
        )  # fmt: skip

    @property
    def _patience(self) -> float:
        return self._slower * (START_S + self._benchmark.timeout_s)


def _key(target: Target) -> str:
    return repr(target)
