"""Reads what the doctor judges: about a second, most of it looking at others and at the timer."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import time
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from runners.conditions import Reading, conditions, load, read, temperature
from runners.doctor import Checkup, Noise, Tenant
from runners.environment import governor, hugepages, suite_packages, turbo, versions
from runners.host import Host
from runners.machine import read_machine

SHOWN = ("numpy", "onnxruntime", "torch")


def read_checkup(state: Path, *, host: Host | None = None, watch_s: float = 0.5, probe_s: float = 0.3) -> Checkup:
    """Look at this machine. Others are watched for `watch_s` seconds, then the timer is probed for `probe_s`."""
    import psutil

    host = host or Host()
    machine = read_machine(host=host)
    before, used = read(host), _cpu_seconds()
    time.sleep(watch_s)
    after, used_after = read(host), _cpu_seconds()
    seen = conditions(before, after, tick_hz=os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100)
    memory = psutil.virtual_memory()
    limit = host.memory_limit()
    real_time, nice = priorities()
    return Checkup(
        cpus=machine.logical_cores or len(host.cpus),
        physical_cores=machine.physical_cores,
        load=load(),
        governor=governor(host),
        turbo=turbo(host),
        smt=host.text("sys/devices/system/cpu/smt/control"),
        virtual=machine.virtual,
        steal=seen.steal,
        foreign_cpu=seen.foreign_cpu,
        tenants=_tenants(used, used_after, before, after),
        memory_bytes=memory.total if limit is None else min(memory.total, limit),
        memory_free_bytes=memory.available if limit is None else min(memory.available, host.memory_left() or 0),
        swap_used_bytes=psutil.swap_memory().used,
        temperature_c=temperature(),
        clock_source=host.text("sys/devices/system/clocksource/clocksource0/current_clocksource"),
        clock_step_ns=clock_step_ns(),
        real_time=real_time,
        nice=nice,
        aslr=host.text("proc/sys/kernel/randomize_va_space"),
        hugepages=hugepages(host),
        python=f"{sys.implementation.name} {sys.version.split()[0]}",
        python_debug=hasattr(sys, "gettotalrefcount"),
        versions=versions(SHOWN),
        missing=_missing(),
        state=str(state),
        disk_free_bytes=disk_free(state),
        noise=probe(probe_s),
    )


def probe(seconds: float) -> Noise:
    """Run one fixed loop again and again and see how evenly it goes. Slices last about a millisecond."""
    count = 1000
    while _spin(count) < 1_000_000:
        count *= 2
    collecting = gc.isenabled()
    gc.disable()
    slices: list[int] = []
    end = time.perf_counter_ns() + round(seconds * 1e9)
    while time.perf_counter_ns() < end or len(slices) < 8:
        slices.append(_spin(count))
    if collecting:
        gc.enable()
    return judge(slices)


def judge(slices: list[int]) -> Noise:
    """Share of slices (ns) over 120 % of the lower quartile, and the worst of them."""
    floor = max(1, sorted(slices)[len(slices) // 4])
    return Noise(
        slices=len(slices), disturbed=sum(s > 1.2 * floor for s in slices) / len(slices), worst=max(slices) / floor
    )


def _spin(count: int) -> int:
    start = time.perf_counter_ns()
    for _ in range(count):
        pass
    return time.perf_counter_ns() - start


def clock_step_ns(readings: int = 2000) -> int:
    """Smallest step between two readings of the clock that times samples."""
    clock = time.perf_counter_ns
    steps = []
    last = clock()
    for _ in range(readings):
        now = clock()
        if now > last:
            steps.append(now - last)
        last = now
    return min(steps, default=0)


def priorities() -> tuple[bool | None, bool | None]:
    """Whether real-time priority and a better nice value are permitted; tried, and taken back at once."""
    if not hasattr(os, "sched_setscheduler"):
        return None, None
    policy, parameter = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        real_time = True
        os.sched_setscheduler(0, policy, parameter)
    except OSError:
        real_time = False
    now = os.getpriority(os.PRIO_PROCESS, 0)
    try:
        os.setpriority(os.PRIO_PROCESS, 0, now - 1)
        os.setpriority(os.PRIO_PROCESS, 0, now)
    except OSError:
        return real_time, False
    return real_time, True


def disk_free(folder: Path) -> int | None:
    """Bytes that we may write at `folder`, or at the nearest folder above it that exists."""
    for place in (folder, *folder.absolute().parents):
        if place.exists():
            try:
                return shutil.disk_usage(place).free
            except OSError:
                return None
    return None


def _missing() -> tuple[str, ...]:
    lacking = []
    for name in [*suite_packages(), "torch"]:
        try:
            distribution(name)
        except PackageNotFoundError:
            lacking.append(name)
    return tuple(dict.fromkeys(lacking))


def _cpu_seconds() -> dict[tuple[int, float], tuple[str, float]]:
    """CPU time so far by process (its number and start, since numbers come again)."""
    import psutil

    found = {}
    for process in psutil.process_iter(["name", "cpu_times", "create_time"]):
        times = process.info["cpu_times"]
        if times is not None and process.pid != os.getpid():
            name = process.info["name"] or "?"
            found[process.pid, process.info["create_time"]] = (name, times.user + times.system)
    return found


def _tenants(
    before: dict[tuple[int, float], tuple[str, float]],
    after: dict[tuple[int, float], tuple[str, float]],
    first: Reading,
    last: Reading,
) -> tuple[Tenant, ...]:
    """The three that used most, from a twentieth of a CPU on."""
    wall_s = max(1e-3, (last.wall_ns - first.wall_ns) / 1e9)
    found = []
    for key, (name, seconds) in after.items():
        cpus = (seconds - before.get(key, (name, 0.0))[1]) / wall_s
        if cpus >= 0.05:
            found.append(Tenant(name=name, pid=key[0], cpus=cpus))
    return tuple(sorted(found, key=lambda t: -t.cpus)[:3])
