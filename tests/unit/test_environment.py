"""What annotates a point: versions, drivers, switches, variables."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from runners.environment import read_environment, settings, suite_packages, variables, versions
from runners.host import Host

CPU = "sys/devices/system/cpu"


def make_host(root: Path, files: dict[str, str]) -> Host:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return Host(root=root, system="Linux", architecture="x86_64", cpus=frozenset({0, 1}), tool=lambda argv: None)


def test_switches_of_a_laptop(tmp_path):
    files = {
        f"{CPU}/cpu0/cpufreq/scaling_governor": "powersave",
        f"{CPU}/cpu1/cpufreq/scaling_governor": "performance",
        f"{CPU}/cpufreq/policy0/energy_performance_preference": "balance_performance",
        f"{CPU}/intel_pstate/no_turbo": "0",
        f"{CPU}/smt/control": "on",
        "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
        "proc/sys/kernel/randomize_va_space": "2",
        "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc",
        "proc/cmdline": "BOOT_IMAGE=/vmlinuz root=/dev/sda1 mitigations=off quiet",
        "proc/self/cgroup": "0::/",
        "sys/fs/cgroup/cpu.max": "150000 100000",
    }
    assert settings(make_host(tmp_path, files)) == {
        "cpus_allowed": "2",
        "cpu_quota": "1.5",
        "governor": "performance, powersave",
        "energy_preference": "balance_performance",
        "turbo": "on",
        "smt": "on",
        "transparent_hugepages": "madvise",
        "aslr": "2",
        "clock_source": "tsc",
        "mitigations": "off",
    }


def test_what_is_not_shown_is_left_out(tmp_path):
    assert settings(make_host(tmp_path, {})) == {"cpus_allowed": "2"}


def test_amd_boost_file_tells_turbo(tmp_path):
    assert settings(make_host(tmp_path, {f"{CPU}/cpufreq/boost": "0"}))["turbo"] == "off"


def test_only_variables_that_change_speed_are_kept_and_the_home_is_hidden(monkeypatch):
    monkeypatch.setattr(Path, "home", lambda: Path("/home/ada"))
    environ = {
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": "/home/ada/src",
        "GITHUB_TOKEN": "secret",
        "DATABASE_PASSWORD": "secret",
        "MYPYTHON": "x",
    }
    assert variables(environ) == {"OMP_NUM_THREADS": "1", "PYTHONPATH": "~/src"}


def test_versions_come_without_importing():
    """Importing torch or onnxruntime in the parent would cost seconds and start threads."""
    code = (
        "import sys; from runners.environment import read_environment; e = read_environment();"
        "assert e.packages['numpy'], e; heavy = {'numpy', 'torch', 'onnxruntime'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_missing_packages_are_left_out():
    assert list(versions(["no-such-package-at-all", "numpy"])) == ["numpy"]


def test_packages_of_the_suites_extra_are_looked_up():
    assert "onnxruntime" in suite_packages()
    assert "streamlit" not in suite_packages()


def test_equal_surroundings_have_equal_fingerprints(tmp_path):
    host = make_host(tmp_path, {"proc/cpuinfo": "microcode\t: 0x2b000161"})
    first, second = (read_environment(host=host, environ={"OMP_NUM_THREADS": n}) for n in "12")
    assert first.fingerprint == read_environment(host=host, environ={"OMP_NUM_THREADS": "1"}).fingerprint
    assert first.fingerprint != second.fingerprint
    assert first.drivers == {"microcode": "0x2b000161"}
    assert first.python.startswith(("CPython 3.", "PyPy 3."))
