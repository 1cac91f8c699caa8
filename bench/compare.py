"""From raw samples to estimates, comparisons and verdicts. Pure.

Logarithms are compared wherever a ratio is meant, so that 2× slower and 2× faster weigh the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import exp, isnan, log

from bench.causes import differences
from bench.errors import Exit
from bench.metrics import THROUGHPUT, TIME, Better, Metric, Summary
from bench.model import ArmResult, Comparison, Estimate, ExperimentResult, FailureKind, Measurement, Run, Verdict
from bench.stats.location import (
    Interval,
    difference_interval,
    lower_quartile,
    trimmed_interval,
)
from bench.stats.proportions import paired_difference, wilson
from bench.tails import TailChange, tail_changes

FLOOR = 0.01
"""Smallest relative change that is called one (policy default, design section 6)."""

MARGIN = 0.02
"""UNCHANGED means: the whole interval lies inside ± this."""

TOO_FEW = "too few launches for an interval"
UNPAIRED = (
    "two stored runs cannot be paired: they were measured at different times, "
    "and the machine may have changed speed between them"
)


def launch_values(measurement: Measurement) -> list[float]:
    """One value a launch, in the metric's unit per call (lower quartile of its samples)."""
    return [lower_quartile(samples) / measurement.loops for samples in measurement.launches if samples]


def log_ratios(result: ExperimentResult, metric: str) -> list[float]:
    """log(head / base) of every launch of a gate's two arms, without those that were not positive."""
    base, head = (r.measurement(metric) for r in result.results)
    if base is None or head is None:
        return []
    pairs = zip(launch_values(base), launch_values(head), strict=False)
    return [log(h / b) for b, h in pairs if b > 0 and h > 0]


def estimate(measurement: Measurement) -> Estimate:
    """Value of one metric of one arm with its 95 % interval over launches or items."""
    summary = measurement.metric.summary
    if summary is Summary.EXACT:
        return Estimate(value=float(measurement.launches[0][0]), note="exact")
    if summary is Summary.ITEMS:
        items = measurement.launches[0]
        return _estimate(wilson(int(sum(items)), len(items)))
    values = launch_values(measurement)
    if min(values) <= 0:
        return _estimate(trimmed_interval(values))
    return _estimate(trimmed_interval([log(v) for v in values]), exp)


def throughput(time: Estimate, items: float) -> Estimate:
    """Items per second out of nanoseconds per call; the interval turns round."""

    def rate(ns: float | None) -> float | None:
        return None if ns is None else items / (ns * 1e-9)

    value = rate(time.value)
    assert value is not None
    return replace(time, value=value, low=rate(time.high), high=rate(time.low))


def _estimate(interval: Interval, scale: Callable[[float], float] = lambda x: x) -> Estimate:
    if isnan(interval.low):
        return Estimate(value=scale(interval.value), n=interval.n, note=TOO_FEW)
    return Estimate(value=scale(interval.value), low=scale(interval.low), high=scale(interval.high), n=interval.n)


def compare_measurements(base: Measurement, head: Measurement, *, paired: bool) -> Comparison:
    """Compare one metric of two arms.

    `paired`: the arms were launched side by side, so values at one launch index form a pair. Items
    are paired in any case (one test set); where the test sets differ the answer is INCOMPARABLE.
    """
    metric = head.metric
    left, right = estimate(base), estimate(head)
    if metric.summary is Summary.EXACT:
        return _compare_exact(metric, left, right)
    if metric.summary is Summary.ITEMS:
        return _compare_items(metric, left, right, base, head)
    a, b = launch_values(base), launch_values(head)
    if min(a) <= 0 or min(b) <= 0:
        return Comparison(
            metric=metric, base=left, head=right, relative=True, paired=paired, verdict=Verdict.INCONCLUSIVE,
            change=Estimate(value=0.0, note="no ratio: a value is zero"), reason="a value is zero",
        )  # fmt: skip
    logs_a, logs_b = [log(v) for v in a], [log(v) for v in b]
    if paired:
        interval = trimmed_interval([y - x for x, y in zip(logs_a, logs_b, strict=False)])
    else:
        interval = difference_interval(logs_a, logs_b)
    change = _estimate(interval, exp)
    if paired:
        verdict, reason = decide(interval, metric.better)
    else:
        verdict, reason = Verdict.INCONCLUSIVE, UNPAIRED
    return Comparison(
        metric=metric, base=left, head=right, change=change, relative=True, paired=paired, verdict=verdict,
        reason=reason,
    )  # fmt: skip


