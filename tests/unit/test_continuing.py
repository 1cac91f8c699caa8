"""A comparison that goes on: what may be continued, and that old and new launches count as one."""

from dataclasses import replace

import pytest

from bench import paired
from bench.continuing import Begun, begun, frozen, joined
from bench.decision import describe
from bench.errors import IncomparableError, UsageError
from bench.gate import enough, verdicts
from bench.metrics import SIZE
from bench.model import Failure, FailureKind, Measurement, Target, Verdict
from bench.paired import UNTIL_DECIDED, measure_pairs
from bench.rereading import comparison_of
from bench.testing import SilentProgress, as_confirmation, make_pair, make_run


def open_ended(result, **changes):
    """The launches of a gate that is judged after each."""
    policy = replace(UNTIL_DECIDED, **changes)
    return replace(result, experiment=replace(result.experiment, policy=policy))


def cut(result, start, end):
    """Some launches of it, counted from 0 as a run of their own would."""
    results = tuple(
        replace(r, measurements=tuple(replace(m, launches=m.launches[start:end]) for m in r.measurements))
        for r in result.results
    )
    launches = tuple(replace(launch, index=launch.index - start) for launch in result.launches[start:end])
    return replace(result, results=results, launches=launches)


def run_of(*results, **facts):
    return replace(make_run(), experiments=results, **facts)


HERE = make_run().machine.fingerprint


def test_launches_made_in_two_goes_are_as_those_made_in_one():
    result = open_ended(make_pair(1.02, launches=20, noise=0.02, set_up_s=1.0))
    whole = joined(cut(result, 0, 7), cut(result, 7, 20))
    assert whole == result
    assert verdicts([whole]) == verdicts([result])


def test_a_run_that_was_interrupted_again_before_its_first_launch_loses_nothing():
    result = open_ended(make_pair(launches=9))
    nothing = Failure(kind=FailureKind.UNMEASURED, phase="launch", message="no launch was made")
    bare = replace(
        result, launches=(), results=tuple(replace(r, measurements=(), failure=nothing) for r in result.results)
    )
    assert joined(result, bare) == result
    died = replace(nothing, kind=FailureKind.DIED)
    lost = replace(bare, results=(bare.results[0], replace(bare.results[1], failure=died)))
    assert joined(result, lost).results[1].failure == died


def test_what_is_taken_once_is_not_taken_twice():
    result = open_ended(make_pair(launches=4))
    sized = replace(
        result,
        results=tuple(
            replace(r, measurements=(*r.measurements, Measurement(metric=SIZE, launches=((7,),))))
            for r in result.results
        ),
    )
    assert joined(sized, sized).results[0].measurement("size").launches == ((7,),)
    assert len(joined(sized, sized).results[0].measurement("time").launches) == 8


def test_new_samples_have_the_calls_of_the_old_ones():
    result = open_ended(make_pair())
    seven = replace(result.results[0].measurements[0], loops=7)
    old = replace(result, results=(replace(result.results[0], measurements=(seven,)), result.results[1]))
    assert frozen(result.experiment, old).policy.loops == 7
    assert frozen(result.experiment, None) == result.experiment


def test_a_comparison_with_the_same_targets_may_go_on_whatever_its_budget():
    first = open_ended(make_pair(1.1), budget_s=5.0)
    again = as_confirmation(open_ended(make_pair(1.1, seed=9)))
    found = begun(run_of(first, again), [open_ended(make_pair(seed=3)).experiment], HERE)
    assert (found.first, found.again) == ({"demo.work": first}, {"demo.work": again})
    half = as_confirmation(open_ended(make_pair(1.1, launches=17)))
    assert begun(run_of(first, half), [first.experiment], HERE).again == {}


PLAN = open_ended(make_pair()).experiment


@pytest.mark.parametrize(
    ("stored", "error", "says"),
    [
        (make_run(), UsageError, "is no comparison of two targets"),
        (run_of(make_pair()), UsageError, "Compare again with --until-decided"),
        (run_of(open_ended(make_pair(head=Target(label="other")))), UsageError, "had other as head of demo.work"),
        (run_of(open_ended(make_pair(name="demo.else"))), UsageError, "launched none of the variants chosen"),
        (run_of(open_ended(make_pair(launches=0))), UsageError, "launched none of the variants chosen"),
        (run_of(open_ended(make_pair(), alpha=0.05)), UsageError, "the policy of demo.work"),
        (
            run_of(open_ended(make_pair()), machine=replace(make_run().machine, cpu="Other")),
            IncomparableError,
            "measured on another machine (Other",
        ),
        (
            run_of(
                replace(
                    open_ended(make_pair()),
                    experiment=replace(PLAN, benchmark=replace(PLAN.benchmark, version="v0")),
                )
            ),
            IncomparableError,
            "the benchmark demo.work changed",
        ),
    ],
)
def test_what_does_not_fit_is_one_sentence(stored, error, says):
    with pytest.raises(error) as raised:
        begun(stored, [PLAN], HERE)
    assert says in str(raised.value)
    assert stored.key[:8] in str(raised.value)


def test_it_is_judged_after_every_launch_and_says_so():
    assert [enough(open_ended(make_pair(1.5, launches=n))) for n in (5, 9, 11)] == [False, True, True]
    assert not enough(make_pair(1.5, launches=11))
    assert "judged after every launch, error rate 1 % over all of them (always valid)" in describe(UNTIL_DECIDED)


def test_what_is_open_goes_on_and_what_was_decided_and_confirmed_is_kept(monkeypatch):
    """Only the open variant is measured, with its old launches in every look; the stored run says it again."""
    noisy = open_ended(make_pair(1.1, name="s.open", launches=30, noise=0.02, seed=2))
    decided = open_ended(make_pair(1.3, name="s.slow", launches=9))
    confirmation = as_confirmation(open_ended(make_pair(1.3, name="s.slow", seed=4)))
    asked, kept = [], {}

    def measured(experiments, *, device, path, progress, finished, enough=None):
        asked.append([e.name for e in experiments])
        if len(asked) > 1:
            return tuple(as_confirmation(open_ended(make_pair(1.1, name="s.open", seed=6))) for _ in experiments), False
        for n in range(1, 27):
            fresh = cut(noisy, 4, 4 + n)
            finished(0, fresh)
            if enough(fresh):
                break
        return (fresh,), False

    monkeypatch.setattr(paired, "run_experiments", measured)
    found = measure_pairs(
        [decided.experiment, noisy.experiment], device="d", path=(), progress=SilentProgress(), keep=kept.__setitem__,
        begun=Begun(first={"s.open": cut(noisy, 0, 4), "s.slow": decided}, again={"s.slow": confirmation}),
    )  # fmt: skip
    slow, once_open = found.comparisons
    assert (slow.verdict, slow.confirmed) == (Verdict.REGRESSED, True)
    assert once_open.verdict is Verdict.REGRESSED
    assert asked[0] == ["s.open"]
    launches = once_open.launches
    assert 4 < launches < 30
    assert kept[1] == found.results[1] == cut(noisy, 0, launches)
    assert kept[0] == decided
    assert kept[2] == confirmation
    assert asked[1:] == [["s.open"]]  # and of what is suspected, only what was not confirmed yet
    assert comparison_of(run_of(*found.results)).arms == found.comparisons
