"""From points to change points: what becomes of several runs of a commit, keys, directions, suspects, new versions."""

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from bench.causes import differences
from bench.detect import HISTORY, REACH, SUSPECT
from bench.history import Cause, Direction
from bench.metrics import SIZE, THROUGHPUT, TIME, Better, Kind, Metric, Summary
from bench.model import Environment, Estimate
from bench.series import direction, find_changes, find_method_change, find_suspect, fold, position
from bench.testing.history import START, make_change, make_points

AT = START + timedelta(days=400)
ACCURACY = Metric(name="top1", unit="1", better=Better.HIGHER, kind=Kind.ACCURACY, summary=Summary.ITEMS)


def levels(*values, n=40, noise=0.01, seed=1):
    quiet = np.repeat(np.array(values, dtype=float), n)
    return quiet * np.exp(noise * np.random.default_rng(seed).standard_normal(len(quiet)))


def series(metric=TIME):
    return make_change(metric=metric).series


# Folding


def test_points_are_ordered_by_commit_then_by_measurement():
    points = make_points([1, 2, 3])
    assert fold(points[::-1]) == points


def test_runs_of_one_commit_become_their_median_under_the_first_key():
    (point,) = make_points([10])
    point = replace(point, estimate=Estimate(value=10.0, low=9.0, high=11.0, n=7))
    later = [replace(point, run_key=f"{i}" * 32, measured_at=point.measured_at + timedelta(hours=i)) for i in (2, 1)]
    values = [Estimate(value=v, low=v - 1, high=v + 1, n=5) for v in (40.0, 12.0)]
    (folded,) = fold([*(replace(p, estimate=e) for p, e in zip(later, values, strict=True)), point])
    assert (folded.run_key, folded.measured_at) == (point.run_key, point.measured_at)
    assert folded.estimate == Estimate(value=12.0, low=11.0, high=13.0, n=17)


def test_a_run_without_an_interval_leaves_its_commit_without_one_and_says_why():
    (point,) = make_points([10])
    bare = replace(point, run_key="f" * 32, estimate=Estimate(value=12.0, note="one launch"))
    (folded,) = fold([point, bare])
    assert (folded.estimate.value, folded.estimate.low, folded.estimate.note) == (11.0, None, "one launch")


def test_another_environment_or_no_commit_is_another_point():
    (point,) = make_points([10])
    moved = replace(point, run_key="1" * 32, environment_fingerprint="d" * 16)
    loose = [replace(point, run_key=f"{i}" * 32, commit=None) for i in (2, 3)]
    assert len(fold([point, moved, *loose])) == 4


# Changes


def test_a_step_becomes_a_change_point_with_its_ends():
    points = make_points(levels(100, 110))
    (found,) = find_changes(series(), points, at=AT)
    assert (found.last_good, found.first_changed) == (points[39], points[40])
    assert found.effect.low < 1.1 < found.effect.high
    assert found.direction is Direction.WORSE
    assert (found.cause, found.suspect, found.detected_at) == (Cause.CODE, False, AT)
    assert found.parameters["sensitivity"] == "suspect"
    assert position(found, points) == 40


def test_keys_are_the_same_from_run_to_run_and_differ_between_series():
    points = make_points(levels(100, 110))
    first, second = (find_changes(series(), points[:n], at=AT)[0] for n in (70, 80))
    assert first.key == second.key
    assert find_changes(series(THROUGHPUT), points, at=AT)[0].key != first.key


@pytest.mark.parametrize(
    ("metric", "after", "answer"),
    [
        (TIME, 90, Direction.BETTER),
        (THROUGHPUT, 90, Direction.WORSE),
        (THROUGHPUT, 110, Direction.BETTER),
        (ACCURACY, 90, Direction.WORSE),
    ],
)
def test_the_direction_is_the_users(metric, after, answer):
    (found,) = find_changes(series(metric), make_points(levels(100, after)), at=AT)
    assert found.direction is answer


def test_the_effect_of_accuracy_is_a_difference():
    (found,) = find_changes(series(ACCURACY), make_points(levels(0.8, 0.7, noise=0.004)), at=AT)
    assert found.effect.low < -0.1 < found.effect.high
    assert direction(Better.HIGHER, found.effect, relative=False) is Direction.WORSE


def test_every_difference_of_an_exact_metric_is_a_change_point():
    found = find_changes(series(SIZE), make_points([10, 10, 11, 10]), at=AT)
    assert [(c.effect.value, c.direction) for c in found] == [
        (1.1, Direction.WORSE),
        (pytest.approx(1 / 1.1), Direction.BETTER),
    ]


