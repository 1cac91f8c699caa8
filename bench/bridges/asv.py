"""Our suites as benchmarks of airspeed velocity. See bench.bridges.

Every benchmark `suite.function` becomes a class with the axes as parameters and these methods:

- `time_call`: the time of a call;
- `peakmem_call`: the largest resident memory of a process that sets up and calls once;
- `track_size`: bytes of the artifact, where there is one;
- `track_<metric>`: each metric of the suite's own; of a test set the share of right items.

What a benchmark requires and is not here, and points that are excluded, are skipped (n/a); a wrong answer
makes the benchmark fail, and so does a suite that cannot be read (`unreadable.track_suite`).

asv times calls one by one, with a set-up before each, as soon as there is a set-up. So one sample of
asv is a batch of ours, and its timer advances by the time per call of that batch.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from bench.api import Skip, Work
from bench.bridges.variants import Ready, declared, source_of
from bench.measure.contract import CPU
from bench.measure.warmup import calibrate
from bench.metrics import SIZE, Metric
from bench.model import Benchmark, Policy, Scalar

UNITS = {"ns": ("seconds", 1e-9), "B": ("bytes", 1.0), "1": ("unit", 1.0)}
"""What asv calls our units, and the factor; it shows others as they are."""

SAMPLE = Policy(sample_ns=10_000_000)
"""asv's own default for a sample: 10 ms (its attribute `sample_time`)."""


def expose(*places: str, into: dict[str, Any], profile: str | None = None, device: str = CPU) -> None:
    """Put a class for every benchmark of the places into the module whose globals() are `into`.

    A place is a folder, seen from that module's file, or an importable package of suites.
    """
    found = declared(places, into, profile)
    for benchmark in found.benchmarks:
        name = benchmark.name.replace(".", "_")
        into[name] = _class_of(benchmark, name, into["__name__"], device)
    if found.problems:
        into["unreadable"] = _unreadable(dict(found.problems))


def _class_of(benchmark: Benchmark, name: str, module: str, device: str) -> type:
    variant = _Variant(benchmark, device)

    def setup(self: Any, *params: Scalar) -> None:
        variant.set_up(params)
        if variant.work.once:  # asv reads these again after the set-up
            self.number = self.repeat = 1
            self.warmup_time = 0

    def teardown(self: Any, *params: Scalar) -> None:
        variant.tear_down()

    def time_call(self: Any, *params: Scalar) -> None:
        variant.sample()

    def peakmem_call(self: Any, *params: Scalar) -> None:
        variant.call()

    def track_size(self: Any, *params: Scalar) -> float:
        return variant.size()

    methods: dict[str, Callable[..., Any]] = {
        "setup": setup, "teardown": teardown,
        "time_call": time_call, "peakmem_call": peakmem_call, "track_size": track_size,
    }  # fmt: skip
    for metric in benchmark.metrics:
        methods["track_" + re.sub(r"\W", "_", metric.name)] = _track(variant, metric)
    _describe(benchmark, name, methods)
    track_size.unit = UNITS[SIZE.unit][0]  # type: ignore[attr-defined]
    return type(name, (), {
        **methods, "__module__": module, "__doc__": benchmark.title, "timer": variant.timer,
        "params": [list(values) for values in benchmark.axes.values()], "param_names": list(benchmark.axes),
        "skip_params": _excluded(benchmark), "timeout": benchmark.timeout_s, "version": benchmark.version,
    })  # fmt: skip


def _track(variant: _Variant, metric: Metric) -> Callable[..., float]:
    unit, factor = UNITS.get(metric.unit, (metric.unit, 1.0))

    def track(self: Any, *params: Scalar) -> float:
        return variant.value(metric.name) * factor

    track.unit = unit  # type: ignore[attr-defined]
    return track


def _describe(benchmark: Benchmark, name: str, methods: dict[str, Callable[..., Any]]) -> None:
    """Names as we write them, and on asv's pages the suite's code instead of ours."""
    source = source_of(benchmark)
    for key, method in methods.items():
        method.__name__, method.__qualname__ = key, f"{name}.{key}"
        if key in ("setup", "teardown"):
            method.pretty_source = ""  # type: ignore[attr-defined]
            continue
        method.benchmark_name = f"{benchmark.name}.{key}"  # type: ignore[attr-defined]
        if source:
            method.pretty_source = source  # type: ignore[attr-defined]


