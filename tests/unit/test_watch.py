"""A series watched point by point: no change twice, none that comes and goes for ever."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.detect import ALARM, NEAR, SUSPECT
from bench.detectors.kernel import FEWEST
from bench.watch import SETTLED, Watch, match

positions = st.lists(st.integers(0, 300), unique=True, max_size=12).map(sorted)


@given(positions, positions, st.integers(0, 100))
def test_every_known_and_every_found_change_has_one_fate(known, found, start):
    found = [f for f in found if f >= start]
    kept, added, lost = match(known, found, start=start, end=301)
    assert sorted([*(k for k, _ in kept), *lost]) == known
    matched = [now for _, now in kept if now in found]
    assert len(set(matched)) == len(matched)
    assert not set(matched) & set(added)
    assert all(abs(a - b) <= NEAR for a, b in kept)
    assert all(301 - k <= SETTLED for k in lost), "a settled change is never taken back"
    artefacts = [f for f in found if start and f <= start + FEWEST]
    assert set(found) - set(matched) - set(added) <= set(artefacts)


def test_the_nearest_pairs_are_the_same_change():
    assert match([50], [48, 53], start=0, end=60).kept == [(50, 48)]
    assert match([50, 54], [52], start=0, end=60) == ([(50, 52)], [], [54])
    assert match([50], [61], start=0, end=70) == ([], [61], [50])


def test_what_the_window_no_longer_sees_stands():
    assert match([10, 105], [], start=100, end=120) == ([(10, 10), (105, 105)], [], [])
    assert match([115], [], start=100, end=120).lost == [115]


def test_the_edge_of_a_moved_window_is_no_change():
    assert match([], [3], start=0, end=50).added == [3]
    assert match([], [103, 105, 106], start=100, end=150).added == [106]
    assert match([102], [105], start=100, end=150).kept == [(102, 102)]


steps = st.lists(st.tuples(st.integers(6, 50), st.sampled_from([0.9, 1.0, 1.03, 1.1])), min_size=1, max_size=5)


@settings(max_examples=25)
@given(steps, st.integers(0, 1000))
def test_a_replay_names_no_change_twice_and_lets_old_ones_stand(parts, seed):
    rng = np.random.default_rng(seed)
    values = np.concatenate([np.full(n, 100 * level) for n, level in parts]) * np.exp(
        0.01 * rng.standard_t(3, sum(n for n, _ in parts))
    )
    watch = Watch(SUSPECT)
    for t, value in enumerate(values):
        old = [k for k in watch.known if t + 1 - k > SETTLED]
        added = watch.update(value)
        assert watch.known == sorted(set(watch.known))
        assert set(added) <= set(watch.known)
        assert all(any(abs(k - now) <= NEAR for now in watch.known) for k in old)
        assert not set(added) & set(old)


def test_a_step_is_told_once_and_soon():
    rng = np.random.default_rng(8)
    values = np.repeat([100.0, 108.0], 150) * np.exp(rng.normal(0, 0.01, 300))
    watch, told = Watch(ALARM), []
    for t, value in enumerate(values):
        told += [(t, at) for at in watch.update(value)]
    ((when, where),) = told
    assert where == pytest.approx(150, abs=1)
    assert when - where <= 8
    assert watch.known == [where]


def test_what_left_the_window_is_still_known():
    watch = Watch(SUSPECT)
    for value in [*[1.0] * 30, *[2.0] * 400]:
        watch.update(value)
    assert watch.known == [30]
