"""Which change points belong together, and what moved them."""

from dataclasses import replace
from datetime import timedelta

import pytest

from bench.causes import APART, LONGEST, classify, commit_order, group, mark_suspicious
from bench.history import Answer, Cause, Difference, Direction
from bench.metrics import SIZE, THROUGHPUT, TIME, Better, Kind, Metric, Summary
from bench.model import Estimate
from bench.testing.history import START, make_change

ACCURACY = Metric(name="top1", unit="1", better=Better.HIGHER, kind=Kind.ACCURACY, summary=Summary.ITEMS)
TOKENS = Metric(name="tokens", unit="tokens", better=Better.HIGHER, kind=Kind.COUNT, summary=Summary.EXACT)
INSTRUCTIONS = replace(TOKENS, name="instructions", better=Better.LOWER)

ORDER = {f"c{i}": i for i in range(100)}
NUMPY = Difference(name="numpy", before="2.4", after="2.5")
KERNEL = Difference(name="system", before="Linux 6.1", after="Linux 6.8")


def at(place, name="demo.net", *, effect=1.1, suite="demo", machine="f" * 16, metric=TIME, **more):
    """A change whose first changed commit is the one at that place."""
    change = make_change(effect, variant=name, good=f"c{place - 1}", bad=f"c{place}", metric=metric)
    return replace(
        change, key=f"{name} {metric.name} {place} {machine}", **more,
        series=replace(change.series, suite=suite, benchmark=name, machine_fingerprint=machine),
    )  # fmt: skip


def only(*changes):
    (found,) = group(changes, ORDER)
    return found


# Groups


def test_neighbours_on_one_machine_are_one_group():
    found = group([at(10), at(10 + APART, "demo.b"), at(10 + 2 * APART + 1, "demo.c"), at(10, machine="other")], ORDER)
    assert [(g.first, g.last, len(g.changes)) for g in found] == [(10, 13, 2), (10, 10, 1), (17, 17, 1)]


def test_a_chain_of_neighbours_is_cut():
    found = group([at(i, f"demo.n{i}") for i in range(1, 60, 2)], ORDER)
    assert max(g.last - g.first for g in found) <= LONGEST
    assert sum(len(g.changes) for g in found) == 30


def test_the_order_of_the_changes_does_not_matter():
    changes = [at(i, f"demo.n{i}") for i in (5, 9, 30, 31, 7)]
    assert group(changes, ORDER) == group(changes[::-1], ORDER)


def test_a_change_at_an_unknown_commit_is_in_no_group():
    assert group([at(10)], {}) == []


def test_commits_are_ordered_by_their_earliest_point():
    points = [make_change(good=f"c{i}", bad=None).last_good for i in range(3)]
    late = [replace(p, at=START + timedelta(days=9 - i)) for i, p in enumerate(points)]
    loose = replace(points[0], commit=None, run_key="r" * 32, at=START)
    assert commit_order([late[:2], [late[2], loose, late[1]]]) == {"r" * 32: 0, "c2": 1, "c1": 2, "c0": 3}


# Causes


def test_what_nothing_else_explains_is_the_code():
    assert classify(only(at(10), at(11, "demo.b")), benchmarks=20).cause is Cause.CODE


def test_the_canary_tells_of_the_machine():
    moved = only(at(10), at(11, "canary.reference", suite="canary"))
    assert classify(moved, benchmarks=20).cause is Cause.HARDWARE


def test_a_canary_that_got_faster_slows_nothing_down():
    other = only(at(10), at(11, "canary.reference", suite="canary", effect=0.8))
    assert classify(other, benchmarks=20).cause is Cause.CODE
    assert classify(only(at(11, "canary.reference", suite="canary")), benchmarks=20).cause is Cause.HARDWARE


def test_many_unrelated_benchmarks_at_once_are_the_machine():
    many = [at(10, f"s{i % 2}.b{i}", suite=f"s{i % 2}") for i in range(6)]
    assert classify(only(*many), benchmarks=10).cause is Cause.HARDWARE
    assert classify(only(*many), benchmarks=13).cause is Cause.CODE, "under half of them"
    alike = [replace(c, series=replace(c.series, suite="one")) for c in many]
    assert classify(only(*alike), benchmarks=10).cause is Cause.CODE, "one suite may share its code"


