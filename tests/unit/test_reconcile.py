"""Looking again at a series: the same change keeps its key, whatever else becomes of it."""

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.detect import SUSPECT
from bench.history import Answer, Cause, Proof
from bench.reconcile import PATIENCE, reconcile
from bench.series import find_changes, find_suspect, position
from bench.testing.history import START, make_change, make_points
from bench.watch import SETTLED

WINDOW = SUSPECT.window
AT = START + timedelta(days=400)


def series():
    return make_change().series


def levels(*values, n=40, noise=0.01, seed=1):
    quiet = np.repeat(np.array(values, dtype=float), n)
    return quiet * np.exp(noise * np.random.default_rng(seed).standard_normal(len(quiet)))


def look(old, points, *, at=AT):
    """One look as the service makes it; everything known afterwards, by key."""
    live = [c for c in old.values() if c.superseded_by is None]
    new = find_changes(series(), points, at=at)
    suspect = find_suspect(series(), points, live, at=at)
    if suspect is not None and all(position(c, points) != len(points) - 1 for c in new):
        new.append(suspect)
    result = reconcile(list(old.values()), new, points, WINDOW)
    every = [*result.kept, *result.added, *result.superseded]
    assert len({c.key for c in every}) == len(every), "a key stands for one change"
    assert {c.key for c in live} == {c.key for c in [*result.kept, *result.superseded]}
    return result, {**old, **{c.key: c for c in every}}


def proved(change, answer):
    return replace(change, proof=Proof(answer=answer, at=AT, command="bench compare a b"))


def test_a_change_that_is_found_again_keeps_what_was_learnt():
    points = make_points(levels(100, 110))
    (first,) = find_changes(series(), points[:60], at=START)
    first = replace(proved(first, Answer.CONFIRMED), cause=Cause.ENVIRONMENT, regression="r1")
    (now,) = find_changes(series(), points, at=AT)
    (kept,) = reconcile([first], [now], points, WINDOW).kept
    assert (kept.key, kept.proof, kept.cause, kept.regression) == (first.key, first.proof, first.cause, "r1")
    assert kept.detected_at == START
    assert kept.after == now.after


def test_a_change_keeps_its_key_when_its_place_is_known_better():
    points = make_points(levels(100, 110))
    (found,) = find_changes(series(), points, at=AT)
    early = replace(found, key="k1", first_changed=points[43])
    (kept,) = reconcile([early], [found], points, WINDOW).kept
    assert (kept.key, kept.first_changed) == ("k1", points[40])


def test_a_young_change_that_is_not_found_again_is_superseded_and_an_old_one_stands():
    points = make_points(levels(100, n=100))
    (found,) = find_changes(series(), make_points(levels(100, 110)), at=AT)
    young = replace(found, key="young", first_changed=points[100 - SETTLED])
    old = replace(found, key="old", first_changed=points[99 - SETTLED])
    result = reconcile([young, old], [], points, WINDOW)
    assert [c.key for c in result.kept] == ["old"]
    assert [(c.key, c.superseded_by) for c in result.superseded] == [("young", "")]


def test_what_took_the_place_of_a_change_is_named():
    points = make_points(levels(100, 110, n=30))
    (found,) = find_changes(series(), points, at=AT)
    astray = replace(found, key="astray", first_changed=points[42])
    result = reconcile([astray], [found], points, WINDOW)
    assert [c.superseded_by for c in result.superseded] == [found.key]


def test_what_comes_back_comes_back_under_its_old_key():
    points = make_points(levels(100, 110))
    (found,) = find_changes(series(), points, at=AT)
    gone = replace(found, key="was", first_changed=points[44], regression="r1", superseded_by="")
    (added,) = reconcile([gone], [found], points, WINDOW).added
    assert (added.key, added.regression, added.superseded_by) == ("was", "r1", None)


def test_a_confirmed_change_is_never_taken_back():
    points = make_points(levels(100, n=60))
    (found,) = find_changes(series(), make_points(levels(100, 110)), at=AT)
    sure = proved(replace(found, first_changed=points[50]), Answer.CONFIRMED)
    assert reconcile([sure], [], points, WINDOW).kept == (sure,)
    doubted = proved(sure, Answer.INCONCLUSIVE)
    assert reconcile([doubted], [], points, WINDOW).kept == ()


