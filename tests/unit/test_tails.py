"""Tails of single calls: from which calls, when there are enough, and what is said where there are not."""

import json
from dataclasses import replace

import numpy as np
import pytest

from bench.compare import compare_results
from bench.gate import judge
from bench.metrics import SINGLE_CALL, TAILS, TIME, Summary
from bench.model import ArmResult, Measurement, Verdict
from bench.reports.json import JsonReport
from bench.reports.text import TextReport
from bench.tails import single_calls, tail_changes, tail_estimates, why_none
from bench.testing import make_pair, make_run
from bench.tradeoffs import tradeoffs

BATCHES = Measurement(metric=TIME, launches=tuple([(1_000_000,) * 40] * 7), loops=1000)


def calls(seed, *, launches=7, each=200, scale=1.0, slow=0.02):
    """Single calls of 100 µs, some of them slow."""
    rng = np.random.default_rng(seed)
    rows = 100_000 * scale * rng.lognormal(0, 0.02, size=(launches, each))
    rows[rng.random(rows.shape) < slow] *= 5
    return Measurement(metric=SINGLE_CALL, launches=tuple(tuple(map(int, row)) for row in rows))


def arm(*measurements, absent=None):
    return ArmResult(arm=make_pair().experiment.arms[0], measurements=measurements, absent=absent or {})


def test_a_quantile_of_batches_is_never_called_one_of_calls():
    result = arm(BATCHES)
    assert single_calls(result) is None
    assert tail_estimates(result) == {}
    assert why_none(result) == "no single calls were timed: a sample is 1000 calls together"


def test_samples_of_one_call_are_single_calls_and_an_own_series_comes_first():
    alone = replace(BATCHES, loops=1)
    own = calls(1)
    assert single_calls(arm(alone)) is alone
    assert single_calls(arm(alone, own)) is own
    stated = replace(alone, metric=replace(TIME, summary=Summary.LAUNCH))
    assert single_calls(arm(stated)) is None, "one number a launch is no call"


def test_the_tail_is_that_of_all_calls_with_its_interval():
    own = calls(2)
    found = tail_estimates(arm(BATCHES, own))
    assert list(found) == ["p50", "p90", "p95", "p99"]
    pooled = np.sort(np.concatenate(own.launches))
    for metric, estimate in found.values():
        assert estimate.value == pooled[int(np.ceil(TAILS[metric] * 1400)) - 1]
        assert estimate.low <= estimate.value <= estimate.high
        assert (estimate.n, estimate.note) == (1400, "")
    assert found["p99"][1].value > 4 * found["p50"][1].value


@pytest.mark.parametrize(
    ("measurement", "note"),
    [
        (calls(3, each=40), "not enough: 280 of 368 calls"),
        (calls(3, launches=1, each=400), "not enough: calls of one launch are alike, and 2 are needed"),
    ],
)
def test_too_few_calls_say_how_many_there_are(measurement, note):
    estimate = tail_estimates(arm(measurement))["p99"][1]
    assert (estimate.low, estimate.high, estimate.note) == (None, None, note)


def test_alike_calls_say_for_how_many_they_count():
    rows = tuple((value,) * 200 for value in (100, 110, 120, 130, 140, 150, 160))
    note = tail_estimates(arm(Measurement(metric=SINGLE_CALL, launches=rows)))["p90"][1].note
    assert note.startswith("not enough: 1400 calls of 7 launches count as ")
    assert note.endswith(" of 36")


def test_only_the_tail_moved_and_only_the_tail_is_decided():
    """One call in fifty is five times as slow on both sides, and one in ten on the other."""
    base, head = arm(BATCHES, calls(4, launches=18)), arm(BATCHES, calls(5, launches=18, slow=0.1))
    found = {c.metric.name: c for c in compare_results(base, head, paired=True)}
    assert found["time"].verdict is Verdict.UNCHANGED
    assert found["p50"].verdict is Verdict.UNCHANGED
    assert found["p95"].verdict is Verdict.REGRESSED
    assert found["p95"].change.low > 2
    same = {c.metric.name: c for c in compare_results(base, arm(BATCHES, calls(6, launches=18)), paired=True)}
    assert same["p99"].verdict in (Verdict.UNCHANGED, Verdict.INCONCLUSIVE)


