"""Estimates, comparisons, verdicts and exit codes."""

import math
from dataclasses import replace

import pytest

from bench.compare import TOO_FEW, compare_measurements, compare_runs, decide, environment_differences, estimate
from bench.errors import Exit
from bench.metrics import SIZE, TIME, Better, Kind, Metric, Summary
from bench.model import Failure, FailureKind, Measurement, Verdict
from bench.stats.location import Interval
from bench.testing import make_run, with_environment
from bench.tradeoffs import speedup, tradeoffs

ACCURACY = Metric(name="acc", unit="1", better=Better.HIGHER, kind=Kind.ACCURACY, summary=Summary.ITEMS)


def times(*launches, loops=1):
    return Measurement(metric=TIME, launches=tuple(tuple(row) for row in launches), loops=loops)


def test_a_time_is_per_call_and_the_lower_quartile_of_each_launch():
    found = estimate(times(*[[1000, 1000, 1000, 9000]] * 6, loops=10))
    assert found.value == pytest.approx(100)
    assert (found.low, found.high) == (pytest.approx(100), pytest.approx(100))


def test_one_launch_has_no_interval_and_says_so():
    found = estimate(times([5, 5, 5]))
    assert (found.low, found.high, found.note) == (None, None, TOO_FEW)


def test_pairing_removes_drift_that_both_sides_share():
    """Launches drift by 40 %, the ratio stays 1.10: paired it is found, unpaired it is not."""
    drift = [1.0, 1.4, 1.1, 1.3, 1.2, 1.05, 1.35]
    base = times(*[[1000 * d] * 4 for d in drift])
    head = times(*[[1100 * d] * 4 for d in drift])
    paired = compare_measurements(base, head, paired=True)
    assert paired.verdict is Verdict.REGRESSED
    assert paired.change.value == pytest.approx(1.1)
    unpaired = compare_measurements(base, head, paired=False)
    assert unpaired.verdict is Verdict.INCONCLUSIVE
    assert unpaired.change.low < 1 < unpaired.change.high


@pytest.mark.parametrize(
    ("low", "value", "high", "verdict"),
    [
        (0.03, 0.04, 0.05, Verdict.REGRESSED),
        (-0.05, -0.04, -0.03, Verdict.IMPROVED),
        (-0.01, 0.0, 0.01, Verdict.UNCHANGED),
        (0.001, 0.005, 0.009, Verdict.UNCHANGED),  # certain, but under the floor
        (0.001, 0.008, 0.03, Verdict.INCONCLUSIVE),
        (-0.05, 0.0, 0.05, Verdict.INCONCLUSIVE),
        (math.nan, 0.5, math.nan, Verdict.INCONCLUSIVE),
    ],
)
def test_verdicts_need_certainty_and_size(low, value, high, verdict):
    assert decide(Interval(value, low, high, 7), Better.LOWER)[0] is verdict


def test_higher_is_better_turns_the_verdict_round():
    assert decide(Interval(0.04, 0.03, 0.05, 7), Better.HIGHER)[0] is Verdict.IMPROVED


def test_any_difference_of_an_exact_metric_is_a_change():
    def size(n):
        return Measurement(metric=SIZE, launches=((n,),))

    assert compare_measurements(size(100), size(101), paired=False).verdict is Verdict.REGRESSED
    assert compare_measurements(size(100), size(99), paired=False).verdict is Verdict.IMPROVED
    assert compare_measurements(size(100), size(100), paired=False).verdict is Verdict.UNCHANGED


def test_items_are_paired_even_between_stored_runs():
    def items(*right):
        return Measurement(metric=ACCURACY, launches=(right,))

    base = items(*[1] * 400)
    worse = items(*[0] * 20, *[1] * 380)
    found = compare_measurements(base, worse, paired=False)
    assert found.verdict is Verdict.REGRESSED
    assert found.reason == "0 items gained, 20 lost of 400"
    assert compare_measurements(base, base, paired=False).verdict is Verdict.UNCHANGED
    assert compare_measurements(base, items(1, 1), paired=False).verdict is Verdict.INCOMPARABLE


