"""From new points to change points, causes, regressions and questions: what runs after every night.

`look` reads the series that have something new; `settle` groups what is known by cause, opens, grows
and closes regressions, and asks for proofs. Both may be repeated at any time: with nothing new they
do nothing. The store is reached through bench.ports.History alone.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from bench.causes import CANARY, Finding, Group, classify, commit_order, group, mark_suspicious
from bench.detect import MINIMUM, REACH, SUSPECT, Sensitivity
from bench.errors import MissingError
from bench.history import (
    Action,
    Answer,
    Cause,
    ChangePoint,
    Direction,
    Event,
    Point,
    ProofRequest,
    Regression,
    Series,
    State,
)
from bench.model import Environment
from bench.night import weight
from bench.ports import History
from bench.proving import question
from bench.reconcile import reconcile
from bench.recovery import recovered
from bench.reports.night import regression_title
from bench.series import find_changes, find_method_change, find_suspect, fold

BATCH = 500
"""Series that are read at once."""

MOST_PROOFS = 3
"""Paired experiments of one pair of commits: the weightiest change points speak for the others of their group."""

RECENT = timedelta(days=14)
"""A change that was measured longer ago is history: whoever wants to prove it compares the two commits."""

SHOWN_ONLY = frozenset({"first_call", "set_up", "memory_growth"})
"""One value a launch, which no gate judges and so no proof can settle: their changes are kept and open nothing."""

LIVING = (State.OPEN, State.ACKNOWLEDGED)

Minimum = Callable[[Series], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """What one sweep did."""

    series: int = 0  # that had something new
    points: int = 0
    found: tuple[ChangePoint, ...] = ()
    suspects: tuple[ChangePoint, ...] = ()
    superseded: int = 0
    opened: tuple[Regression, ...] = ()
    grown: tuple[Regression, ...] = ()
    closed: tuple[Regression, ...] = ()  # fixed, or refuted
    asked: tuple[ProofRequest, ...] = ()


def sweep(
    history: History, *, now: datetime, sensitivity: Sensitivity = SUSPECT, minimum: Minimum = lambda _: MINIMUM,
    everything: bool = False,
) -> Swept:  # fmt: skip
    """Look at what is new (or at `everything`), then settle. `minimum`: smallest change that counts in a series."""
    found = look(history, now=now, sensitivity=sensitivity, minimum=minimum, everything=everything)
    return settle(history, now=now, minimum=minimum, after=found)


def look(
    history: History, *, now: datetime, sensitivity: Sensitivity, minimum: Minimum, everything: bool = False
) -> Swept:
    """Change points and suspects of the series that have a point which the detector has not seen."""
    environments = _Environments(history)
    older = _Predecessors(history)
    seen = points_seen = gone = 0
    found: list[ChangePoint] = []
    suspects: list[ChangePoint] = []
    chosen = history.series(changed=not everything)
    for start in range(0, len(chosen), BATCH):
        batch = chosen[start : start + BATCH]
        fingerprints = [series.fingerprint for series in batch]
        points = history.points(fingerprints, limit=sensitivity.window + REACH)
        known: dict[str, list[ChangePoint]] = defaultdict(list)
        for change in history.changes(series=fingerprints, superseded=True):
            known[change.series.fingerprint].append(change)
        changed: list[ChangePoint] = []
        marks: dict[str, str] = {}
        for series in batch:
            raw = points.get(series.fingerprint, [])
            if not raw:
                continue
            marks[series.fingerprint] = raw[-1].run_key
            folded = fold(raw)
            old = known[series.fingerprint]
            new = find_changes(
                series, folded, at=now, environments=environments, sensitivity=sensitivity, minimum=minimum(series)
            )
            result = reconcile(old, new, folded, sensitivity.window)
            sure = [*result.kept, *result.added]
            if suspect := find_suspect(series, folded, sure, at=now, environments=environments):
                result = reconcile(old, [*new, suspect], folded, sensitivity.window)
            method = older.method_change(series, folded, old, now)
            before = {change.key: change for change in old}
            changed += [c for c in result.kept if c != before[c.key]]
            changed += [*result.added, *result.superseded, *method]
            found += [c for c in result.added if not c.suspect]
            suspects += [c for c in result.added if c.suspect]
            gone += len(result.superseded)
            points_seen += len(raw)
        seen += len(marks)
        history.record(changed, seen=marks)
    return Swept(series=seen, points=points_seen, found=tuple(found), suspects=tuple(suspects), superseded=gone)


def settle(
    history: History, *, now: datetime, minimum: Minimum = lambda _: MINIMUM, after: Swept | None = None
) -> Swept:
    """Group all living change points by cause, and bring regressions and questions up to date."""
    done = after or Swept()
    living = history.changes()
    every = history.series()
    benchmarks = _benchmarks(every)
    sure = [c for c in living if is_sure(c)]
    order = commit_order([[c.last_good, c.first_changed] for c in living] + _histories(history, every))
    sure = _keep_suspicious(history, sure, order)
    opened: list[Regression] = []
    grown: list[Regression] = []
    regressions = {r.key: r for r in history.regressions()}
    for found in group(sure, order):
        finding = classify(found, benchmarks.get(found.machine_fingerprint, 0))
        _name_cause(history, found.changes, finding.cause)
        if finding.cause in (Cause.METHOD, Cause.NOISE):
            continue
        for direction, members in _by_direction(found):
            regression, new = _place(history, regressions, members, direction, finding, now)
            regressions[regression.key] = regression
            (opened if new else grown).extend([regression] if new is not None else [])
    closed = list(_close(history, regressions.values(), minimum, now))
    asked = _ask(history, living, now)
    return replace(done, opened=tuple(opened), grown=tuple(grown), closed=tuple(closed), asked=tuple(asked))


def is_sure(change: ChangePoint) -> bool:
    """Whether it may open a regression: a detector found it, or a proof confirmed a suspect."""
    answer = change.proof.answer if change.proof else None
    return change.series.metric.name not in SHOWN_ONLY and (answer is Answer.CONFIRMED or not change.suspect)


def _keep_suspicious(history: History, changes: Sequence[ChangePoint], order: Mapping[str, int]) -> list[ChangePoint]:
    marked = mark_suspicious(changes, order)
    history.record([new for old, new in zip(changes, marked, strict=True) if new != old], seen={})
    return marked


def _name_cause(history: History, changes: Iterable[ChangePoint], cause: Cause) -> None:
    wrong = [replace(c, cause=cause) for c in changes if c.cause is not cause and c.cause is not Cause.METHOD]
    history.record(wrong, seen={})


def _by_direction(found: Group) -> Iterator[tuple[Direction, list[ChangePoint]]]:
    """A commit that makes one thing faster and another slower is two stories."""
    parts: dict[Direction, list[ChangePoint]] = defaultdict(list)
    for change in sorted(found.changes, key=weight, reverse=True):
        parts[change.direction].append(change)
    yield from parts.items()


def _place(
    history: History, regressions: Mapping[str, Regression], members: Sequence[ChangePoint], direction: Direction,
    finding: Finding, now: datetime,
) -> tuple[Regression, bool | None]:  # fmt: skip
    """The regression of these change points: opened (true), grown (false) or as it was (null)."""
    known = [c.regression for c in members if c.regression in regressions]
    fresh = tuple(c.key for c in members if c.regression not in regressions)
    if not known:
        return _open(history, members, direction, finding, now), True
    key = max(sorted(set(filter(None, known))), key=known.count)
    regression = regressions[key]
    if regression.cause is not finding.cause and regression.state in LIVING:
        text = f"{finding.cause.value}: {finding.reason}"
        regression = _append(history, regression, Action.CAUSE, text, now)
    if not fresh:
        return regression, None
    return _append(history, regression, Action.GREW, finding.reason, now, fresh), False


def _open(
    history: History, members: Sequence[ChangePoint], direction: Direction, finding: Finding, now: datetime
) -> Regression:
    keys = tuple(c.key for c in members)
    key = hashlib.sha256(" ".join(sorted(keys)).encode()).hexdigest()[:32]
    machines = {c.series.machine_fingerprint for c in members}
    regression = Regression(
        key=key, title=regression_title(members, direction), direction=direction, cause=finding.cause,
        machine_fingerprint=machines.pop() if len(machines) == 1 else None, opened_at=now, state=State.OPEN,
        changes=(), events=0,
    )  # fmt: skip
    event = Event(
        regression=key, number=1, at=now, who="bench", action=Action.OPENED, text=finding.reason, changes=keys
    )
    history.open_regression(regression, event)
    return history.regression(key)


def _append(
    history: History, regression: Regression, action: Action, text: str, now: datetime, changes: tuple[str, ...] = ()
) -> Regression:
    event = Event(
        regression=regression.key, number=regression.events + 1, at=now, who="bench", action=action, text=text,
        changes=changes,
    )  # fmt: skip
    return history.append(event)


def _close(
    history: History, regressions: Iterable[Regression], minimum: Minimum, now: datetime
) -> Iterator[Regression]:
    """Those whose series are back where they were, and those of which nothing is left."""
    for regression in regressions:
        if regression.state not in LIVING or regression.direction is Direction.BETTER:
            continue
        changes = history.changes(regression=regression.key, superseded=True)
        living = [c for c in changes if c.superseded_by is None]
        if changes and all(c.cause is Cause.NOISE for c in living):
            why = "a re-run did not repeat it" if living else "it is not found any more with newer points"
            yield _append(history, regression, Action.INVALIDATED, why, now)
            continue
        points = history.points([c.series.fingerprint for c in living])
        if living and all(recovered(c, fold(points[c.series.fingerprint]), minimum(c.series)) for c in living):
            yield _append(history, regression, Action.FIXED, "the series are back at their old level", now)


def _ask(history: History, living: Sequence[ChangePoint], now: datetime) -> list[ProofRequest]:
    """Questions for what nobody has asked about yet, the weightiest first; one experiment answers for all metrics."""
    asked = history.requests()
    there = {(r.base, r.head, r.selector, r.machine_fingerprint) for r in asked}
    count = Counter((r.base, r.head, r.machine_fingerprint) for r in asked)
    new = []
    for change in sorted(living, key=weight, reverse=True):
        if change.proof or change.series.suite == CANARY or change.cause is Cause.METHOD:
            continue
        if change.series.metric.name in SHOWN_ONLY or now - change.first_changed.measured_at > RECENT:
            continue
        wanted = question(change, now)
        if wanted is None or (wanted.base, wanted.head, wanted.selector, wanted.machine_fingerprint) in there:
            continue
        place = (wanted.base, wanted.head, wanted.machine_fingerprint)
        if count[place] < MOST_PROOFS and history.request(wanted):
            count[place] += 1
            there.add((wanted.base, wanted.head, wanted.selector, wanted.machine_fingerprint))
            new.append(wanted)
    return new


def _benchmarks(every: Iterable[Series]) -> dict[str, int]:
    """How many benchmarks each machine has, without the canary."""
    names: dict[str, set[str]] = defaultdict(set)
    for series in every:
        if series.suite != CANARY:
            names[series.machine_fingerprint].add(series.benchmark)
    return {machine: len(found) for machine, found in names.items()}


def _histories(history: History, every: Iterable[Series]) -> list[Sequence[Point]]:
    """One series of each benchmark: together they know nearly every commit, at a fraction of the reading."""
    chosen: dict[tuple[str, str], str] = {}
    for series in every:
        chosen.setdefault((series.machine_fingerprint, series.benchmark), series.fingerprint)
    return list(history.points(list(chosen.values())).values())


class _Environments(Mapping[str, Environment]):
    """Environments by fingerprint, read when they are asked for."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._known: dict[str, Environment] = {}

    def __getitem__(self, fingerprint: str) -> Environment:
        if fingerprint not in self._known:
            try:
                self._known[fingerprint] = self._history.environment(fingerprint)
            except MissingError:
                raise KeyError(fingerprint) from None
        return self._known[fingerprint]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


class _Predecessors:
    """Series of the versions that a benchmark had before."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._versions: dict[tuple[str, ...], list[Series]] | None = None

    def method_change(
        self, series: Series, points: Sequence[Point], known: Sequence[ChangePoint], now: datetime
    ) -> list[ChangePoint]:
        """Where this version began at another level than the one before it, unless that is known."""
        if len(points) > REACH or any(c.cause is Cause.METHOD for c in known):
            return []
        others = [s for s in self._of(series) if s.fingerprint != series.fingerprint]
        if not others:
            return []
        older = [fold(found) for found in self._history.points([s.fingerprint for s in others]).values() if found]
        before = [one for one in older if one[-1].at <= points[0].at]
        if not before:
            return []
        change = find_method_change(max(before, key=lambda one: one[-1].at), series, points, at=now)
        return [change] if change is not None else []

    def _of(self, series: Series) -> list[Series]:
        if self._versions is None:
            self._versions = defaultdict(list)
            for one in self._history.series():
                self._versions[_identity(one)].append(one)
        return self._versions[_identity(series)]


def _identity(series: Series) -> tuple[str, ...]:
    return (series.variant, series.target, series.metric.name, series.machine_fingerprint)
