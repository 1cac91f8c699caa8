"""Is this machine fit to measure? Pure checks over what runners.checkup read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

GIB = 2**30


class Status(StrEnum):
    """How a finding bears on a measurement."""

    OK = "ok"
    WARN = "warn"  # results hold, but need more launches or are wider
    BAD = "bad"  # results would mislead
    UNKNOWN = "unknown"  # the system does not tell


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One check. `advice` is one sentence, empty where there is nothing to do."""

    name: str
    status: Status
    seen: str
    advice: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """Another process that used the CPU while we looked. `cpus` is in whole CPUs."""

    name: str
    pid: int
    cpus: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """What a fixed spin loop saw. Slices are about a millisecond, as a sample is.

    `disturbed` is the share of slices that took over 20 % longer than the lower quartile,
    `worst` the longest slice over the lower quartile.
    """

    slices: int
    disturbed: float
    worst: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkup:
    """All that was read; null where the system does not tell. Shares are between 0 and 1."""

    cpus: int
    physical_cores: int | None = None
    load: float | None = None
    governor: str | None = None
    turbo: str | None = None
    smt: str | None = None  # the kernel's word: on, off, forceoff, notsupported
    virtual: str | None = None
    steal: float | None = None
    foreign_cpu: float | None = None
    tenants: tuple[Tenant, ...] = ()
    memory_bytes: int | None = None
    memory_free_bytes: int | None = None
    swap_used_bytes: int | None = None
    temperature_c: float | None = None
    clock_source: str | None = None
    clock_step_ns: int = 0  # smallest step of perf_counter that was seen
    real_time: bool | None = None
    nice: bool | None = None
    aslr: str | None = None
    hugepages: str | None = None
    python: str = ""
    python_debug: bool = False
    versions: dict[str, str] | None = None
    missing: tuple[str, ...] = ()  # packages of the suites that are not installed
    state: str = ""
    disk_free_bytes: int | None = None
    noise: Noise | None = None


def examine(checkup: Checkup) -> tuple[Finding, ...]:
    """All findings, in the order of reading."""
    return tuple(check(checkup) for check in CHECKS)


def overall(findings: Sequence[Finding]) -> str:
    """`fit`, `usable with care` (something warns) or `not fit` (something is bad)."""
    statuses = {finding.status for finding in findings}
    if Status.BAD in statuses:
        return "not fit"
    return "usable with care" if Status.WARN in statuses else "fit"


def check_load(c: Checkup) -> Finding:
    """Runnable tasks for each CPU; the paired design was measured at up to 6 and stays honest, but slow."""
    if c.load is None:
        return Finding(name="load", status=Status.UNKNOWN, seen="not shown")
    each = c.load / c.cpus
    status = Status.OK if each < 0.3 else Status.WARN if each < 1.5 else Status.BAD
    return Finding(
        name="load",
        status=status,
        seen=f"{c.load:.2f} in the last minute on {_count(c.cpus, 'CPU')}",
        advice="" if status is Status.OK else "Wait until other work has ended, or stop it.",
    )


def check_tenants(c: Checkup) -> Finding:
    """Who else computes right now."""
    if c.foreign_cpu is None:
        return Finding(name="other tenants", status=Status.UNKNOWN, seen="CPU time of others is not shown")
    status = Status.OK if c.foreign_cpu < 0.05 else Status.WARN if c.foreign_cpu < 0.75 else Status.BAD
    who = ", ".join(f"{t.name} ({t.pid}) {t.cpus:.1f} CPUs" for t in c.tenants)
    return Finding(
        name="other tenants",
        status=status,
        seen=f"{c.foreign_cpu:.0%} of all CPU time" + (f": {who}" if who else ""),
        advice="" if status is Status.OK else "Stop what computes beside the benchmarks, or measure at another time.",
    )


def check_noise(c: Checkup) -> Finding:
    """The sum of it all: how many samples would be disturbed."""
    if c.noise is None:
        return Finding(name="timer noise", status=Status.UNKNOWN, seen="not probed")
    status = Status.OK if c.noise.disturbed < 0.05 else Status.WARN if c.noise.disturbed < 0.5 else Status.BAD
    return Finding(
        name="timer noise",
        status=status,
        seen=f"{c.noise.disturbed:.1%} of {c.noise.slices} slices disturbed, worst ×{c.noise.worst:.1f}",
        advice="" if status is Status.OK else "Expect wider intervals; more launches (--launches) narrow them.",
    )


