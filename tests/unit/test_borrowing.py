"""Expensive launches decide on few of them, with the spread of earlier runs; nothing else does."""

from dataclasses import replace

import pytest

from bench.borrowing import EXPENSIVE_S, NEWEST, borrow, borrowing, launch_s
from bench.compare import log_ratios
from bench.decision import describe
from bench.gate import enough, judge, verdicts
from bench.model import RoundConditions, Verdict
from bench.stats.moderated import MODERATED_CONFIRMATION, MODERATED_LOOKS, fit_prior, launch_variance
from bench.testing import as_confirmation, make_pair, make_run
from bench.wire import decode_part, encode_part, payload_sha

SLOW_S = EXPENSIVE_S / 2 + 0.1
"""Set-up of one of two arms."""


def past(count=8, *, launches=9, set_up_s=SLOW_S, noise=0.01, **facts):
    return [make_pair(launches=launches, set_up_s=set_up_s, noise=noise, seed=100 + k, **facts) for k in range(count)]


def with_policy(result, experiment):
    """Those launches under the policy that was planned."""
    return replace(result, experiment=replace(result.experiment, policy=experiment.policy))


PLAN = make_pair().experiment


def test_a_history_of_expensive_launches_lends_the_spread_of_wall_and_cpu_time():
    earlier = past()
    policy = borrowing(PLAN, earlier).policy
    assert [(b.metric, b.runs) for b in policy.borrowed] == [("time", 8), ("cpu_time", 8)]
    prior = fit_prior(*zip(*(launch_variance(log_ratios(r, "time")) for r in earlier), strict=True))
    assert (policy.borrowed[0].variance, policy.borrowed[0].freedom) == (prior.variance, prior.freedom)
    assert policy.launches == MODERATED_LOOKS[-1]
    assert "with the variance of 8 earlier runs" in describe(policy)
    assert borrowing(replace(PLAN, policy=replace(PLAN.policy, launches=9)), earlier).policy.launches == 9


@pytest.mark.parametrize(
    "earlier",
    [
        [],
        past(4),
        past(set_up_s=EXPENSIVE_S / 2 - 0.1),
        past(launches=3),
        past(set_up_s=None),
        [past(1)[0]] * 8,
        [replace(r, results=(r.results[0], make_pair(failure="no").results[1])) for r in past()],
    ],
    ids=["none", "too few", "cheap", "too short", "unknown cost", "one run stored eight times", "failed"],
)  # fmt: skip
def test_what_is_cheap_or_has_no_history_is_decided_by_looks(earlier):
    assert borrowing(PLAN, earlier) == PLAN


def test_a_gate_that_may_be_continued_borrows_nothing():
    plan = replace(PLAN, policy=replace(PLAN.policy, always_valid=True))
    assert borrowing(plan, past()) == plan


def test_a_launch_costs_its_set_ups_and_what_its_rounds_took():
    (result,) = past(1, set_up_s=2.0)
    launches = tuple(
        replace(launch, rounds=tuple(RoundConditions(arm=a, round=0, wall_ns=250_000_000) for a in (0, 1)))
        for launch in result.launches
    )
    assert launch_s(replace(result, launches=launches)) == pytest.approx(4.5)


def test_the_store_is_asked_for_the_variant_and_version_on_this_machine_newest_first():
    class Past:
        def gates(self, *asked, limit):
            self.asked = (*asked, limit)
            return past()

    store = Past()
    (planned,) = borrow([PLAN], store, "this machine")
    assert store.asked == ("demo.work", "v1", "this machine", NEWEST)
    assert planned.policy.borrowed


def test_five_launches_decide_with_the_spread_of_earlier_runs_where_looks_have_none_yet():
    plan = borrowing(PLAN, past())
    slower = with_policy(make_pair(1.1, launches=5, noise=0.01, seed=1), plan)
    assert enough(slower)
    assert judge(slower, final=False).verdict is Verdict.REGRESSED
    assert not enough(make_pair(1.1, launches=5, noise=0.01, seed=1))
    assert not enough(with_policy(make_pair(1.1, launches=6, noise=0.01, seed=1), plan))  # no look


def test_a_confirmation_with_borrowed_spread_needs_half_the_launches_and_is_said_again_from_what_is_stored():
    plan = borrowing(PLAN, past())
    first = with_policy(make_pair(1.1, launches=5, noise=0.01, seed=1), plan)
    for effect, kept in ((1.1, True), (1.0, False)):
        made = with_policy(make_pair(effect, launches=MODERATED_CONFIRMATION, noise=0.01, seed=2), plan)
        fresh = as_confirmation(made, MODERATED_CONFIRMATION)
        (answer,) = verdicts([first, fresh])
        assert answer.confirmed is kept
        assert "with the variance of 8 earlier runs" in answer.rule
        assert verdicts([decode_part(encode_part(r), "x") for r in (first, fresh)]) == [answer]


def test_a_run_from_before_there_was_anything_to_borrow_stays_the_same_run():
    run = replace(make_run(), experiments=(make_pair(),))
    lent = replace(run, experiments=(with_policy(make_pair(), borrowing(PLAN, past())),))
    assert payload_sha(run) != payload_sha(lent)
    assert '"borrowed":[]' in encode_part(run.experiments[0]).decode()
    old = encode_part(run.experiments[0]).decode()
    for name in ('"always_valid":false,', '"borrowed":[],', ',"family":0'):
        assert name in old
        old = old.replace(name, "")
    assert decode_part(old.encode(), "x") == run.experiments[0]