def test_a_tail_is_never_decided_on_launches_that_cannot_see_it():
    base, head = arm(calls(7, launches=50, each=99)), arm(calls(8, launches=50, each=99, scale=3.0))
    found = {c.metric.name: c for c in compare_results(base, head, paired=True)}
    assert found["p95"].verdict is Verdict.REGRESSED
    assert (found["p99"].verdict, found["p99"].change.low) == (Verdict.INCONCLUSIVE, None)
    assert found["p99"].reason == "not enough: 99 of 100 single calls a launch"


def test_tails_of_two_stored_runs_are_never_decided():
    found = compare_results(arm(calls(9)), arm(calls(10, scale=3.0)), paired=False)
    assert {c.verdict for c in found} == {Verdict.INCONCLUSIVE}


def test_one_side_without_single_calls_has_no_change():
    assert tail_changes(arm(BATCHES), arm(calls(11)), paired=True) == []


def test_no_verdict_of_the_gate_rests_on_a_tail_that_nobody_asked_for():
    pair = make_pair(1.0)
    slow = tuple(
        replace(r, measurements=(*r.measurements, calls(i, launches=18, slow=0.02 + 0.1 * i)))
        for i, r in enumerate(pair.results)
    )
    answer = judge(replace(pair, results=slow))
    assert answer.verdict is Verdict.UNCHANGED
    p95 = next(c for c in answer.comparisons if c.metric.name == "p95")
    assert (p95.verdict, p95.reason) == (Verdict.INCONCLUSIVE, "shown, not judged")
    assert p95.change.low > 2


def run_with(**changes):
    run = make_run(launches=7)
    (experiment,) = run.experiments
    results = tuple(
        replace(r, measurements=(replace(r.measurements[0], loops=changes.get("loops", 1)), *r.measurements[1:]),
                absent=changes.get("absent", {}))
        for r in experiment.results
    )  # fmt: skip
    return replace(run, experiments=(replace(experiment, results=results),))


def test_reports_give_the_tail_or_say_why_not():
    run = run_with()
    first = tradeoffs(run.experiments[0])[0]
    assert first.estimates["p95"].value > first.estimates["p50"].value
    shown = TextReport(tail=True).run(run)
    assert "p95" in shown
    assert "not enough: 280 of 368 calls" in shown
    assert "p95" not in TextReport().run(run)
    metrics = json.loads(JsonReport().run(run))["experiments"][0]["variants"][0]["metrics"]
    assert metrics["p90"]["low"] <= metrics["p90"]["value"] <= metrics["p90"]["high"]
    assert metrics["p99"]["note"] == "not enough: 280 of 368 calls"


def test_what_is_absent_is_null_with_its_reason_and_what_was_asked_for_is_said():
    why = {
        "single_call": "a call of 60 ns is too short to be timed alone, which costs 80 ns",
        "energy": "this machine shows no energy counter of its processor (RAPL)",
        "instructions": "died in set_up under valgrind: was killed by SIGILL",
    }
    run = run_with(loops=900, absent=why)
    metrics = json.loads(JsonReport().run(run))["experiments"][0]["variants"][0]["metrics"]
    for name, reason in (("p99", why["single_call"]), ("energy", why["energy"]), ("instructions", why["instructions"])):
        assert metrics[name] == {"value": None, "low": None, "high": None, "n": 0, "note": reason}
    text = TextReport(tail=True).run(run)
    assert text.count("no instructions: died in set_up under valgrind: was killed by SIGILL") == 1
    assert "no energy" not in text, "nobody asked for it"
    assert "too short to be timed alone" in " ".join(text.split())
