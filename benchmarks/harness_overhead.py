"""What a harness adds to a call of some 60 ns: bench beside timeit, pyperf, asv_runner and pytest-benchmark.

    python -m benchmarks.harness_overhead [--passes 12] [--seed 1]

The truth is the call written out a hundred times between two readings of the clock. Each pass is a fresh
process in which the tools take turns, in random order, each right beside the truth; a pass gives the lower
quartile of either. Tools run their own timing code on the same function, with the calls in a sample that
they would choose (a millisecond's worth where they leave the choice to the caller). Intervals are 95 %,
over passes. Needs the extra `test`.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import subprocess
import sys
import time
import timeit
from collections.abc import Callable
from itertools import repeat
from typing import Any

from bench.measure.meters.time import SystemClock, single_calls, timed_batch
from bench.stats.location import lower_quartile, trimmed_interval

LOOPS = 20_000
TURNS = 30

Measure = Callable[[], float]
"""Nanoseconds a call, as the tool would report them."""


def short(a: int = 3) -> int:
    """As short as a call gets that anybody times: some 60 ns."""
    return len(str(a * a))


def nothing() -> None:
    """No device to wait for."""


def truth() -> Measure:
    """The call a hundred times in a row, in a function that does little else."""
    body = "\n".join(["        f()"] * 100)
    space: dict[str, Any] = {}
    exec(f"def run(f, loops, clock):\n    s = clock()\n    for _ in loops:\n{body}\n    return clock() - s", space)
    run = space["run"]
    return lambda: run(short, repeat(None, LOOPS // 100), time.perf_counter_ns) / LOOPS


def ours() -> Measure:
    """Bench's batch."""
    clock = SystemClock()
    return lambda: timed_batch(short, LOOPS, nothing, clock.wall, clock.cpu)[0] / LOOPS


def timeit_callable() -> Measure:
    """Timeit with a callable."""
    timer = timeit.Timer(short)
    return lambda: timer.timeit(LOOPS) / LOOPS * 1e9


def timeit_text() -> Measure:
    """Timeit with a statement."""
    timer = timeit.Timer("f()", globals={"f": short})
    return lambda: timer.timeit(LOOPS) / LOOPS * 1e9


def pyperf_function() -> Measure:
    """Pyperf's bench_func, whose task is taken before pyperf would start a process for it."""
    import pyperf

    class Taken(pyperf.Runner):
        def _main(self, task: Any) -> Any:
            return task

    runner = Taken()
    runner.parse_args([])
    task = runner.bench_func("short", short)
    return lambda: float(task.task_func(task, LOOPS)) / LOOPS * 1e9


def asv_time() -> Measure:
    """asv_runner's `time_` benchmark, one sample of as many calls."""
    from asv_runner.benchmarks.time import TimeBenchmark

    class Attributes:
        number, repeat, rounds, warmup_time = LOOPS, 1, 1, 0.0

    benchmark = TimeBenchmark("time_short", short, [Attributes])
    return lambda: float(benchmark.run()["samples"][0]) * 1e9


def pytest_fixture() -> Measure:
    """The fixture of pytest-benchmark with its defaults: rounds of at least 5 µs, their median."""
    from pytest_benchmark.fixture import BenchmarkFixture

    fixture = BenchmarkFixture.__new__(BenchmarkFixture)
    fixture._timer, fixture._disable_gc, fixture._warmup = time.perf_counter, False, 0
    fixture._min_time, fixture._calibration_precision = 5e-6, 10
    fixture._logger = logging.getLogger("silent")
    fixture._logger.debug = lambda *_, **__: None  # type: ignore[method-assign]
    runner = fixture._make_runner(short, (), {})
    _, loops, span = fixture._calibrate_timer(runner)

    def measure() -> float:
        rounds = sorted(runner(span) for _ in range(LOOPS // loops))
        return rounds[len(rounds) // 2] / loops * 1e9

    return measure


def clock_each() -> Measure:
    """The clock read around every call."""

    def measure() -> float:
        spans = single_calls(short, None, LOOPS, nothing, time.perf_counter_ns)
        return sum(spans) / len(spans)

    return measure


TOOLS: dict[str, Callable[[], Measure]] = {
    "bench": ours,
    "timeit, callable": timeit_callable,
    "timeit, statement": timeit_text,
    "pyperf, bench_func": pyperf_function,
    "asv_runner": asv_time,
    "pytest-benchmark": pytest_fixture,
    "clock around each call": clock_each,
}


def one_pass(seed: int) -> dict[str, tuple[float, float]]:
    """(nanoseconds by the tool, by the truth beside it) by tool."""
    order = random.Random(seed)
    exact = truth()
    measures = {name: make() for name, make in TOOLS.items()}
    seen: dict[str, list[tuple[float, float]]] = {name: [] for name in TOOLS}
    for _ in range(TURNS):
        for name in order.sample(list(TOOLS), len(TOOLS)):
            pair = [measures[name], exact]
            order.shuffle(pair)
            found = {measure: measure() for measure in pair}
            seen[name].append((found[measures[name]], found[exact]))
    return {n: (lower_quartile([t for t, _ in s]), lower_quartile([x for _, x in s])) for n, s in seen.items()}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passes", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        sys.stdout.write(json.dumps(one_pass(options.seed)))
        return
    passes = []
    for number in range(options.passes):
        command = [sys.executable, "-m", "benchmarks.harness_overhead", "--one", "--seed", str(options.seed + number)]
        passes.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    true = trimmed_interval([p[name][1] for p in passes for name in TOOLS])
    sys.stdout.write(f"the call itself: {true.value:.1f} ns, {len(passes)} processes\n")
    for name in TOOLS:
        added = trimmed_interval([p[name][0] - p[name][1] for p in passes])
        share = trimmed_interval([p[name][0] / p[name][1] - 1 for p in passes])
        ends = f"{added.low:+.1f} to {added.high:+.1f}"
        sys.stdout.write(f"{name:24s} {added.value:+6.1f} ns ({ends})   {share.value:+.1%}\n")


if __name__ == "__main__":
    main()