def decide(interval: Interval, better: Better, floor: float = FLOOR, margin: float = MARGIN) -> tuple[Verdict, str]:
    """Verdict on a difference of logarithms (positive: the value grew)."""
    if isnan(interval.low):
        return Verdict.INCONCLUSIVE, TOO_FEW
    sign = 1.0 if better is Better.LOWER else -1.0
    low, high = sorted((sign * interval.low, sign * interval.high))
    worse = sign * interval.value
    if low > 0 and worse > log(1 + floor):
        return Verdict.REGRESSED, ""
    if high < 0 and -worse > log(1 + floor):
        return Verdict.IMPROVED, ""
    if -log(1 + margin) < low and high < log(1 + margin):
        return Verdict.UNCHANGED, ""
    return Verdict.INCONCLUSIVE, f"the interval is wider than ±{margin:.0%} and holds no change"


def _compare_exact(metric: Metric, left: Estimate, right: Estimate) -> Comparison:
    grew = right.value - left.value
    if grew == 0:
        verdict = Verdict.UNCHANGED
    else:
        verdict = Verdict.REGRESSED if (grew > 0) == (metric.better is Better.LOWER) else Verdict.IMPROVED
    ratio = left.value > 0 and right.value > 0
    return Comparison(
        metric=metric, base=left, head=right, relative=ratio, paired=True, verdict=verdict,
        change=Estimate(value=right.value / left.value if ratio else grew, note="exact"),
    )  # fmt: skip


def _compare_items(metric: Metric, left: Estimate, right: Estimate, base: Measurement, head: Measurement) -> Comparison:
    a, b = [int(x) for x in base.launches[0]], [int(x) for x in head.launches[0]]
    if len(a) != len(b):
        reason = f"the test sets differ: {len(a)} and {len(b)} items"
        return Comparison(
            metric=metric, base=left, head=right, change=Estimate(value=right.value - left.value, note=reason),
            relative=False, paired=False, verdict=Verdict.INCOMPARABLE, reason=reason,
        )  # fmt: skip
    interval = paired_difference(a, b)
    gained = sum(1 for x, y in zip(a, b, strict=True) if y > x)
    lost = sum(1 for x, y in zip(a, b, strict=True) if x > y)
    sign = 1.0 if metric.better is Better.HIGHER else -1.0
    low, high = sorted((sign * interval.low, sign * interval.high))
    reason = f"{gained} items gained, {lost} lost of {len(a)}"
    if a == b:
        verdict, reason = Verdict.UNCHANGED, f"all {len(a)} items agree"
    elif low > 0:
        verdict = Verdict.IMPROVED
    elif high < 0:
        verdict = Verdict.REGRESSED
    elif low > -MARGIN and high < MARGIN:
        verdict = Verdict.UNCHANGED
    else:
        verdict = Verdict.INCONCLUSIVE
    return Comparison(
        metric=metric, base=left, head=right, change=_estimate(interval), relative=False, paired=True,
        verdict=verdict, reason=reason,
    )  # fmt: skip


def compare_results(base: ArmResult, head: ArmResult, *, paired: bool) -> tuple[Comparison, ...]:
    """All metrics that both arms have, in head's order; throughput follows time."""
    found = []
    for measurement in head.measurements:
        other = base.measurement(measurement.metric.name)
        if other is None:
            continue
        comparison = compare_measurements(other, measurement, paired=paired)
        found.append(comparison)
        if measurement.metric.name == TIME.name:
            found.append(_throughput_comparison(comparison, base.items, head.items))
    return (*found, *(_tail_comparison(change, paired) for change in tail_changes(base, head, paired=paired)))


def _tail_comparison(found: TailChange, paired: bool) -> Comparison:
    """Never decided on fewer calls than the quantile needs."""
    if found.interval is None:
        change, verdict, reason = _ratio(found), Verdict.INCONCLUSIVE, found.note
    else:
        change = _estimate(found.interval, exp)
        verdict, reason = decide(found.interval, found.metric.better) if paired else (Verdict.INCONCLUSIVE, UNPAIRED)
    return Comparison(
        metric=found.metric, base=found.base, head=found.head, change=change, relative=True, paired=paired,
        verdict=verdict, reason=reason,
    )  # fmt: skip


def _ratio(found: TailChange) -> Estimate:
    return Estimate(value=found.head.value / max(1.0, found.base.value), n=found.head.n, note=found.note)


