"""The gate: one variant at two targets, measured in pairs until a verdict is reached. Pure.

Wall and CPU time are co-primary; each gets half of the error rate. The wall clock decides where it
can. Where it cannot because the machine was busy, CPU time over all threads decides, but only for
work that keeps its processor busy: CPU time is blind to waiting, IO, devices and lost parallelism.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import exp, inf, isnan, log, log1p

from bench.compare import ArmComparison, compare_results, log_ratios, variant_verdict
from bench.decision import confirmation, decision, describe, is_look, may_confirm_early, p_value
from bench.disturbance import BUSY, causes, disturbance
from bench.metrics import CPU_TIME, TAILS, TIME, Better, Kind, Metric, Summary
from bench.model import ArmResult, Comparison, Estimate, ExperimentResult, FailureKind, Target, Verdict
from bench.stats.multiplicity import benjamini_hochberg
from bench.stats.sequential import Confirmation, Decision, State
from bench.tails import launch_changes
from bench.thresholds import floor_of, margin_of, threshold

CPU_BOUND = 0.9
"""CPU time / wall time of an undisturbed sample from which a call counts as computing, not waiting."""

REPORTED_ONLY = (
    "first_call", "set_up", "memory_growth", "throughput", "cpu_time", "energy", "single_call",
    "device_time", "device_energy",
    *(metric.name for metric in TAILS),
)  # fmt: skip
"""Shown, but no verdict of the gate rests on them unless a rule names them: throughput follows time, first call and
set-up are one value a launch, energy is the whole machine's."""

NOT_JUDGED = "shown, not judged"

UNDECIDED = "undecided yet"

TIMES = (TIME.name, CPU_TIME.name)

EXACT_RULE = "compared in full: any difference counts"

_VERDICTS = {
    State.REGRESSED: Verdict.REGRESSED,
    State.IMPROVED: Verdict.IMPROVED,
    State.UNCHANGED: Verdict.UNCHANGED,
}


CHANGED = (Verdict.REGRESSED, Verdict.IMPROVED)


def enough(result: ExperimentResult) -> bool:
    """Whether no more launches are wanted: an arm failed, or a look decided.

    A change that is judged together with other variants has to stand among them: on its own, even if
    nothing else changed.
    """
    policy = result.experiment.policy
    if _failure(*result.results):
        return True
    if not is_look(policy, len(result.launches)):
        return False
    answer = judge(result, final=False)
    if answer.verdict is Verdict.INCONCLUSIVE:
        return False
    alone = policy.family < 2 or _basis_verdict(answer) not in CHANGED
    return alone or _p_value(answer, result) <= policy.alpha / policy.family


def verdicts(results: Sequence[ExperimentResult]) -> list[ArmComparison]:
    """Verdicts re-derived from stored samples: an experiment, and its confirmation where one follows.

    Where none was asked for, changes are judged together (`Policy.family`).
    """
    first: dict[tuple[str, ...], ExperimentResult] = {}
    again: dict[tuple[str, ...], ExperimentResult] = {}
    for result in results:
        if result.experiment.policy.gate:
            key = tuple(arm.key for arm in result.experiment.arms)
            (again if key in first else first)[key] = result
    answers = [judge(result) for result in first.values()]
    answers = _together(answers, list(first.values()))
    return [confirmed(a, again[key]) if key in again else a for key, a in zip(first, answers, strict=True)]


def _together(answers: list[ArmComparison], results: Sequence[ExperimentResult]) -> list[ArmComparison]:
    """Take back the changes that Benjamini and Hochberg do not reject among all variants of the family."""
    policy = results[0].experiment.policy if results else None
    if policy is None or policy.family < 2:
        return answers
    p_values = [_p_value(a, r) for a, r in zip(answers, results, strict=True)]
    missing = [1.0] * (policy.family - len(p_values))
    rejected = benjamini_hochberg([*p_values, *missing], policy.alpha)
    return [
        a if kept or _basis_verdict(a) not in CHANGED or not _by_launches(a) else _withdrawn(
            a, f"{_basis_verdict(a)} alone (p = {p:.2g}), not among {policy.family} variants"
        )
        for a, p, kept in zip(answers, p_values, rejected, strict=False)
    ]  # fmt: skip


