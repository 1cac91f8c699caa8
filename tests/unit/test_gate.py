"""Verdicts of the gate on made-up launches: what it may say, on which time, and when it must not."""

import random
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from bench.disturbance import disturbance
from bench.gate import CPU_BOUND, confirmed, cpu_bound, enough, judge, utilization, wants_confirmation
from bench.metrics import CPU_TIME, PEAK_MEMORY, SIZE, TIME
from bench.model import (
    Arm,
    ArmResult,
    Benchmark,
    Experiment,
    ExperimentResult,
    Failure,
    FailureKind,
    Launch,
    Measurement,
    RoundConditions,
    Target,
    Variant,
    Verdict,
)
from bench.paired import GATE, plan_pairs
from bench.testing import as_confirmation, make_pair

VARIANT = Variant(benchmark="s.b", params={})
BENCHMARK = Benchmark(name="s.b", version="1", suite="s", source="m:b")


def experiment(
    launches=18, *, effect=1.0, wall_noise=0.003, cpu_noise=0.002, busy=False, waits=0.0, cpu_effect=None, memory=1.0,
    sizes=(100, 100), failures=(None, None), seed=0, switches=(None, None), escape=0,
):  # fmt: skip
    """Two arms of a 1 ms call: `waits` is the share of it spent waiting, `busy` preempts all samples but `escape`."""
    rng = random.Random(seed)
    arms = tuple(Arm(variant=VARIANT, target=Target(label=label)) for label in ("base", "head"))
    results = []
    for index, arm in enumerate(arms):
        slower = effect if index else 1.0
        spent = cpu_effect if index and cpu_effect is not None else slower
        wall_rows, cpu_rows = [], []
        for _ in range(launches):
            w, c = rng.gauss(1, wall_noise), rng.gauss(1, cpu_noise)
            w = 1 + abs(w - 1) if busy else w  # others only ever take time away
            wall_rows.append(tuple(round(1e6 * slower * w * rng.uniform(1, 1.002)) for _ in range(40)))
            cpu_rows.append(tuple(round(1e6 * spent * (1 - waits) * c * 0.999) for _ in range(40)))
        if busy:  # one sample in a hundred escapes the preemption
            wall_rows = [
                tuple(round(x * rng.uniform(1.2, 1.8)) if i != escape else x for i, x in enumerate(row))
                for row in wall_rows
            ]
        peak = tuple((round(3e8 * (memory if index else 1.0)) + rng.randrange(4096),) for _ in range(launches))
        measurements = (
            Measurement(metric=TIME, launches=tuple(wall_rows)),
            Measurement(metric=CPU_TIME, launches=tuple(cpu_rows)),
            Measurement(metric=PEAK_MEMORY, launches=peak),
            Measurement(metric=SIZE, launches=((sizes[index],),)),
        )
        results.append(ArmResult(arm=arm, measurements=measurements if launches else (), failure=failures[index]))
    seen = tuple(
        Launch(
            index=k, started_at=datetime(2026, 1, 1, tzinfo=UTC), hash_seed=k, core=0, priority="normal", order=(0, 1),
            rounds=tuple(
                RoundConditions(
                    arm=a, round=0, wall_ns=1, involuntary_switches=int(busy), voluntary_switches=switches[a]
                )
                for a in (0, 1)
            ),
        )
        for k in range(launches)
    )  # fmt: skip
    plan = Experiment(benchmark=BENCHMARK, arms=arms, policy=GATE, seed=seed)
    return ExperimentResult(experiment=plan, results=tuple(results), launches=seen)


def test_the_same_code_is_unchanged_and_a_slowdown_regressed_on_wall_time():
    assert judge(experiment()).verdict is Verdict.UNCHANGED
    slower = judge(experiment(effect=1.05))
    assert (slower.verdict, slower.basis) == (Verdict.REGRESSED, "time")
    assert judge(experiment(effect=0.9)).verdict is Verdict.IMPROVED


