"""Benchmarks declared with `bench.api.benchmark`, in folders or packages."""

from __future__ import annotations

from collections.abc import Sequence

from bench.measure.session import ArmFailed, Session
from bench.model import Benchmark, Failure, FailureKind, Target
from bench.ports import Discovery
from bench.wire import convert

LOADER = "bench.loaders.native"

TIMEOUT_S = 60.0
"""For importing one suite module, which should import nothing heavy."""


class NativeSource:
    """Modules of suites. They are imported in a worker: what they print, or break, stays there."""

    name = "native"

    def __init__(self, places: Sequence[str]) -> None:
        self._places = list(places)
        self.path: tuple[str, ...] = ()  # what a worker must put on sys.path; known after discover

    def discover(self, target: Target) -> Discovery:
        """See bench.ports.Source. A module that kills its process is a problem, the rest is found."""
        skip: list[str] = []
        deaths: list[Failure] = []
        with Session() as session:
            while True:
                module = ""
                worker = session.start(target, threads=1, hash_seed=0)
                try:
                    answer = worker.ask_raw("discover", TIMEOUT_S, loader=LOADER, places=self._places, skip=skip)
                    while "module" in answer:
                        module = answer["module"]
                        answer = worker.next_message("discover", TIMEOUT_S)
                except ArmFailed as failed:
                    deaths.append(_problem(failed.failure.kind, module, failed.failure.message, failed.failure.detail))
                    if not module:
                        return Discovery(benchmarks=(), problems=tuple(deaths))
                    skip.append(module)
                    continue
                worker.close()
                break
        self.path = tuple(answer["path"])
        problems = [_problem(FailureKind.RAISED, p["module"], p["message"], p["detail"]) for p in answer["problems"]]
        return Discovery(
            benchmarks=tuple(convert(b, Benchmark, "a worker's answer") for b in answer["benchmarks"]),
            problems=(*deaths, *problems),
        )


def _problem(kind: FailureKind, module: str, message: str, detail: str) -> Failure:
    return Failure(kind=kind, phase="discover", message=f"suite {module or '?'}: {message}", detail=detail)
