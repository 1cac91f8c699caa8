"""Borrowed variance against scipy, literal definitions, recovery of a known prior, and coverage."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from bench.errors import ConfigError, MeasureError
from bench.stats.location import trimmed_interval
from bench.stats.moderated import (
    MAX_FREEDOM,
    MODERATED_LOOKS,
    Prior,
    confirm_moderated,
    decide_moderated,
    fit_prior,
    launch_variance,
    moderated_interval,
    moderated_p_value,
    trigamma_inverse,
)
from bench.stats.sequential import State, confirm
from benchmarks.streams import NOISES

PRIOR = Prior(variance=0.015**2, freedom=8.0)


@given(st.floats(1e-4, 1e4))
def test_trigamma_inverse_undoes_trigamma(value):
    assert float(special.polygamma(1, trigamma_inverse(value))) == pytest.approx(value, rel=1e-9)


def test_a_known_prior_is_recovered():
    """Variances drawn as the model says: σ² = d₀s₀²/χ²(d₀), s² = σ²χ²(d)/d, with unequal d."""
    rng = np.random.default_rng(1)
    freedoms = rng.integers(3, 12, 4000)
    sigma2 = 4.0 * 6.0 / rng.chisquare(6.0, 4000)
    prior = fit_prior(list(sigma2 * rng.chisquare(freedoms) / freedoms), list(freedoms))
    assert prior.freedom == pytest.approx(6.0, rel=0.15)
    assert prior.variance == pytest.approx(4.0, rel=0.05)


def test_moments_by_the_printed_formula():
    """Smyth (2004), section 6.2, for equal freedoms; the inverse of trigamma by bisection."""
    variances, d = [1.0, 9.0, 0.2, 30.0, 2.0, 0.5], 4
    e = [math.log(v) - special.digamma(d / 2) + math.log(d / 2) for v in variances]
    mean = sum(e) / 6
    surplus = sum((x - mean) ** 2 for x in e) / 5 - special.polygamma(1, d / 2)
    low, high = 1e-6, 1e6
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if special.polygamma(1, middle) > surplus else (low, middle)
    prior = fit_prior(variances, [d] * 6)
    assert prior.freedom == pytest.approx(2 * low)
    assert prior.variance == pytest.approx(math.exp(mean + special.digamma(low) - math.log(low)))


def test_equal_spreads_make_the_strongest_prior_allowed():
    rng = np.random.default_rng(2)
    variances = list(3.0 * rng.chisquare(5, 500) / 5)
    prior = fit_prior(variances, [5] * 500)
    assert prior.freedom == MAX_FREEDOM
    assert prior.variance == pytest.approx(3.0, rel=0.1)


def test_a_history_adds_no_more_freedom_than_it_has():
    assert fit_prior([1.0] * 5, [1] * 5).freedom == 5


@pytest.mark.parametrize(
    ("variances", "freedoms"),
    [
        ([], []),
        ([1.0] * 4, [3] * 4),
        ([1.0] * 4 + [math.nan, math.inf, 1.0], [3] * 6 + [0]),
        ([0.0] * 10, [3] * 10),
    ],
)
def test_no_usable_history_is_no_prior(variances, freedoms):
    assert fit_prior(variances, freedoms) is None


def test_one_night_without_spread_does_not_break_the_fit():
    prior = fit_prior([1.0, 1.2, 0.8, 1.1, 0.9, 0.0], [5] * 6)
    assert 0 < prior.variance < 2
    assert prior.freedom > 0


def test_variances_and_freedoms_go_together():
    with pytest.raises(ValueError, match="got 2 and 1"):
        fit_prior([1.0, 2.0], [3])


def test_launch_variance_is_of_one_launch_whatever_the_run():
    """Runs of 4 to 50 normal launches of spread 2: 4 and up to a third more, the price of trimming."""
    rng = np.random.default_rng(3)
    for n in (4, 5, 10, 50):
        mean = np.mean([launch_variance(list(rng.normal(0, 2, n)))[0] for _ in range(3000)])
        assert 3.8 < mean < 5.4, n
    assert launch_variance([1.0, 2.0, 3.0]) == (0.0, 0)
    assert launch_variance([]) == (0.0, 0)


def test_the_interval_by_the_definition():
    values = [0.05, 0.01, 0.03, 0.02]
    winsorised = [0.02, 0.02, 0.03, 0.03]
    squares = sum((x - 0.025) ** 2 for x in winsorised)
    own = 4 * squares / (2 * 1)
    variance = (8 * PRIOR.variance + 1 * own) / 9
    half = stats.t.ppf(0.995, 9) * math.sqrt(variance / 4)
    interval = moderated_interval(values, PRIOR)
    assert (interval.value, interval.low, interval.high) == pytest.approx((0.025, 0.025 - half, 0.025 + half))


def test_a_weak_prior_leaves_the_launches_alone():
    values = [0.05, 0.01, 0.03, 0.02, 0.04]
    weak = moderated_interval(values, Prior(variance=1.0, freedom=1e-12))
    alone = trimmed_interval(values, 0.99)
    assert (weak.low, weak.high) == pytest.approx((alone.low, alone.high))


@pytest.mark.parametrize("values", [[0.1, 0.2, 0.3], [0.1, 0.2, 0.3, 0.2, 0.1]])
def test_without_a_history_the_launches_speak_for_themselves(values):
    found = moderated_interval(values, None)
    assert (found.low, found.high) == pytest.approx(
        (trimmed_interval(values, 0.99).low, trimmed_interval(values, 0.99).high)
    )
    assert moderated_interval(values[:3], PRIOR) == moderated_interval(values[:3], None)


@pytest.mark.parametrize("values", [[], [0.1]])
def test_too_few_launches_have_no_interval(values):
    assert math.isnan(moderated_interval(values, None).low)
    assert math.isnan(moderated_interval(values, PRIOR).low)
    assert decide_moderated(values, PRIOR, better_sign=-1, final=True).state is State.EXHAUSTED


def history(noise, rng, nights=20, launches=10):
    """Variances and freedoms of past runs of that noise."""
    pairs = [launch_variance(list(row)) for row in NOISES[noise](rng, (nights, launches))]
    return [v for v, _ in pairs], [d for _, d in pairs]


@pytest.mark.parametrize("noise", ["normal", "student3", "contaminated"])
@pytest.mark.parametrize("n", [4, 5])
def test_four_or_five_launches_cover_the_truth(noise, n):
    """A 99 % interval with a prior from 20 nights of the same noise misses in at most 1 %, and not never."""
    rng = np.random.default_rng(4)
    missed = 0
    streams = 4000
    for index in range(streams):
        if index % 40 == 0:
            prior = fit_prior(*history(noise, rng))
        interval = moderated_interval(list(NOISES[noise](rng, (1, n))[0]), prior)
        missed += not interval.low <= 0 <= interval.high
    assert 0.001 < missed / streams < 0.01 + 2.5 * math.sqrt(0.01 * 0.99 / streams)


def test_all_looks_together_keep_the_error():
    rng = np.random.default_rng(5)
    missed = 0
    streams = 2000
    for index in range(streams):
        if index % 40 == 0:
            prior = fit_prior(*history("normal", rng))
        values = list(rng.standard_normal(MODERATED_LOOKS[-1]))
        found = [moderated_interval(values[:n], prior, 0.05, len(MODERATED_LOOKS)) for n in MODERATED_LOOKS]
        missed += any(i.low > 0 or i.high < 0 for i in found)
    assert 0.01 < missed / streams < 0.05 + 2.5 * math.sqrt(0.05 * 0.95 / streams)


def test_a_history_halves_the_interval_of_five_launches():
    rng = np.random.default_rng(6)
    prior = fit_prior(*history("normal", rng))
    rows = rng.standard_normal((400, 5))
    with_history = np.median([(i := moderated_interval(list(r), prior)).high - i.low for r in rows])
    without = np.median([(i := moderated_interval(list(r), None)).high - i.low for r in rows])
    assert with_history < without / 2


def test_two_disturbed_launches_of_four_do_not_outvote_the_other_two():
    """However far off they are, and with the strongest prior there is."""
    prior = Prior(variance=0.01**2, freedom=MAX_FREEDOM)
    for far in (0.1, 1.0, 100.0):
        interval = moderated_interval([0.001, -0.001, far, far], prior)
        assert interval.low < 0 < interval.high
        one = moderated_interval([0.001, -0.001, 0.002, far], prior)
        assert one.low < 0 < one.high < 0.05


@pytest.mark.parametrize(("shift", "state"), [(0.04, State.REGRESSED), (-0.04, State.IMPROVED)])
def test_four_launches_decide_what_is_large(shift, state):
    values = [shift + x for x in (0.01, -0.01, 0.004, -0.006)]
    assert decide_moderated(values, PRIOR, better_sign=-1).state is state
    alone = decide_moderated(values, None, better_sign=-1)
    assert (alone.state, alone.next_look) == (State.CONTINUE, 5)


def test_moderated_looks_go_on_and_end():
    quiet = Prior(variance=0.004**2, freedom=8.0)
    near = [0.001, -0.001, 0.0005, -0.0005]
    assert decide_moderated(near, quiet, better_sign=-1).state is State.UNCHANGED
    assert decide_moderated(near[:3], quiet, better_sign=-1).next_look == 4
    wide = [0.1, -0.1, 0.2, -0.2, 0.15, -0.15, 0.1, -0.1, 0.2, -0.2]
    assert decide_moderated(wide, quiet, better_sign=-1).next_look == 14
    assert decide_moderated(wide * 2, quiet, better_sign=-1).state is State.EXHAUSTED
    assert decide_moderated(wide[:6], quiet, better_sign=-1).next_look == 7
    assert decide_moderated(wide[:6], quiet, better_sign=-1, final=True).state is State.EXHAUSTED


@pytest.mark.parametrize("prior", [PRIOR, None])
def test_the_moderated_p_is_the_smallest_error_at_which_a_look_so_far_excludes_zero(prior):
    """By the intervals alone: a hair over p some look excludes zero, a hair under it none does."""
    rng = np.random.default_rng(9)
    for n in (4, 5, 6, 10, 20):
        values = list(rng.normal(0.03, 0.01, n))
        p = moderated_p_value(values, prior)
        looks = [look for look in MODERATED_LOOKS if look < n] + [n]
        for alpha, excluded in ((p * 1.001, True), (p * 0.999, False)):
            found = [moderated_interval(values[:look], prior, alpha, len(MODERATED_LOOKS)) for look in looks]
            assert any(i.low > 0 or i.high < 0 for i in found) == excluded
    assert moderated_p_value([0.1] * 3, prior) == 1.0
    assert moderated_p_value([0.01, -0.01, 0.02, -0.02], prior) == 1.0


def test_a_moderated_confirmation_needs_the_interval_and_half_the_floor():
    quiet = Prior(variance=0.004**2, freedom=8.0)
    spread = [0.004, -0.004, 0.002, -0.002, 0.001, -0.001, 0.003, -0.003, 0.0]

    def answer(shift, prior=quiet, sign=-1):
        return confirm_moderated([shift + x for x in spread], prior, better_sign=sign)

    assert answer(0.02).confirmed
    assert answer(-0.02, sign=1).confirmed
    assert not answer(-0.02).confirmed
    assert answer(0.0045).p_value < 0.05  # certain, and less than half the floor
    assert not answer(0.0045).confirmed
    interval = moderated_interval([0.02 + x for x in spread], quiet, 0.1)
    assert answer(0.02).interval == interval
    assert answer(0.02, prior=None) == confirm([0.02 + x for x in spread], better_sign=-1)
    assert confirm_moderated([0.1] * 3, quiet, better_sign=-1) == confirm([0.1] * 3, better_sign=-1)


def test_bad_input_is_named():
    with pytest.raises(MeasureError, match="launch 2 of 4"):
        moderated_interval([0.1, math.nan, 0.1, 0.1], PRIOR)
    with pytest.raises(ConfigError, match="alpha"):
        moderated_interval([0.1] * 4, PRIOR, alpha=2.0)
    for looks in ((), (3, 5), (5, 5)):
        with pytest.raises(ConfigError, match="looks"):
            decide_moderated([0.1] * 4, PRIOR, better_sign=-1, looks=looks)
