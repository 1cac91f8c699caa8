"""Expensive launches: the spread that earlier runs of a variant have seen lets fewer of them decide. Pure.

Whether to borrow is decided by the history alone, before the first launch, so that what is measured
has no say in the rule that judges it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import median

from bench.compare import log_ratios
from bench.metrics import CPU_TIME, FIRST_CALL, SET_UP, TIME
from bench.model import Borrowed, Experiment, ExperimentResult
from bench.ports import PastGates
from bench.stats.moderated import FEWEST, MIN_HISTORY, MODERATED_LOOKS, fit_prior, launch_variance

EXPENSIVE_S = 3.0
"""Seconds of a launch from which it counts as expensive: a minute buys 20, and the same code needs 19 on average
before it is called unchanged (docs/measuring.md)."""

NEWEST = 20
"""Most earlier experiments that lend their spread: with more, old moods of the machine outlive their time."""


def borrow(experiments: Sequence[Experiment], past: PastGates, machine: str) -> list[Experiment]:
    """The plan, with the policies of those changed whose launches are expensive and whose history suffices."""
    return [
        borrowing(e, past.gates(e.arms[1].variant.name, e.benchmark.version, machine, limit=NEWEST))
        for e in experiments
    ]


def borrowing(experiment: Experiment, earlier: Iterable[ExperimentResult]) -> Experiment:
    """The experiment with the spread of `earlier` ones of its variant, newest first; as it is where they do not serve.

    They serve where launches are expensive (EXPENSIVE_S) and at least MIN_HISTORY experiments have the
    FEWEST launches that give a variance.
    """
    policy, benchmark = experiment.policy, experiment.benchmark
    usable = _distinct(r for r in earlier if len(r.launches) >= FEWEST and all(a.failure is None for a in r.results))
    if policy.always_valid or len(usable) < MIN_HISTORY or median(map(launch_s, usable)) < EXPENSIVE_S:
        return experiment
    metrics = (TIME.name, CPU_TIME.name) if benchmark.primary == TIME.name else (benchmark.primary,)
    borrowed = tuple(found for metric in metrics if (found := _borrowed(metric, usable)) is not None)
    if not borrowed:
        return experiment
    most = min(policy.launches, MODERATED_LOOKS[-1])
    return replace(experiment, policy=replace(policy, borrowed=borrowed, launches=most))


def launch_s(result: ExperimentResult) -> float:
    """What a launch costs: set-up, first call and samples of all arms, in seconds (medians over launches).

    The start of the interpreters and warm-up come on top.
    """
    prepared = sum(
        median(row[0] for row in found.launches) / found.loops
        for arm in result.results
        for name in (SET_UP.name, FIRST_CALL.name)
        if (found := arm.measurement(name)) is not None
    )
    sampled = median(sum(r.wall_ns for r in launch.rounds) for launch in result.launches)
    return (prepared + sampled) * 1e-9


def _distinct(results: Iterable[ExperimentResult]) -> list[ExperimentResult]:
    """A comparison that was continued is stored again with all its launches: the longest of each counts."""
    longest: dict[object, ExperimentResult] = {}
    for result in results:
        first = (result.launches[0].started_at, result.launches[0].hash_seed)
        if first not in longest or len(result.launches) > len(longest[first].launches):
            longest[first] = result
    return list(longest.values())


def _borrowed(metric: str, results: Sequence[ExperimentResult]) -> Borrowed | None:
    found = [launch_variance(ratios) for r in results if len(ratios := log_ratios(r, metric)) >= FEWEST]
    prior = fit_prior([variance for variance, _ in found], [freedom for _, freedom in found])
    if prior is None:
        return None
    return Borrowed(metric=metric, variance=prior.variance, freedom=prior.freedom, runs=len(found))