def _throughput_comparison(time: Comparison, base_items: float, head_items: float) -> Comparison:
    more = head_items / base_items
    change = replace(
        time.change,
        value=more / time.change.value if time.change.value else 0.0,
        low=None if time.change.high is None else more / time.change.high,
        high=None if time.change.low is None else more / time.change.low,
    )
    return replace(
        time, metric=THROUGHPUT, base=throughput(time.base, base_items), head=throughput(time.head, head_items),
        change=change,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmComparison:
    """One variant in two runs, or at two targets of one run."""

    name: str
    verdict: Verdict
    reason: str = ""
    comparisons: tuple[Comparison, ...] = ()
    launches: int = 0  # pairs behind it; 0 for stored runs, whose launches are no pairs
    basis: str = ""  # the time that a gate's verdict rests on: time or cpu_time
    confirmed: bool | None = None  # by fresh launches; null where none were asked for
    rule: str = ""  # by which a gate reached the verdict; empty where nothing was judged


@dataclass(frozen=True, slots=True, kw_only=True)
class RunComparison:
    """Two stored runs, or two targets measured together."""

    base: str  # a run's key, or what the target is called
    head: str
    arms: tuple[ArmComparison, ...]
    machine: str = ""
    notes: tuple[str, ...] = ()  # what a reader must know before the numbers
    run: str = ""  # key of the run that two targets were stored as; empty where nothing was measured

    def count(self, verdict: Verdict) -> int:
        """Variants with that verdict."""
        return sum(1 for arm in self.arms if arm.verdict is verdict)

    def exit_code(self, *, strict: bool = False, trades_fail: bool = False) -> Exit:
        """The first that applies: regression, failed, incomparable, trade, inconclusive."""
        if self.count(Verdict.REGRESSED):
            return Exit.REGRESSION
        if self.count(Verdict.FAILED):
            return Exit.FAILED
        if self.count(Verdict.INCOMPARABLE):
            return Exit.INCOMPARABLE
        if trades_fail and self.count(Verdict.TRADE):
            return Exit.TRADE
        if strict and self.count(Verdict.INCONCLUSIVE):
            return Exit.INCONCLUSIVE
        return Exit.OK


def variant_verdict(comparisons: Sequence[Comparison]) -> Verdict:
    """One verdict for a variant: TRADE when metrics disagree, else the strongest."""
    seen = {c.verdict for c in comparisons}
    if {Verdict.REGRESSED, Verdict.IMPROVED} <= seen:
        return Verdict.TRADE
    for verdict in (
        Verdict.REGRESSED, Verdict.IMPROVED, Verdict.INCOMPARABLE, Verdict.INCONCLUSIVE, Verdict.UNCHANGED,
    ):  # fmt: skip
        if verdict in seen:
            return verdict
    return Verdict.INCONCLUSIVE


def compare_runs(base: Run, head: Run) -> RunComparison:
    """Two stored runs. Times cannot be paired and are never decided; exact metrics and items are."""
    notes = [UNPAIRED + ". Times are therefore INCONCLUSIVE by design; sizes and answers are compared exactly."]
    comparable = base.machine.fingerprint == head.machine.fingerprint
    if not comparable:
        notes = [f"the runs come from two machines: {base.machine.label} and {head.machine.label}"]
    elif base.environment.fingerprint != head.environment.fingerprint:
        notes.append("the environments differ: " + ", ".join(environment_differences(base, head)))
    left = {r.arm.key: (e, r) for e, r in base.arms()}
    right = {r.arm.key: (e, r) for e, r in head.arms()}
    arms = []
    for key in [*right, *(k for k in left if k not in right)]:
        name = (right.get(key) or left[key])[1].arm.variant.name
        if key not in left or key not in right:
            where = "base" if key in left else "head"
            arms.append(ArmComparison(name=name, verdict=Verdict.FAILED, reason=f"only in {where}"))
            continue
        (old_experiment, old), (new_experiment, new) = left[key], right[key]
        versions = {old_experiment.experiment.benchmark.version, new_experiment.experiment.benchmark.version}
        arms.append(_compare_arm(name, old, new, comparable=comparable, same_version=len(versions) == 1))
    return RunComparison(base=base.key, head=head.key, arms=tuple(arms), notes=tuple(notes), machine=head.machine.label)


def _compare_arm(name: str, old: ArmResult, new: ArmResult, *, comparable: bool, same_version: bool) -> ArmComparison:
    failures = [f for f in (old.failure, new.failure) if f is not None]
    if len(failures) == 2 and all(f.kind is FailureKind.SKIPPED for f in failures):
        return ArmComparison(name=name, verdict=Verdict.INCONCLUSIVE, reason=f"skipped in both: {failures[0].message}")
    if failures:
        where = "base" if old.failure is not None else "head"
        return ArmComparison(
            name=name, verdict=Verdict.FAILED, reason=f"{failures[0].kind.value} in {where}: {failures[0].message}"
        )
    if not comparable:
        return ArmComparison(name=name, verdict=Verdict.INCOMPARABLE, reason="measured on different machines")
    if not same_version:
        return ArmComparison(name=name, verdict=Verdict.INCOMPARABLE, reason="the benchmark itself changed")
    comparisons = compare_results(old, new, paired=False)
    return ArmComparison(name=name, verdict=variant_verdict(comparisons), comparisons=comparisons)


def environment_differences(base: Run, head: Run) -> list[str]:
    """`name old → new` for everything recorded that differs."""
    return [
        f"{d.name.removeprefix('driver:').removeprefix('setting:')} {d.before or 'none'} → {d.after or 'none'}"
        for d in differences(base.environment, head.environment)
    ]