@pytest.mark.parametrize(("later", "stands"), [(PATIENCE - 1, True), (PATIENCE, False), (SETTLED + 60, False)])
def test_a_suspect_waits_for_a_detector_and_no_longer(later, stands):
    points = make_points([*levels(100), 125, *levels(100, n=200, seed=2)])
    suspect = find_suspect(series(), points[:41], [], at=AT)
    result = reconcile([suspect], [], points[: 41 + later], WINDOW)
    assert bool(result.kept) is stands


def test_a_suspect_that_a_detector_finds_is_a_change():
    points = make_points([*levels(100), *levels(120, seed=2)])
    suspect = find_suspect(series(), points[:41], [], at=START)
    (kept,) = reconcile([suspect], find_changes(series(), points, at=AT), points, WINDOW).kept
    assert (kept.key, kept.suspect, kept.detector) == (suspect.key, False, "kernel")


def test_a_suspect_beside_a_known_change_is_that_change():
    points = make_points([*levels(100), *levels(120, n=8, seed=2)])
    (known,) = find_changes(series(), points, at=AT)
    suspect = replace(known, key="s", suspect=True, first_changed=points[44])
    result = reconcile([known], [suspect], points, WINDOW)
    assert (result.kept, result.added) == ((known,), ())


def test_two_known_changes_at_one_place_become_one():
    points = make_points(levels(100, 110))
    (found,) = find_changes(series(), points, at=AT)
    twin = replace(found, key="twin", suspect=True)
    result = reconcile([twin, found], [found], points, WINDOW)
    assert [c.key for c in result.kept] == [found.key]
    assert [(c.key, c.superseded_by) for c in result.superseded] == [("twin", found.key)]


def test_a_new_change_does_not_take_the_key_of_one_that_moved():
    points = make_points(levels(100, 110, 125, n=30))
    first, second = find_changes(series(), points, at=AT)
    moved = replace(second, key=first.key)
    result = reconcile([moved], [first, second], points, WINDOW)
    assert [c.key for c in result.kept] == [first.key]
    assert result.added[0].key != first.key


def test_a_change_whose_point_is_gone_stands_where_it_was():
    points = make_points(levels(100, 110))
    (found,) = find_changes(series(), points, at=AT)
    fewer = [p for p in points if p != found.first_changed]
    assert position(found, fewer) == 40
    assert len(reconcile([found], find_changes(series(), fewer, at=AT), fewer, WINDOW).kept) == 1


def test_a_point_that_is_added_in_the_past_moves_no_key():
    points = make_points(levels(100, 110))
    (found,) = find_changes(series(), points, at=AT)
    late = replace(points[10], run_key="f" * 32, commit="f" * 40, at=points[10].at + timedelta(hours=1))
    more = [*points[:11], late, *points[11:]]
    result = reconcile([found], find_changes(series(), more, at=AT), more, WINDOW)
    assert [c.key for c in result.kept] == [found.key]
    assert not result.added


parts = st.lists(st.tuples(st.integers(6, 45), st.sampled_from([0.9, 1.0, 1.04, 1.12])), min_size=1, max_size=4)


@settings(max_examples=20)
@given(parts, st.integers(0, 1000))
def test_a_replay_duplicates_no_change_and_flips_no_old_one(pieces, seed):
    rng = np.random.default_rng(seed)
    values = np.concatenate([np.full(n, 100 * level) for n, level in pieces])
    points = make_points(values * np.exp(0.01 * rng.standard_t(3, len(values))))
    known, flips = {}, {}
    for n in range(2, len(points) + 1):
        before = {k for k, c in known.items() if c.superseded_by is None and not c.suspect}
        old = {k for k in before if n - position(known[k], points[:n]) > SETTLED}
        result, known = look(known, points[:n])
        live = [c for c in known.values() if c.superseded_by is None]
        assert old <= {c.key for c in live}, "an old change was taken back"
        assert len({position(c, points[:n]) for c in live}) == len(live), "one change twice"
        for change in result.superseded:
            flips[change.key] = flips.get(change.key, 0) + 1
    assert all(count <= SETTLED for count in flips.values())
    assert look(known, points)[0].added == (), "looking again without a new point finds nothing new"