def check_virtual(c: Checkup) -> Finding:
    """Hypervisors take the CPU away; a container alone does not."""
    name = "virtualisation"
    if c.steal is not None and c.steal >= 0.01:
        return Finding(
            name=name,
            status=Status.BAD if c.steal >= 0.1 else Status.WARN,
            seen=f"{c.virtual or 'hypervisor'}, {c.steal:.1%} of CPU time stolen",
            advice="A neighbour takes CPU time: use a dedicated machine, or measure at another time.",
        )
    if c.virtual is None:
        return Finding(name=name, status=Status.OK, seen="none seen")
    if c.virtual in ("docker", "podman", "lxc", "kubernetes"):
        return Finding(name=name, status=Status.OK, seen=f"{c.virtual}, on the machine's own kernel")
    steal = "steal not shown" if c.steal is None else "no CPU time stolen now"
    return Finding(
        name=name,
        status=Status.WARN,
        seen=f"{c.virtual}, {steal}",
        advice="Trust comparisons inside a run; absolute times drift with what neighbours do.",
    )


def check_governor(c: Checkup) -> Finding:
    """A clock that follows demand warms up inside a measurement."""
    if c.governor is None:
        return Finding(name="CPU governor", status=Status.UNKNOWN, seen="not shown (usual in a virtual machine)")
    if c.governor == "performance":
        return Finding(name="CPU governor", status=Status.OK, seen=c.governor)
    return Finding(
        name="CPU governor",
        status=Status.WARN,
        seen=c.governor,
        advice="Fix the clock: `cpupower frequency-set -g performance`.",
    )


def check_turbo(c: Checkup) -> Finding:
    """Turbo depends on temperature and on how many cores are busy."""
    if c.turbo is None:
        return Finding(name="turbo", status=Status.UNKNOWN, seen="not shown (usual in a virtual machine)")
    if c.turbo == "off":
        return Finding(name="turbo", status=Status.OK, seen="off")
    return Finding(
        name="turbo",
        status=Status.WARN,
        seen="on: the clock follows temperature and busy cores",
        advice="For steady absolute times turn turbo off: write 1 to intel_pstate/no_turbo or 0 to cpufreq/boost.",
    )


def check_smt(c: Checkup) -> Finding:
    """Two threads of one core share its units."""
    doubled = c.physical_cores is not None and c.physical_cores < c.cpus
    if doubled or c.smt == "on":
        return Finding(
            name="SMT",
            status=Status.WARN,
            seen=f"on: {_count(c.cpus, 'CPU')} on {c.physical_cores or '?'} cores",
            advice="Switch siblings off while measuring: `echo off > /sys/devices/system/cpu/smt/control`.",
        )
    if c.smt is None and c.physical_cores is None:
        return Finding(name="SMT", status=Status.UNKNOWN, seen="not shown")
    return Finding(name="SMT", status=Status.OK, seen="no two of our CPUs share a core")


def check_memory(c: Checkup) -> Finding:
    """Free memory, and what is swapped out already."""
    if c.memory_free_bytes is None or c.memory_bytes is None:
        return Finding(name="memory", status=Status.UNKNOWN, seen="not shown")
    swap = c.swap_used_bytes or 0
    status, advice = Status.OK, ""
    if c.memory_free_bytes < GIB / 2:
        status, advice = Status.BAD, "Free memory: benchmarks would swap or die."
    elif c.memory_free_bytes < 2 * GIB:
        status, advice = Status.WARN, "Free memory: large models need over 2 GiB."
    elif swap > 0.1 * c.memory_bytes:
        status, advice = Status.WARN, "Free memory and empty the swap (`swapoff -a`)."
    seen = f"{_gib(c.memory_free_bytes)} of {_gib(c.memory_bytes)} free, {_gib(swap)} swapped out"
    return Finding(name="memory", status=status, seen=seen, advice=advice)


def check_thermal(c: Checkup) -> Finding:
    """Most processors throttle near 95 °C."""
    if c.temperature_c is None:
        return Finding(name="temperature", status=Status.UNKNOWN, seen="no sensor (usual in a virtual machine)")
    status = Status.OK if c.temperature_c < 75 else Status.WARN if c.temperature_c < 92 else Status.BAD
    return Finding(
        name="temperature",
        status=status,
        seen=f"{c.temperature_c:.0f} °C",
        advice="" if status is Status.OK else "Let it cool down or mend the cooling: a hot CPU throttles.",
    )


