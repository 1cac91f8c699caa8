"""Quantiles of single calls against their definitions, and what their intervals hold."""

from math import comb, isnan

import numpy as np
import pytest

from bench.metrics import TAILS
from bench.stats.tail import calls_in_launch, calls_needed, effective_calls, order_ranks, quantile, tail

QUANTILES = tuple(TAILS.values())


def at_most(b, n, q):
    """P(B ≤ b) by adding up the binomial terms."""
    return sum(comb(n, i) * q**i * (1 - q) ** (n - i) for i in range(b + 1))


@pytest.mark.parametrize("q", QUANTILES)
def test_the_calls_needed_are_the_fewest_that_leave_each_end_half_the_error(q):
    n = calls_needed(q)

    def holds(n):
        return q**n <= 0.025 and (1 - q) ** n <= 0.025

    assert holds(n)
    assert not holds(n - 1)


def test_the_calls_needed_are_those_of_the_tables():
    assert [calls_needed(q) for q in QUANTILES] == [6, 36, 72, 368]
    assert [calls_in_launch(q) for q in QUANTILES] == [2, 10, 20, 100]


@pytest.mark.parametrize("q", QUANTILES)
@pytest.mark.parametrize("more", [0, 1, 57])
def test_ranks_are_those_of_the_binomial_sums(q, more):
    n = calls_needed(q) + more
    low, high = order_ranks(n, q)
    assert at_most(low - 1, n, q) <= 0.025 < at_most(low, n, q)
    assert 1 - at_most(high - 1, n, q) <= 0.025 < 1 - at_most(high - 2, n, q)
    assert 1 <= low < high <= n


def test_ranks_of_too_few_values_are_refused():
    with pytest.raises(ValueError, match="368 are needed"):
        order_ranks(367, 0.99)


def test_the_quantile_is_the_smallest_value_that_enough_do_not_exceed():
    rng = np.random.default_rng(1)
    for n in (1, 2, 3, 10, 99, 100, 101):
        values = rng.exponential(size=n)
        for q in QUANTILES:
            literal = min(v for v in values if np.sum(values <= v) >= round(q * n, 9))
            assert quantile(values, q) == literal


def test_too_few_calls_give_the_value_and_no_interval():
    found = tail([range(40)] * 7, 0.99)
    assert (found.interval.value, found.interval.n, found.enough) == (39, 280, False)
    assert isnan(found.interval.low)
    assert isnan(found.interval.high)


def test_one_launch_holds_no_interval_however_many_calls_it_made():
    assert tail([range(10_000)], 0.9).effective == 0
    assert not tail([range(10_000)], 0.9).enough


def test_no_call_at_all_is_refused():
    with pytest.raises(ValueError, match="no calls"):
        tail([(), ()], 0.9)


def test_ties_do_not_hide_that_launches_differ():
    """Every call of a launch ties with the quantile or with none: all shares up to it are 1."""
    alike = [[value] * 200 for value in range(7)]
    assert tail(alike, 0.9).effective < 10
    assert tail([[5] * 200] * 7, 0.9).interval.high == 5


def test_calls_that_launches_share_count_once():
    """Every call of a launch the same: as many independent calls as launches, and no more than were made."""
    rng = np.random.default_rng(2)
    alike = [[value] * 500 for value in rng.normal(size=20)]
    assert effective_calls(alike, tail(alike, 0.5).interval.value, 0.5) <= 20
    apart = rng.normal(size=(20, 500))
    assert 2_500 < effective_calls(apart, tail(apart, 0.5).interval.value, 0.5) <= 10_000


@pytest.mark.parametrize(("q", "true"), [(0.5, 0.0), (0.9, 1.2816), (0.99, 2.3263)])
@pytest.mark.parametrize("spread", [0.0, 0.3])
def test_intervals_hold_the_quantile_of_independent_and_of_alike_calls(q, true, spread):
    """Launches differ by `spread` as calls in them do by 1; a pooled interval would miss far more often."""
    rng = np.random.default_rng(3)
    hits = formed = 0
    for _ in range(400):
        calls = rng.normal(size=(10, 200)) + rng.normal(scale=spread, size=(10, 1))
        found = tail(calls / np.sqrt(1 + spread**2), q)
        formed += found.enough
        hits += found.enough and found.interval.low <= true <= found.interval.high
    assert formed > 200
    assert hits / formed > 0.93
