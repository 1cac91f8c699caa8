"""What the core asks of the outside, as Protocols. Each is small; fakes of all ship in bench.testing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from bench.history import (
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
from bench.model import Benchmark, Environment, ExperimentResult, Failure, Run, RunStatus, Target

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from bench.formats._record import Imported
    from bench.formats._upload import Upload
    from bench.night import Night


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery:
    """What a source found. Modules that could not be read are problems, not exceptions."""

    benchmarks: tuple[Benchmark, ...]
    problems: tuple[Failure, ...] = ()


class Source(Protocol):
    """Where benchmarks come from. Runs in the parent; suite code runs only in workers."""

    name: str

    def discover(self, target: Target, patterns: Sequence[str] = ()) -> Discovery:
        """All benchmarks as seen from `target`; with `patterns` of their names, at least those that match one."""
        ...


class Suites(Source, Protocol):
    """A source whose benchmarks a worker can load."""

    path: tuple[str, ...]
    """What the worker must be able to import (see bench.loaders.paths); known after `discover`."""


class Device(Protocol):
    """What a benchmark computes on. Lives in the worker."""

    name: str  # cpu, cuda, openvino, …
    kind: str  # one of bench.model.KINDS
    threads: int

    def synchronize(self) -> None:
        """Return when all work handed to the device is done; inside the timed region."""
        ...


class Metered(Device, Protocol):
    """A device with marks and sensors of its own. The worker asks where a device has them; none must fail."""

    def begin(self) -> None:
        """Put a mark behind all work handed over so far; `synchronize` puts the one that ends the time."""
        ...

    def elapsed_ns(self) -> int:
        """Time of the device from the mark of `begin` to that of the last `synchronize`."""
        ...

    def energy_uj(self) -> int | None:
        """Microjoules of the whole device since some time ago; null where it does not count."""
        ...

    def conditions(self) -> dict[str, object]:
        """Fields of bench.model.DeviceConditions, now."""
        ...


class Clock(Protocol):
    """Two monotonic clocks in integer nanoseconds."""

    def wall(self) -> int:
        """Elapsed time."""
        ...

    def cpu(self) -> int:
        """CPU time of all threads of this process."""
        ...


class Added(StrEnum):
    """What storing a run did."""

    NEW = "new"
    REPLAY = "replay"  # the same run with the same content was there


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """One line about a stored run: enough for a list, without raw samples."""

    key: str
    started_at: datetime
    finished_at: datetime
    status: RunStatus
    profile: str
    source: str
    machine_fingerprint: str
    machine_label: str
    environment_fingerprint: str
    commit: str | None
    dirty: bool
    branch: str | None
    suites: tuple[str, ...]
    arms: int
    failures: dict[str, int]  # by failure kind, only kinds that occur
    problems: int


class PastGates(Protocol):
    """Gate experiments of earlier runs, for what their launches tell of the spread."""

    def gates(self, variant: str, version: str, machine: str, *, limit: int) -> Sequence[ExperimentResult]:
        """The newest `limit` of one variant of a benchmark version on one machine (its fingerprint), newest first."""
        ...


class Store(PastGates, Protocol):
    """Keeps runs. Never changes one."""

    @property
    def history(self) -> History:
        """What detection and triage keep of these runs."""
        ...

    def add(self, run: Run) -> Added:
        """Store in one transaction. Raises RunConflictError for the same key with other content."""
        ...

    def add_many(self, runs: Sequence[Run]) -> Sequence[Added]:
        """Store all in one transaction, or none; what became of each. Raises what `add` raises."""
        ...

    def get(self, key: str) -> Run:
        """The run as it was added, raw samples included. Raises MissingError."""
        ...

    def find(self, ref: str) -> str:
        """Key of `latest`, `latest~N`, a key, or a unique beginning of a key (at least 4 digits).

        Raises MissingError where nothing or more than one run matches.
        """
        ...

    def runs(self, *, limit: int | None = None) -> Sequence[RunInfo]:
        """Newest first."""
        ...

    def close(self) -> None:
        """Release the connection."""
        ...


class Report(Protocol):
    """Turns results into text for one reader."""

    name: str

    def run(self, run: Run) -> str:
        """One run: what each variant gives over its baseline."""
        ...


class Detector(Protocol):
    """Finds where a series changed. Pure and deterministic."""

    name: str

    def changes(self, values: NDArray[np.float64]) -> list[int]:
        """First indices of new levels, ascending; 0 is none.

        `values` are in units of their noise (bench.stats.noise.standardize), shape (n,), oldest first.
        """
        ...


class Format(Protocol):
    """Result files of another tool."""

    name: str  # as in --format
    title: str  # for a person

    def sniff(self, upload: Upload) -> bool:
        """Whether the content is of this format and can be of no other; never raises, never guesses.

        Files that only explain others (asv's machine.json) are claimed too.
        """
        ...

    def read(self, upload: Upload) -> Iterable[Imported | Run]:
        """The runs of one file; none for a file that only explains others.

        Raises FormatError with a sentence that continues the file's name ("has no …").
        """
        ...


class Progress(Protocol):
    """Told what happens while measuring; must never fail."""

    def plan(self, experiments: Sequence[str], launches: Sequence[int], budgets: Sequence[float | None]) -> None:
        """Names, most launches and most seconds (null: no limit) of each, before the first."""
        ...

    def rehearsing(self, experiment: int) -> None:
        """The experiment at that index is set up and checked for the first time."""
        ...

    def launch_done(self, experiment: int, seconds: float) -> None:
        """One launch of the experiment at that index has ended."""
        ...

    def experiment_done(self, experiment: int) -> None:
        """No more launches of it."""
        ...

    def message(self, text: str) -> None:
        """One sentence for a person."""
        ...


class History(Protocol):
    """What detection and triage keep, derived from runs: may be dropped and rebuilt, but for people's events.

    Every call is one transaction. Values are those of bench.history.
    """

    def series(self, *, changed: bool = False, machine: str | None = None) -> Sequence[Series]:
        """All series that have a point; with `changed` those with one that the detector has not seen (see `record`)."""
        ...

    def points(self, fingerprints: Sequence[str], *, limit: int | None = None) -> dict[str, list[Point]]:
        """Points of each series, oldest first by `at`; with `limit` the newest so many of each.

        Without failed arms, dirty trees, interrupted or quarantined runs, and values without an estimate.
        Several points of one commit in one environment are all there: the caller folds them.
        """
        ...

    def environment(self, fingerprint: str) -> Environment:
        """An environment by its fingerprint. Raises MissingError."""
        ...

    def changes(
        self, *, series: Sequence[str] | None = None, regression: str | None = None, superseded: bool = False
    ) -> Sequence[ChangePoint]:
        """Change points, oldest first; without those that were superseded unless asked for."""
        ...

    def record(self, changes: Sequence[ChangePoint], *, seen: Mapping[str, str]) -> None:
        """Keep new change points and new values of known ones (by key), and note how far the detector came.

        `seen` maps the fingerprint of a series to the run key of its newest point; a series that has a newer
        one meanwhile stays changed. A new value without a proof or a regression keeps those of the old one.
        Raises MissingError for a series that has no point.
        """
        ...

    def regressions(self, *, states: Sequence[State] = ()) -> Sequence[Regression]:
        """Newest first; all states unless some are named. An expected one whose date is past counts as open."""
        ...

    def regression(self, ref: str) -> Regression:
        """By its key or a unique beginning of it (at least 4 digits). Raises MissingError."""
        ...

    def events(self, key: str) -> Sequence[Event]:
        """Everything that happened to a regression, in order. Raises MissingError."""
        ...

    def open_regression(self, regression: Regression, event: Event) -> None:
        """A new one with its first event. Its change points, and later those of GREW, are told its key.

        Raises StaleError when the key is taken.
        """
        ...

    def append(self, event: Event) -> Regression:
        """Add `event`, whose number must be the last one's plus 1, and return what the regression became.

        Raises StaleError when somebody else appended first: read again and decide again. UsageError for an
        event that `bench.triage.fold` refuses.
        """
        ...

    def request(self, request: ProofRequest) -> bool:
        """Queue a proof; false where the same key is there already."""
        ...

    def requests(self, *, states: Sequence[RequestState] = ()) -> Sequence[ProofRequest]:
        """Wanted proofs, oldest first."""
        ...

    def take(self, machine: str) -> ProofRequest | None:
        """The oldest queued proof for the machine of that fingerprint, now taken; null where there is none.

        One that was taken longer ago than LEASE and has no answer is queued again.
        """
        ...

    def finish(self, request: str, proof: Proof) -> None:
        """Close a request and put its proof on the change point."""
        ...

    def keep_profile(self, profile: KeptProfile) -> None:
        """Keep it with its change point, in place of an older one of the same engine."""
        ...

    def profiles(self, changes: Sequence[str]) -> Sequence[KeptProfile]:
        """Of the change points of these keys, the newest first."""
        ...

    def claim_notice(self, key: str) -> bool:
        """True once for every key: whoever gets it sends that notice."""
        ...

    def release_notice(self, key: str) -> None:
        """The notice could not be sent: let it be claimed again."""
        ...


class Notifier(Protocol):
    """One channel that a night is told to."""

    name: str
    one_by_one: bool
    """Whether it is given one cause at a time, since it keeps a thread for each."""

    def tell(self, night: Night) -> Mapping[str, str]:
        """Send; returns links by regression key where it made any. Raises NotifyError."""
        ...
