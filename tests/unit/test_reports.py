"""Numbers and tables as people and machines read them."""

import json
from dataclasses import replace

import pytest

from bench.compare import compare_runs
from bench.metrics import SIZE, THROUGHPUT, TIME, Better, Kind, Metric, Summary
from bench.model import Conditions, Estimate, Failure, FailureKind, RunStatus
from bench.reports.format import duration, interval, quantity, ratio, times
from bench.reports.json import JsonReport
from bench.reports.progress import Estimator, LineProgress
from bench.reports.text import TextReport, circumstances, runs_table
from bench.runs import run_info
from bench.testing import make_run
from bench.tradeoffs import speedup, tradeoffs


def test_what_is_skipped_whole_is_one_line_a_benchmark_at_the_end():
    lacking = Failure(kind=FailureKind.SKIPPED, phase="set_up", message="needs the device cuda")
    run = make_run(failure=lacking)
    (part,) = run.experiments
    whole = replace(part, results=tuple(replace(r, failure=lacking, measurements=()) for r in part.results))
    text = TextReport(width=120).run(replace(run, experiments=(whole, whole, part)))
    assert text.count("needs the device cuda") == 2
    assert (
        f"– {part.experiment.benchmark.name}: {2 * len(part.results)} variants SKIPPED: needs the device cuda" in text
    )
    assert text.index("latency") < text.index("variants SKIPPED")


SHARE = Metric(name="acc", unit="1", better=Better.HIGHER, kind=Kind.ACCURACY, summary=Summary.ITEMS)
CYCLES = Metric(name="cycles", unit="cycles", better=Better.LOWER, kind=Kind.COUNT, summary=Summary.EXACT)
COSINE = replace(SHARE, name="cosine", summary=Summary.EXACT)


@pytest.mark.parametrize(
    ("value", "metric", "text"),
    [
        (0.5, TIME, "0.5 ns"),
        (61, TIME, "61.0 ns"),
        (999.9, TIME, "1.00 µs"),
        (1234567, TIME, "1.23 ms"),
        (12_345_678, TIME, "12.3 ms"),
        (123_456_789, TIME, "123 ms"),
        (90e9, TIME, "90.0 s"),
        (0, SIZE, "0 B"),
        (1023, SIZE, "1023 B"),
        (90_868_376, SIZE, "86.7 MiB"),
        (1234.5, THROUGHPUT, "1.23 k/s"),
        (62_549, CYCLES, "62,549 cycles"),
        (805_306_368, replace(CYCLES, unit="FLOP"), "805 MFLOP"),
        (0.425, SHARE, "42.5 %"),
        (0.9613, COSINE, "0.9613"),
        (4.6e-7, COSINE, "4.6e-07"),
    ],
)
def test_quantities_have_three_digits_and_a_unit(value, metric, text):
    assert quantity(value, metric) == text


def test_an_interval_is_in_the_unit_of_its_value_and_absence_has_a_reason():
    assert interval(Estimate(value=1e6, low=990e3, high=1.01e6), TIME) == "1.00 ms (0.99–1.01)"
    assert interval(Estimate(value=1e6, note="too few launches"), TIME) == "1.00 ms (too few launches)"
    assert interval(Estimate(value=10, note="exact"), SIZE) == "10.0 B"
    assert interval(Estimate(value=0.5, low=0.4, high=0.6), SHARE) == "50.0 % (40.0–60.0)"


def test_ratios_and_durations():
    assert ratio(Estimate(value=1.851, low=1.80, high=1.91)) == "1.85× (1.80–1.91)"
    assert times(123.4) == "123"
    assert [duration(s) for s in (7.6, 200, 7500)] == ["8 s", "3 min 20 s", "2 h 5 min"]


def test_the_text_shows_the_numbers_of_tradeoffs():
    run = make_run()
    text = TextReport().run(run)
    for summary in tradeoffs(run.experiments[0]):
        assert quantity(summary.estimates["time"].value, TIME) in text
        if summary.comparisons:
            assert f"{times(speedup(summary.comparisons['time']).value)}×" in text
    assert "3 measured" in text


def test_failures_are_words_with_phase_and_reason():
    failure = Failure(kind=FailureKind.WRONG, phase="check", message="cosine [0.3]", detail="last line")
    text = TextReport().run(make_run(failure=failure))
    assert "✗ e2: WRONG in check: cosine [0.3]" in text
    assert "last line" in text
    assert "2 measured, 1 wrong" in text


def test_an_interrupted_run_says_so():
    assert "INTERRUPTED" in TextReport().run(replace(make_run(), status=RunStatus.INTERRUPTED))


def test_conditions_that_are_unknown_are_left_out_and_zero_is_not_unknown():
    run = replace(make_run(), conditions=Conditions(load_before=0.0, load_after=1.5))
    (line,) = circumstances(run)
    assert line.startswith("load 0.0 → 1.5; priority ordinary; 7 launches")
    assert "steal" not in line
    assert "hypervisor" not in line


def test_json_has_the_numbers_of_tradeoffs():
    run = make_run()
    document = json.loads(JsonReport().run(run))
    variants = document["experiments"][0]["variants"]
    for summary, variant in zip(tradeoffs(run.experiments[0]), variants, strict=True):
        assert variant["metrics"]["time"]["value"] == summary.estimates["time"].value
        assert set(variant["metrics"]) == set(summary.estimates)
    assert variants[0]["speedup"] is None


def test_a_comparison_counts_what_it_does_not_show():
    text = TextReport().comparison(compare_runs(make_run(), make_run()))
    assert "3 variants: 3 inconclusive" in text
    assert "not paired" in text
    assert " size " not in text  # unchanged


def test_the_list_of_runs_names_failures():
    failure = Failure(kind=FailureKind.TIMED_OUT, phase="round", message="slow")
    assert "1 timed out" in runs_table([run_info(make_run(failure=failure))])
    assert "bench run" in runs_table([])


def test_the_estimate_is_what_each_experiment_took_so_far():
    estimator = Estimator(["a", "b"], [3, 2], [None, None])
    assert estimator.remaining_s() is None
    estimator.launch_done(0, 10.0)
    assert estimator.remaining_s() == 2 * 10 + 2 * 10  # b is unknown: the mean of all
    estimator.launch_done(1, 1.0)
    assert estimator.remaining_s() == 2 * 10 + 1 * 1
    estimator.experiment_done(0)
    assert (estimator.remaining_s(), estimator.done) == (1.0, 4)


def test_a_budget_bounds_the_estimate():
    estimator = Estimator(["a", "b"], [50, 50], [60.0, 60.0])
    estimator.launch_done(0, 10.0)
    assert estimator.remaining_s() == 50 + 60
    assert estimator.words() == "at most 1 min 50 s left"


def test_a_budget_that_is_spent_still_leaves_the_launches_up_to_the_first_look():
    estimator = Estimator(["a"], [50], [60.0])
    estimator.launch_done(0, 100.0)
    assert estimator.remaining_s() == 5 * 100


def test_a_log_gets_a_line_now_and_then():
    lines, now = [], [0.0]
    progress = LineProgress(lines.append, clock=lambda: now[0], every=10)
    progress.plan(["a"], [4], [None])
    for _ in range(4):
        now[0] += 6
        progress.launch_done(0, 6.0)
    assert [line for line in lines if "left" in line] == [
        "bench: 2 of 4 launches, about 12 s left",
        "bench: 4 of 4 launches, about 0 s left",
    ]


def test_a_foreign_name_cannot_command_the_terminal():
    text = TextReport().run(make_run(suite="\x1b[31mred\x07"))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "\ufffd[31mred" in text