def check_clock(c: Checkup) -> Finding:
    """Slow clock sources cost microseconds a reading."""
    step = f"perf_counter steps of {c.clock_step_ns} ns"
    seen = f"{c.clock_source}, {step}" if c.clock_source else step
    if c.clock_step_ns > 10_000:
        return Finding(
            name="clock",
            status=Status.BAD,
            seen=seen,
            advice="This clock is too coarse: choose the source tsc at boot.",
        )
    if c.clock_step_ns > 1000 or c.clock_source in ("hpet", "acpi_pm", "jiffies", "refined-jiffies"):
        return Finding(
            name="clock", status=Status.WARN, seen=seen, advice="A slow clock source: choose tsc with clocksource=tsc."
        )
    return Finding(name="clock", status=Status.OK, seen=seen)


def check_priority(c: Checkup) -> Finding:
    """Elevated priority is used where it is permitted and never required."""
    if c.real_time is None:
        return Finding(name="priority", status=Status.UNKNOWN, seen="cannot be tried on this system")
    if c.real_time:
        return Finding(name="priority", status=Status.OK, seen="real-time priority permitted")
    return Finding(
        name="priority",
        status=Status.WARN,
        seen="no real-time priority" + (", higher nice permitted" if c.nice else ""),
        advice="Permit it with `ulimit -r 1` (rtprio in limits.conf) or CAP_SYS_NICE.",
    )


def check_aslr(c: Checkup) -> Finding:
    """Random layouts are part of the design: each launch draws another one."""
    if c.aslr is None:
        return Finding(name="ASLR", status=Status.UNKNOWN, seen="not shown")
    if c.aslr == "2":
        return Finding(name="ASLR", status=Status.OK, seen="on, as it should be")
    return Finding(
        name="ASLR",
        status=Status.WARN,
        seen=f"randomize_va_space = {c.aslr}",
        advice="Switch it on (`sysctl kernel.randomize_va_space=2`): one fixed layout looks like an effect.",
    )


def check_hugepages(c: Checkup) -> Finding:
    """Stated because it explains differences; no setting is wrong."""
    if c.hugepages is None:
        return Finding(name="huge pages", status=Status.UNKNOWN, seen="not shown")
    return Finding(name="huge pages", status=Status.OK, seen=f"transparent: {c.hugepages}")


def check_python(c: Checkup) -> Finding:
    """A debug build is several times slower."""
    if c.python_debug:
        return Finding(
            name="Python", status=Status.BAD, seen=f"{c.python}, debug build", advice="Use a release build of Python."
        )
    return Finding(name="Python", status=Status.OK, seen=c.python)


def check_versions(c: Checkup) -> Finding:
    """What the suites need."""
    seen = ", ".join(f"{name} {version}" for name, version in (c.versions or {}).items())
    if not c.missing:
        return Finding(name="packages", status=Status.OK, seen=seen)
    lacking, them = ", ".join(c.missing), "it" if len(c.missing) == 1 else "them"
    return Finding(
        name="packages",
        status=Status.WARN,
        seen=seen or "none of the suites' packages",
        advice=f"Benchmarks that need {lacking} are skipped until you install {them}.",
    )


def check_disk(c: Checkup) -> Finding:
    """The store and the spool grow by some MB a run."""
    if c.disk_free_bytes is None:
        return Finding(name="disk", status=Status.UNKNOWN, seen=f"{c.state} cannot be asked")
    seen = f"{_gib(c.disk_free_bytes)} free at {c.state}"
    if c.disk_free_bytes < 100 * 2**20:
        return Finding(name="disk", status=Status.BAD, seen=seen, advice="Free space: a run could not be stored.")
    if c.disk_free_bytes < 2 * GIB:
        return Finding(name="disk", status=Status.WARN, seen=seen, advice="Free space, or move it with BENCH_STATE.")
    return Finding(name="disk", status=Status.OK, seen=seen)


CHECKS: tuple[Callable[[Checkup], Finding], ...] = (
    check_noise, check_load, check_tenants, check_virtual, check_governor, check_turbo, check_smt, check_thermal,
    check_clock, check_priority, check_memory, check_disk, check_aslr, check_hugepages, check_python, check_versions,
)  # fmt: skip


def _count(n: int, word: str) -> str:
    return f"{n} {word}" if n == 1 else f"{n} {word}s"


def _gib(size: int) -> str:
    return f"{size / GIB:.1f} GiB"
