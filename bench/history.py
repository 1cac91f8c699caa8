"""The words of history: series, points, change points, what caused them, and how people deal with them.

Frozen values without I/O, like bench.model. A change point is never edited: what is learnt later
is a new value with the same key, or another one that supersedes it. A regression is what its
append-only events make of it (`bench.triage.fold`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from bench.metrics import Metric
from bench.model import Estimate, Scalar, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """History of one metric of one variant on one class of machine, at one benchmark version.

    `fingerprint` names it everywhere; `target` is device, requirements and variables, less the revision.
    """

    fingerprint: str
    suite: str
    benchmark: str
    benchmark_version: str
    variant: str
    target: str
    metric: Metric
    machine_fingerprint: str
    machine_label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One value of a series. `at` orders it: when it was committed, else when it was measured."""

    run_key: str
    at: datetime
    measured_at: datetime
    commit: str | None
    environment_fingerprint: str
    estimate: Estimate


class Cause(StrEnum):
    """What moved a series."""

    CODE = "code"
    METHOD = "method"  # the benchmark or its sampling changed
    ENVIRONMENT = "environment"  # versions, drivers, settings
    HARDWARE = "hardware"  # the machine or its canary moved
    NOISE = "noise"  # a re-run did not confirm it


class Direction(StrEnum):
    """Which way a metric moved, as a user sees it."""

    WORSE = "worse"
    BETTER = "better"
    SUSPICIOUS = "suspicious"  # better by far, while the answer or the amount of work changed


class Answer(StrEnum):
    """What a paired experiment said about a change point."""

    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    INCONCLUSIVE = "inconclusive"
    FAILED = "failed"  # it could not be run: does not build, no such machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One thing that two environments do not share; null where one side does not have it."""

    name: str  # python, numpy, driver:cuda, setting:governor
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """A paired experiment that was run to settle a change point. `run_key` is null where none came to be."""

    answer: Answer
    at: datetime
    command: str  # what repeats it: bench compare …
    run_key: str | None = None
    verdict: Verdict | None = None
    change: Estimate | None = None
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePoint:
    """Where a series changed.

    `key` is the same whenever the same change is found again. `effect` is after / before (after −
    before for accuracy). A `suspect` rests on its first point alone and opens nothing before a
    proof or a detector confirms it.
    """

    key: str
    series: Series
    detector: str
    parameters: dict[str, Scalar]
    last_good: Point
    first_changed: Point
    before: Estimate
    after: Estimate
    effect: Estimate
    direction: Direction
    detected_at: datetime
    suspect: bool = False
    environment: tuple[Difference, ...] = ()  # between the two points
    cause: Cause = Cause.CODE
    proof: Proof | None = None
    regression: str | None = None  # key of the regression it belongs to
    superseded_by: str | None = None  # key of a change point, or "" where it was found no more


class State(StrEnum):
    """Where a regression stands."""

    OPEN = "open"
    ACKNOWLEDGED = "acknowledged"
    EXPECTED = "expected"  # with a reason, until a date
    INVALID = "invalid"
    FIXED = "fixed"


class Action(StrEnum):
    """What happened to a regression."""

    OPENED = "opened"
    GREW = "grew"  # more change points of the same cause
    PROVED = "proved"  # a paired experiment answered
    CAUSE = "cause"  # the cause is known better
    ACKNOWLEDGED = "acknowledged"
    EXPECTED = "expected"
    INVALIDATED = "invalidated"
    FIXED = "fixed"
    REOPENED = "reopened"
    ASSIGNED = "assigned"
    NOTED = "noted"
    LINKED = "linked"
    BISECTED = "bisected"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened to a regression: appended, never changed. `number` counts from 1."""

    regression: str
    number: int
    at: datetime
    who: str  # a person, or "bench"
    action: Action
    text: str = ""  # reason, note, owner, link, first bad commit
    expires_at: datetime | None = None  # of EXPECTED
    changes: tuple[str, ...] = ()  # keys of change points, for OPENED and GREW


@dataclass(frozen=True, slots=True, kw_only=True)
class Regression:
    """Change points with one cause, and what people made of them. Improvements are kept the same way."""

    key: str
    title: str
    direction: Direction
    cause: Cause
    machine_fingerprint: str | None  # null: several machines
    opened_at: datetime
    state: State
    changes: tuple[str, ...]
    events: int  # number of the last event: who appends the next one must have seen it
    owner: str | None = None
    reason: str = ""
    expires_at: datetime | None = None
    notes: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    culprit: str | None = None  # first bad commit or release, named by a bisection


LEASE = timedelta(hours=2)
"""After which a proof that was taken and never answered is anybody's again: builds and launches end far sooner."""


class RequestState(StrEnum):
    """Where a wanted proof stands."""

    QUEUED = "queued"
    TAKEN = "taken"
    DONE = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofRequest:
    """A paired experiment that a suspect asks for: `bench compare BASE HEAD SELECTOR`."""

    key: str
    change: str  # key of the change point
    base: str
    head: str
    selector: str
    machine_fingerprint: str
    made_at: datetime
    state: RequestState = RequestState.QUEUED
    taken_at: datetime | None = None
    options: dict[str, str] = field(default_factory=dict)  # asv, pytest, command, suite_from, …


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptProfile:
    """What `bench profile` found between the two sides of a change point.

    One a change and engine, the newest. `document` is the report's JSON (`bench-profile`), flame graph included.
    """

    change: str  # key of the change point
    engine: str
    made_at: datetime
    document: dict[str, Any]