def test_the_gate_looks_only_at_its_looks():
    assert enough(experiment(9, effect=1.5))
    assert not enough(experiment(8, effect=1.5))
    assert not enough(experiment(5, effect=1.5))
    assert not enough(experiment(9, wall_noise=0.1, cpu_noise=0.1))


def test_a_failed_arm_ends_the_experiment_and_is_named_with_its_side():
    gone = Failure(kind=FailureKind.RAISED, phase="set_up", message="ImportError: no thing")
    result = experiment(0, failures=(gone, None))
    assert enough(result)
    answer = judge(result)
    assert answer.verdict is Verdict.FAILED
    assert answer.reason == "raised in base: ImportError: no thing"
    assert answer.comparisons == ()


def test_skipped_on_both_sides_is_no_failure():
    skip = Failure(kind=FailureKind.SKIPPED, phase="set_up", message="no torch")
    answer = judge(experiment(0, failures=(skip, skip)))
    assert (answer.verdict, answer.reason) == (Verdict.INCONCLUSIVE, "skipped: no torch")


def test_on_a_busy_machine_computing_work_is_decided_on_cpu_time_and_says_so():
    result = experiment(18, effect=1.05, busy=True, wall_noise=0.1)
    assert disturbance(result) == 1.0
    assert cpu_bound(result)
    answer = judge(result)
    assert (answer.verdict, answer.basis) == (Verdict.REGRESSED, "cpu_time")
    assert "on CPU time: 100% of the rounds were disturbed" in answer.reason


@pytest.mark.parametrize(
    ("switches", "bound"),
    [((0, 0), True), ((0, 3), False), ((3, 0), False), ((None, None), False)],
    ids=["computes", "head waits", "base waits", "unknown"],
)
def test_a_long_call_that_never_escapes_preemption_computes_where_the_system_says_that_it_never_waited(switches, bound):
    result = experiment(18, effect=1.05, busy=True, wall_noise=0.4, switches=switches, escape=-1)
    assert cpu_bound(result) is bound
    assert (judge(result).basis == "cpu_time") is bound


def test_what_never_waits_may_still_lose_a_core():
    result = experiment(18, effect=2.0, cpu_effect=1.0, waits=-1, busy=True, wall_noise=0.4, switches=(0, 0))
    assert not cpu_bound(result)


def test_a_driver_that_spins_while_a_device_computes_does_not_speak_for_the_wall_clock():
    sides = {"base": Target(label="base", device="cuda"), "head": Target(label="head", device="cuda")}
    assert cpu_bound(make_pair())
    assert not cpu_bound(make_pair(**sides))
    assert not cpu_bound(make_pair(head=sides["head"]))


def test_on_a_quiet_machine_the_wall_clock_alone_decides():
    """CPU time is sure, the wall clock is not: no verdict without a busy machine to blame."""
    answer = judge(experiment(18, effect=1.05, wall_noise=0.2))
    assert answer.verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("waits", [0.15, 0.5, 0.99])
def test_work_that_waits_is_never_called_unchanged_on_cpu_time(waits):
    """A wait that doubled is invisible to CPU time: sleep, IO, lost parallelism."""
    result = experiment(18, effect=2.0, cpu_effect=1.0, waits=waits, busy=True, wall_noise=0.4)
    assert not cpu_bound(result)
    answer = judge(result)
    assert answer.verdict is not Verdict.UNCHANGED
    assert answer.basis != "cpu_time"


@pytest.mark.parametrize(
    ("effect", "cores"),
    [(1.05, 1), (1.08, 1), (2.0, 2), (1.05, 2)],
    ids=["5% wait", "8% wait", "core lost", "wait on two"],
)
def test_a_wait_or_a_lost_core_in_head_alone_is_never_called_unchanged_on_cpu_time(effect, cores):
    """Head keeps over 90 % of a core busy, as base does; only the difference between them shows the wait."""
    result = experiment(18, effect=effect, cpu_effect=1.0, waits=1 - cores, busy=True, wall_noise=0.4)
    assert min(utilization(r) for r in result.results) > CPU_BOUND
    answer = judge(result)
    assert answer.verdict is not Verdict.UNCHANGED
    assert answer.basis != "cpu_time"


