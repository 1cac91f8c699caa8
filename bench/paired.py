"""Measure variants at two targets until each is decided, then measure again what looks regressed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import partial
from typing import Any

from bench.compare import ArmComparison
from bench.continuing import Begun, frozen, joined, variant_of
from bench.decision import confirmation_launches
from bench.experiment import run_experiments
from bench.gate import confirms_early, enough, judge, verdicts, wants_confirmation
from bench.metrics import TAILS
from bench.model import Arm, Benchmark, Experiment, ExperimentResult, Policy, Target, Variant
from bench.plan import ASKED_TAIL_NS, sides
from bench.policy import Rule, apply
from bench.ports import Progress
from bench.stats.sequential import LOOKS, MOST_ALWAYS_VALID

GATE = Policy(launches=LOOKS[-1], gate=True, budget_s=60.0)
"""A gate's policy: looks up to 50 launches, a minute for each variant."""

UNTIL_DECIDED = Policy(launches=MOST_ALWAYS_VALID, gate=True, always_valid=True)
"""A gate without an end: judged after every launch, may be continued."""

Keep = Callable[[int, ExperimentResult], None]


def plan_pairs(
    benchmarks: Sequence[Benchmark],
    chosen: Sequence[Sequence[Variant]],
    base: Target,
    head: Target,
    *,
    policy: Policy,
    seed: int,
    rules: Sequence[Rule] = (),
    today: date | None = None,
    confirm: bool = True,
) -> list[Experiment]:
    """One experiment a variant, base first; `rules` that have not expired `today` change its policy.

    Not to `confirm` regressions makes all variants one family, whose changes are judged together.
    """
    by_name = {b.name: b for b in benchmarks}
    variants = [replace(v, baseline=False) for variants in chosen for v in variants]
    policy = replace(policy, family=0 if confirm else len(variants))
    return [
        Experiment(
            benchmark=by_name[variant.benchmark],
            arms=tuple(Arm(variant=variant, target=side) for side in sides(base, head, by_name[variant.benchmark])),
            policy=_with_tail(apply(rules, variant.name, policy, today or datetime.now(UTC).date())),
            seed=seed + index,
        )
        for index, variant in enumerate(variants)
    ]


def _with_tail(policy: Policy) -> Policy:
    """A rule that names a quantile of single calls has them timed."""
    wanted = any(metric.name in {t.metric for t in policy.thresholds} for metric in TAILS)
    return replace(policy, tail_ns=max(policy.tail_ns, ASKED_TAIL_NS)) if wanted else policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Paired:
    """Verdicts and everything behind them: confirmations are experiments of their own."""

    comparisons: tuple[ArmComparison, ...]
    results: tuple[ExperimentResult, ...]
    interrupted: bool


def measure_pairs(
    experiments: Sequence[Experiment],
    *,
    device: str | None = None,
    path: Sequence[str],
    progress: Progress,
    keep: Keep,
    begun: Begun = Begun(),  # noqa: B008 - frozen and empty
) -> Paired:
    """Round-robin until every experiment is decided or its budget is spent, then confirm regressions.

    `keep(index, result)` is told every step; confirmations count on after the experiments. Those of a
    family are not confirmed. What was `begun` goes on where it stood.
    """
    measure = partial(run_experiments, device=device, path=path, progress=progress)
    results, interrupted = _decide(experiments, measure, keep, begun)
    suspects = [e for e, r in zip(experiments, results, strict=True) if not e.policy.family and _suspected(r)]
    known = [begun.again[variant_of(e)] for e in suspects if variant_of(e) in begun.again]
    for offset, confirmation in enumerate(known, len(experiments)):
        keep(offset, confirmation)
    results += known
    again = [_confirmation(e) for e in suspects if variant_of(e) not in begun.again]
    if again and not interrupted:
        progress.message(f"measuring again with fresh launches: {', '.join(map(variant_of, again))}")
        before = len(results)
        suspected = {variant_of(r.experiment): judge(r) for r in results[: len(experiments)]}
        fresh, interrupted = measure(
            again,
            enough=lambda result: confirms_early(suspected[variant_of(result.experiment)], result),
            finished=lambda index, result: keep(before + index, result),
        )
        results += fresh
    return Paired(comparisons=tuple(verdicts(results)), results=tuple(results), interrupted=interrupted)


def _decide(
    experiments: Sequence[Experiment], measure: Callable[..., Any], keep: Keep, begun: Begun
) -> tuple[list[ExperimentResult], bool]:
    """A result for each experiment: of what was decided before, the earlier one."""
    results = {i: r for i, e in enumerate(experiments) if (r := begun.first.get(variant_of(e))) and enough(r)}
    for index, result in results.items():
        keep(index, result)
    undecided = [i for i in range(len(experiments)) if i not in results]
    if not undecided:
        return list(results.values()), False

    def whole(fresh: ExperimentResult) -> ExperimentResult:
        earlier = begun.first.get(variant_of(fresh.experiment))
        return fresh if earlier is None else joined(earlier, fresh)

    fresh, interrupted = measure(
        [frozen(experiments[i], begun.first.get(variant_of(experiments[i]))) for i in undecided],
        enough=lambda result: enough(whole(result)),
        finished=lambda index, result: keep(undecided[index], whole(result)),
    )
    results |= {i: whole(result) for i, result in zip(undecided, fresh, strict=True)}
    return [results[i] for i in range(len(experiments))], interrupted


def _suspected(result: ExperimentResult) -> bool:
    return wants_confirmation(judge(result))


def _confirmation(suspect: Experiment) -> Experiment:
    """The same arms, as many launches as the test needs, whatever they cost."""
    launches = confirmation_launches(suspect.policy)
    policy = replace(suspect.policy, launches=launches, budget_s=None, instructions=False)  # exact: counted before
    return replace(suspect, policy=policy, seed=suspect.seed + 1_000_003)