def _p_value(answer: ArmComparison, result: ExperimentResult) -> float:
    """P of no change in what the verdict rests on, its share of the error rate included; 1 without a test."""
    basis = answer.basis or TIME.name
    if not answer.comparisons or not _by_launches(answer):
        return 1.0
    share = 2 if basis in (TIME.name, CPU_TIME.name) else 1
    return min(1.0, share * p_value(log_ratios(result, basis), result.experiment.policy, basis))


def _by_launches(answer: ArmComparison) -> bool:
    """Whether the verdict rests on launches: exact metrics and items have no launches to doubt."""
    found = _on_basis(answer)
    return found is not None and found.metric.summary not in (Summary.EXACT, Summary.ITEMS)


def judge(result: ExperimentResult, *, final: bool = True) -> ArmComparison:
    """Verdict on the two arms of a gate experiment (base first). `final`: no launch will follow."""
    base, head = result.results
    name = head.arm.variant.name
    launches = len(result.launches)
    if (failed := _failed(name, base, head)) is not None:
        return failed
    found = {c.metric.name: c for c in compare_results(base, head, paired=True)}
    if any(TIME.name in r.absent for r in result.results):
        return _judge_timeless(result, found)
    if TIME.name not in found:
        return ArmComparison(name=name, verdict=Verdict.FAILED, reason="no launch was finished", launches=launches)
    if result.experiment.benchmark.primary != TIME.name:
        return _judge_primary(result, found, final)
    wall, cpu = _decision(result, TIME, final), _decision(result, CPU_TIME, final)
    disturbed, computing = disturbance(result), cpu_bound(result)
    verdict, reason, basis = Verdict.INCONCLUSIVE, "", ""
    if wall.decided:
        verdict, basis = _VERDICTS[wall.state], TIME.name
        if cpu.decided and cpu.state is not wall.state and State.UNCHANGED not in (cpu.state, wall.state):
            reason = f"CPU time {cpu.state.value} ({exp(cpu.interval.value):.3f}×): waiting or parallelism changed"
    elif cpu.decided and computing and disturbed >= BUSY:
        verdict, basis = _VERDICTS[cpu.state], CPU_TIME.name
        reason = f"on CPU time: {disturbed:.0%} of the rounds were disturbed, so the wall clock cannot tell"
    elif final:
        reason = _why_undecided(wall, result, waits=disturbed >= BUSY and not computing)
    found[TIME.name] = replace(found[TIME.name], verdict=verdict if basis != CPU_TIME.name else Verdict.INCONCLUSIVE)
    if CPU_TIME.name in found:
        decided = verdict if basis == CPU_TIME.name else Verdict.INCONCLUSIVE
        found[CPU_TIME.name] = replace(found[CPU_TIME.name], verdict=decided)
    others = {name: _other(result, c, final) for name, c in found.items() if name not in TIMES}
    comparisons = tuple(others.get(name, c) for name, c in found.items())
    gating = [c for c in comparisons if _counts(c) or c.metric.name == basis]
    if basis == CPU_TIME.name:
        gating = [c for c in gating if c.metric.name != TIME.name]
    # An undecided look is no verdict yet, whatever the exact metrics say: time has its launches to come, and
    # so have metrics that a rule names.
    waiting = any(c.reason == UNDECIDED for c in others.values())
    overall = variant_verdict(gating) if final or (basis and not waiting) else Verdict.INCONCLUSIVE
    return ArmComparison(
        name=name, verdict=overall, reason=reason, comparisons=comparisons, launches=launches, basis=basis,
        rule=describe(result.experiment.policy),
    )  # fmt: skip


