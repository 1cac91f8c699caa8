"""What the harness itself costs, as ratios of two things timed in the same minute."""

import subprocess
import sys
import time
from itertools import repeat
from pathlib import Path

from bench.measure.meters.time import SystemClock, timed_batch
from bench.testing import make_run
from bench.wire import decode_run, encode_run

LOOPS = 20_000


def short(a=3):
    """Tens of nanoseconds: the shortest call that anybody times."""
    return a * a


def nothing():
    """No device to wait for."""


def unrolled():
    """The truth: the call written out a hundred times, in a function that does little else."""
    body = "\n".join(["        f()"] * 100)
    space = {}
    exec(f"def run(f, loops, clock):\n    s = clock()\n    for _ in loops:\n{body}\n    return clock() - s", space)
    return space["run"]


def test_a_timed_call_costs_under_a_tenth_more_than_the_call_itself(benchmark):
    """pytest-benchmark measures 77 % more of such a call, pyperf 11–16 % (study, section 4)."""
    clock, truth = SystemClock(), unrolled()
    ratios = []

    def once():
        ours, _ = timed_batch(short, LOOPS, nothing, clock.wall, clock.cpu)
        exact = truth(short, repeat(None, LOOPS // 100), time.perf_counter_ns)
        ratios.append(ours / exact)

    benchmark.pedantic(once, rounds=60, warmup_rounds=3)
    best = sorted(ratios)[len(ratios) // 4]
    benchmark.extra_info["overhead"] = best - 1
    assert best < 1.10


def test_help_answers_in_a_few_interpreter_starts(benchmark):
    """Nothing heavy may be imported for it: a bare interpreter is the measure."""
    bench = str(Path(sys.executable).with_name("bench"))

    def seconds(*command):
        start = time.perf_counter_ns()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter_ns() - start

    pairs = [(seconds(bench, "--help"), seconds(sys.executable, "-c", "pass")) for _ in range(12)]
    ratio = sorted(help_ / bare for help_, bare in pairs)[3]
    benchmark.extra_info["interpreter starts"] = ratio
    benchmark.pedantic(seconds, args=(bench, "--help"), rounds=3)
    assert ratio < 15


def test_reading_a_run_costs_less_than_a_few_times_parsing_its_json(benchmark):
    """Validation field by field must stay near the price of the parser."""
    import json

    data = encode_run(make_run(launches=50))

    def seconds(function):
        start = time.perf_counter_ns()
        function(data)
        return time.perf_counter_ns() - start

    ratio = sorted(seconds(decode_run) / seconds(json.loads) for _ in range(30))[7]
    benchmark.pedantic(decode_run, args=(data,), rounds=5)
    benchmark.extra_info["times json.loads"] = ratio
    assert ratio < 3