def test_lost_parallelism_is_regressed_on_wall_and_the_disagreement_is_said():
    answer = judge(experiment(effect=1.5, cpu_effect=0.9))
    assert answer.verdict is Verdict.REGRESSED
    assert "CPU time improved" in answer.reason


def test_memory_and_size_join_the_verdict_and_a_disagreement_is_a_trade():
    assert judge(experiment(memory=1.2)).verdict is Verdict.REGRESSED
    assert judge(experiment(memory=1.02)).verdict is Verdict.UNCHANGED
    assert judge(experiment(sizes=(100, 101))).verdict is Verdict.REGRESSED
    assert judge(experiment(effect=0.8, sizes=(100, 150))).verdict is Verdict.TRADE


def test_a_larger_artifact_does_not_stop_the_timing_early():
    result = experiment(9, sizes=(100, 200), wall_noise=0.1, cpu_noise=0.1)
    assert not enough(result)


def test_an_undecided_variant_says_what_the_launches_leave_open():
    answer = judge(experiment(9, wall_noise=0.1, cpu_noise=0.1))
    assert answer.verdict is Verdict.INCONCLUSIVE
    assert answer.reason.startswith("9 launches leave ")


def test_nothing_but_a_slowdown_is_measured_again():
    assert wants_confirmation(judge(experiment(effect=1.05)))
    assert not wants_confirmation(judge(experiment(sizes=(100, 200))))
    assert not wants_confirmation(judge(experiment(effect=0.9)))
    assert not wants_confirmation(judge(experiment()))


def test_a_confirmation_keeps_a_true_slowdown_and_takes_a_false_one_back():
    suspect = judge(experiment(effect=1.05))
    kept = confirmed(suspect, as_confirmation(experiment(effect=1.05, seed=9)))
    assert (kept.verdict, kept.confirmed) == (Verdict.REGRESSED, True)
    taken = confirmed(suspect, as_confirmation(experiment(effect=1.0, seed=9)))
    assert (taken.verdict, taken.confirmed) == (Verdict.INCONCLUSIVE, False)
    assert "not confirmed" in taken.reason
    broken = confirmed(suspect, as_confirmation(experiment(0)))
    assert broken.confirmed is None
    assert broken.verdict is Verdict.REGRESSED


def test_a_slowdown_taken_back_leaves_what_size_says():
    suspect = judge(experiment(effect=1.05, sizes=(100, 200)))
    taken = confirmed(suspect, as_confirmation(experiment(effect=1.0, sizes=(100, 200), seed=9)))
    assert taken.verdict is Verdict.REGRESSED
    assert taken.confirmed is False


def test_pairs_have_base_first_and_one_variant_each():
    base, head = Target(label="a"), Target(label="b")
    benchmark = replace(BENCHMARK, axes={"n": [1, 2]}, baseline={"n": 1})
    planned = plan_pairs([benchmark], [list(benchmark.variants())], base, head, policy=GATE, seed=1)
    assert [[a.target.label for a in e.arms] for e in planned] == [["a", "b"], ["a", "b"]]
    assert all(e.baseline_of(e.arms[1]) is None for e in planned)
    assert len({e.seed for e in planned}) == 2


def test_work_measured_for_its_memory_is_not_judged_on_time():
    """Twice as fast and 20 % more memory: a regression where memory is what it is measured for."""
    result = experiment(effect=0.5, memory=1.2)
    plan = replace(result.experiment, benchmark=replace(BENCHMARK, primary="peak_memory"))
    answer = judge(replace(result, experiment=plan))
    assert (answer.verdict, answer.basis) == (Verdict.REGRESSED, "peak_memory")
    assert {c.metric.name for c in answer.comparisons if c.verdict is not Verdict.INCONCLUSIVE} == {"peak_memory"}
    same = experiment(effect=0.5, memory=1.01)
    assert judge(replace(same, experiment=plan)).verdict is Verdict.UNCHANGED
    missing = replace(plan, benchmark=replace(BENCHMARK, primary="value"))
    assert judge(replace(result, experiment=missing)).verdict is Verdict.FAILED