def _judge_timeless(result: ExperimentResult, found: dict[str, Comparison]) -> ArmComparison:
    """Of what is emulated or estimated on a side there are only metrics that need no launches."""
    comparisons = tuple(
        _other(result, c, True)
        if c.metric.summary in (Summary.EXACT, Summary.ITEMS)
        else replace(c, verdict=Verdict.INCONCLUSIVE, reason=NOT_JUDGED)
        for c in found.values()
    )
    return ArmComparison(
        name=result.results[1].arm.variant.name, verdict=variant_verdict([c for c in comparisons if _counts(c)]),
        comparisons=comparisons, launches=len(result.launches), rule=EXACT_RULE,
    )  # fmt: skip


def _judge_primary(result: ExperimentResult, found: dict[str, Comparison], final: bool) -> ArmComparison:
    """Work that is measured for something else than its time: a tracked value, an object's size, a peak of memory."""
    name, launches = result.results[1].arm.variant.name, len(result.launches)
    primary, policy = result.experiment.benchmark.primary, result.experiment.policy
    if primary not in found:
        text = f"the metric {primary} was not reported"
        return ArmComparison(name=name, verdict=Verdict.FAILED, reason=text, launches=launches)
    comparison, reason = found[primary], ""
    if comparison.metric.summary is Summary.LAUNCH:
        answer = _answer(result, comparison, log_ratios(result, primary), final)
        verdict = _VERDICTS.get(answer.state, Verdict.INCONCLUSIVE)
        reason = _why_undecided(answer, result) if final and not answer.decided else ""
        comparison = replace(comparison, verdict=verdict)
    shown = [
        comparison if c.metric.name == primary else replace(c, verdict=Verdict.INCONCLUSIVE, reason=NOT_JUDGED)
        for c in found.values()
    ]
    by_launches = comparison.metric.summary is Summary.LAUNCH
    return ArmComparison(
        name=name, verdict=comparison.verdict, reason=reason, comparisons=tuple(shown), launches=launches,
        basis=primary, rule=describe(policy) if by_launches else EXACT_RULE,
    )  # fmt: skip


def _sign(comparison: Comparison) -> int:
    return -1 if comparison.metric.better is Better.LOWER else 1


def confirmed(first: ArmComparison, fresh: ExperimentResult) -> ArmComparison:
    """The suspicion `first` after a confirmation with fresh launches: kept, or taken back to INCONCLUSIVE.

    Fewer launches than were planned confirm what is clear by then, and take back nothing: the level of
    the test is that of all of them.
    """
    base, head = fresh.results
    planned = fresh.experiment.policy.launches
    if _failure(base, head) or not first.comparisons:
        return replace(first, reason=_join(first.reason, "the confirmation could not be measured"))
    answer = _repeated(first, fresh)
    if len(fresh.launches) < planned and not confirms_early(first, fresh):
        why = f"the confirmation was interrupted after {len(fresh.launches)} of {planned} launches"
        return replace(first, reason=_join(first.reason, why))
    ratio = f"{exp(answer.interval.value):.3f}×, {answer.interval.n} fresh launches"
    if answer.confirmed:
        return replace(first, confirmed=True, reason=_join(first.reason, f"confirmed ({ratio})"))
    return replace(_withdrawn(first, f"regressed at first, not confirmed ({ratio})"), confirmed=False)


def confirms_early(first: ArmComparison, fresh: ExperimentResult) -> bool:
    """Whether the confirmation of `first` needs no more launches: what regressed did so clearly again."""
    if not may_confirm_early(fresh.experiment.policy, len(fresh.launches)):
        return False
    return not _failure(*fresh.results) and _repeated(first, fresh).confirmed


def _repeated(first: ArmComparison, fresh: ExperimentResult) -> Confirmation:
    basis, policy = first.basis or TIME.name, fresh.experiment.policy
    suspect = next(c for c in first.comparisons if c.metric.name == basis)
    floor = floor_of(policy, suspect.metric)
    return confirmation(log_ratios(fresh, basis), policy, basis, better_sign=_sign(suspect), floor=floor)


def wants_confirmation(comparison: ArmComparison) -> bool:
    """Only a regression by statistics is measured again: exact metrics and items need no second look."""
    return _by_launches(comparison) and _basis_verdict(comparison) is Verdict.REGRESSED


