"""What all sources share whose benchmarks are found by importing a suite: a worker imports it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.measure.session import ArmFailed, Session
from bench.model import Benchmark, Failure, FailureKind, Target
from bench.ports import Discovery
from bench.wire import convert

TIMEOUT_S = 300.0
"""For importing one suite module."""


class WorkerSource:
    """A source whose `loader` runs in a worker: what a suite prints, or breaks, stays there.

    `path` is what a worker must be able to import (see bench.loaders.paths); known after `discover`.
    """

    name: str
    loader: str

    def __init__(self, places: Sequence[str]) -> None:
        self._places = list(places)
        self.path: tuple[str, ...] = ()

    def discover(self, target: Target, patterns: Sequence[str] = ()) -> Discovery:
        """See bench.ports.Source. A module that kills its process is a problem, the rest is found.

        Modules that cannot hold what `patterns` name are not imported: that may take minutes.
        """
        skip: list[str] = []
        deaths: list[Failure] = []
        with Session() as session:
            while True:
                module = ""
                worker = session.start(target, threads=1, hash_seed=0)
                try:
                    answer = worker.ask_raw(
                        "discover", TIMEOUT_S, loader=self.loader, places=self._places, skip=skip,
                        patterns=list(patterns),
                    )  # fmt: skip
                    while "module" in answer:
                        module = answer["module"]
                        answer = worker.next_message("discover", TIMEOUT_S)
                except ArmFailed as failed:
                    deaths.append(problem(failed.failure.kind, module, failed.failure.message, failed.failure.detail))
                    if not module or module in skip:
                        return Discovery(benchmarks=(), problems=tuple(deaths))
                    skip.append(module)
                    continue
                worker.close()
                break
        self.path = tuple(answer["path"])
        problems = [problem(FailureKind.RAISED, p["module"], p["message"], p["detail"]) for p in answer["problems"]]
        return Discovery(
            benchmarks=tuple(convert(self.adapt(b), Benchmark, "a worker's answer") for b in answer["benchmarks"]),
            problems=(*deaths, *problems),
        )

    def adapt(self, benchmark: dict[str, Any]) -> dict[str, Any]:
        """What the session knows better than the worker, e.g. from a configuration file."""
        return benchmark


def problem(kind: FailureKind, module: str, message: str, detail: str = "") -> Failure:
    """A module of a suite that could not be read."""
    return Failure(kind=kind, phase="discover", message=f"suite {module or '?'}: {message}", detail=detail)
