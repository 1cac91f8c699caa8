"""What a test gets as `benchmark`: the interface of pytest-benchmark, with our harness behind it."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from bench.api import Work

Hold = Callable[[Work], Sequence[float]]
"""Measures a piece of work and returns seconds per call, when the session has seen enough."""


class BenchmarkFixture:
    """What a test gets as `benchmark`: the interface of pytest-benchmark 3 to 5."""

    disabled = False
    enabled = True

    def __init__(self, node: Any, hold: Hold) -> None:
        marker = node.get_closest_marker("benchmark")
        callspec = getattr(node, "callspec", None)
        self.name = node.name
        self.fullname = node.nodeid
        self.group = marker.kwargs.get("group") if marker is not None else None
        self.param = None if callspec is None else callspec.id
        self.params = None if callspec is None else callspec.params
        self.extra_info: dict[str, Any] = {}
        self.stats: Stats | None = None
        self._hold = hold
        self._used = ""

    def __call__(self, function_to_benchmark: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Time a call. Returns its result. Raises RuntimeError when used twice, and what the call raises."""
        self._use("benchmark(…)")
        run = partial(function_to_benchmark, *args, **kwargs) if args or kwargs else function_to_benchmark
        self._measure(run)
        return run()

    def pedantic(
        self,
        target: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
        setup: Callable[[], Any] | None = None,
        teardown: Callable[..., Any] | None = None,
        rounds: int = 1,
        warmup_rounds: int = 0,
        iterations: int = 1,
    ) -> Any:
        """Time a call with a set-up of its own. Raises ValueError and TypeError where pytest-benchmark does."""
        self._use("benchmark.pedantic(…)")
        counts = {"iterations": (iterations, 1), "rounds": (rounds, 1), "warmup_rounds": (warmup_rounds, 0)}
        for name, (value, least) in counts.items():
            if not isinstance(value, int) or value < least:
                raise ValueError(f"Must have positive int for `{name}`.")
        if iterations > 1 and setup:
            raise ValueError("Can't use more than 1 `iterations` with a `setup` function.")
        call = _Pedantic(target, args, kwargs or {}, setup, teardown)
        if rounds == 1 and iterations == 1 and warmup_rounds == 0:
            self._measure(call.run, prepare=call.prepare, close=call.finish, once=True)
            return call.result
        if setup is None and teardown is None:
            self._measure(partial(target, *args, **(kwargs or {})))
        else:
            self._measure(call.run, prepare=call.prepare, close=call.finish)
        call.prepare()
        call.run()
        call.finish()
        return call.result

    def weave(self, *args: Any, **kwargs: Any) -> None:
        """Aspects would time a call inside another one, which cannot be repeated by itself."""
        raise NotImplementedError("benchmark.weave and benchmark.patch cannot be measured; pass the callable instead")

    patch = weave

    def _use(self, how: str) -> None:
        if self._used:
            raise RuntimeError(f"Fixture can only be used once. Previously it was used in {self._used} mode.")
        self._used = how

    def _measure(self, run: Callable[[], Any], **more: Any) -> None:
        notes = {str(key): str(value) for key, value in self.extra_info.items()}
        if self.group is not None:
            notes["group"] = str(self.group)
        seconds = self._hold(Work(run=run, notes=notes, skips=(pytest.skip.Exception,), **more))
        self.stats = Stats(seconds)


class _Pedantic:
    """A call between its set-up and its tear-down."""

    def __init__(
        self,
        target: Callable[..., Any],
        args: Sequence[Any],
        kwargs: dict[str, Any],
        setup: Callable[[], Any] | None,
        teardown: Callable[..., Any] | None,
    ) -> None:
        self._target = target
        self._given = bool(args or kwargs)
        self._args, self._kwargs = args, kwargs
        self._setup, self._teardown = setup, teardown
        self._open = False
        self.result: Any = None

    def prepare(self) -> None:
        self.finish()
        self.result = None
        if self._setup is not None and (made := self._setup()):
            if self._given:
                raise TypeError("Can't use `args` or `kwargs` if `setup` returns the arguments.")
            self._args, self._kwargs = made
        self._open = True

    def run(self) -> Any:
        self.result = self._target(*self._args, **self._kwargs)
        return self.result

    def finish(self) -> None:
        if self._open and self._teardown is not None:
            self._teardown(*self._args, **self._kwargs)
        self._open = False


class Stats(SimpleNamespace):
    """What tests read from `benchmark.stats`, in seconds per call: by attribute, by key, or under `.stats`."""

    def __init__(self, seconds: Sequence[float]) -> None:
        data = sorted(seconds) or [float("nan")]
        q1, median, q3 = statistics.quantiles(data, n=4, method="inclusive") if len(data) > 1 else data * 3
        mean = statistics.fmean(data)
        super().__init__(
            data=list(seconds), rounds=len(seconds), iterations=1, total=sum(data), min=data[0], max=data[-1],
            mean=mean, median=median, q1=q1, q3=q3, iqr=q3 - q1, ops=1 / mean if mean else 0.0,
            stddev=statistics.stdev(data) if len(data) > 1 else 0.0,
        )  # fmt: skip

    @property
    def stats(self) -> Stats:
        """As `benchmark.stats.stats`, pytest-benchmark's own nesting."""
        return self

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)
