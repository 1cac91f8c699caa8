"""Metrics beside time in the gate: judged where a rule names them, by the floor of their kind, or shown only."""

from dataclasses import replace

import numpy as np
import pytest

from bench.gate import NOT_JUDGED, enough, judge
from bench.metrics import ENERGY, FIRST_CALL, INSTRUCTIONS, SINGLE_CALL, SIZE
from bench.model import Benchmark, Measurement, Policy, Target, Threshold, Variant, Verdict
from bench.paired import GATE, plan_pairs
from bench.plan import ASKED_TAIL_NS
from bench.policy import Rule
from bench.testing import make_pair


def with_metric(metric, base, head, *, launches=18, thresholds=(), effect=1.0):
    """A gate's experiment whose arms have these rows of one more metric."""
    pair = make_pair(effect, launches=launches)
    results = tuple(
        replace(r, measurements=(*r.measurements, Measurement(metric=metric, launches=tuple(rows))))
        for r, rows in zip(pair.results, (base, head), strict=True)
    )
    policy = replace(pair.experiment.policy, thresholds=tuple(thresholds))
    return replace(pair, results=results, experiment=replace(pair.experiment, policy=policy))


def values(seed, *, launches=18, centre=1000.0, spread=0.01):
    rng = np.random.default_rng(seed)
    return [(float(v),) for v in centre * rng.lognormal(0, spread, launches)]


def calls(seed, *, launches=18, each=200, slow=0.02):
    rng = np.random.default_rng(seed)
    rows = 1e5 * rng.lognormal(0, 0.02, (launches, each))
    rows[rng.random(rows.shape) < slow] *= 5
    return [tuple(map(int, row)) for row in rows]


def of(answer, name):
    return next(c for c in answer.comparisons if c.metric.name == name)


NAMED = (Threshold(metric="p95", floor=0.1),)


def test_a_slower_tail_alone_fails_where_a_rule_names_it_and_nowhere_else():
    rows = calls(1), calls(2, slow=0.1)
    assert judge(with_metric(SINGLE_CALL, *rows)).verdict is Verdict.UNCHANGED
    named = judge(with_metric(SINGLE_CALL, *rows, thresholds=NAMED))
    assert named.verdict is Verdict.REGRESSED
    assert of(named, "time").verdict is Verdict.UNCHANGED
    assert of(named, "p95").verdict is Verdict.REGRESSED
    assert of(named, "p99").reason == NOT_JUDGED


def test_a_faster_call_with_a_slower_tail_is_a_trade():
    answer = judge(with_metric(SINGLE_CALL, calls(1), calls(2, slow=0.1), thresholds=NAMED, effect=0.9))
    assert answer.verdict is Verdict.TRADE


def test_the_same_tail_is_unchanged_inside_the_margin_of_the_rule():
    wide = (Threshold(metric="p90", floor=0.1, margin=0.2),)
    answer = judge(with_metric(SINGLE_CALL, calls(3), calls(4), thresholds=wide))
    assert of(answer, "p90").verdict is Verdict.UNCHANGED
    assert answer.verdict is Verdict.UNCHANGED


def test_a_named_tail_that_launches_cannot_see_is_undecided_and_says_how_many_calls_are_missing():
    rows = calls(5, each=40), calls(6, each=40, slow=0.5)
    few = with_metric(SINGLE_CALL, *rows, thresholds=(Threshold(metric="p99"),))
    answer = judge(few)
    assert (of(answer, "p99").verdict, answer.verdict) == (Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE)
    assert of(answer, "p99").reason == "not enough: 40 of 100 single calls a launch"


def test_launches_go_on_until_a_named_metric_is_decided_too():
    noisy = with_metric(FIRST_CALL, values(1, launches=9, spread=0.3), values(2, launches=9, spread=0.3), launches=9)
    assert enough(noisy), "time is decided, and nobody asked for the first call"
    policy = replace(noisy.experiment.policy, thresholds=(Threshold(metric="first_call", floor=0.1),))
    asked = replace(noisy, experiment=replace(noisy.experiment, policy=policy))
    assert not enough(asked)
    assert "launches leave" in of(judge(asked), "first_call").reason
    clear = with_metric(FIRST_CALL, values(1, launches=9), values(2, launches=9, centre=2000), launches=9,
                        thresholds=policy.thresholds)  # fmt: skip
    assert enough(clear)
    assert judge(clear).verdict is Verdict.REGRESSED


def test_energy_is_the_whole_machines_and_is_judged_only_where_named():
    rows = values(1), values(2, centre=1500)
    shown = judge(with_metric(ENERGY, *rows))
    assert (shown.verdict, of(shown, "energy").reason) == (Verdict.UNCHANGED, NOT_JUDGED)
    assert judge(with_metric(ENERGY, *rows, thresholds=(Threshold(metric="energy"),))).verdict is Verdict.REGRESSED


@pytest.mark.parametrize(
    ("head", "floor", "verdict"),
    [
        (1_000_000, None, Verdict.UNCHANGED),
        (1_001_000, None, Verdict.UNCHANGED),
        (1_003_000, None, Verdict.REGRESSED),
        (996_000, None, Verdict.IMPROVED),
        (1_000_001, 1e-9, Verdict.REGRESSED),
        (1_040_000, 0.05, Verdict.UNCHANGED),
    ],
)
def test_a_count_is_exact_and_has_a_floor_that_a_rule_can_move(head, floor, verdict):
    thresholds = () if floor is None else (Threshold(metric="instructions", floor=floor),)
    answer = judge(with_metric(INSTRUCTIONS, [(1_000_000,)], [(head,)], thresholds=thresholds))
    counted = of(answer, "instructions")
    assert (counted.verdict, answer.verdict) == (verdict, verdict)
    assert counted.change.value == head / 1_000_000
    if verdict is Verdict.UNCHANGED and head != 1_000_000:
        assert counted.reason.startswith("differs by +")


def test_any_difference_of_a_size_is_a_change_unless_a_rule_gives_it_a_floor():
    assert judge(with_metric(SIZE, [(1000,)], [(1001,)])).verdict is Verdict.REGRESSED
    lenient = (Threshold(metric="size", floor=0.01),)
    assert judge(with_metric(SIZE, [(1000,)], [(1001,)], thresholds=lenient)).verdict is Verdict.UNCHANGED


def test_a_rule_that_names_a_quantile_has_calls_timed_for_it():
    benchmark = Benchmark(name="s.b", version="1", suite="s", source="m:b")
    rules = [Rule(match="s", metric="p99", reason="slow ones", floor=0.1)]
    sides = Target(label="base"), Target(label="head")
    chosen = [[Variant(benchmark="s.b", params={})]]
    (with_rule,) = plan_pairs([benchmark], chosen, *sides, policy=GATE, seed=1, rules=rules)
    (without,) = plan_pairs([benchmark], chosen, *sides, policy=GATE, seed=1)
    assert with_rule.policy.tail_ns == ASKED_TAIL_NS
    assert without.policy.tail_ns == Policy().tail_ns == 0
