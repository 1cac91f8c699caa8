"""Which measurements are points of history, of which series, and where they stand in it. Pure.

Every store asks here, so that all of them keep the same history.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from datetime import datetime
from functools import lru_cache

from bench.history import Series
from bench.metrics import Metric
from bench.model import HARNESS_VARIABLES, ArmResult, Experiment, Run, RunStatus, Target


def target_text(target: Target) -> str:
    """What of a target makes another series: device, requirements, variables. The revision is the series' axis."""
    asked = {name: value for name, value in target.variables.items() if name not in HARNESS_VARIABLES}
    variables = (f"{name}={value}" for name, value in sorted(asked.items()))
    return " ".join([target.device, *sorted(target.requirements), *variables])


@lru_cache(maxsize=65_536)
def series_fingerprint(
    benchmark_version: str, variant: str, target: str, metric: str, unit: str, machine_fingerprint: str
) -> str:
    """Names a series everywhere; stored, so it never changes."""
    parts = [benchmark_version, variant, target, metric, unit, machine_fingerprint]
    text = json.dumps(parts, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def series_of(run: Run, experiment: Experiment, result: ArmResult, metric: Metric) -> Series:
    """The series that one metric of one result belongs to."""
    variant, target = result.arm.variant, target_text(result.arm.target)
    version, machine = experiment.benchmark.version, run.machine.fingerprint
    return Series(
        fingerprint=series_fingerprint(version, variant.name, target, metric.name, metric.unit, machine),
        suite=experiment.benchmark.suite, benchmark=variant.benchmark, benchmark_version=version,
        variant=variant.name, target=target, metric=metric, machine_fingerprint=machine,
        machine_label=run.machine.label,
    )  # fmt: skip


def is_pair(experiment: Experiment) -> bool:
    """Whether it asks for a difference: a gate, or any experiment that measures one series twice.

    Such arms say how two targets differ, measured until that is known and often at a commit that was
    never merged. They are no points of the history that the nightly runs write.
    """
    arms = experiment.arms
    if experiment.policy.gate:
        return True
    if all(arm.target == arms[0].target for arm in arms):
        return len({arm.variant.name for arm in arms}) < len(arms)
    return len({(arm.variant.name, target_text(arm.target)) for arm in arms}) < len(arms)


def is_shown(run: Run, result: ArmResult, *, paired: bool) -> bool:
    """Whether its values may stand as the latest of their series. An unclean tree's may.

    `paired`: what `is_pair` says of its experiment.
    """
    return not run.quarantine and result.failure is None and not paired


def point_at(run: Run, result: ArmResult, *, paired: bool, branches: Collection[str] = ()) -> datetime | None:
    """Where its values stand in history: when its commit was made, else when it was measured.

    Null: they are no points, since the arm failed, the tree was dirty, the run was interrupted or is
    quarantined, the experiment asked for a difference, or the arm is at another commit than its run; or
    since the run is of another branch than `branches` (empty: all are history; a run without one always is).
    """
    revision, own = run.revision, result.arm.target.revision
    if run.status is RunStatus.INTERRUPTED or not is_shown(run, result, paired=paired):
        return None
    if own is not None and (revision is None or (own.commit, own.dirty) != (revision.commit, revision.dirty)):
        return None
    if revision is None:
        return run.started_at
    if branches and revision.branch is not None and revision.branch not in branches:
        return None
    return None if revision.dirty else revision.committed_at or run.started_at
