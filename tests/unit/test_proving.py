"""A suspicion becomes a question, a verdict becomes an answer."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from bench.compare import ArmComparison
from bench.history import Answer, Difference
from bench.metrics import PEAK_MEMORY, TIME
from bench.model import Comparison, Estimate, Verdict
from bench.proving import answer, question
from bench.testing import make_change

NOW = datetime(2027, 1, 3, tzinfo=UTC)
ONE = Estimate(value=1.0)


def said(verdict, *metrics, reason=""):
    comparisons = tuple(
        Comparison(metric=m, base=ONE, head=ONE, change=ONE, relative=True, paired=True, verdict=v) for m, v in metrics
    )
    return ArmComparison(name="demo.net", verdict=verdict, comparisons=comparisons, reason=reason)


def moved(*differences):
    return tuple(Difference(name=n, before=b, after=a) for n, b, a in differences)


def test_two_commits_are_compared_as_they_are():
    found = question(make_change(good="1" * 40, bad="2" * 40), NOW)
    assert (found.base, found.head, found.selector) == ("1" * 40, "2" * 40, "demo.net[engine=e1]")


def test_at_one_commit_the_packages_that_differ_are_compared():
    change = replace(
        make_change(good="1" * 40, bad="1" * 40),
        environment=moved(
            ("numpy", "2.0", "2.1"), ("python", "3.11", "3.12"), ("new", None, "1"), ("orjson", "3", "4")
        ),
    )
    found = question(change, NOW)
    assert (found.base, found.head) == (f"{'1' * 40} numpy==2.0 orjson==3", f"{'1' * 40} numpy==2.1 orjson==4")


@pytest.mark.parametrize("differences", [(), moved(("setting:governor", "a", "b")), moved(("new", None, "1"))])
def test_what_cannot_be_brought_back_is_no_question(differences):
    assert question(replace(make_change(good="1" * 40, bad="1" * 40), environment=differences), NOW) is None
    assert question(replace(make_change(), environment=differences), NOW) is None


def test_the_same_question_has_the_same_key():
    change = make_change(good="1" * 40, bad="2" * 40)
    assert question(change, NOW).key == question(change, datetime(2028, 1, 1, tzinfo=UTC)).key


@pytest.mark.parametrize(
    ("effect", "verdict", "expected"),
    [
        (1.2, Verdict.REGRESSED, Answer.CONFIRMED),
        (1.2, Verdict.UNCHANGED, Answer.REFUTED),
        (1.2, Verdict.IMPROVED, Answer.REFUTED),
        (1.2, Verdict.INCONCLUSIVE, Answer.INCONCLUSIVE),
        (0.8, Verdict.IMPROVED, Answer.CONFIRMED),
        (0.8, Verdict.REGRESSED, Answer.REFUTED),
        (1.2, Verdict.FAILED, Answer.FAILED),
    ],
)
def test_the_verdict_on_time_answers_for_time(effect, verdict, expected):
    assert answer(make_change(effect), said(verdict, (TIME, Verdict.INCONCLUSIVE)))[0] is expected


def test_another_metric_is_answered_by_its_own_verdict():
    change = make_change(1.2, metric=PEAK_MEMORY)
    trade = said(Verdict.TRADE, (TIME, Verdict.IMPROVED), (PEAK_MEMORY, Verdict.REGRESSED))
    assert answer(change, trade)[0] is Answer.CONFIRMED
    assert answer(change, said(Verdict.IMPROVED, (TIME, Verdict.IMPROVED)))[0] is Answer.FAILED


def test_a_trade_answers_for_time_by_the_verdict_on_time():
    trade = said(Verdict.TRADE, (TIME, Verdict.REGRESSED), (PEAK_MEMORY, Verdict.IMPROVED))
    assert answer(make_change(1.2), trade)[0] is Answer.CONFIRMED


def test_the_same_bytes_refute_and_a_missing_benchmark_fails():
    assert answer(make_change(1.2), said(Verdict.UNCHANGED, reason="same bytes"))[0] is Answer.REFUTED
    assert answer(make_change(1.2), None)[0] is Answer.FAILED
