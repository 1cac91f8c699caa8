"""What each variant of an experiment gives over its baseline: the one source of every number that
a report, the JSON and the dashboard show. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

from bench.compare import compare_results, estimate, throughput
from bench.metrics import SINGLE_CALL, TAILS, THROUGHPUT, TIME, Metric
from bench.model import Arm, ArmResult, Comparison, Estimate, ExperimentResult, Failure, Target
from bench.tails import single_calls, tail_estimates, why_none


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantSummary:
    """One arm: its values and how they compare with the baseline's (launched side by side)."""

    arm: Arm
    baseline: bool
    failure: Failure | None
    metrics: dict[str, Metric]
    estimates: dict[str, Estimate]  # by metric name, in the metric's unit, per call
    comparisons: dict[str, Comparison]  # by metric name; empty for the baseline and for failures
    notes: dict[str, str]
    absent: dict[str, str]  # by metric name: why there is no value

    @property
    def label(self) -> str:
        """The variant's own axes, without the benchmark's name; and its target where that is not simply here."""
        axes = ", ".join(str(value) for value in self.arm.variant.params.values())
        target = "" if self.arm.target.label == Target().label else self.arm.target.label
        return " @ ".join(filter(None, (axes, target))) or self.arm.variant.benchmark


def tradeoffs(result: ExperimentResult) -> tuple[VariantSummary, ...]:
    """A summary per arm, in declared order."""
    return tuple(summary(result, own) for own in result.results)


def speedup(comparison: Comparison) -> Estimate:
    """Base / head of a ratio: above 1 is faster. The interval turns round."""
    change = comparison.change
    return Estimate(
        value=1 / change.value if change.value else 0.0,
        low=1 / change.high if change.high else None,
        high=1 / change.low if change.low else None,
        n=change.n,
        note=change.note,
    )


def absences(result: ArmResult) -> dict[str, str]:
    """Why an arm that was measured has no value of a metric, by the metric's name."""
    if result.failure is not None:
        return {}
    known = dict(result.absent)
    if (reason := why_none(result)) and single_calls(result) is None:
        reason = known.pop(SINGLE_CALL.name, reason)
        known |= {metric.name: reason for metric in TAILS}
    return known


def summary(result: ExperimentResult, own: ArmResult) -> VariantSummary:
    """The summary of one of the experiment's arms."""
    baseline = result.experiment.baseline_of(own.arm)
    other = None if baseline is None else result.result(baseline)
    metrics: dict[str, Metric] = {}
    estimates: dict[str, Estimate] = {}
    comparisons: dict[str, Comparison] = {}
    if own.failure is None:
        for measurement in own.measurements:
            name = measurement.metric.name
            metrics[name], estimates[name] = measurement.metric, estimate(measurement)
            if name == TIME.name:
                metrics[THROUGHPUT.name] = THROUGHPUT
                estimates[THROUGHPUT.name] = throughput(estimates[name], own.items)
        for name, (metric, found) in tail_estimates(own).items():
            metrics[name], estimates[name] = metric, found
        if other is not None and other.failure is None:
            comparisons = {c.metric.name: c for c in compare_results(other, own, paired=True)}
    return VariantSummary(
        arm=own.arm, baseline=own.arm.variant.baseline, failure=own.failure, metrics=metrics, estimates=estimates,
        comparisons=comparisons, notes=dict(own.notes), absent=absences(own),
    )  # fmt: skip
