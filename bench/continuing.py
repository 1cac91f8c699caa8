"""Go on with a stored comparison: what of it fits what is planned now, and old and new launches as one. Pure.

Only a gate that is judged after every launch (always valid) may be continued: looks spend the whole
error rate on launches counted beforehand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from bench.errors import IncomparableError, UsageError
from bench.metrics import TIME, Summary
from bench.model import ArmResult, Experiment, ExperimentResult, FailureKind, Measurement, Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """What a run measured of the variants planned now, by their names."""

    first: Mapping[str, ExperimentResult] = field(default_factory=dict)
    again: Mapping[str, ExperimentResult] = field(default_factory=dict)  # complete confirmations


def begun(run: Run, planned: Sequence[Experiment], machine: str) -> Begun:
    """What of `run` is continued on the machine with this fingerprint.

    Variants that it did not launch, or that failed, begin anew. Raises UsageError where the run is of
    another kind or compared something else, IncomparableError where it was measured elsewhere or the
    benchmark changed.
    """
    stored = [r for r in run.experiments if r.experiment.policy.gate]
    key = run.key[:8]
    if not stored:
        raise UsageError(f"run {key} is no comparison of two targets; --continue takes one of `bench compare`.")
    if not all(r.experiment.policy.always_valid for r in stored):
        raise UsageError(
            f"run {key} was judged at looks planned beforehand, which spend its whole error rate: more launches cannot "
            "be added. Compare again with --until-decided, which may be continued."
        )
    if run.machine.fingerprint != machine:
        raise IncomparableError(f"run {key} was measured on another machine ({run.machine.label}); continue it there.")
    first: dict[str, ExperimentResult] = {}
    again: dict[str, ExperimentResult] = {}
    plans = {variant_of(e): e for e in planned}
    for result in stored:
        name = variant_of(result.experiment)
        if name not in plans or not _went_well(result):
            continue
        if name not in first:
            _check(key, result.experiment, plans[name])
            first[name] = result
        elif len(result.launches) >= result.experiment.policy.launches:
            again[name] = result
    if not first:
        raise UsageError(f"run {key} launched none of the variants chosen; give the sides and selectors that it had.")
    return Begun(first=first, again=again)


def _went_well(result: ExperimentResult) -> bool:
    return bool(result.launches) and all(r.failure is None for r in result.results)


def _check(key: str, old: Experiment, new: Experiment) -> None:
    name = variant_of(new)
    for side, before, now in zip(("base", "head"), old.arms, new.arms, strict=True):
        if before.target != now.target:
            raise UsageError(
                f"run {key} had {before.target.label} as {side} of {name}, and now it is {now.target.label}: "
                "launches of other code cannot be added."
            )
    if old.benchmark.version != new.benchmark.version:
        raise IncomparableError(f"the benchmark {new.benchmark.name} changed since run {key}; compare again.")
    if _rule(old) != _rule(new):
        raise UsageError(f"the policy of {name} (error rate, floor, margin, …) changed since run {key}; compare again.")


def _rule(experiment: Experiment) -> object:
    """The policy without what may differ: how long, and how many calls a sample has."""
    return replace(experiment.policy, budget_s=None, launches=0, loops=0)


def variant_of(experiment: Experiment) -> str:
    """The variant that a gate compares with itself."""
    return experiment.arms[1].variant.name


def frozen(plan: Experiment, earlier: ExperimentResult | None) -> Experiment:
    """The plan with the calls per sample of earlier launches, so that old and new samples are alike."""
    measured = None if earlier is None else earlier.results[0].measurement(TIME.name)
    return plan if measured is None else replace(plan, policy=replace(plan.policy, loops=measured.loops))


def joined(earlier: ExperimentResult, fresh: ExperimentResult) -> ExperimentResult:
    """The launches of both as one experiment, as if they had been made in one go."""
    offset = len(earlier.launches)
    launches = tuple(replace(launch, index=offset + launch.index) for launch in fresh.launches)
    results = tuple(_arm(old, new) for old, new in zip(earlier.results, fresh.results, strict=True))
    return replace(fresh, results=results, launches=(*earlier.launches, *launches))


def _arm(old: ArmResult, new: ArmResult) -> ArmResult:
    fresh = {m.metric.name: m for m in new.measurements}
    kept = [_rows(m, fresh.pop(m.metric.name, None)) for m in old.measurements]
    unlaunched = new.failure is not None and new.failure.kind is FailureKind.UNMEASURED
    return replace(old, measurements=tuple(kept), failure=None if unlaunched else new.failure)


def _rows(old: Measurement, new: Measurement | None) -> Measurement:
    """Rows of one launch each follow one another; what is taken once (an exact value, items) stays as it was."""
    if new is None or old.metric.summary in (Summary.EXACT, Summary.ITEMS):
        return old
    return replace(old, launches=(*old.launches, *new.launches))
