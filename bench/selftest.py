"""The gate judged by itself: the same code twice, and the same code with a known slowdown. Pure.

A trial is one experiment whose arms differ in `BENCH_SELFTEST_PERCENT` alone. Rates are re-derived
from stored raw samples, so that a better rule changes them without measuring again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bench.compare import ArmComparison
from bench.gate import verdicts
from bench.model import Estimate, ExperimentResult, Run, Target, Verdict
from bench.stats.proportions import wilson

VARIABLE = "BENCH_SELFTEST_PERCENT"
SOURCE = "selftest"
PROFILE = "selftest"

QUICK_WORKLOADS = ("selftest.interpreter", "selftest.json_text", "selftest.matmul_small")
QUICK_PERCENTS = (0, 10)
FULL_PERCENTS = (0, 0, 1, 2, 3, 5, 10)
"""The same code twice as often as any slowdown: false alarms are the rarer, dearer mistake."""

MUST_FIND_PERCENT = 10
"""A gate that misses this much cannot be believed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One workload under one injected slowdown."""

    workload: str
    percent: int
    answer: ArmComparison

    @property
    def verdict(self) -> Verdict:
        """What the gate said after its confirmation."""
        return self.answer.verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """How often the gate said what, with Wilson's 95 % intervals; null without a trial of the kind."""

    false_alarm: Estimate | None  # the same code called regressed
    false_improvement: Estimate | None
    unchanged: Estimate | None  # the same code called unchanged
    found: dict[int, Estimate]  # injected per cent → called regressed


def target(percent: int, label: str) -> Target:
    """An arm with that much more work."""
    return Target(label=label, variables={VARIABLE: str(percent)})


def trials(run: Run) -> list[Trial]:
    """All trials of a self-test run: an experiment, and its confirmation where one follows."""
    percents = [
        int(result.experiment.arms[1].target.variables.get(VARIABLE, "0")) for result in _first_of_each(run.experiments)
    ]
    answers = verdicts(run.experiments)
    return [Trial(workload=a.name, percent=p, answer=a) for p, a in zip(percents, answers, strict=True)]


def _first_of_each(results: Sequence[ExperimentResult]) -> list[ExperimentResult]:
    """Without confirmations, which repeat the arms of an experiment before them; in the order of `verdicts`."""
    first: dict[tuple[str, ...], ExperimentResult] = {}
    for result in results:
        if result.experiment.policy.gate:
            first.setdefault(tuple(arm.key for arm in result.experiment.arms), result)
    return list(first.values())


def rates(all_trials: Iterable[Trial]) -> Rates:
    """Over all trials that were measured; skipped and failed ones count for nothing."""
    usable = [t for t in all_trials if t.answer.launches and t.verdict is not Verdict.FAILED]
    same = [t for t in usable if t.percent == 0]
    return Rates(
        false_alarm=_share(same, Verdict.REGRESSED),
        false_improvement=_share(same, Verdict.IMPROVED),
        unchanged=_share(same, Verdict.UNCHANGED),
        found={
            percent: share
            for percent in sorted({t.percent for t in usable if t.percent})
            if (share := _share([t for t in usable if t.percent == percent], Verdict.REGRESSED)) is not None
        },
    )


def _share(some: Sequence[Trial], verdict: Verdict) -> Estimate | None:
    if not some:
        return None
    interval = wilson(sum(1 for t in some if t.verdict is verdict), len(some))
    return Estimate(value=interval.value, low=interval.low, high=interval.high, n=interval.n)


def mistakes(all_trials: Iterable[Trial]) -> list[str]:
    """Sentences for what a believable gate would not have said."""
    wrong = []
    for trial in all_trials:
        if not trial.answer.launches:
            continue
        if trial.percent == 0 and trial.verdict in (Verdict.REGRESSED, Verdict.IMPROVED):
            wrong.append(f"{trial.workload}: the same code was called {trial.verdict.value}")
        if trial.percent >= MUST_FIND_PERCENT and trial.verdict is not Verdict.REGRESSED:
            wrong.append(f"{trial.workload}: {trial.percent} % slower was called {trial.verdict.value}")
    return wrong


def false_alarms(runs: Iterable[Run]) -> Estimate | None:
    """Share of comparisons of the same code that the gate called regressed; null where no self-test was run."""
    return rates(t for run in runs for t in trials(run)).false_alarm


def false_alarm_sentence(share: Estimate | None) -> str:
    """What reports say of the gate on this machine; `share` is that of `false_alarms`."""
    if share is None or share.high is None:
        return "false-alarm rate not measured on this machine yet: run `bench selftest`"
    alarms = round(share.value * share.n)
    return (
        f"measured false-alarm rate of this gate on this machine: {alarms} of {share.n} comparisons of the same code "
        f"(95 %: at most {share.high:.1%})"
    )
