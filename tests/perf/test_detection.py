"""What change detection costs, as ratios of things timed in the same minute."""

import time

import numpy as np
import pytest

from bench.detect import change_points
from bench.detectors.kernel import search, segment
from bench.stats.noise import relative, standardize


def history(n):
    rng = np.random.default_rng(3)
    return np.repeat([100.0, 105.0, 98.0], [n // 3, n // 3, n - 2 * (n // 3)]) * np.exp(0.01 * rng.standard_t(3, n))


def seconds(function, *arguments, times=20):
    start = time.process_time_ns()
    for _ in range(times):
        function(*arguments)
    return time.process_time_ns() - start


def lower_quartile_ratio(one, other, rounds=12):
    return sorted(one() / other() for _ in range(rounds))[rounds // 4]


@pytest.mark.parametrize("n", [100, 1000])
def test_detection_costs_little_more_than_its_kernel_search(benchmark, n):
    """Scale, second detector and minimum effect beside the O(n²) search."""
    values = history(n)
    z = standardize(relative(values))
    fast = search()
    ratio = lower_quartile_ratio(lambda: seconds(change_points, values), lambda: seconds(fast, z, 5.0))
    benchmark.extra_info["times the search"] = ratio
    benchmark.pedantic(change_points, args=(values,), rounds=5)
    assert ratio < 3


def test_ten_times_the_points_cost_about_a_hundred_times_as_much(benchmark):
    """Nothing beside the search may grow faster than it: O(n²)."""
    short, long = history(100), history(1000)
    ratio = lower_quartile_ratio(
        lambda: seconds(change_points, long, times=3), lambda: seconds(change_points, short, times=3)
    )
    benchmark.extra_info["1000 points / 100 points"] = ratio
    benchmark.pedantic(change_points, args=(long,), rounds=5)
    assert ratio < 150


def test_the_search_in_numpy_is_a_usable_fallback(benchmark):
    pytest.importorskip("ruptures")
    z = standardize(relative(history(1000)))
    ratio = lower_quartile_ratio(
        lambda: seconds(segment, z, 5.0, times=1), lambda: seconds(search(), z, 5.0, times=1), rounds=6
    )
    benchmark.extra_info["numpy / ruptures"] = ratio
    benchmark.pedantic(segment, args=(z, 5.0), rounds=3)
    assert ratio < 60