def cpu_bound(result: ExperimentResult) -> bool:
    """Whether CPU time may speak for the wall clock: both arms compute all the time, on equally many cores.

    A wait shows in every sample, a preemption does not: each arm is judged by the sample that kept its
    processors busiest. Where the two arms differ there by more than the margin, what one of them gained is
    a wait or lost parallelism, which CPU time cannot see. No sample of a long call escapes preemption on
    a busy machine; there the system tells that most rounds never waited.
    """
    if any(arm.target.device != Target().device for arm in result.experiment.arms):
        return False  # a driver that spins while it waits for the device looks like one that computes
    used = [share for share in map(utilization, result.results) if share is not None]
    if len(used) < len(result.results):
        return False
    margin = log1p(margin_of(result.experiment.policy, TIME))
    if _never_waits(result) and all(log(share) < margin for share in used):
        return True
    first, second = used
    return min(used) >= CPU_BOUND and abs(log(second / first)) < margin


def _never_waits(result: ExperimentResult) -> bool:
    """Whether each arm, with one thread, gave up its core voluntarily in less than half of its rounds."""
    if result.experiment.benchmark.threads != 1:
        return False
    for arm in range(len(result.results)):
        known = [r.voluntary_switches for x in result.launches for r in x.rounds if r.arm == arm]
        if sum(1 for switches in known if switches == 0) * 2 <= len(known):
            return False
    return True


def utilization(result: ArmResult) -> float | None:
    """Largest CPU time / wall time of a sample: 1 for one thread that never waits, up to its number of threads."""
    wall, cpu = result.measurement(TIME.name), result.measurement(CPU_TIME.name)
    if wall is None or cpu is None:
        return None
    return max(
        spent / max(1, passed)
        for wall_row, cpu_row in zip(wall.launches, cpu.launches, strict=True)
        for passed, spent in zip(wall_row, cpu_row, strict=True)
    )


def _on_basis(answer: ArmComparison) -> Comparison | None:
    return next((c for c in answer.comparisons if c.metric.name == (answer.basis or TIME.name)), None)


def _basis_verdict(answer: ArmComparison) -> Verdict | None:
    found = _on_basis(answer)
    return None if found is None else found.verdict


def _withdrawn(answer: ArmComparison, reason: str) -> ArmComparison:
    """Without its verdict in what it rested on; exact metrics, items and memory stand."""
    basis = answer.basis or TIME.name
    comparisons = tuple(
        replace(c, verdict=Verdict.INCONCLUSIVE) if c.metric.name == basis else c for c in answer.comparisons
    )
    gating = [c for c in comparisons if _counts(c)]
    reason = _join(answer.reason, reason)
    return replace(answer, comparisons=comparisons, verdict=variant_verdict(gating), reason=reason)


def _failure(*results: ArmResult) -> bool:
    """Whether an arm failed; one that got no launch did not."""
    return any(r.failure is not None and r.failure.kind is not FailureKind.UNMEASURED for r in results)


def _failed(name: str, base: ArmResult, head: ArmResult) -> ArmComparison | None:
    failures = [(w, r.failure) for w, r in (("base", base), ("head", head)) if r.failure is not None]
    if not failures:
        return None
    # The arm beside one that failed in its set-up is not launched either: the cause is named, not the consequence.
    failures = [f for f in failures if f[1].kind is not FailureKind.UNMEASURED] or failures
    where, failure = failures[0]
    if len(failures) == 2:
        where = "base and head"
        if all(f.kind is FailureKind.SKIPPED for _, f in failures):
            return ArmComparison(name=name, verdict=Verdict.INCONCLUSIVE, reason=f"skipped: {failure.message}")
    return ArmComparison(
        name=name, verdict=Verdict.FAILED, reason=f"{failure.kind.value} in {where}: {failure.message}"
    )


def _counts(comparison: Comparison) -> bool:
    """Whether the variant's verdict may rest on it, whatever the basis is."""
    return comparison.reason != NOT_JUDGED and comparison.metric.name != CPU_TIME.name