def _excluded(benchmark: Benchmark) -> list[tuple[Scalar, ...]]:
    points: list[tuple[Scalar, ...]] = [()]
    for values in benchmark.axes.values():
        points = [(*point, value) for point in points for value in values]
    kept = [tuple(variant.params.values()) for variant in benchmark.variants()]
    return [point for point in points if point not in kept]


def _unreadable(problems: dict[str, str]) -> type:
    def track_suite(self: Any, suite: str) -> None:
        raise ImportError(problems[suite])

    return type("unreadable", (), {"track_suite": track_suite, "params": [list(problems)], "param_names": ["suite"]})


class _Variant:
    """The variant that asv's process is about: set up once, though asv sets up before every sample."""

    def __init__(self, benchmark: Benchmark, device: str) -> None:
        self._benchmark = benchmark
        self._device = device
        self._params: tuple[Scalar, ...] | None = None
        self._ready: Ready | None = None
        self._first: tuple[int, dict[str, float | int]] | None = None
        self._loops = 0
        self._seconds = 0.0

    @property
    def work(self) -> Work:
        """What the set-up returned."""
        return self._it.work

    @property
    def _it(self) -> Ready:
        assert self._ready is not None, "asv calls setup first"
        return self._ready

    def set_up(self, params: tuple[Scalar, ...]) -> None:
        """Raises NotImplementedError, which is asv's skip, with the reason of ours."""
        if self._ready is not None and self._params == params:
            return
        try:
            self._ready = Ready(self._benchmark, dict(zip(self._benchmark.axes, params, strict=True)), self._device)
        except Skip as skip:
            raise NotImplementedError(str(skip)) from None
        self._params, self._first, self._loops = params, None, 0

    def tear_down(self) -> None:
        """Work that must be closed is set up again for the next sample: asv has no other end."""
        if self._ready is not None and self._ready.work.close is not None:
            self._ready.close()
            self._ready = None

    def timer(self) -> float:
        """Seconds a call, summed over the samples so far: between two readings lies one sample."""
        return self._seconds

    def sample(self) -> None:
        """Judge the first call, then let the timer advance by what one call of a batch takes. Raises Wrong."""
        first_ns, _ = self._judged()
        if self.work.once:
            self._seconds += first_ns * 1e-9
            return
        if not self._loops:
            self._loops = calibrate(self._pace, SAMPLE, first_ns).loops
        self._seconds += self._it.batch(self._loops) / self._loops * 1e-9

    def value(self, metric: str) -> float:
        """A metric of the suite's own. Raises Wrong."""
        return float(self._judged()[1][metric])

    def size(self) -> float:
        """Bytes of the artifact; NaN is asv's way to say that there is none."""
        size = self.work.size_bytes
        return float("nan") if size is None else float(size)

    def call(self) -> None:
        """One call, for its memory."""
        if self.work.peak_bytes is not None:
            raise _skipped("its memory is another process's, which asv does not see")
        self._call()

    def _judged(self) -> tuple[int, dict[str, float | int]]:
        """(ns, metrics) of the first call, once a process."""
        if self._first is None:
            first_ns, answer = self._call()
            self._first = first_ns, self._it.judge(answer)
        return self._first

    def _call(self) -> tuple[int, Any]:
        try:
            return self._it.first_call()
        except self._it.skips as skip:
            raise _skipped(str(skip)) from None

    def _pace(self, loops: int) -> tuple[int, int]:
        """A batch as long as it keeps asv waiting, with all preparation."""
        start = perf_counter_ns()
        self._it.batch(loops)
        return perf_counter_ns() - start, 0


def _skipped(reason: str) -> BaseException:
    """What asv takes as a skip where a method raises it."""
    kind: type[BaseException] = importlib.import_module("asv_runner.benchmarks.mark").SkipNotImplemented
    return kind(reason)
