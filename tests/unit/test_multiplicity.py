"""P values and the false discovery rate, against scipy, literal definitions and simulation."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from bench.errors import ConfigError
from bench.stats.multiplicity import always_valid_p_value, benjamini_hochberg, p_value, sequential_p_value
from bench.stats.sequential import FIRST_ALWAYS_VALID, LOOKS, always_valid_interval, nominal_p


def literal(p_values, q):
    """Step-up, as printed in the paper."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    k = max((rank for rank, i in enumerate(order, 1) if p_values[i] <= q * rank / len(p_values)), default=0)
    rejected = {p_values[i] for i in order[:k]}
    return [p in rejected for p in p_values]


@given(st.lists(st.floats(0, 1), max_size=30), st.floats(0.001, 0.5))
def test_benjamini_hochberg_is_the_printed_step_up(p_values, q):
    assert benjamini_hochberg(p_values, q) == literal(p_values, q)


def test_benjamini_hochberg_agrees_with_scipy():
    p = np.random.default_rng(2).beta(0.3, 1, 200)
    assert benjamini_hochberg(list(p), 0.1) == list(stats.false_discovery_control(p) <= 0.1)
    assert 0 < sum(benjamini_hochberg(list(p), 0.1)) < 200


def test_a_late_small_p_carries_the_larger_ones_along():
    """Step-up: 0.03 is over its own line (0.02) at rank 1, yet rejected because 0.04 meets its line at rank 2."""
    assert benjamini_hochberg([0.03, 0.04], 0.04) == [True, True]
    assert benjamini_hochberg([0.03, 0.9], 0.04) == [False, False]


def test_an_impossible_test_counts_and_is_never_rejected():
    assert benjamini_hochberg([0.02, math.nan], 0.03) == [False, False]
    assert benjamini_hochberg([0.01, math.nan], 0.03) == [True, False]
    assert benjamini_hochberg([], 0.05) == []


@pytest.mark.parametrize("q", [0.0, 1.0, -1.0, math.nan])
def test_a_senseless_rate_is_a_config_error(q):
    with pytest.raises(ConfigError, match="false discovery rate"):
        benjamini_hochberg([0.5], q)


def test_p_values_outside_zero_and_one_are_refused():
    with pytest.raises(ValueError, match="between 0 and 1"):
        benjamini_hochberg([0.2, 1.2], 0.05)


def test_false_discoveries_stay_under_q():
    """20 true effects among 100: the mean share of false rejections is under 10 %, and effects are found."""
    rng = np.random.default_rng(8)
    shares, found = [], []
    for _ in range(400):
        z = rng.standard_normal(100)
        z[:20] += 3.5
        rejected = np.array(benjamini_hochberg(list(2 * stats.norm.sf(abs(z))), 0.1))
        shares.append(rejected[20:].sum() / max(1, rejected.sum()))
        found.append(rejected[:20].mean())
    assert 0.05 < np.mean(shares) < 0.1
    assert np.mean(found) > 0.7


def test_p_value_is_the_t_test_where_nothing_is_trimmed():
    values = [0.01, 0.03, 0.02, 0.05]
    assert p_value(values) == pytest.approx(stats.ttest_1samp(values, 0).pvalue)


def test_p_value_by_the_definition_of_the_trimmed_test():
    values = [0.01, 0.03, -0.02, 0.05, 0.9, 0.02]
    kept = [0.01, 0.02, 0.03, 0.05]
    winsorised = [0.01, 0.01, 0.02, 0.03, 0.05, 0.05]
    squares = sum((x - sum(winsorised) / 6) ** 2 for x in winsorised)
    t = (sum(kept) / 4) / math.sqrt(squares / (4 * 3))
    assert p_value(values) == pytest.approx(2 * stats.t.sf(t, 3))


def test_p_value_at_the_edges():
    assert p_value([]) == p_value([0.1]) == 1.0
    assert p_value([0.0] * 6) == 1.0
    assert p_value([0.02] * 6) == 0.0


def test_sequential_p_value_is_the_alpha_at_which_a_look_excludes_zero():
    rng = np.random.default_rng(4)
    for alpha in (0.001, 0.01, 0.05):
        for _ in range(60):
            values = list(rng.normal(0.8, 1.0, 25))
            excluded = any(p_value(values[:n]) < nominal_p(alpha) for n in LOOKS if n <= 25)
            assert (sequential_p_value(values) < alpha) == excluded


def test_sequential_p_value_keeps_its_level_where_the_plain_one_does_not():
    """Stop at the first look with plain p < 5 %: the plain p lies in over 15 % of A/A, the sequential in 5 %."""
    rng = np.random.default_rng(5)
    plain = honest = 0
    streams = 2000
    for _ in range(streams):
        values = list(rng.standard_normal(LOOKS[-1]))
        stop = next((n for n in LOOKS if p_value(values[:n]) < 0.05), LOOKS[-1])
        plain += p_value(values[:stop]) < 0.05
        honest += sequential_p_value(values[:stop]) < 0.05
    assert plain / streams > 0.15
    assert honest / streams < 0.05 + 3 * math.sqrt(0.05 * 0.95 / streams)
    assert honest > 0


@given(st.integers(0, 1000), st.integers(FIRST_ALWAYS_VALID, 40))
def test_the_always_valid_p_is_the_smallest_error_at_which_some_launch_excluded_zero(seed, n):
    values = list(np.random.default_rng(seed).normal(0.01, 0.02, n))
    p = always_valid_p_value(values)
    assert 0.0 < p <= 1.0
    for alpha, excluded in ((p * 1.001, True), (p * 0.999, False)):
        if alpha < 1.0:
            found = [always_valid_interval(values[:k], alpha) for k in range(FIRST_ALWAYS_VALID, n + 1)]
            assert any(i.low > 0 or i.high < 0 for i in found) == excluded
    assert always_valid_p_value([*values, 0.0]) <= p  # it never takes back what it has seen


def test_an_always_valid_p_of_too_few_or_of_equal_launches():
    assert always_valid_p_value([0.1] * 5) == 1.0
    assert always_valid_p_value([0.0] * 9) == 1.0
    assert always_valid_p_value([0.1] * 9) == 0.0
