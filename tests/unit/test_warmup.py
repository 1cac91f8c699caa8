"""Calibration and warm-up under a clock that obeys."""

import pytest

from bench.measure.meters.time import timed_batch
from bench.measure.warmup import Call, calibrate, is_sample, warm_up
from bench.model import Policy
from bench.testing import FakeClock

POLICY = Policy()


def steady(ns):
    return lambda loops: (ns * loops, ns * loops)


@pytest.mark.parametrize("call_ns", [1, 60, 999, 50_000, 999_999, 1_000_000, 40_000_000])
def test_a_sample_lasts_long_enough_and_not_much_longer(call_ns):
    found = calibrate(steady(call_ns), POLICY)
    assert found.loops * call_ns >= POLICY.sample_ns
    assert found.loops == 1 or found.loops * call_ns < 2.2 * POLICY.sample_ns
    assert found.call_ns == call_ns


@pytest.mark.parametrize(
    ("call_ns", "samples", "rounds"),
    [(1_000_000, 10, 4), (10_000_000, 5, 4), (40_000_000, 1, 4), (90_000_000, 1, 4), (300_000_000, 1, 2),
     (2_000_000_000, 1, 1)],
)  # fmt: skip
def test_long_calls_get_fewer_samples_in_fewer_rounds(call_ns, samples, rounds):
    found = calibrate(steady(call_ns), POLICY)
    assert (found.samples, found.rounds) == (samples, rounds)


def test_a_very_long_call_is_not_repeated_to_calibrate():
    made = []

    def batch(loops):
        made.append(loops)
        return (1_000_000_000, 0)

    assert calibrate(batch, POLICY, first_call_ns=1_100_000_000).call_ns == 1_000_000_000
    assert made == [1]


SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        (Call(1_010_000_000, 0, 9), Call(SECOND, SECOND, 0), True),  # the wall clock says so
        (Call(1_300_000_000, 1_010_000_000, 2), Call(SECOND, SECOND, 2), True),  # preempted
        (Call(1_300_000_000, 1_010_000_000, 3), Call(SECOND, SECOND, 2), False),  # waited for something
        (Call(1_300_000_000, 1_300_000_000, 0), Call(SECOND, SECOND, 0), False),  # computed more
        (Call(500_000_000, 500_000_000, 0), Call(500_000_000, 500_000_000, 0), False),  # cheap to repeat
    ],
)
def test_a_first_call_is_a_sample_where_it_is_long_and_as_good_as_the_second(first, second, found):
    assert is_sample(first, second) is found


def test_a_slow_first_call_alone_does_not_make_a_call_long():
    found = calibrate(steady(1000), POLICY, first_call_ns=5_000_000_000)
    assert found.loops >= 1000


def test_one_preempted_batch_does_not_shrink_the_loops():
    calls = iter(range(10**6))

    def batch(loops):
        return (5_000_000 if next(calls) % 3 == 1 else loops * 1000, 0)

    assert calibrate(batch, POLICY).loops >= 1000


def test_warm_up_waits_for_calls_time_and_agreement():
    calls, steady_state = warm_up(steady(1_000_000), 1, 1_000_000, POLICY)
    assert steady_state
    assert calls == 30  # 20 calls are only 20 ms

    slowing = iter([40_000_000] * 8 + [20_000_000] * 50)
    calls, steady_state = warm_up(lambda loops: (next(slowing), 0), 1, 20_000_000, POLICY)
    assert steady_state
    assert calls == 20  # the last ten agree only when the slow ones are gone


def test_warm_up_gives_up_at_its_cap_and_says_so():
    growing = iter(range(1, 10**6))
    calls, steady_state = warm_up(lambda loops: (next(growing) * 10_000_000, 0), 1, 10_000_000, POLICY)
    assert not steady_state
    assert sum(range(1, calls + 1)) * 10_000_000 >= POLICY.warm_up_cap_ns


def test_long_calls_are_warm_after_a_shorter_time_and_very_long_ones_after_their_first():
    calls, _ = warm_up(steady(50_000_000), 1, 50_000_000, POLICY)
    assert calls == 6
    assert warm_up(steady(10**9), 1, 10**9, POLICY) == (0, False)


@pytest.mark.parametrize("loops", [1, 9, 10, 11, 137])
def test_a_batch_makes_exactly_its_calls_and_waits_for_the_device_inside(loops):
    clock = FakeClock()
    made = []

    def run():
        made.append(1)
        clock.sleep(7)

    wall, cpu = timed_batch(run, loops, lambda: clock.sleep(1000), clock.wall, clock.cpu)
    assert len(made) == loops
    assert wall == 7 * loops + 1000
    assert cpu == wall
