"""From records to runs: identity, machine, what an upload lacks and what people supply. Once for all formats."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache

from bench.errors import FormatError, WireError
from bench.formats._record import Imported, Outcome
from bench.formats._values import number
from bench.metrics import Kind, Metric
from bench.model import (
    Arm,
    ArmResult,
    Benchmark,
    Environment,
    Experiment,
    ExperimentResult,
    Machine,
    Measurement,
    Policy,
    Revision,
    Run,
    RunStatus,
    Scalar,
    Target,
    Variant,
)
from bench.wire import convert, plain

LONGEST = 1000
"""Characters of a name. Longer ones are damage or an attack; databases refuse to index them."""

COMMIT, MACHINE, TOOL_VERSION = "commit", "machine", "tool version"
"""What an upload may lack, in the words of `Run.quarantine`."""

NO_DATE = "the file has no date; this is when it was last written"


@dataclass(frozen=True, slots=True, kw_only=True)
class Supplied:
    """What people say where a file does not. `resolve` knows the commits of a checkout."""

    commit: str | None = None
    branch: str | None = None
    committed_at: datetime | None = None
    machine: str | None = None
    tool_version: str | None = None
    resolve: Callable[[str], Revision | None] | None = None


def build(found: Imported, source: str, written_at: datetime, supplied: Supplied) -> Run:
    """The run of a record. `written_at` dates it where the file does not. Raises FormatError.

    The key is a digest of what was measured, where and at which commit, so that the same results are
    the same run however often and under whatever name they are imported.
    """
    if not found.outcomes:
        raise FormatError("holds no results")
    revision = _revision(found.revision, supplied)
    machine = _machine(found.machine, supplied.machine)
    version = found.tool_version or supplied.tool_version
    target = Target(requirements=found.requirements, variables=found.variables)
    experiments = _experiments(found.outcomes, target)
    started = found.started_at or (revision.committed_at if revision else None)
    lacks = (
        (COMMIT, revision is None),
        (MACHINE, machine.cpu is None and machine.named is None),
        (TOOL_VERSION, version is None),
    )
    run = Run(
        key="",
        started_at=started or written_at,
        finished_at=found.finished_at or started or written_at,
        status=RunStatus.COMPLETE,
        profile="imported",
        machine=machine,
        environment=_environment(found, version, dated=started is not None),
        conditions=found.conditions,
        experiments=experiments,
        revision=revision,
        problems=found.problems,
        source=source,
        quarantine=tuple(name for name, missing in lacks if missing),
    )
    _check_head(run)
    return replace(run, key=_key(run, version, found.started_at))


def _check_head(run: Run) -> None:
    """Types of everything but the experiments, whose many values are checked one by one in less time."""
    head = replace(run, experiments=())
    try:
        convert(plain(head), Run, "its description")
    except WireError as error:
        raise FormatError(f"is wrong about itself: {str(error).rstrip('.')}") from None


def _revision(found: Revision | None, supplied: Supplied) -> Revision | None:
    commit = found.commit if found else supplied.commit
    if commit is None:
        return None
    revision = found or Revision(commit=commit)
    _name(revision.commit, "a commit")
    known = supplied.resolve(revision.commit) if supplied.resolve else None
    return Revision(
        commit=known.commit if known else revision.commit,
        dirty=revision.dirty,
        branch=revision.branch or supplied.branch,
        committed_at=(known and known.committed_at) or revision.committed_at or supplied.committed_at,
    )


def _machine(found: Machine, label: str | None) -> Machine:
    for fact in (found.architecture, found.cpu, found.virtual, *found.isa):
        if fact is not None:
            _name(fact, "a fact of the machine")
    if label is None:
        return found
    if found.cpu is None:
        return replace(found, named=label)
    return replace(found, tags=(*found.tags, label))


def _environment(found: Imported, version: str | None, *, dated: bool) -> Environment:
    environment = found.environment
    packages = {**environment.packages, **({found.tool: version} if version else {})}
    settings = environment.settings if dated else {**environment.settings, "started_at": NO_DATE}
    return replace(environment, packages=packages, settings=settings)


def _experiments(outcomes: Sequence[Outcome], target: Target) -> tuple[ExperimentResult, ...]:
    groups: dict[tuple[str, str], dict[str, Outcome]] = {}
    for outcome in outcomes:
        _check(outcome)
        variants = groups.setdefault((outcome.benchmark, outcome.version), {})
        name = Variant(benchmark=outcome.benchmark, params=outcome.params).name
        variants[name] = _merged(variants[name], outcome) if name in variants else outcome
    return tuple(_experiment(list(variants.values()), target) for variants in groups.values())


def _merged(first: Outcome, second: Outcome) -> Outcome:
    """One variant out of two records of it. Raises FormatError where both have a value of one metric."""
    twice = {m.metric.name for m in first.measurements} & {m.metric.name for m in second.measurements}
    if twice or first.params != second.params or (first.failure and second.failure):
        name = Variant(benchmark=first.benchmark, params=first.params).name
        raise FormatError(f"has {name[:100]} twice; give what differs between them a name of its own")
    return replace(
        first, measurements=first.measurements + second.measurements, notes={**first.notes, **second.notes},
        failure=first.failure or second.failure,
    )  # fmt: skip


def _experiment(outcomes: Sequence[Outcome], target: Target) -> ExperimentResult:
    first = outcomes[0]
    axes: dict[str, dict[Scalar, None]] = {}
    metrics: dict[str, Metric] = {}
    for outcome in outcomes:
        for axis, value in outcome.params.items():
            axes.setdefault(axis, {})[value] = None
        metrics.update((m.metric.name, m.metric) for m in outcome.measurements)
    benchmark = Benchmark(
        name=first.benchmark,
        version=first.version or "unversioned",
        suite=first.suite or first.benchmark.partition(".")[0],
        source="",
        loader="",
        title=first.title,
        axes={axis: list(values) for axis, values in axes.items()},
        metrics=tuple(metrics.values()),
        primary=next(iter(metrics), "time"),
    )
    arms = tuple(Arm(variant=Variant(benchmark=o.benchmark, params=o.params), target=target) for o in outcomes)
    results = tuple(
        ArmResult(arm=arm, measurements=o.measurements, failure=o.failure, items=o.items, notes=o.notes)
        for arm, o in zip(arms, outcomes, strict=True)
    )
    launches = max((len(m.launches) for o in outcomes for m in o.measurements), default=1)
    experiment = Experiment(benchmark=benchmark, arms=arms, policy=_policy(launches), seed=0)
    return ExperimentResult(experiment=experiment, results=results, launches=())


@cache
def _policy(launches: int) -> Policy:
    return Policy(launches=launches)


def _check(outcome: Outcome) -> None:
    _name(outcome.benchmark, "a benchmark's name")
    _name(outcome.suite, "a suite's name", empty=True)
    _name(outcome.version, "a benchmark's version", empty=True)
    for name, value in outcome.params.items():
        _name(name, "a parameter's name")
        if not isinstance(value, str | bool):
            number(value, f"parameter {name}")
        _name(str(value), f"parameter {name}", empty=True)
    if number(outcome.items, "items") <= 0:
        raise FormatError(f"{outcome.benchmark[:100]} has {outcome.items} pieces of work in a call")
    if not all(isinstance(text, str) for text in (outcome.title, *outcome.notes, *outcome.notes.values())):
        raise FormatError(f"{outcome.benchmark[:100]} has a title or a note that is no text")
    for measurement in outcome.measurements:
        _check_measurement(outcome, measurement)


def _check_measurement(outcome: Outcome, measurement: Measurement) -> None:
    metric = measurement.metric
    _name(metric.name, "a metric's name")
    _name(metric.unit, f"the unit of {metric.name}")
    if not any(measurement.launches) or measurement.loops < 1:
        raise FormatError(f"{outcome.benchmark[:100]} has no value of {metric.name}")
    for launch in measurement.launches:
        for sample in launch:
            value = number(sample, f"{metric.name} of {outcome.benchmark[:100]}")
            if value < 0 and metric.kind is Kind.TIME:
                raise FormatError(f"{metric.name} of {outcome.benchmark[:100]} is {value}: no time is negative")


def _name(value: str, what: str, *, empty: bool = False) -> None:
    if not isinstance(value, str):
        raise FormatError(f"{what} is {str(value)[:40]}, which is no text")
    if not value.strip() and not empty:
        raise FormatError(f"{what} is empty")
    if len(value) > LONGEST:
        raise FormatError(f"{what} has {len(value)} characters; more than {LONGEST} are refused ({value[:40]!r}…)")
    if "\0" in value:
        raise FormatError(f"{what} holds a NUL character ({value[:40]!r})")


def _key(run: Run, version: str | None, started_at: datetime | None) -> str:
    """32 hexadecimal digits over everything that was measured, and nothing that only describes it."""
    revision = run.revision
    seen: list[object] = [
        run.source, version, started_at and started_at.isoformat(), run.machine.fingerprint,
        revision and [revision.commit, revision.dirty, revision.branch],
    ]  # fmt: skip
    for part in run.experiments:
        for result in part.results:
            arm = result.arm
            seen.append([
                arm.variant.name, part.experiment.benchmark.version, arm.target.requirements, arm.target.variables,
                result.failure and result.failure.kind,
                [[m.metric.name, m.metric.unit, m.loops, m.launches] for m in result.measurements],
            ])  # fmt: skip
    return hashlib.sha256(json.dumps(seen, separators=(",", ":")).encode()).hexdigest()[:32]


def together(parts: Iterable[Imported]) -> Imported:
    """Records of one run as one: what the first does not tell is taken from the others."""
    first, *others = parts
    for other in others:
        if (first.machine, first.requirements, first.variables) != (other.machine, other.requirements, other.variables):
            raise FormatError("belongs to a run that was measured elsewhere or otherwise, by what its files say")
        dates = [d for d in (first.started_at, other.started_at) if d is not None]
        first = replace(
            first, outcomes=first.outcomes + other.outcomes, problems=first.problems + other.problems,
            tool_version=first.tool_version or other.tool_version, revision=first.revision or other.revision,
            started_at=min(dates, default=None),
        )  # fmt: skip
    return first
