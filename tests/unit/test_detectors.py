"""The detectors against slow literal definitions, and the fast search against the one in numpy."""

import builtins
import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.detectors import kernel
from bench.detectors.distribution import SHORTEST, DistributionDetector, gains
from bench.detectors.kernel import FEWEST, GAMMA, KernelDetector, segment

seeds = st.integers(0, 10_000)


def noisy(seed, n=120):
    """Heavy-tailed noise of spread 1 with up to four steps."""
    rng = np.random.default_rng(seed)
    z = rng.standard_t(3, n)
    for at in rng.integers(1, n, rng.integers(0, 5)):
        z[at:] += rng.normal(0, 4)
    return np.round(z, int(rng.integers(0, 4)))


def likeness(a, b):
    """The kernel of one pair, clipped as ruptures clips it, in single precision."""
    return math.exp(-float(np.clip(np.float32(GAMMA * (a - b) ** 2), np.float32(0.01), np.float32(100))))


def scatter(values):
    """Σ k(i, i) − Σ k(i, j) / n of one segment, by the definition."""
    total = sum(likeness(a, b) for a in values for b in values)
    return sum(likeness(a, a) for a in values) - total / len(values)


def price(values, changes, penalty):
    """What a segmentation costs."""
    edges = [0, *changes, len(values)]
    parts = [values[a:b] for a, b in pairwise(edges)]
    assert all(len(part) >= FEWEST for part in parts)
    return sum(scatter(part) for part in parts) + penalty * len(changes)


def literal_search(values, penalty):
    """Least cost of all segmentations: dynamic programming over the Gram matrix, nothing pruned."""
    n = len(values)
    gram = np.array([[likeness(a, b) for b in values] for a in values])
    best = [0.0, *[math.inf] * n]
    for t in range(FEWEST, n + 1):
        for s in [0, *range(FEWEST, t - FEWEST + 1)]:
            cost = np.trace(gram[s:t, s:t]) - gram[s:t, s:t].sum() / (t - s)
            best[t] = min(best[t], best[s] + cost + (penalty if s else 0))
    return best[n]


@given(seeds, st.floats(0.3, 8.0))
def test_ruptures_and_numpy_find_the_same_changes(seed, penalty):
    pytest.importorskip("ruptures")
    z = noisy(seed)
    assert kernel.search()(z, penalty) == segment(z, penalty)


def test_without_ruptures_the_numpy_search_is_taken(monkeypatch):
    real = builtins.__import__

    def no_ruptures(name, *rest, **kwargs):
        if name.startswith("ruptures"):
            raise ImportError(name)
        return real(name, *rest, **kwargs)

    kernel.search.cache_clear()
    monkeypatch.setattr(builtins, "__import__", no_ruptures)
    try:
        assert kernel.search() is segment
        assert KernelDetector(3.0).changes(np.repeat([0.0, 9.0], 20)) == [20]
    finally:
        kernel.search.cache_clear()


@pytest.mark.parametrize("seed", range(12))
def test_the_search_finds_the_cheapest_segmentation_there_is(seed):
    """But for pruning before the shortest segment is over, which costs a thousandth in rare cases."""
    z = noisy(seed, 40)
    penalty = 2.0
    cheapest = literal_search(z, penalty)
    assert price(z, segment(z, penalty), penalty) == pytest.approx(cheapest, rel=1e-3)


@given(seeds)
def test_a_segment_lasts_at_least_five_points(seed):
    edges = [0, *KernelDetector(0.5).changes(noisy(seed)), 120]
    assert min(np.diff(edges)) >= FEWEST


@pytest.mark.parametrize("detector", [KernelDetector(3.0), DistributionDetector(60.0)])
@pytest.mark.parametrize("n", range(2 * FEWEST))
def test_too_few_points_have_no_change(detector, n):
    assert detector.changes(np.arange(n, dtype=float)) == []


def literal_gain(values, at):
    """Haynes, Fearnhead & Eckley (2017), equations 2.4 to 3.2, term by term."""
    n = len(values)
    count = math.ceil(4 * math.log(n))
    c = -math.log(2 * n - 1)
    ordered = sorted(values)

    def cost(part, quantile):
        share = sum((v < quantile) + 0.5 * (v == quantile) for v in part) / len(part)
        likelihood = 0.0
        for p in (share, 1 - share):
            likelihood += p * math.log(p) if p > 0 else 0.0
        return -2 * c / count * len(part) * likelihood

    gain = 0.0
    for k in range(1, count + 1):
        p = 1 / (1 + math.exp(c * ((2 * k - 1) / count - 1)))
        quantile = ordered[min(int(p * n), n - 1)]
        gain += cost(values[:at], quantile) + cost(values[at:], quantile) - cost(values, quantile)
    return gain


@pytest.mark.parametrize("seed", range(4))
def test_the_gain_of_a_split_is_that_of_the_paper(seed):
    z = noisy(seed, 70)
    expected = [literal_gain(list(z), at) for at in range(FEWEST, 70 - FEWEST + 1)]
    assert gains(z) == pytest.approx(expected, abs=1e-9)


@given(seeds)
def test_only_ranks_matter_to_the_distribution(seed):
    z = noisy(seed)
    assert DistributionDetector(40.0).changes(z) == DistributionDetector(40.0).changes(np.exp(z / 10))


def test_the_distribution_leaves_short_stretches_alone():
    step = np.repeat([0.0, 5.0], SHORTEST // 2)
    assert DistributionDetector(20.0).changes(step) == [SHORTEST // 2]
    assert DistributionDetector(20.0).changes(step[:-1]) == []


def test_the_distribution_divides_what_it_divided():
    z = np.repeat([0.0, 3.0, 6.0], 80) + np.random.default_rng(1).normal(0, 1, 240)
    assert DistributionDetector(60.0).changes(z) == [pytest.approx(80, abs=2), pytest.approx(160, abs=2)]
