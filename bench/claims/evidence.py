"""Stored runs → readings → answers. The figures are those of bench.tradeoffs, to the last digit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any

from bench.claims.judging import combine, judge
from bench.claims.words import Answer, Claim, Finding, Kind, Origin, Probe, Reading, Stated, Take
from bench.compare import TOO_FEW, compare_results
from bench.metrics import Metric, Summary
from bench.model import ArmResult, Comparison, Estimate, ExperimentResult, FailureKind, Run
from bench.ports import Store
from bench.reports.format import interval, is_share
from bench.tradeoffs import speedup, summary

UNITS = {
    "ns": {"ns": 1.0, "µs": 1e3, "ms": 1e6, "s": 1e9},
    "B": {"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9},
    "1/s": {"/s": 1.0, "k/s": 1e3, "M/s": 1e6},
}
"""Unit of a metric → units in which a value may be stated → their size."""

MOST = 500
"""Newest runs of a store that are looked at."""

Stored = tuple[Iterable[str], Callable[[], Run]]
"""A run's suites, and what reads it."""

NO_RUN = "no stored run of this machine holds it"
NO_EXPERIMENT = "no experiment of the suites tests it"


@dataclass(frozen=True, slots=True)
class Place:
    """Where an arm was found."""

    run: Run
    experiment: ExperimentResult
    arm: ArmResult


def answers_from(store: Store, machine: str, claims: Sequence[Claim]) -> tuple[Answer, ...]:
    """Every claim with what the stored runs of a machine (the beginning of its fingerprint) say of it."""
    infos = [info for info in store.runs(limit=MOST) if info.machine_fingerprint.startswith(machine)]
    return _answers(claims, [(info.suites, partial(store.get, info.key)) for info in infos])


def answers(claims: Sequence[Claim], runs: Iterable[Run]) -> tuple[Answer, ...]:
    """Every claim with its answer from these runs, newest first; no more are taken than are needed."""

    def whole(run: Run) -> Stored:
        return {result.experiment.benchmark.suite for result in run.experiments}, lambda: run

    return _answers(claims, map(whole, runs))


def _answers(claims: Sequence[Claim], stored: Iterable[Stored]) -> tuple[Answer, ...]:
    """A probe is read from the newest run that measured all of its variants, or says why none could.

    Where a variant was skipped or had too few launches, an older run may have measured it; a failure stands.
    A run is large: it is read only while a probe waits for a suite that it has.
    """
    found: dict[Probe, Reading] = {}
    empty: dict[Probe, Reading] = {}
    waiting = list(dict.fromkeys(probe for claim in claims for probe in claim.probes))
    runs = iter(stored)
    while waiting and (item := next(runs, None)) is not None:
        suites, get = item
        if not {name.partition(".")[0] for probe in waiting for name in probe.variants} & set(suites):
            continue
        places = _places(get())
        for probe in waiting:
            reading = _reading(probe, places)
            if reading is not None and (reading.finding is Finding.NOT_MEASURABLE or reading.reason == TOO_FEW):
                empty.setdefault(probe, reading)
            elif reading is not None:
                found[probe] = reading
        waiting = [probe for probe in waiting if probe not in found]
    return tuple(_answer(claim, empty | found) for claim in claims)


def _answer(claim: Claim, found: dict[Probe, Reading]) -> Answer:
    if claim.kind is Kind.FACT:  # settled by its source; what is measured stands beside it
        beside = tuple(replace(found.get(probe) or _missing(probe), judged=False) for probe in claim.probes)
        return Answer(claim=claim, finding=Finding.CONFIRMED if claim.holds else Finding.WRONG, readings=beside)
    if claim.kind is Kind.HARDWARE:
        return Answer(claim=claim, finding=Finding.NOT_MEASURABLE, reason=f"needs {claim.needs}")
    if claim.kind is Kind.COUNTED:
        return _counted(claim)
    readings = tuple(_final(found.get(probe) or _missing(probe), claim.needs) for probe in claim.probes)
    judged = [reading for reading in readings if reading.judged]
    finding = combine([reading.finding for reading in judged], some=claim.some)
    missing = [reading for reading in judged if reading.found is None]
    reason = f"{len(missing)} of {len(judged)} experiments have no value here" if missing else ""
    if len(missing) == len(judged):
        reason = next((reading.reason for reading in missing), NO_EXPERIMENT)
    return Answer(claim=claim, finding=finding, readings=readings, reason=reason)


def _counted(claim: Claim) -> Answer:
    assert claim.count is not None
    assert claim.stated is not None
    module, _, name = claim.count.partition(":")
    value = float(getattr(import_module(module), name)())
    right = claim.stated.low <= value <= claim.stated.high
    finding = Finding.CONFIRMED if right else Finding.WRONG
    reading = Reading(
        label=f"counted by {claim.count}", finding=finding, found=Estimate(value=value, note="exact"),
        unit=claim.stated.unit,
    )  # fmt: skip
    return Answer(claim=claim, finding=finding, readings=(reading,))


def _missing(probe: Probe) -> Reading:
    return Reading(label=probe.label, finding=Finding.NOT_MEASURED, reason=NO_RUN, judged=probe.judged)


def _final(reading: Reading, needs: str) -> Reading:
    """What nobody measured on a machine that lacks what it needs is not measurable here."""
    if reading.found is None and needs and reading.finding is Finding.NOT_MEASURED and reading.origin is None:
        return replace(reading, finding=Finding.NOT_MEASURABLE, reason=f"needs {needs}")
    return reading


