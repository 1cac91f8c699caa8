"""Single calls and allocations, on work whose cost is known."""

import subprocess
import sys
import time
import tracemalloc

import pytest

from bench.measure.meters.allocations import allocation_peak
from bench.measure.meters.servers import ServedClock
from bench.measure.meters.time import SystemClock, cost_of_timing, single_calls
from bench.measure.warmup import TAIL_CALLS, Sampling, calls_for_tail
from bench.model import Policy
from bench.testing import FakeClock

TAIL = Policy(tail_ns=50_000_000)


def nothing():
    pass


def test_each_single_call_has_its_own_time_with_its_wait_and_without_its_preparation():
    clock, lengths = FakeClock(step=10), iter([100, 5000, 100])
    spans = single_calls(
        lambda: clock.sleep(next(lengths)), lambda: clock.sleep(70_000), 3, lambda: clock.sleep(1), clock.wall
    )
    assert spans == [111, 5011, 111]
    assert cost_of_timing(nothing, FakeClock(step=10).wall) == 10


@pytest.mark.parametrize(
    ("sampling", "cost_ns", "calls", "says"),
    [
        (Sampling(1000, 10, 4, 1_000), 80, 0, "a call of 1000 ns is too short to be timed alone, which costs 80 ns"),
        (Sampling(100, 10, 4, 10_000), 80, TAIL_CALLS // 4, ""),
        (Sampling(10, 10, 4, 100_000), 80, 125, ""),
        (Sampling(2, 10, 4, 700_000), 80, 18, ""),
        (Sampling(1, 10, 4, 1_000_000), 80, 13, ""),
        (Sampling(1, 10, 4, 2_000_000), 80, 0, ""),
        (Sampling(1, 1, 1, 900_000_000), 80, 0, ""),
    ],
    ids=["too short", "as many as are useful", "100 µs", "700 µs", "1 ms", "the samples are as many", "very long"],
)
def test_calls_are_timed_alone_where_a_clock_can_and_samples_do_not(sampling, cost_ns, calls, says):
    assert calls_for_tail(sampling, TAIL, cost_ns) == (calls, says)


def test_no_call_is_timed_alone_unless_the_policy_has_time_for_it():
    assert calls_for_tail(Sampling(100, 10, 4, 10_000), Policy(), 80) == (0, "")


def test_the_peak_of_allocations_is_what_was_held_at_once_and_not_what_was_asked_for_in_all():
    def run():
        for _ in range(10):
            bytearray(1_000_000)

    assert 1_000_000 <= allocation_peak(run, nothing) < 1_100_000


def test_what_was_held_before_is_not_counted_and_tracing_ends():
    held = bytearray(5_000_000)
    assert allocation_peak(lambda: bytearray(200_000), nothing) < 300_000
    assert len(held) == 5_000_000
    with pytest.raises(ZeroDivisionError):
        allocation_peak(lambda: 1 / 0, nothing)
    assert not tracemalloc.is_tracing()


def test_the_arrays_of_numpy_count():
    numpy = pytest.importorskip("numpy")
    assert allocation_peak(lambda: numpy.ones(1_000_000), nothing) >= 8_000_000


@pytest.mark.skipif(sys.platform != "linux", reason="other systems tell no CPU time of foreign processes")
def test_cpu_time_of_a_server_counts_and_that_of_a_sleeping_one_does_not():
    spins, sleeps = "while True: pass", "import time; time.sleep(60)"
    with (
        subprocess.Popen([sys.executable, "-c", spins]) as busy,
        subprocess.Popen([sys.executable, "-c", sleeps]) as idle,
    ):
        try:
            ours, clock = SystemClock(), ServedClock([busy.pid, idle.pid])
            alone = ServedClock([idle.pid])
            deadline = time.monotonic() + 20
            starts = ours.cpu(), clock.cpu(), alone.cpu()
            while clock.cpu() - starts[1] < 50_000_000 and time.monotonic() < deadline:
                time.sleep(0.02)
            own, both, asleep = ours.cpu() - starts[0], clock.cpu() - starts[1], alone.cpu() - starts[2]
            assert both >= 50_000_000
            assert both > 2 * own
            assert asleep < both / 2
        finally:
            busy.kill()
            idle.kill()
    with pytest.raises(OSError, match="Invalid argument"):
        clock.cpu()
    assert ServedClock([busy.pid]).cpu() > 0  # who is gone at the start is left out
