"""The only module that opens a store. Reads are cached; a stored run never changes.

What is kept is what pages show: summaries without raw samples.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import streamlit as st

from bench.causes import CANARY
from bench.claims.document import claims_of
from bench.claims.evidence import answers, answers_from
from bench.claims.words import Answer
from bench.compare import RunComparison, compare_runs
from bench.config import load_config
from bench.errors import BenchError, MissingError
from bench.exports.table import to_csv, to_parquet
from bench.history import Action, ChangePoint, Event, KeptProfile, Regression, Series
from bench.model import (
    ArmResult,
    Environment,
    Estimate,
    ExperimentResult,
    Failure,
    Machine,
    Revision,
    Run,
    RunStatus,
)
from bench.night import Night, Story, story
from bench.ports import RunInfo, Store
from bench.reports.text import circumstances
from bench.rereading import command_of, comparison_of
from bench.selftest import SOURCE, false_alarm_sentence
from bench.selftest import false_alarms as gate_false_alarms
from bench.tonight import tonight as night_of
from bench.tradeoffs import VariantSummary, tradeoffs
from bench.triage import decision
from bench.wire import encode_run
from dashboard.markup import WORDS
from dashboard.today_tables import newest_move
from dashboard.tracks import Track, track_of
from dashboard.wording import busy_with, database_name, short

MACHINES = 1000
"""Newest runs whose machines can be chosen."""

NIGHT = timedelta(hours=24)
"""What the first page calls the night, as `bench notify` does."""

SELFTESTS = 20
"""Newest self-tests of a machine that its false-alarm rate rests on, as in the terminal."""

POINTS = 1000
"""Newest points of a series that pages show: as far back as the detector looks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentView:
    """One experiment as a page shows it."""

    name: str
    suite: str
    title: str
    launches: int
    variants: tuple[VariantSummary, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """One run as a page shows it."""

    key: str
    started_at: datetime
    status: RunStatus
    profile: str
    machine: str
    busy: bool | None  # null: not recorded
    conditions: tuple[str, ...]
    experiments: tuple[ExperimentView, ...]
    problems: tuple[Failure, ...]
    finished_at: datetime
    hardware: Machine
    environment: Environment
    revision: Revision | None
    source: str
    bench_version: str

    def failures(self) -> list[tuple[str, Failure]]:
        """(variant's name, failure) of every arm that has one, the worst first, then unreadable suites."""
        found = [
            (variant.arm.variant.name, variant.failure)
            for experiment in self.experiments
            for variant in experiment.variants
            if variant.failure is not None
        ]
        found.sort(key=lambda pair: list(WORDS).index(pair[1].kind.value))
        return found + [("suite", problem) for problem in self.problems]


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionView:
    """Everything that is known of one regression."""

    story: Story
    changes: tuple[ChangePoint, ...]  # the weightiest first, then those that were superseded
    events: tuple[Event, ...]
    profiles: tuple[KeptProfile, ...] = ()  # the newest first


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A comparison and what repeats it."""

    verdicts: RunComparison
    command: str
    repeats: str  # what the command does


def view_of(run: Run) -> RunView:
    """Everything that pages show of one run; the numbers are those of bench.tradeoffs."""
    return RunView(
        key=run.key, started_at=run.started_at, status=run.status, profile=run.profile, machine=run.machine.label,
        busy=busy_with(run.conditions, run.machine.logical_cores), conditions=tuple(circumstances(run)),
        problems=run.problems, finished_at=run.finished_at, hardware=run.machine, environment=run.environment,
        revision=run.revision, source=run.source, bench_version=run.bench_version,
        experiments=tuple(
            ExperimentView(
                name=result.experiment.name, suite=result.experiment.benchmark.suite,
                title=result.experiment.benchmark.title, launches=len(result.launches), variants=tradeoffs(result),
            )
            for result in run.experiments
        ),
    )  # fmt: skip


def address() -> str:
    """The database's URL: BENCH_DATABASE, which `bench dashboard` sets, else the project's setting."""
    return load_config().database


def where() -> str:
    """The database in words, without a password."""
    return database_name(address())


def runs(limit: int = 200) -> Sequence[RunInfo]:
    """The newest stored runs; none where there is no database yet. Raises StoreError."""
    url = address()
    return [] if _missing(url) else _runs(url, limit)


def find(ref: str) -> str:
    """Key of `latest`, `latest~N` or the beginning of a key. Raises MissingError, StoreError."""
    return _store(address()).find(ref)


def run(key: str) -> RunView:
    """One run. Raises MissingError, StoreError."""
    return _run(address(), key)


def sampled(key: str) -> list[tuple[ExperimentResult, ArmResult]]:
    """Every arm of a run that has raw samples, with its experiment. Raises MissingError, StoreError."""
    return [(experiment, result) for experiment, result in _raw(address(), key).arms() if result.measurements]


def exported(key: str, form: str) -> bytes:
    """A run as `bench export` writes it: `json`, `csv` or `parquet`. Raises MissingError, StoreError, HostError."""
    run = _raw(address(), key)
    if form == "json":
        return encode_run(run) + b"\n"
    return to_parquet([run]) if form == "parquet" else to_csv([run]).encode()


def holds_both_sides(key: str) -> bool:
    """Whether a run is one of `bench compare`, with a verdict of its own. Raises MissingError, StoreError."""
    return _both_sides(address(), key) is not None


def comparison(base: str, head: str) -> Compared:
    """Two runs, or both sides of one (the same key twice). Raises MissingError, StoreError."""
    if base != head:
        return _comparison(address(), base, head)
    found = _both_sides(address(), head)
    if found is None:
        raise MissingError(f"run {short(head)} has only one side: choose another run as its base.")
    machine = next((i.machine_fingerprint for i in runs(MACHINES) if i.key == head), "")
    trust = false_alarm_sentence(false_alarms(machine))
    return replace(found, verdicts=replace(found.verdicts, notes=(*found.verdicts.notes, trust)))


def false_alarms(machine: str) -> Estimate | None:
    """How often the gate called the same code regressed in a machine's newest self-tests; null without one."""
    return _false_alarms(address(), _selftests(machine))


def tonight() -> Night:
    """What happened to regressions in the last 24 hours. Raises StoreError."""
    return _tonight(address())


def unseen() -> int:
    """Series with a point that the detector has not looked at. Raises StoreError."""
    return _unseen(address())


def canary() -> dict[str, ChangePoint | None]:
    """The newest change of the canary by machine; null where it has never moved, no key where it never ran."""
    return _canary(address())


def series() -> Sequence[Series]:
    """All series that have a point; none where there is no database yet. Raises StoreError."""
    url = address()
    return [] if _missing(url) else _series(url)


def tracks(fingerprints: Sequence[str]) -> list[Track]:
    """These series with their newest POINTS points, in this order; those that are unknown are left out."""
    return _tracks(address(), tuple(fingerprints))


def stories() -> Sequence[Story]:
    """Every regression of any state with its change points, the weightiest first. Raises StoreError."""
    url = address()
    return [] if _missing(url) else _stories(url)


def regression(ref: str) -> RegressionView:
    """By its key or a unique beginning of it. Raises MissingError, StoreError."""
    return _regression(address(), ref)


def decide(
    seen: Regression, action: Action, text: str, *, who: str, until: date | None = None
) -> Regression:  # fmt: skip
    """Append what somebody decided on the regression they have seen; what it became.

    Raises StaleError where more has happened since they saw it, UsageError for what makes no sense now, StoreError.
    """
    event = decision(seen, action, text, who=who, at=datetime.now(UTC), until=until)
    try:
        return _store(address()).history.append(event)
    finally:
        _stories.clear()
        _regression.clear()


def machines() -> dict[str, str]:
    """Label by fingerprint of every machine that has a run, the newest run's first. Raises StoreError."""
    found: dict[str, str] = {}
    for info in runs(MACHINES):
        found.setdefault(info.machine_fingerprint, info.machine_label)
    return found


def claims(machine: str) -> Sequence[Answer]:
    """Every claim with what a machine's runs say of it; without a machine (empty) only facts and counts are known.

    Raises ConfigError where no suites with claims are there, StoreError.
    """
    newest = next((info.key for info in runs(MACHINES) if info.machine_fingerprint == machine), "")
    config = load_config()
    return _claims(config.database, config.suites, config.root, machine, newest)


def _missing(url: str) -> bool:
    """A SQLite file that nobody has made yet is an empty database, not an error."""
    prefix, _, path = url.partition(":///")
    return prefix.startswith("sqlite") and path not in ("", ":memory:") and not os.path.lexists(path)


@st.cache_resource(show_spinner=False, max_entries=4)
def _store(url: str) -> Store:
    from db.store import open_store

    return open_store(url, create=False)


@st.cache_data(ttl=10, max_entries=8, show_spinner=False)
def _runs(url: str, limit: int) -> Sequence[RunInfo]:
    return list(_store(url).runs(limit=limit))


@st.cache_data(max_entries=64, show_spinner="Reading the run …")
def _run(url: str, key: str) -> RunView:
    return view_of(_store(url).get(key))


@st.cache_resource(max_entries=2, show_spinner="Reading the samples …")
def _raw(url: str, key: str) -> Run:
    """With all samples: only the last ones looked at are kept."""
    return _store(url).get(key)


@st.cache_data(max_entries=32, show_spinner="Reading the run …")
def _both_sides(url: str, key: str) -> Compared | None:
    run = _store(url).get(key)
    found = None if run.source == SOURCE else comparison_of(run)
    if found is None:
        return None
    return Compared(verdicts=found, command=command_of(run), repeats="Measure both sides again, launched in pairs.")


@st.cache_data(max_entries=32, show_spinner="Comparing the runs …")
def _comparison(url: str, base: str, head: str) -> Compared:
    store = _store(url)
    return Compared(
        verdicts=compare_runs(store.get(base), store.get(head)),
        command=f"bench compare {short(base)} {short(head)}", repeats="Print the same in a terminal.",
    )  # fmt: skip


def _selftests(machine: str) -> tuple[str, ...]:
    infos = [i for i in runs(MACHINES) if i.source == SOURCE and i.machine_fingerprint == machine]
    return tuple(info.key for info in infos[:SELFTESTS])


@st.cache_data(max_entries=16, show_spinner="Reading the self-tests …")
def _false_alarms(url: str, keys: tuple[str, ...]) -> Estimate | None:
    store = _store(url)
    return gate_false_alarms(store.get(key) for key in keys)


@st.cache_data(ttl=10, max_entries=8, show_spinner=False)
def _series(url: str) -> Sequence[Series]:
    return list(_store(url).history.series())


@st.cache_data(ttl=10, max_entries=8, show_spinner="Reading the night …")
def _tonight(url: str) -> Night:
    now = datetime.now(UTC)
    return night_of(_store(url).history, since=now - NIGHT, until=now)


@st.cache_data(ttl=10, max_entries=8, show_spinner=False)
def _unseen(url: str) -> int:
    return len(_store(url).history.series(changed=True))


@st.cache_data(ttl=60, max_entries=8, show_spinner=False)
def _canary(url: str) -> dict[str, ChangePoint | None]:
    own = [s for s in _series(url) if s.suite == CANARY]
    changes = _store(url).history.changes(series=[s.fingerprint for s in own]) if own else ()
    return newest_move(own, changes)


@st.cache_data(ttl=60, max_entries=64, show_spinner="Reading the history …")
def _tracks(url: str, fingerprints: tuple[str, ...]) -> list[Track]:
    history = _store(url).history
    points = history.points(fingerprints, limit=POINTS)
    known = history.changes(series=fingerprints)
    by_name = {s.fingerprint: s for s in _series(url)}
    return [
        track_of(by_name[name], points.get(name, []), [c for c in known if c.series.fingerprint == name])
        for name in fingerprints
        if name in by_name
    ]


@st.cache_data(ttl=10, max_entries=8, show_spinner="Reading the regressions …")
def _stories(url: str) -> Sequence[Story]:
    history = _store(url).history
    changes: dict[str | None, list[ChangePoint]] = {}
    for change in history.changes():
        changes.setdefault(change.regression, []).append(change)
    found = [story(r, (), changes.get(r.key, ())) for r in history.regressions()]
    return sorted(found, key=lambda s: s.weight, reverse=True)


@st.cache_data(ttl=10, max_entries=64, show_spinner="Reading the regression …")
def _regression(url: str, ref: str) -> RegressionView:
    history = _store(url).history
    found = history.regression(ref)
    every = history.changes(regression=found.key, superseded=True)
    living = story(found, (), [c for c in every if c.superseded_by is None])
    gone = tuple(c for c in every if c.superseded_by is not None)
    return RegressionView(
        story=living, changes=living.changes + gone, events=tuple(history.events(found.key)),
        profiles=tuple(history.profiles([change.key for change in every])),
    )  # fmt: skip


@st.cache_data(max_entries=8, show_spinner="Reading the runs behind the claims …")
def _claims(url: str, suites: tuple[str, ...], root: Path, machine: str, newest: str) -> Sequence[Answer]:
    """`newest` is the key of the machine's newest run: a newer one makes an answer stale."""
    known = claims_of(suites, root)
    return answers_from(_store(url), machine, known) if newest else answers(known, ())


def sentence(error: Exception) -> str:
    """What a page says about an error: ours carry their sentence, others only their kind."""
    if isinstance(error, BenchError):
        return str(error)
    return f"The database {where()} cannot be used ({type(error).__name__})."