def test_only_the_window_is_looked_at():
    points = make_points([*levels(100, 110), *levels(110, n=220)])
    assert find_changes(series(), points, at=AT, sensitivity=SUSPECT) == []
    assert len(find_changes(series(), points, at=AT, sensitivity=HISTORY)) == 1


# Environments


def environment(**packages):
    return Environment(python="3.12", system="Linux", packages=packages)


def test_a_difference_that_lasts_is_named():
    points = [*make_points(levels(100, 110))]
    points = [replace(p, environment_fingerprint="old" if i < 40 else "new") for i, p in enumerate(points)]
    known = {"old": environment(numpy="2.4", ours="1"), "new": environment(numpy="2.5", ours="1")}
    (found,) = find_changes(series(), points, at=AT, environments=known)
    assert [(d.name, d.before, d.after) for d in found.environment] == [("numpy", "2.4", "2.5")]


def test_a_package_that_changes_with_every_commit_explains_nothing():
    points = [replace(p, environment_fingerprint=p.run_key) for p in make_points(levels(100, 110))]
    known = {p.run_key: environment(ours=p.run_key) for p in points}
    assert find_changes(series(), points, at=AT, environments=known)[0].environment == ()


@pytest.mark.parametrize("restless", [range(40), range(40, 80)], ids=["before", "after"])
def test_a_setting_that_comes_and_goes_on_one_side_explains_nothing(restless):
    points = make_points(levels(100, 110))
    names = ["old" if i < 40 else "new" for i in range(80)]
    for i in list(restless)[1:-1:2]:
        names[i] = "new" if names[i] == "old" else "old"
    points = [replace(p, environment_fingerprint=name) for p, name in zip(points, names, strict=True)]
    known = {"old": environment(numpy="2.4"), "new": environment(numpy="2.5")}
    assert find_changes(series(), points, at=AT, environments=known)[0].environment == ()


def test_an_environment_that_is_not_known_explains_nothing():
    (found,) = find_changes(series(), make_points(levels(100, 110)), at=AT, environments={})
    assert found.environment == ()


def test_differences_name_where_they_stand():
    one = Environment(
        python="3.11", system=None, packages={"a": "1"}, drivers={"cuda": "12"}, settings={"threads": "1"}
    )
    two = Environment(
        python="3.12", system=None, packages={"b": "1"}, drivers={"cuda": "13"}, settings={"threads": "1"}
    )
    assert [(d.name, d.before, d.after) for d in differences(one, two)] == [
        ("python", "3.11", "3.12"), ("a", "1", None), ("b", None, "1"), ("driver:cuda", "12", "13"),
    ]  # fmt: skip


# Suspects


def test_the_first_point_far_off_is_a_suspect_without_an_interval():
    points = make_points([*levels(100), 120])
    found = find_suspect(series(), points, [], at=AT)
    assert found.suspect
    assert (found.last_good, found.first_changed) == (points[-2], points[-1])
    assert found.effect.value == pytest.approx(1.2, rel=0.02)
    assert (found.effect.low, found.effect.note) == (None, "one point")
    assert found.before.n == REACH
    assert find_changes(series(), points, at=AT) == []


def test_the_level_since_the_last_known_change_is_the_measure():
    points = make_points([*levels(100, 150, n=30), 150])
    known = find_changes(series(), points, at=AT)
    assert find_suspect(series(), points, known, at=AT) is None
    assert (
        find_suspect(series(), make_points([*levels(100, 150, n=30), 100]), known, at=AT).direction is Direction.BETTER
    )


@pytest.mark.parametrize(("metric", "values"), [(SIZE, [*[1.0] * 40, 9.0]), (TIME, [1.0]), (TIME, [])])
def test_exact_metrics_and_short_histories_have_no_suspects(metric, values):
    assert find_suspect(series(metric), make_points(values), [], at=AT) is None


def test_a_suspect_that_goes_on_is_the_same_change():
    points = make_points([*levels(100), *levels(120, seed=2)])
    suspect = find_suspect(series(), points[:41], [], at=AT)
    (found,) = find_changes(series(), points, at=AT)
    assert suspect.key == found.key


# New versions


def test_a_new_version_at_another_level_is_a_change_of_method():
    points = make_points(levels(100, 120))
    found = find_method_change(points[:40], series(), points[40:], at=AT)
    assert (found.cause, found.detector) == (Cause.METHOD, "version")
    assert (found.last_good, found.first_changed) == (points[39], points[40])


@pytest.mark.parametrize("after", [levels(100, n=80)[40:], levels(120, n=80)[40:44]])
def test_a_new_version_at_the_same_level_or_with_four_points_is_none(after):
    points = make_points([*levels(100), *after])
    assert find_method_change(points[:40], series(), points[40:], at=AT) is None