def test_the_same_commit_on_both_sides_is_not_the_code():
    change = at(10)
    same = replace(change, last_good=replace(change.last_good, commit="c10"))
    assert classify(only(same), benchmarks=20).cause is Cause.HARDWARE


def test_an_environment_that_differs_for_most_is_named():
    found = classify(only(at(10, environment=(NUMPY,)), at(10, "demo.b", environment=(NUMPY, KERNEL)),
                          at(11, "demo.c", environment=())), benchmarks=20)  # fmt: skip
    assert (found.cause, found.environment) == (Cause.ENVIRONMENT, (NUMPY,))
    assert "numpy" in found.reason


@pytest.mark.parametrize(("difference", "cause"), [(NUMPY, Cause.HARDWARE), (KERNEL, Cause.ENVIRONMENT)])
def test_a_canary_that_moved_with_the_system_moved_because_of_it(difference, cause):
    moved = only(
        at(10, environment=(difference,)),
        at(10, "canary.reference", suite="canary", environment=(difference,)),
    )
    assert classify(moved, benchmarks=20).cause is cause


@pytest.mark.parametrize(
    ("answer", "environment", "cause"),
    [
        (Answer.CONFIRMED, (NUMPY,), Cause.CODE),
        (Answer.REFUTED, (NUMPY,), Cause.ENVIRONMENT),
        (Answer.REFUTED, (), Cause.NOISE),
        (Answer.INCONCLUSIVE, (), Cause.CODE),
        (Answer.FAILED, (), Cause.CODE),
    ],
)
def test_a_paired_experiment_outweighs_what_only_coincides(answer, environment, cause):
    proof = make_change(answer=answer).proof
    assert classify(only(at(10, proof=proof, environment=environment)), benchmarks=20).cause is cause


def test_a_confirmed_change_is_the_code_although_the_canary_moved():
    proof = make_change(answer=Answer.CONFIRMED).proof
    assert classify(only(at(10, proof=proof), at(10, "canary.reference", suite="canary")), 20).cause is Cause.CODE


def test_a_new_version_is_the_method():
    assert classify(only(at(10, cause=Cause.METHOD)), benchmarks=20).cause is Cause.METHOD


# Too good


@pytest.mark.parametrize("other", [ACCURACY, SIZE, TOKENS], ids=lambda m: m.name)
@pytest.mark.parametrize(("metric", "effect"), [(TIME, 0.4), (THROUGHPUT, 2.5)], ids=["time", "throughput"])
def test_twice_as_fast_with_another_answer_or_less_work_is_suspicious(metric, effect, other):
    fast = at(10, metric=metric, effect=effect, direction=Direction.BETTER)
    changes = [fast, at(12, metric=other, effect=0.9)]
    first, second = mark_suspicious(changes, ORDER)
    assert (first.direction, second) == (Direction.SUSPICIOUS, changes[1])


@pytest.mark.parametrize(
    "other",
    [
        at(12, metric=INSTRUCTIONS, effect=0.4),
        at(12, "demo.other", metric=ACCURACY, effect=0.9),
        at(12, metric=ACCURACY, effect=0.9, machine="other"),
        at(10 + APART + 1, metric=ACCURACY, effect=0.9),
    ],
    ids=["less cost", "another variant", "another machine", "later"],
)
def test_what_has_nothing_to_do_with_it_makes_nothing_suspicious(other):
    fast = at(10, effect=0.4)
    assert mark_suspicious([fast, other], ORDER) == [fast, other]


def test_a_little_faster_or_much_slower_is_not_suspicious():
    worse = at(12, metric=ACCURACY, effect=0.9)
    for effect in (0.6, 2.5):
        assert mark_suspicious([at(10, effect=effect), worse], ORDER)[0].direction is not Direction.SUSPICIOUS


def test_an_estimate_of_zero_is_no_ratio():
    none = replace(at(10, direction=Direction.BETTER), effect=Estimate(value=0.0))
    assert mark_suspicious([none, at(10, metric=SIZE)], ORDER)[0] == none
