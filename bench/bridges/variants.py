"""What all bridges share: the benchmarks of a place, and one variant set up in this very process."""

from __future__ import annotations

import importlib
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.api import Items, Skip
from bench.loaders import native
from bench.measure.contract import device_of, judge, kind_of, require
from bench.measure.meters.time import SystemClock, prepared_batch, timed_batch
from bench.measure.session import worker_environment
from bench.model import REAL, Benchmark, Scalar, Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """What was found: benchmarks, and (module, why) of what could not be read."""

    benchmarks: tuple[Benchmark, ...]
    problems: tuple[tuple[str, str], ...]


def declared(places: Sequence[str], into: Mapping[str, Any], profile: str | None) -> Declared:
    """Import the suites of the places: folders, from the file that exposes them, or importable packages.

    `profile` null: the benchmarks of all profiles.
    """
    base = Path(into["__file__"]).resolve().parent
    benchmarks, _, problems = native.find([str(base / p) if (base / p).is_dir() else p for p in places])
    return Declared(
        benchmarks=tuple(b for b in benchmarks if profile is None or profile in b.profiles),
        problems=tuple((p["module"], p["message"]) for p in problems),
    )


def source_of(benchmark: Benchmark) -> str:
    """Text of the set-up function; empty where it cannot be had."""
    module, _, name = benchmark.source.partition(":")
    try:
        return inspect.getsource(getattr(importlib.import_module(module), name))
    except (OSError, TypeError):
        return ""


class Ready:
    """One variant with its work. Raises Skip when something it requires is missing, and what the set-up raises."""

    def __init__(self, benchmark: Benchmark, params: Mapping[str, Scalar], device: str) -> None:
        _prepare_environment(benchmark.threads)
        self._names = tuple(metric.name for metric in benchmark.metrics)
        self._device = device_of(device, benchmark.threads)
        require(benchmark.requires, self._device.name)
        self.work = native.load(benchmark.source, self._device, dict(params))
        if (kind := kind_of(self.work, self._device)) != REAL:
            raise Skip(f"is {kind}: it has no time of its own")
        self.skips: tuple[type[BaseException], ...] = (Skip, *self.work.skips)  # of a call
        self._clock = self.work.clock or SystemClock()

    @property
    def call(self) -> Callable[[], Any]:
        """What another tool may time: one call, to the end of what it handed to the device."""
        run, synchronize = self.work.run, self._device.synchronize
        if self._device.name == "cpu":  # nothing is ever pending, and a frame of ours costs time
            return run

        def call() -> Any:
            answer = run()
            synchronize()
            return answer

        return call

    def first_call(self) -> tuple[int, Any]:
        """(ns, answer) of a call with its preparation, which is not timed."""
        if self.work.prepare is not None:
            self.work.prepare()
        call = self.call
        start = self._clock.wall()
        answer = call()
        return self._clock.wall() - start, answer

    def batch(self, loops: int) -> int:
        """Wall time of so many calls in ns, without their preparation."""
        run, synchronize, clock = self.work.run, self._device.synchronize, self._clock
        if self.work.prepare is None:
            return timed_batch(run, loops, synchronize, clock.wall, clock.cpu)[0]
        return prepared_batch(run, self.work.prepare, loops, synchronize, clock.wall, clock.cpu)[0]

    def judge(self, answer: Any) -> dict[str, float | int]:
        """The suite's metrics for an answer, shares of items as a number. Raises Wrong."""
        values = judge(self.work, answer, self._names)
        return {name: sum(v) / len(v) if isinstance(v, Items) else v for name, v in values.items()}

    def close(self) -> None:
        """Release what the set-up holds."""
        if self.work.close is not None:
            self.work.close()


def _prepare_environment(threads: int) -> None:
    """A worker's variables, where nobody set them: libraries read them when they are imported first."""
    for name, value in worker_environment(Target(), threads, 0).items():
        if not name.startswith("PYTHON"):
            os.environ.setdefault(name, value)