def _places(run: Run) -> dict[str, list[Place]]:
    """Variant name → where it was measured: experiments of variants, not of targets, and not what had no turn."""
    found: dict[str, list[Place]] = {}
    for experiment, arm in run.arms():
        if len({a.target.label for a in experiment.experiment.arms}) > 1 or experiment.experiment.policy.gate:
            continue
        if arm.failure is None or arm.failure.kind is not FailureKind.UNMEASURED:
            found.setdefault(arm.arm.variant.name, []).append(Place(run, experiment, arm))
    return found


def _reading(probe: Probe, places: dict[str, list[Place]]) -> Reading | None:
    """Null where this run does not hold what the probe names."""
    if any(name not in places for name in probe.variants):
        return None
    head = places[probe.head][0]
    base = _base(probe, head, places)
    run = head.run
    origin = Origin(run=run.key, at=run.started_at, machine=run.machine.label, profile=run.profile)
    where = head.experiment.experiment.name
    for place in filter(None, (head, base)):
        if place.arm.failure is not None:
            failure = place.arm.failure
            skipped = failure.kind is FailureKind.SKIPPED
            reason = f"{place.arm.arm.variant.name} {'was skipped' if skipped else failure.kind.value}: "
            return Reading(
                label=probe.label, reason=reason + failure.message, origin=origin, experiment=where,
                judged=probe.judged, finding=Finding.NOT_MEASURABLE if skipped else Finding.NOT_MEASURED,
            )  # fmt: skip
    taken = _take(probe, head, base)
    if isinstance(taken, str):
        return Reading(
            label=probe.label, finding=Finding.NOT_MEASURED, reason=taken, origin=origin, experiment=where,
            judged=probe.judged,
        )  # fmt: skip
    estimate, detail = taken
    return Reading(
        label=probe.label, finding=judge(estimate, probe.stated), found=estimate, unit=probe.stated.unit,
        detail=detail, origin=origin, experiment=where, judged=probe.judged,
    )  # fmt: skip


def _base(probe: Probe, head: Place, places: dict[str, list[Place]]) -> Place | None:
    """The base of a comparison, from the head's own experiment where it is there: only those are pairs."""
    if probe.stated.take is Take.VALUE:
        return None
    if probe.base is None:
        arm = head.experiment.experiment.baseline_of(head.arm.arm)
        return None if arm is None else Place(head.run, head.experiment, head.experiment.result(arm))
    here = [place for place in places[probe.base] if place.experiment is head.experiment]
    return (here or places[probe.base])[0]


def _take(probe: Probe, head: Place, base: Place | None) -> tuple[Estimate, str] | str:
    """(the value in the unit that was stated, what it was made of), or why there is none."""
    stated = probe.stated
    found = summary(head.experiment, head.arm)
    if stated.metric not in found.estimates:
        return f"{probe.head} has no {stated.metric}: {found.absent.get(stated.metric, 'it was not reported')}"
    metric = found.metrics[stated.metric]
    if stated.take is Take.VALUE:
        return _checked(_scaled(found.estimates[stated.metric], _factor(metric, stated)), "")
    if base is None:
        return f"{probe.head} has no baseline to compare with"
    paired = base.experiment is head.experiment
    known = compare_results(base.arm, head.arm, paired=paired)
    comparison = next((c for c in known if c.metric.name == stated.metric), None)
    if comparison is None:
        return f"{base.arm.arm.variant.name} has no {stated.metric}"
    detail = f"{interval(comparison.base, metric)} → {interval(comparison.head, metric)}"
    return _checked(_compared(comparison, stated), detail if paired else f"{detail}, not paired")


def _compared(comparison: Comparison, stated: Stated) -> Estimate:
    change = comparison.change
    if stated.take is Take.DIFFERENCE:
        if comparison.relative:
            # Two exact values: their difference needs no interval.
            change = replace(change, value=comparison.head.value - comparison.base.value, low=None, high=None)
        return _scaled(change, _factor(comparison.metric, stated))
    if not comparison.relative:  # of shares there is no interval of the ratio; of exact values one may be zero
        ratio = comparison.head.value / comparison.base.value if comparison.base.value else math.nan
        exact = comparison.metric.summary is Summary.EXACT
        change = Estimate(value=ratio, n=change.n, note="exact" if exact else "no interval for a ratio of shares")
    if stated.take is Take.SPEEDUP:
        return speedup(replace(comparison, change=change))
    return change if stated.take is Take.RATIO else _mapped(change, lambda ratio: 100 * (1 - ratio))


def _checked(estimate: Estimate, detail: str) -> tuple[Estimate, str] | str:
    """Nothing that varies is judged without an interval."""
    if estimate.low is None and estimate.note not in ("exact", ""):
        return estimate.note or TOO_FEW
    if not math.isfinite(estimate.value):
        return "a value is zero"
    return estimate, detail


def _factor(metric: Metric, stated: Stated) -> float:
    """By what a value of the metric is multiplied to be in the stated unit."""
    if is_share(metric) or (metric.unit == "1" and stated.unit in ("%", "pp")):
        return 100.0
    return 1.0 / UNITS.get(metric.unit, {}).get(stated.unit, 1.0)


def _scaled(estimate: Estimate, factor: float) -> Estimate:
    return _mapped(estimate, lambda value: value * factor)


def _mapped(estimate: Estimate, change: Callable[[float], float]) -> Estimate:
    ends: list[Any] = sorted(change(end) for end in (estimate.low, estimate.high) if end is not None)
    low, high = ends if len(ends) == 2 else (None, None)
    return replace(estimate, value=change(estimate.value), low=low, high=high)
