"""What the machine was doing around a run, read before and after it."""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass, replace
from types import TracebackType

from bench.measure.meters.sensors import SENSORS
from bench.measure.meters.servers import SERVED
from bench.model import Conditions
from runners.host import Host


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuTimes:
    """CPU time of the whole machine since boot, in clock ticks."""

    busy: int
    steal: int
    total: int


def parse_stat(text: str) -> CpuTimes | None:
    """First line of /proc/stat (proc(5)); null where it is another format.

    Guest time is contained in user time, so it isn't added again.
    """
    words = text.partition("\n")[0].split()
    if len(words) < 5 or words[0] != "cpu" or not all(word.isdigit() for word in words[1:]):
        return None
    user, nice, system, idle, iowait, irq, softirq, steal = [*map(int, words[1:9]), 0, 0, 0, 0][:8]
    busy = user + nice + system + irq + softirq
    return CpuTimes(busy=busy, steal=steal, total=busy + idle + iowait + steal)


def parse_pressure(text: str) -> int | None:
    """Microseconds since boot in which some task waited (first line of /proc/pressure/*)."""
    match = re.search(r"^some .*\btotal=(\d+)", text, flags=re.MULTILINE)
    return int(match.group(1)) if match else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """All that is read at one moment; null where the system does not tell."""

    wall_ns: int
    own_cpu_ns: int | None = None
    load: float | None = None
    pressure_us: int | None = None
    times: CpuTimes | None = None
    temperature_c: float | None = None
    clock_mhz: float | None = None


def read(host: Host) -> Reading:
    """Read the machine now. Never raises."""
    return Reading(
        wall_ns=time.monotonic_ns(),
        own_cpu_ns=own_cpu_ns(),
        load=load(),
        pressure_us=parse_pressure(host.text("proc/pressure/cpu") or ""),
        times=parse_stat(host.text("proc/stat") or ""),
        temperature_c=temperature(),
        clock_mhz=clock(host),
    )


def own_cpu_ns() -> int | None:
    """CPU time of this process, its threads, and all its children that ended and were waited for."""
    try:
        import resource
    except ImportError:
        return None
    usages = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    return round(sum(usage.ru_utime + usage.ru_stime for usage in usages) * 1e9)


def load() -> float | None:
    """Load average of the last minute."""
    try:
        return os.getloadavg()[0]
    except (OSError, AttributeError):
        return None


def temperature() -> float | None:
    """Hottest sensor of the CPU in °C; virtual machines have none."""
    import psutil

    try:
        sensors = psutil.sensors_temperatures()
    except (AttributeError, OSError, ValueError):
        return None
    for name in SENSORS:
        values = [entry.current for entry in sensors.get(name, ()) if entry.current and entry.current > 0]
        if values:
            return float(max(values))
    return None


def clock(host: Host) -> float | None:
    """Mean clock of the CPUs in MHz by cpufreq; /proc/cpuinfo is not asked, since in a guest it states a constant."""
    values = [host.number(str(path)) for path in host.glob("sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_cur_freq")]
    known = [value for value in values if value]
    return sum(known) / len(known) / 1000 if known else None


def conditions(before: Reading, after: Reading, *, own_cpu_ns: int | None = None, tick_hz: int = 100) -> Conditions:
    """Two readings as conditions. `own_cpu_ns` is the run's own CPU time, else the readings' difference.

    `foreign_cpu` is null where the machine's busy time is clearly less than our own: then the
    system shows us times that aren't the machine's (some container runtimes).
    """
    steal = foreign = pressure = None
    if before.pressure_us is not None and after.pressure_us is not None and after.wall_ns > before.wall_ns:
        pressure = _share((after.pressure_us - before.pressure_us) * 1000, after.wall_ns - before.wall_ns)
    if own_cpu_ns is None and before.own_cpu_ns is not None and after.own_cpu_ns is not None:
        own_cpu_ns = after.own_cpu_ns - before.own_cpu_ns
    if before.times and after.times and after.times.total > before.times.total:
        total = after.times.total - before.times.total
        steal = _share(after.times.steal - before.times.steal, total)
        if own_cpu_ns is not None:
            own = own_cpu_ns * tick_hz / 1e9
            others = after.times.busy - before.times.busy - own
            # Ticks are counted per CPU, so a few may be missing on a short run.
            if others >= -max(5.0, 0.05 * total):
                foreign = _share(others, total)
    hot = [value for value in (before.temperature_c, after.temperature_c) if value is not None]
    return Conditions(
        load_before=before.load,
        load_after=after.load,
        cpu_pressure=pressure,
        steal=steal,
        foreign_cpu=foreign,
        temperature_c=max(hot, default=None),
        clock_mhz=after.clock_mhz,
    )


def _share(part: float, whole: float) -> float:
    return min(1.0, max(0.0, part / whole))


class ConditionsMeter:
    """Reads at `start` and `stop`; as a context manager the result is `conditions`.

    Workers must have been waited for before `stop`, else their CPU time counts as foreign.
    """

    def __init__(self, host: Host | None = None) -> None:
        self._host = host or Host()
        self._before: Reading | None = None
        self.conditions = Conditions()

    def start(self) -> None:
        """Take the first reading."""
        SERVED.restart()
        self._before = read(self._host)

    def stop(self, own_cpu_ns: int | None = None) -> Conditions:
        """Take the second reading; `own_cpu_ns` replaces what the system says of us and our children.

        Servers that worked for us are ours too.
        """
        if self._before is None:
            raise RuntimeError("ConditionsMeter.stop before start")
        after = read(self._host)
        if own_cpu_ns is None and after.own_cpu_ns is not None:
            after = replace(after, own_cpu_ns=after.own_cpu_ns + SERVED.cpu_ns())
        tick_hz = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
        self.conditions = conditions(self._before, after, own_cpu_ns=own_cpu_ns, tick_hz=tick_hz)
        return self.conditions

    def __enter__(self) -> ConditionsMeter:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
