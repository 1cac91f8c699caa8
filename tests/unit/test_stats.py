"""Statistics against slow literal definitions and published routines."""

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from bench.stats.location import (
    difference_interval,
    lower_quartile,
    trimmed_error,
    trimmed_interval,
    trimmed_mean,
)
from bench.stats.proportions import paired_difference, wilson

values = st.lists(st.floats(0.1, 1e6), min_size=1, max_size=40)


def literal_quartile(samples):
    """Hyndman & Fan type 7, by hand."""
    ordered = sorted(samples)
    position = 0.25 * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])


@given(values)
def test_lower_quartile_is_type_seven(samples):
    assert lower_quartile(samples) == pytest.approx(literal_quartile(samples))


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**63), 2**63), min_size=1))
def test_lower_quartile_is_numpys_to_the_last_bit(samples):
    assert lower_quartile(samples) == float(np.quantile(np.asarray(samples, dtype=np.float64), 0.25))


@given(values)
def test_trimmed_mean_drops_a_fifth_from_each_end(samples):
    ordered = sorted(samples)
    cut = int(0.2 * len(ordered))
    kept = ordered[cut : len(ordered) - cut]
    assert trimmed_mean(samples) == pytest.approx(sum(kept) / len(kept))


def test_trimmed_error_is_yuens_by_the_definition():
    samples = [3.1, 2.9, 3.0, 3.3, 9.9, 2.7, 3.05]
    ordered = sorted(samples)
    winsorised = [min(max(x, ordered[1]), ordered[-2]) for x in samples]
    mean = sum(winsorised) / 7
    squares = sum((x - mean) ** 2 for x in winsorised)
    error, freedom = trimmed_error(samples)
    assert freedom == 4
    assert error == pytest.approx(math.sqrt(squares / (5 * 4)))


def test_difference_interval_is_scipys_yuen_test():
    rng = np.random.default_rng(3)
    base, head = rng.normal(1.0, 0.1, 11), rng.normal(1.2, 0.3, 14)
    ours = difference_interval(base, head, confidence=0.95)
    theirs = stats.ttest_ind(head, base, equal_var=False, trim=0.2).confidence_interval(0.95)
    assert ours.low == pytest.approx(theirs.low)
    assert ours.high == pytest.approx(theirs.high)


@pytest.mark.parametrize("n", [7, 18])
def test_trimmed_interval_covers_the_truth_as_often_as_it_says(n):
    """Heavy-tailed launches (one in ten is disturbed): 95 % intervals hold the truth 93–99 % of the time."""
    rng = np.random.default_rng(n)
    hits = 0
    for _ in range(3000):
        sample = rng.normal(0, 0.01, n) + (rng.random(n) < 0.1) * rng.normal(0, 0.2, n)
        interval = trimmed_interval(sample)
        hits += interval.low <= 0 <= interval.high
    assert 0.93 <= hits / 3000 <= 0.99


def test_too_few_values_have_no_interval():
    assert math.isnan(trimmed_interval([1.0]).low)
    assert math.isnan(difference_interval([1.0], [2.0, 3.0]).high)


@given(st.integers(1, 500), st.data())
def test_wilson_is_scipys(trials, data):
    hits = data.draw(st.integers(0, trials))
    ours = wilson(hits, trials)
    theirs = stats.binomtest(hits, trials).proportion_ci(0.95, method="wilson")
    assert ours.low == pytest.approx(theirs.low, abs=1e-12)
    assert ours.high == pytest.approx(theirs.high, abs=1e-12)


def test_paired_difference_covers_the_truth_as_often_as_it_says():
    """Two classifiers that mostly agree on 200 items; true difference −3 points."""
    rng = random.Random(1)
    hits = 0
    for _ in range(1500):
        base, head = [], []
        for _ in range(200):
            both = rng.random()
            # 80 % both right, 8 % only base, 5 % only head, 7 % neither
            base.append(1 if both < 0.88 else 0)
            head.append(1 if both < 0.80 or 0.88 <= both < 0.93 else 0)
        interval = paired_difference(base, head)
        hits += interval.low <= -0.03 <= interval.high
    assert 0.94 <= hits / 1500 <= 0.99


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=60))
def test_paired_difference_is_antisymmetric_and_holds_its_estimate(pairs):
    base, head = [a for a, _ in pairs], [b for _, b in pairs]
    one, other = paired_difference(base, head), paired_difference(head, base)
    assert one.value == pytest.approx(-other.value)
    assert one.low == pytest.approx(-other.high)
    assert one.low - 1e-12 <= one.value <= one.high + 1e-12


def test_paired_difference_needs_the_same_items():
    with pytest.raises(ValueError, match="same items"):
        paired_difference([1], [1, 0])