def test_a_zero_has_no_ratio():
    zero = Measurement(metric=replace(TIME, summary=Summary.LAUNCH), launches=((0,),) * 7)
    assert compare_measurements(zero, zero, paired=True).verdict is Verdict.INCONCLUSIVE


def test_tradeoffs_give_speedup_over_the_baseline_and_derived_throughput():
    summaries = tradeoffs(make_run(speedups=(1.0, 2.0)).experiments[0])
    base, fast = summaries
    assert base.comparisons == {}
    gain = speedup(fast.comparisons["time"])
    assert gain.value == pytest.approx(2.0, rel=0.01)
    assert gain.low < gain.value < gain.high
    assert fast.estimates["throughput"].value == pytest.approx(8e9 / fast.estimates["time"].value)
    assert fast.estimates["throughput"].low == pytest.approx(8e9 / fast.estimates["time"].high)


def test_two_runs_of_the_same_code_are_never_regressed():
    comparison = compare_runs(make_run(seed=1), replace(make_run(seed=1), key="f" * 32))
    assert comparison.count(Verdict.REGRESSED) == 0
    assert all(c.verdict is Verdict.INCONCLUSIVE for a in comparison.arms for c in a.comparisons if c.metric == TIME)
    assert comparison.exit_code() is Exit.OK
    assert comparison.exit_code(strict=True) is Exit.INCONCLUSIVE
    assert "cannot be paired" in comparison.notes[0]


def test_another_machine_is_incomparable():
    base = make_run()
    head = replace(base, key="f" * 32, machine=replace(base.machine, cpu="Other CPU"))
    comparison = compare_runs(base, head)
    assert comparison.exit_code() is Exit.INCOMPARABLE
    assert comparison.count(Verdict.INCOMPARABLE) == 3


def test_a_changed_benchmark_is_incomparable():
    base = make_run()
    experiment = base.experiments[0]
    changed = replace(
        experiment,
        experiment=replace(experiment.experiment, benchmark=replace(experiment.experiment.benchmark, version="v2")),
    )
    comparison = compare_runs(base, replace(base, key="f" * 32, experiments=(changed,)))
    assert {arm.reason for arm in comparison.arms} == {"the benchmark itself changed"}


def test_a_failure_on_one_side_is_failed_and_skipped_on_both_is_not():
    wrong = Failure(kind=FailureKind.WRONG, phase="check", message="off")
    skipped = Failure(kind=FailureKind.SKIPPED, phase="set_up", message="no torch")
    good = make_run()
    assert compare_runs(good, make_run(failure=wrong)).exit_code() is Exit.FAILED
    both = compare_runs(make_run(failure=skipped), make_run(failure=skipped))
    assert both.exit_code() is Exit.OK
    assert "no torch" in both.arms[-1].reason


def test_a_variant_that_is_only_in_one_run_is_failed():
    comparison = compare_runs(make_run(speedups=(1, 2)), make_run(speedups=(1, 2, 3)))
    assert [a.verdict for a in comparison.arms][-1] is Verdict.FAILED
    assert comparison.arms[-1].reason == "only in head"


def test_a_variant_that_is_smaller_and_less_right_is_a_trade():
    base, head = make_run(seed=1), make_run(seed=1)
    experiment = head.experiments[0]
    result = experiment.results[0]
    changed = tuple(
        replace(m, launches=((m.launches[0][0] // 2,),)) if m.metric.name == "size"
        else replace(m, launches=((0,) * 40 + m.launches[0][40:],)) if m.metric.name == "agreement"
        else m
        for m in result.measurements
    )  # fmt: skip
    results = (replace(result, measurements=changed), *experiment.results[1:])
    comparison = compare_runs(base, replace(head, experiments=(replace(experiment, results=results),)))
    assert comparison.arms[0].verdict is Verdict.TRADE
    assert comparison.exit_code() is Exit.OK
    assert comparison.exit_code(trades_fail=True) is Exit.TRADE


def test_environment_differences_name_old_and_new():
    base = make_run()
    assert environment_differences(base, with_environment(base, numpy="2.5.0", torch="2.13")) == [
        "numpy 2.4.0 → 2.5.0",
        "torch none → 2.13",
    ]
