"""Changes of a series: what is found, how large it is, and what must not matter."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.detect import (
    ALARM,
    HISTORY,
    SENSITIVITIES,
    SUSPECT,
    change_points,
    exact_steps,
    is_suspect,
    steps,
)
from bench.errors import UsageError
from bench.stats.noise import (
    SIGMAS_PER_MAD,
    SMALLEST_NOISE,
    deviation,
    median,
    newest_z,
    noise,
    relative,
    standardize,
)
from bench.stats.shift import inflation, level, shift

seeds = st.integers(0, 10_000)


def history(*levels, n=60, noise=0.01, seed=1):
    """`n` points at each level, with heavy-tailed noise of that relative size."""
    rng = np.random.default_rng(seed)
    quiet = np.repeat(np.array(levels, dtype=float), n)
    return quiet * np.exp(noise * rng.standard_t(4, len(quiet)))


def near(*places):
    return [pytest.approx(place, abs=2) for place in places]


# What is found


@pytest.mark.parametrize("sensitivity", SENSITIVITIES, ids=lambda s: s.name)
@pytest.mark.parametrize("scale", [1e-9, 1.0, 3e12])
def test_steps_of_five_noises_are_found_at_every_scale(sensitivity, scale):
    values = scale * history(100, 105, 93)
    assert change_points(values, sensitivity) == near(60, 120)


@given(seeds, st.floats(1e-6, 1e6))
def test_units_do_not_matter(seed, factor):
    """A power of two changes no digit; another factor moves the last one, which no answer may rest on."""
    values = history(100, 103, 101, seed=seed)
    assert change_points(values * factor) == change_points(values)


@given(seeds)
def test_lower_and_higher_are_alike(seed):
    values = history(100, 104, 99, seed=seed)
    assert change_points(1 / values) == change_points(values)


@given(seeds)
def test_a_history_read_backwards_changes_at_the_same_places(seed):
    """Where steps are clear; a doubtful place may move by where ties and pruning begin."""
    values = history(100, 110, 95, seed=seed)
    backwards = sorted(len(values) - at for at in change_points(values[::-1]))
    assert backwards == [pytest.approx(at, abs=1) for at in change_points(values)]


@given(seeds, st.floats(2.0, 1e6))
def test_one_outlier_is_no_change_however_far_off(seed, factor):
    values = history(100, n=100, seed=seed)
    quiet = change_points(values)
    values[50] *= factor
    assert change_points(values) == quiet


def test_four_outliers_in_a_row_are_no_change_and_a_level_of_eight_is_one():
    values = history(100, n=100)
    values[50:54] *= 1.5
    assert change_points(values) == []
    values[54:58] *= 1.5
    assert change_points(values) == near(50, 58)


@given(seeds)
def test_more_caution_finds_no_more(seed):
    values = history(100, 102, 101, seed=seed)
    found = [len(change_points(values, s)) for s in (HISTORY, SUSPECT, ALARM)]
    assert found == sorted(found, reverse=True)


def test_false_alarms_on_quiet_series_are_rare():
    """At most 1 % of quiet series of 200 points show one: 2 or 3 are expected by then with 0.1 per 1000 points."""
    wrong = [sum(bool(change_points(history(100, n=200, seed=s), kind)) for s in range(150)) for kind in SENSITIVITIES]
    assert wrong[0] <= 4
    assert wrong[2] <= wrong[1] <= wrong[0]


def test_the_second_detector_adds_long_small_steps():
    """Steps of 0.7 standard deviations that last 150 points."""
    names = [c.detector for s in range(40) for c in steps(history(100, 101.4, n=150, noise=0.014, seed=s))]
    assert names.count("distribution") >= 5
    assert len(names) <= 40


def test_steps_under_the_minimum_are_dropped_and_the_next_ones_measured_again():
    """0.6 % and 0.6 %: each is under 1 %; the staircase is not, once its middle is gone."""
    quiet = history(100, 100.6, 101.2, n=80, noise=0.0005)
    assert change_points(quiet, minimum=0.0) == near(80, 160)
    assert len(change_points(quiet, minimum=0.01)) == 0
    assert change_points(history(100, 100.6, 105, n=80, noise=0.0005)) == near(160)


class Given:
    """A detector that was told where the changes are."""

    name = "given"

    def __init__(self, *places):
        self.places = list(places)

    def changes(self, values):
        return self.places if len(values) > 60 else []

    def detectors(self, n):
        return self, Given()


@pytest.mark.parametrize("seed", range(60))
def test_nothing_stays_that_is_surely_small_once_its_neighbours_were_dropped(seed):
    rng = np.random.default_rng(seed)
    x = np.repeat([0.004, 0.008, 0.002, 0.008, 0.004], [25, 13, 31, 5, 30])
    values = np.exp(x + rng.normal(0, 0.004, len(x)))
    for step in steps(values, Given(25, 38, 69, 74)):
        assert not 1 / 1.01 < step.effect.low < step.effect.high < 1.01


def test_what_may_be_as_large_as_the_minimum_stays():
    """A step of 1 % that was estimated as 0.97 % is not surely smaller than 1 %."""
    values = history(100, 100.98, n=60, noise=0.003)
    assert 1 < steps(values)[0].effect.value < 1.01


@pytest.mark.parametrize("values", [[], [1.0], [5.0] * 50, [0.0] * 50, [0.0] * 49 + [1.0], [-3.0] * 20])
def test_nothing_happened(values):
    assert change_points(values) == []


def test_values_that_are_not_positive_change_too():
    rng = np.random.default_rng(2)
    values = np.repeat([0.0, 5.0, -4.0], 40) + rng.normal(0, 0.3, 120)
    assert change_points(values) == near(40, 80)
    assert [c.relative for c in steps(values)] == [False, False]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_none_is_named(bad):
    with pytest.raises(UsageError, match="value 3 of 4"):
        change_points([1.0, 2.0, bad, 3.0])


def test_a_table_is_no_series():
    with pytest.raises(UsageError, match=r"\(2, 3\)"):
        change_points(np.ones((2, 3)))


# How large it is


@pytest.mark.parametrize(("before", "after"), [(100, 105), (100, 80), (1e-7, 3e-7)])
def test_the_effect_is_a_ratio_with_its_interval(before, after):
    (found,) = steps(history(before, after))
    assert found.effect.low < after / before < found.effect.high
    assert found.effect.value == pytest.approx(after / before, rel=0.01)
    assert found.before.low < found.before.value < found.before.high
    assert found.after.value == pytest.approx(after, rel=0.01)


def test_the_effect_of_a_share_is_a_difference():
    rng = np.random.default_rng(3)
    values = np.repeat([0.8, 0.7], 50) + rng.normal(0, 0.005, 100)
    (found,) = steps(values, as_ratio=False)
    assert not found.relative
    assert found.effect.low < -0.1 < found.effect.high


def test_an_effect_is_taken_from_the_forty_points_beside_it():
    values = np.concatenate([np.full(60, 50.0), history(100, 110, n=100)])
    assert steps(values)[-1].effect.value == pytest.approx(1.1, rel=0.01)
    drifting = np.concatenate([np.linspace(80, 100, 100), np.full(100, 110.0)]) * history(1, n=200)
    assert steps(drifting)[-1].before.value > 94


def test_an_interval_of_the_shift_holds_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(4)
    trials = 1500
    held = 0
    for _ in range(trials):
        interval = shift(rng.standard_t(3, 40), 0.7 + rng.standard_t(3, 25))
        held += interval.low <= 0.7 <= interval.high
    assert 0.935 < held / trials < 0.965


def test_memory_of_the_noise_widens_the_interval_as_it_must():
    """First-order memory of 0.4: without the inflation, one interval in six would miss."""
    rng = np.random.default_rng(5)
    trials, held = 800, 0
    for _ in range(trials):
        x = np.zeros(90)
        for i, e in enumerate(rng.normal(0, 1, 90)):
            x[i] = 0.4 * x[i - 1] + e
        interval = shift(x[10:50], x[50:])
        held += interval.low <= 0 <= interval.high
    assert 0.91 < held / trials < 0.97


def test_shift_and_level_by_the_definitions():
    before, after = np.array([1.0, 9.0, 2.0, 11.0, 4.0, 8.0]), np.array([12.0, 3.0, 7.0, 5.0, 5.5])
    assert inflation(before, after) == 1.0
    differences = sorted(a - b for a in after for b in before)
    rank = round(15 - 1.959964 * math.sqrt(30 * 12 / 12))
    found = shift(before, after)
    assert found.value == (differences[14] + differences[15]) / 2
    assert (found.low, found.high) == (differences[rank - 1], differences[30 - rank])
    assert (level(before).low, level(before).high, level(before).value) == (1.0, 11.0, 6.0)
    assert math.isnan(level(np.arange(10.0)).low), "a straight line remembers all of itself"


def test_inflation_is_one_for_noise_without_memory_and_bounded():
    rng = np.random.default_rng(6)
    assert np.median([inflation(rng.normal(0, 1, 40), rng.normal(0, 1, 40)) for _ in range(200)]) < 1.1
    assert inflation(np.ones(5), np.ones(5)) == 1.0
    assert inflation(np.arange(200.0)) == pytest.approx(9.0)


def test_five_points_of_wild_noise_have_no_interval_and_say_so():
    (found,) = steps([*[1.0, 1.01, 1.02, 1.03, 1.04, 1.05], *[9.0, 9.01, 9.02, 9.03, 9.04]])
    assert found.after.low is None
    assert "few" in found.after.note


# Exact metrics, suspects


def test_every_difference_of_an_exact_metric_is_a_change():
    first, second = exact_steps([10, 10, 11, 11, 11, 10])
    assert (first.index, second.index) == (2, 5)
    assert first.effect.value == 1.1
    assert (first.before.n, first.after.n, second.after.n) == (2, 3, 1)
    assert "exact" in first.effect.note


def test_an_exact_metric_that_was_zero_differs_by_a_difference():
    (found,) = exact_steps([0, 0, 3])
    assert (found.effect.value, found.relative) == (3.0, False)
    assert exact_steps([]) == exact_steps([1]) == []


@pytest.mark.parametrize(("newest", "answer"), [(100.5, False), (99.0, False), (106.0, True), (95.0, True)])
def test_a_newest_point_three_deviations_off_is_a_suspect(newest, answer):
    assert is_suspect([*history(100, n=60), newest]) is answer


def test_a_suspect_is_judged_by_its_own_level_only():
    values = [*history(100, n=40), *history(150, n=20, seed=2)]
    assert not is_suspect([*values, 150.0], since=40)
    assert is_suspect([*values, 170.0], since=40)
    assert not is_suspect([*values[:49], 170.0], since=40), "nine points are too few to judge by"


# The scale


def test_noise_does_not_see_the_steps():
    stairs = np.repeat(np.arange(10.0), 30) + np.random.default_rng(7).normal(0, 0.1, 300)
    assert noise(stairs) == pytest.approx(0.1, rel=0.2)
    assert stairs.std() > 2


def test_median_and_deviation_by_the_definition():
    values = np.array([5.0, 1.0, 9.0, 2.0])
    assert median(values) == 3.5
    assert median(values[:3]) == 5.0
    assert deviation(values) == pytest.approx(SIGMAS_PER_MAD * np.median(np.abs(values - np.median(values))))


def test_a_series_without_noise_counts_as_one_of_a_twentieth_of_a_percent():
    assert noise(np.zeros(20)) == SMALLEST_NOISE
    assert not standardize(np.zeros(20)).any()
    assert newest_z(np.array([0.0] * 10 + [0.01])) == pytest.approx(0.01 / SMALLEST_NOISE)
    assert math.isnan(newest_z(np.array([1.0, 2.0])))


def test_a_series_of_mostly_zeros_is_measured_by_its_mean():
    values = np.array([0.0] * 8 + [4.0, 6.0])
    assert list(relative(values)) == [0.0] * 8 + [4.0, 6.0]
    assert list(relative(np.array([-2.0, 0.0, 2.0]))) == [-1.0, 0.0, 1.0]