def _decision(result: ExperimentResult, metric: Metric, final: bool) -> Decision:
    policy = result.experiment.policy
    return decision(
        log_ratios(result, metric.name), policy, metric.name, better_sign=-1, floor=floor_of(policy, metric),
        margin=margin_of(policy, metric), alpha=policy.alpha / 2, final=final,
    )  # fmt: skip


def _answer(result: ExperimentResult, comparison: Comparison, values: Sequence[float], final: bool) -> Decision:
    """What the launches' log ratios say of a metric that has the whole error rate."""
    policy, metric = result.experiment.policy, comparison.metric
    return decision(
        values, policy, metric.name, better_sign=_sign(comparison), alpha=policy.alpha, final=final,
        floor=floor_of(policy, metric), margin=margin_of(policy, metric),
    )  # fmt: skip


def _other(result: ExperimentResult, comparison: Comparison, final: bool) -> Comparison:
    """What is no time: exact values and memory need a change that matters, what is only reported gets no verdict."""
    policy, metric = result.experiment.policy, comparison.metric
    if metric.summary is Summary.EXACT:
        return _exact(comparison, floor_of(policy, metric))
    if threshold(policy, metric.name) is not None and metric.summary is not Summary.ITEMS:
        return _named(result, comparison, final)
    if metric.name in REPORTED_ONLY:
        return replace(comparison, verdict=Verdict.INCONCLUSIVE, reason=NOT_JUDGED)
    if metric.kind is Kind.MEMORY and metric.summary is Summary.LAUNCH:
        return replace(comparison, verdict=_memory(comparison.change, metric.better, policy.memory_floor))
    return comparison


def _exact(comparison: Comparison, floor: float) -> Comparison:
    """Any difference is a change, but for what is under the floor of a metric that has one."""
    size = abs(log(comparison.change.value)) if comparison.relative else inf
    if comparison.verdict not in CHANGED or size > log1p(floor):
        return comparison
    why = f"differs by {comparison.change.value - 1:+.2g}, under the floor of {floor:g}"
    return replace(comparison, verdict=Verdict.UNCHANGED, reason=why)


def _named(result: ExperimentResult, comparison: Comparison, final: bool) -> Comparison:
    """A metric that a rule names, judged at the looks like time, with an error rate of its own."""
    base, head = result.results
    metric = comparison.metric
    tail = metric.summary is Summary.TAIL
    values = launch_changes(base, head, metric) if tail else log_ratios(result, metric.name)
    if not values:
        return replace(comparison, verdict=Verdict.INCONCLUSIVE, reason=comparison.reason or "no ratio of two launches")
    answer = _answer(result, comparison, values, final)
    verdict = _VERDICTS.get(answer.state, Verdict.INCONCLUSIVE)
    why = "" if answer.decided else _why_undecided(answer, result) if final else UNDECIDED
    return replace(comparison, verdict=verdict, reason=why)


def _memory(change: Estimate, better: Better, floor: float) -> Verdict:
    if change.low is None or change.high is None:
        return Verdict.INCONCLUSIVE
    worse = Verdict.REGRESSED if better is Better.LOWER else Verdict.IMPROVED
    good = Verdict.IMPROVED if better is Better.LOWER else Verdict.REGRESSED
    if change.low > 1 + floor:
        return worse
    if change.high < 1 - floor:
        return good
    return Verdict.UNCHANGED


def _why_undecided(wall: Decision, result: ExperimentResult, *, waits: bool = False) -> str:
    """`waits`: CPU time was wanted in the place of the wall clock, and the work does not compute all the time."""
    launches = len(result.launches)
    if isnan(wall.interval.low):
        return f"{launches} launch{'' if launches == 1 else 'es'} made, too few for an interval"
    low, high = exp(max(-9.0, wall.interval.low)), exp(min(9.0, wall.interval.high))
    open_ = f"{low:.3f}–{high:.3f}×" if low > 0.5 and high < 2 else "everything open"
    parts = [f"{launches} launches leave {open_}", *causes(result)]
    if waits:
        parts.append("the work waits or lost cores, so CPU time cannot tell either")
    return "; ".join(parts)


def _join(first: str, second: str) -> str:
    return f"{first}; {second}" if first else second
