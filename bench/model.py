"""The words of the house (docs/glossary.md) as frozen values. No I/O, standard library only.

The worker imports this module inside whatever interpreter is measured, so nothing here may need a
third-party package. Durations are integer nanoseconds, sizes are bytes, moments are aware UTC.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import StrEnum

from bench.metrics import Metric

Scalar = str | int | float | bool
"""Value of an axis."""

Number = int | float
"""One raw sample: integer nanoseconds or bytes, 0/1 per item, or a float."""

FEWEST_LAUNCHES = 3
"""The fewest whose t interval (2 degrees of freedom: 4.3 standard errors) says anything; under five none is trimmed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One point of a benchmark's axes."""

    benchmark: str
    params: dict[str, Scalar]
    baseline: bool = False

    @property
    def name(self) -> str:
        """`suite.function[axis=value,…]`."""
        return variant_name(self.benchmark, self.params)


def variant_name(benchmark: str, params: Mapping[str, Scalar]) -> str:
    """The one spelling of a variant's name."""
    inner = ",".join(f"{axis}={_spell(value)}" for axis, value in params.items())
    return f"{benchmark}[{inner}]" if inner else benchmark


def _spell(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """A named piece of work, as its source describes it without running it.

    `version` is a hash of the workload's syntax tree and sampling settings, or set by hand.
    `source` finds it again inside a worker through `loader`: for the native one `module:function`.
    """

    name: str
    version: str
    suite: str
    source: str
    loader: str = "bench.loaders.native"
    title: str = ""
    axes: dict[str, list[Scalar]] = field(default_factory=dict)
    baseline: dict[str, Scalar] = field(default_factory=dict)
    exclude: tuple[dict[str, Scalar], ...] = ()
    metrics: tuple[Metric, ...] = ()
    primary: str = "time"  # the metric that a gate decides on
    requires: tuple[str, ...] = ()
    profiles: tuple[str, ...] = ("quick", "full")
    threads: int = 1
    timeout_s: float = 120.0
    launches: int | None = None  # the most that a run of a profile makes, where launches are expensive; no gate's limit

    def variants(self) -> tuple[Variant, ...]:
        """All points of the axes in declared order, less the excluded ones."""
        points: list[dict[str, Scalar]] = [{}]
        for axis, values in self.axes.items():
            points = [{**point, axis: value} for point in points for value in values]
        return tuple(
            Variant(
                benchmark=self.name,
                params=point,
                baseline=bool(self.baseline) and _matches(point, self.baseline),
            )
            for point in points
            if not any(_matches(point, rule) for rule in self.exclude)
        )

    def group_of(self, variant: Variant) -> dict[str, Scalar]:
        """The axes that the baseline does not fix: variants that share them are compared.

        Without a baseline all variants are one group.
        """
        if not self.baseline:
            return {}
        return {axis: value for axis, value in variant.params.items() if axis not in self.baseline}


def _matches(point: Mapping[str, Scalar], rule: Mapping[str, Scalar]) -> bool:
    return all(axis in point and point[axis] == value for axis, value in rule.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """A commit of the project whose suites were measured."""

    commit: str
    dirty: bool = False
    branch: str | None = None
    committed_at: datetime | None = None


REAL, EMULATED, ESTIMATED = KINDS = ("real", "emulated", "estimated")
"""Whether answers come from the device itself, from a program that computes what it would, or from a compiler's
reckoning of its cycles. Only what is real has a time."""

HARNESS_VARIABLES = ("PYTHONPATH", "PYTHONHASHSEED", "PYTHONSAFEPATH", "PYTHONHOME", "BENCH_OVERLAYS")
"""Variables of a target that the harness itself decides: how a worker finds its code, no part of what is measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where code runs."""

    label: str = "here"
    python: str | None = None  # interpreter; null: the one that runs bench
    revision: Revision | None = None
    requirements: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)
    device: str = "cpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """A variant at a target."""

    variant: Variant
    target: Target = Target()

    @property
    def key(self) -> str:
        """Unique inside an experiment."""
        return f"{self.variant.name}@{self.target.label}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Borrowed:
    """What earlier runs of a variant know of the spread of one launch (bench.stats.moderated.Prior)."""

    metric: str
    variance: float  # of log(head / base)
    freedom: float  # degrees of freedom that it is worth
    runs: int  # experiments behind it


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """What a rule says of one metric, which a gate then judges whatever it does with others of its kind."""

    metric: str
    floor: float | None = None  # smallest relative change that is called one; null: that of its kind
    margin: float | None = None  # UNCHANGED: the whole interval lies inside ± this; null: that of its kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How hard to look. Durations in nanoseconds."""

    launches: int = 7
    rounds: int = 4  # fewer for calls of over 100 ms
    samples: int = 10  # per round, fewer for calls of over 5 ms
    sample_ns: int = 1_000_000  # a sample lasts at least this long
    side_ns: int = 200_000_000  # samples of one arm in one launch aim at this together
    warm_up_calls: int = 20
    warm_up_ns: int = 30_000_000
    warm_up_cap_ns: int = 2_000_000_000
    warm_up_long_ns: int = 300_000_000  # the cap for calls of over 25 ms; longer calls than this get none
    budget_s: float | None = None  # per experiment: no launch starts after it; null: none
    gate: bool = False  # two arms, measured until a verdict is reached; `launches` is the most
    alpha: float = 0.01  # two-sided error of a gate over all its looks
    floor: float = 0.01  # smallest relative change of time that is called one
    margin: float = 0.02  # UNCHANGED: the whole interval lies inside ± this
    memory_floor: float = 0.05  # smallest relative change of peak memory that is called one
    always_valid: bool = False  # a gate that is looked at after every launch and may be continued
    borrowed: tuple[Borrowed, ...] = ()  # a gate that decides on few launches, with the spread of earlier runs
    loops: int = 0  # calls in a sample, from the comparison that is continued; 0: calibrated
    family: int = 0  # variants whose changes a gate judges together; 0: each alone, a confirmation follows
    thresholds: tuple[Threshold, ...] = ()  # metrics that a rule names, each once
    instructions: bool = False  # whether they are counted, which takes valgrind
    allocations: bool = False  # whether their peak is taken, in a call of its own
    tail_ns: int = 0  # calls of one arm in one launch that are timed alone take this together; 0: none are


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """The arms that are launched side by side: one benchmark at one point of its free axes."""

    benchmark: Benchmark
    arms: tuple[Arm, ...]
    policy: Policy
    seed: int

    @property
    def name(self) -> str:
        """The benchmark and the axes that its baseline leaves free."""
        return variant_name(self.benchmark.name, self.benchmark.group_of(self.arms[0].variant))

    def baseline_of(self, arm: Arm) -> Arm | None:
        """The arm that `arm` is compared with; null for a baseline or where none was declared."""
        if arm.variant.baseline:
            return None
        for other in self.arms:
            if other.variant.baseline and other.target == arm.target:
                return other
        return None


class FailureKind(StrEnum):
    """Why an arm has no result."""

    SKIPPED = "skipped"  # something it requires is not here
    RAISED = "raised"  # an exception left the suite's code
    TIMED_OUT = "timed_out"
    DIED = "died"  # the process ended by itself or was killed
    WRONG = "wrong"  # it answered, and the answer is wrong
    UNMEASURED = "unmeasured"  # the run ended before its turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A result, not an exception. `message` is one sentence, `detail` the end of what was printed."""

    kind: FailureKind
    phase: str  # discover, set_up, first_call, check, calibrate, warm_up, round, report
    message: str
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """Raw samples of one metric of one arm.

    `launches[k]` holds the samples of launch k (all arms of an experiment share k, so values at one
    k are a pair). A sample covers `loops` calls. For `Summary.ITEMS` and `Summary.EXACT` there is
    one row, taken in the first launch.
    """

    metric: Metric
    launches: tuple[tuple[Number, ...], ...]
    loops: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmResult:
    """What one arm gave. With a failure, the measurements are those from before it."""

    arm: Arm
    measurements: tuple[Measurement, ...] = ()
    failure: Failure | None = None
    items: float = 1.0  # pieces of work in one call
    notes: dict[str, str] = field(default_factory=dict)  # what the suite says of itself, e.g. the provider
    absent: dict[str, str] = field(default_factory=dict)  # by metric name: why it has no value here

    def measurement(self, name: str) -> Measurement | None:
        """The measurement of that metric, if there is one."""
        return next((m for m in self.measurements if m.metric.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceConditions:
    """What a device beside the processor did right after a round; null where it does not tell."""

    clock_mhz: float | None = None
    temperature_c: float | None = None
    power_w: float | None = None  # of the whole device, an average over its last moments
    throttled: tuple[str, ...] | None = None  # what held its clock down; empty: nothing
    foreign: int | None = None  # processes on it that are none of this session's


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundConditions:
    """What the machine did to one round of one arm; null where the system does not tell."""

    arm: int  # index into the experiment's arms
    round: int
    wall_ns: int
    involuntary_switches: int | None = None
    major_faults: int | None = None
    minor_faults: int | None = None
    voluntary_switches: int | None = None  # waits: for input, a lock, a device; 0: it computed all the time
    cpu_pressure_ns: int | None = None  # some task waited for a CPU, whole machine
    steal_ns: int | None = None  # taken by the hypervisor, whole machine
    io_pressure_ns: int | None = None  # some task waited for a disk or the network, whole machine
    memory_pressure_ns: int | None = None  # some task waited for memory, whole machine
    clock_mhz: float | None = None  # of the CPUs that the process may use, right after the round
    temperature_c: float | None = None  # of the processor, right after the round
    device: DeviceConditions | None = None  # where the work ran on one that tells


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One process per arm, side by side: a fresh one, or the fork of a fresh parent of its target."""

    index: int
    started_at: datetime
    hash_seed: int
    core: int | None  # the core all arms were pinned to; null: not pinned
    priority: str  # fifo, nice or normal; joined by + where arms differ
    order: tuple[int, ...]  # arms in the order of their start
    rounds: tuple[RoundConditions, ...] = ()
    load: float | None = None  # load average of the last minute, before it
    forked: bool = False  # from parents that had imported the suite


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentResult:
    """An experiment and all that was seen."""

    experiment: Experiment
    results: tuple[ArmResult, ...]  # in the order of the arms
    launches: tuple[Launch, ...]

    def result(self, arm: Arm) -> ArmResult:
        """The result of one arm of this experiment."""
        return self.results[self.experiment.arms.index(arm)]


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """A device beside the CPU."""

    kind: str  # gpu, npu
    model: str
    memory_bytes: int | None = None
    driver: str | None = None
    firmware: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What changes speed and stays the same over a reboot; never a hostname, never a live reading.

    Null is what the source of an imported run does not tell; our own runs know all but `physical_cores`.
    """

    architecture: str | None
    cpu: str | None
    physical_cores: int | None
    logical_cores: int | None
    memory_gib: int | None
    isa: tuple[str, ...] = ()  # instruction sets that inference kernels choose by
    accelerators: tuple[Accelerator, ...] = ()
    virtual: str | None = None  # hypervisor or container technology
    tags: tuple[str, ...] = ()  # chosen by people: no part of the fingerprint
    named: str | None = None  # an imported machine whose CPU nobody knows: what people call it, its identity

    @property
    def fingerprint(self) -> str:
        """Two runs may be compared in time only where this agrees."""
        facts = asdict(self)
        del facts["tags"]
        if self.named is None:  # as it was before there were imported machines
            del facts["named"]
        return _digest(facts)

    @property
    def label(self) -> str:
        """Short text for a person."""
        parts = [self.named or self.cpu or "unknown processor"]
        if self.logical_cores is not None:
            parts.append(f"{self.logical_cores} cores")
        if self.memory_gib is not None:
            parts.append(f"{self.memory_gib} GiB")
        return ", ".join(parts + [a.model for a in self.accelerators])


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """What annotates a point and explains a change; no part of a series' identity."""

    python: str | None  # null: an imported run of another language, or one that does not tell
    system: str | None  # operating system and kernel; null: the source of an imported run does not tell
    packages: dict[str, str] = field(default_factory=dict)
    drivers: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)  # threads, governor, variables

    @property
    def fingerprint(self) -> str:
        """Equal where everything recorded is equal."""
        return _digest(asdict(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What the machine was doing around a run; null where the system does not tell."""

    load_before: float | None = None  # load average of the last minute
    load_after: float | None = None
    cpu_pressure: float | None = None  # share of the run in which some task waited for a CPU
    steal: float | None = None  # share of all CPU time taken by the hypervisor
    foreign_cpu: float | None = None  # share of all CPU time used by others than this run
    temperature_c: float | None = None
    clock_mhz: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduced:
    """A measurement of which retention left one value a launch: the lower quartile of its samples."""

    arm: int  # over the whole run
    metric: str
    samples: tuple[int, ...]  # how many each launch had


class RunStatus(StrEnum):
    """Whether a run came to its planned end."""

    COMPLETE = "complete"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One or more experiments executed on one machine in one go: what is stored, moved, imported."""

    key: str  # 32 hexadecimal digits, made once; of an import made from what was measured
    started_at: datetime
    finished_at: datetime
    status: RunStatus
    profile: str
    machine: Machine
    environment: Environment
    experiments: tuple[ExperimentResult, ...]
    conditions: Conditions = Conditions()
    revision: Revision | None = None
    problems: tuple[Failure, ...] = ()  # suites that could not be read
    source: str = "native"
    bench_version: str = ""
    reduced: tuple[Reduced, ...] = ()  # what `bench db prune` took samples from
    quarantine: tuple[str, ...] = ()  # what an import lacks (commit, machine, tool version): kept out of history

    def arms(self) -> Iterator[tuple[ExperimentResult, ArmResult]]:
        """Every arm with its experiment."""
        for experiment in self.experiments:
            for result in experiment.results:
                yield experiment, result


class Verdict(StrEnum):
    """The answer of a comparison."""

    IMPROVED = "improved"
    REGRESSED = "regressed"
    UNCHANGED = "unchanged"
    INCONCLUSIVE = "inconclusive"
    INCOMPARABLE = "incomparable"
    FAILED = "failed"
    TRADE = "trade"


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A number with its 95 % interval, or `note` saying why there is none."""

    value: float
    low: float | None = None
    high: float | None = None
    n: int = 1  # launches or items behind it
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One metric of one variant between two arms.

    `change` is head / base for everything but accuracy, where it is head − base.
    """

    metric: Metric
    base: Estimate
    head: Estimate
    change: Estimate
    relative: bool  # change is a ratio (else a difference)
    paired: bool
    verdict: Verdict
    reason: str = ""
