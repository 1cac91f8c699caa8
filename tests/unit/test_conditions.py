"""Two readings of a machine as conditions of a run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.measure.meters.servers import SERVED, clock_of, strangers
from bench.model import Conditions
from bench.ports import Device
from bench.testing import FakeDevice
from runners.conditions import ConditionsMeter, CpuTimes, Reading, clock, conditions, parse_pressure, parse_stat
from runners.devices.cpu import Cpu
from runners.host import Host


def reading(wall_s: float = 0.0, busy: int = 0, steal: int = 0, total: int = 0, **more) -> Reading:
    return Reading(wall_ns=round(wall_s * 1e9), times=CpuTimes(busy=busy, steal=steal, total=total), **more)


def test_stat_counts_guest_time_once():
    times = parse_stat("cpu  100 10 50 800 20 1 2 17 90 5\ncpu0 1 2 3 4")
    assert times == CpuTimes(busy=163, steal=17, total=1000)


@pytest.mark.parametrize("text", ["", "cpu", "intr 1 2 3 4 5", "cpu a b c d"])
def test_stat_in_another_format_is_null(text):
    assert parse_stat(text) is None


def test_old_kernels_without_steal():
    assert parse_stat("cpu 10 0 10 80") == CpuTimes(busy=20, steal=0, total=100)


def test_pressure_takes_some_not_full():
    text = "some avg10=0.10 avg60=0.15 avg300=0.06 total=13177406\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7"
    assert parse_pressure(text) == 13177406
    assert parse_pressure("") is None


def test_shares_of_a_run_of_ten_seconds_on_two_cpus():
    """2000 ticks in all: 900 busy of which 600 are ours, 100 stolen; tasks waited for 2.5 s."""
    before = reading(pressure_us=1_000_000, load=0.5, temperature_c=71.0)
    after = reading(10, 900, 100, 2000, pressure_us=3_500_000, load=1.5, temperature_c=65.0, clock_mhz=2600.0)
    assert conditions(before, after, own_cpu_ns=6_000_000_000) == Conditions(
        load_before=0.5, load_after=1.5, cpu_pressure=0.25, steal=0.05, foreign_cpu=0.15, temperature_c=71.0,
        clock_mhz=2600.0,
    )  # fmt: skip


def test_own_time_is_the_difference_of_the_readings_when_not_given():
    result = conditions(reading(own_cpu_ns=10**9), reading(10, 500, 0, 2000, own_cpu_ns=4 * 10**9))
    assert result.foreign_cpu == pytest.approx(0.1)


def test_a_few_missing_ticks_are_nobody():
    assert conditions(reading(), reading(1, 98, 0, 200), own_cpu_ns=10**9).foreign_cpu == 0.0


def test_times_that_are_not_the_machines_are_null():
    assert conditions(reading(), reading(10, 20, 0, 2000), own_cpu_ns=6 * 10**9).foreign_cpu is None


def test_what_the_system_does_not_tell_is_null_never_zero():
    assert conditions(Reading(wall_ns=0), Reading(wall_ns=10**9)) == Conditions()


def test_a_system_without_proc_gives_nulls(tmp_path):
    meter = ConditionsMeter(Host(root=tmp_path, system="Darwin"))
    meter.start()
    result = meter.stop()
    assert (result.cpu_pressure, result.steal, result.foreign_cpu, result.clock_mhz) == (None, None, None, None)


def test_clock_is_the_mean_over_cpus(tmp_path: Path):
    for cpu, khz in ((0, 2_000_000), (1, 3_000_000)):
        file = tmp_path / f"sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq"
        file.parent.mkdir(parents=True)
        file.write_text(f"{khz}\n")
    assert clock(Host(root=tmp_path)) == 2500.0


def test_meter_on_this_machine_yields_shares():
    with ConditionsMeter() as meter:
        sum(range(200_000))
    for share in (meter.conditions.cpu_pressure, meter.conditions.steal, meter.conditions.foreign_cpu):
        assert share is None or 0.0 <= share <= 1.0
    with pytest.raises(RuntimeError):
        ConditionsMeter().stop()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems tell no CPU time of foreign processes")
def test_a_server_that_works_for_us_is_no_foreign_load():
    """Followed or not, the same busy process."""
    own = []
    for follows in (False, True):
        # A grandchild that nobody of ours waits for, as a server that was there before.
        spin = "while True: pass"
        start = f"p = subprocess.Popen([sys.executable, '-c', {spin!r}], stdout=-3, stderr=-3)"
        code = f"import subprocess, sys; {start}; print(p.pid)"
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        pid = int(found.stdout)
        try:
            assert strangers([pid, os.getpid()]) == [pid]
            meter = ConditionsMeter()
            meter.start()
            if follows:
                SERVED.follow([pid])
            before, deadline = time.clock_gettime_ns(clock_of(pid)), time.monotonic() + 20
            while time.clock_gettime_ns(clock_of(pid)) - before < 100_000_000 and time.monotonic() < deadline:
                time.sleep(0.02)
            own.append(SERVED.cpu_ns())
            meter.stop()
        finally:
            os.kill(pid, signal.SIGKILL)
    assert own[0] == 0
    assert own[1] >= 100_000_000
    SERVED.restart()
    assert SERVED.cpu_ns() == 0


def test_a_child_of_ours_is_no_stranger():
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as child:
        assert strangers([child.pid]) == []
        child.kill()


@pytest.mark.parametrize("device", [Cpu(threads=2), FakeDevice()], ids=lambda device: device.name)
class TestEveryDevice:
    """The contract of bench.ports.Device; each new device joins the list above."""

    def test_names_itself(self, device: Device):
        assert device.name
        assert device.name == device.name.lower()
        assert device.kind in ("real", "emulated", "estimated")
        assert device.threads >= 1

    def test_synchronizing_twice_is_harmless(self, device: Device):
        device.synchronize()
        device.synchronize()


def test_cpu_refuses_no_threads():
    with pytest.raises(ValueError, match="at least one thread"):
        Cpu(threads=0)
