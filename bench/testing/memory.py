"""A Store and a History in memory, with the contracts of the SQL ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from bench.errors import MissingError, RunConflictError, StaleError
from bench.history import (
    LEASE,
    Action,
    ChangePoint,
    Event,
    KeptProfile,
    Point,
    Proof,
    ProofRequest,
    Regression,
    RequestState,
    Series,
    State,
)
from bench.model import ArmResult, Environment, Estimate, ExperimentResult, Measurement, Run
from bench.points import is_pair, is_shown, point_at, series_of
from bench.ports import Added, RunInfo
from bench.runs import find_key, run_info
from bench.triage import as_of, fold, merged
from bench.wire import payload_sha


class MemoryStore:
    """A Store in a dict, with the contract of the SQL one."""

    def __init__(self) -> None:
        self._runs: dict[str, Run] = {}
        self._history = MemoryHistory(self._runs)

    def add(self, run: Run) -> Added:
        """See bench.ports.Store."""
        old = self._runs.get(run.key)
        if old is None:
            self._runs[run.key] = run
            return Added.NEW
        if payload_sha(old) != payload_sha(run):
            raise RunConflictError(f"run {run.key} is stored with other content; a run is never changed.")
        return Added.REPLAY

    def add_many(self, runs: Sequence[Run]) -> Sequence[Added]:
        """See bench.ports.Store."""
        before = dict(self._runs)
        try:
            return [self.add(run) for run in runs]
        except BaseException:
            self._runs.clear()
            self._runs.update(before)
            raise

    def get(self, key: str) -> Run:
        """See bench.ports.Store."""
        if key not in self._runs:
            raise MissingError(f"run {key} is not stored; `bench show --list` lists the runs.")
        return self._runs[key]

    def find(self, ref: str) -> str:
        """See bench.ports.Store."""
        return find_key([info.key for info in self.runs()], ref)

    def runs(self, *, limit: int | None = None) -> Sequence[RunInfo]:
        """See bench.ports.Store."""
        ordered = sorted(self._runs.values(), key=lambda r: (r.started_at, r.key), reverse=True)
        return [run_info(run) for run in ordered[:limit]]

    def gates(self, variant: str, version: str, machine: str, *, limit: int) -> Sequence[ExperimentResult]:
        """See bench.ports.PastGates."""
        found = [
            part
            for run in sorted(self._runs.values(), key=lambda r: (r.started_at, r.key), reverse=True)
            for part in reversed(run.experiments)
            if run.machine.fingerprint == machine
            and part.experiment.policy.gate
            and part.experiment.benchmark.version == version
            and any(arm.variant.name == variant for arm in part.experiment.arms)
        ]
        return found[:limit]

    @property
    def history(self) -> MemoryHistory:
        """What detection and triage keep; the same one every time."""
        return self._history

    def close(self) -> None:
        """Nothing to release."""


class MemoryHistory:
    """A History of the runs in a dict, which it sees change."""

    def __init__(self, runs: Mapping[str, Run]) -> None:
        self._runs = runs
        self._points_of: dict[str, list[tuple[str, Point]]] = {}
        self._marks: dict[str, int] = {}
        self._changes: dict[str, ChangePoint] = {}
        self._regressions: dict[str, Regression] = {}
        self._events: dict[str, list[Event]] = {}
        self._requests: dict[str, ProofRequest] = {}
        self._profiles: dict[tuple[str, str], KeptProfile] = {}
        self._notices: set[str] = set()

    def series(self, *, changed: bool = False, machine: str | None = None) -> Sequence[Series]:
        """See bench.ports.History."""
        points = self._points()
        latest: dict[str, Series] = {}
        for run in sorted(self._runs.values(), key=lambda r: r.started_at):
            for part, result, measurement in _measurements(run):
                if is_shown(run, result, paired=is_pair(part.experiment)):
                    found = series_of(run, part.experiment, result, measurement.metric)
                    latest[found.fingerprint] = found
        return sorted(
            (
                series
                for fingerprint, series in latest.items()
                if fingerprint in points
                and (machine is None or series.machine_fingerprint == machine)
                and not (changed and self._marks.get(fingerprint) == len(points[fingerprint]))
            ),
            key=lambda s: (s.variant, s.metric.name, s.fingerprint),
        )

    def points(self, fingerprints: Sequence[str], *, limit: int | None = None) -> dict[str, list[Point]]:
        """See bench.ports.History."""
        points = self._points()
        found = {}
        for fingerprint in fingerprints:
            there = points.get(fingerprint, [])
            found[fingerprint] = there if limit is None else there[max(0, len(there) - limit) :]
        return found

    def environment(self, fingerprint: str) -> Environment:
        """See bench.ports.History."""
        for run in self._runs.values():
            if run.environment.fingerprint == fingerprint:
                return run.environment
        raise MissingError(f"no run was made in the environment {fingerprint}.")

    def changes(
        self, *, series: Sequence[str] | None = None, regression: str | None = None, superseded: bool = False
    ) -> Sequence[ChangePoint]:
        """See bench.ports.History."""
        return sorted(
            (
                change
                for change in self._changes.values()
                if (series is None or change.series.fingerprint in series)
                and (regression is None or change.regression == regression)
                and (superseded or change.superseded_by is None)
            ),
            key=lambda c: (c.first_changed.at, c.detected_at, c.key),
        )

    def record(self, changes: Sequence[ChangePoint], *, seen: Mapping[str, str]) -> None:
        """See bench.ports.History."""
        points = self._points()
        for change in changes:
            if change.series.fingerprint not in points:
                raise MissingError(f"the series {change.series.fingerprint} has no point; store its run first.")
        for change in changes:
            old = self._changes.get(change.key)
            self._changes[change.key] = change if old is None else merged(old, change)
        for fingerprint, run_key in seen.items():
            there = points.get(fingerprint)
            if there and there[-1].run_key == run_key:
                self._marks[fingerprint] = len(there)

    def regressions(self, *, states: Sequence[State] = ()) -> Sequence[Regression]:
        """See bench.ports.History."""
        found = [as_of(regression, datetime.now(UTC)) for regression in self._regressions.values()]
        newest_first = sorted(sorted(found, key=lambda r: r.key), key=lambda r: r.opened_at, reverse=True)
        return [r for r in newest_first if not states or r.state in states]

    def regression(self, ref: str) -> Regression:
        """See bench.ports.History."""
        keys = [key for key in self._regressions if key == ref or (len(ref) >= 4 and key.startswith(ref))]
        if ref in keys:
            keys = [ref]
        if len(keys) != 1:
            raise MissingError(f"regression {ref!r}: {len(keys)} begin with it.")
        return as_of(self._regressions[keys[0]], datetime.now(UTC))

    def events(self, key: str) -> Sequence[Event]:
        """See bench.ports.History."""
        if key not in self._events:
            raise MissingError(f"regression {key!r}: none has that key.")
        return list(self._events[key])

    def open_regression(self, regression: Regression, event: Event) -> None:
        """See bench.ports.History."""
        now = fold(replace(regression, events=0), [event])
        if now.key in self._regressions:
            raise StaleError(f"regression {now.key[:8]} is open already; read it and append to it.")
        self._keep(now, event)

    def append(self, event: Event) -> Regression:
        """See bench.ports.History."""
        if event.regression not in self._regressions:
            raise MissingError(f"regression {event.regression!r}: none has that key.")
        now = fold(self._regressions[event.regression], [event])
        self._keep(now, event)
        return as_of(now, datetime.now(UTC))

    def request(self, request: ProofRequest) -> bool:
        """See bench.ports.History."""
        return self._requests.setdefault(request.key, request) is request

    def requests(self, *, states: Sequence[RequestState] = ()) -> Sequence[ProofRequest]:
        """See bench.ports.History."""
        found = sorted(self._requests.values(), key=lambda r: (r.made_at, r.key))
        return [request for request in found if not states or request.state in states]

    def take(self, machine: str) -> ProofRequest | None:
        """See bench.ports.History."""
        now = datetime.now(UTC)
        for request in self.requests(states=[RequestState.QUEUED, RequestState.TAKEN]):
            held = request.taken_at is not None and request.taken_at >= now - LEASE
            if request.machine_fingerprint == machine and not held:
                self._requests[request.key] = replace(request, state=RequestState.TAKEN, taken_at=now)
                return self._requests[request.key]
        return None

    def finish(self, request: str, proof: Proof) -> None:
        """See bench.ports.History."""
        if request not in self._requests:
            raise MissingError(f"no proof was asked for as {request}.")
        found = self._requests[request]
        self._requests[request] = replace(found, state=RequestState.DONE)
        if found.change in self._changes:
            self._changes[found.change] = replace(self._changes[found.change], proof=proof)

    def keep_profile(self, profile: KeptProfile) -> None:
        """See bench.ports.History."""
        self._profiles[profile.change, profile.engine] = profile

    def profiles(self, changes: Sequence[str]) -> Sequence[KeptProfile]:
        """See bench.ports.History."""
        found = [profile for profile in self._profiles.values() if profile.change in changes]
        return sorted(found, key=lambda p: p.made_at, reverse=True)

    def claim_notice(self, key: str) -> bool:
        """See bench.ports.History."""
        new = key not in self._notices
        self._notices.add(key)
        return new

    def release_notice(self, key: str) -> None:
        """See bench.ports.History."""
        self._notices.discard(key)

    def _keep(self, regression: Regression, event: Event) -> None:
        self._regressions[regression.key] = regression
        self._events.setdefault(regression.key, []).append(event)
        if event.action in (Action.OPENED, Action.GREW):
            for key in event.changes:
                if key in self._changes:
                    self._changes[key] = replace(self._changes[key], regression=regression.key)

    def _points(self) -> dict[str, list[Point]]:
        """Points of every series that has one, oldest first."""
        found: dict[str, list[Point]] = {}
        for run in sorted(self._runs.values(), key=lambda r: (r.started_at, r.key)):
            if run.key not in self._points_of:  # a run never changes
                self._points_of[run.key] = list(_points_of(run))
            for fingerprint, point in self._points_of[run.key]:
                found.setdefault(fingerprint, []).append(point)
        for points in found.values():
            points.sort(key=lambda p: p.at)
        return found


def _points_of(run: Run) -> Iterator[tuple[str, Point]]:
    for part, result, measurement in _measurements(run):
        at = point_at(run, result, paired=is_pair(part.experiment))
        estimate = _estimate(measurement)
        if at is None or estimate is None:
            continue
        series = series_of(run, part.experiment, result, measurement.metric)
        yield (
            series.fingerprint,
            Point(
                run_key=run.key, at=at, measured_at=run.started_at, estimate=estimate,
                commit=run.revision.commit if run.revision else None,
                environment_fingerprint=run.environment.fingerprint,
            ),
        )  # fmt: skip


def _measurements(run: Run) -> Iterator[tuple[ExperimentResult, ArmResult, Measurement]]:
    for part, result in run.arms():
        for measurement in result.measurements:
            yield part, result, measurement


def _estimate(measurement: Measurement) -> Estimate | None:
    from bench.compare import estimate

    try:
        return estimate(measurement)
    except (ArithmeticError, LookupError, ValueError):
        return None
