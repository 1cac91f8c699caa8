"""Each check of the doctor on a machine where it must speak and on one where it must not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench.commands.doctor import command
from runners import checkup, doctor
from runners.checkup import disk_free, judge, priorities, read_checkup
from runners.doctor import Checkup, Noise, Status, Tenant, examine, overall
from runners.host import Host

GIB = 2**30

QUIET = Checkup(
    cpus=8,
    physical_cores=8,
    load=0.1,
    governor="performance",
    turbo="off",
    smt="off",
    steal=0.0,
    foreign_cpu=0.0,
    memory_bytes=64 * GIB,
    memory_free_bytes=60 * GIB,
    swap_used_bytes=0,
    temperature_c=45.0,
    clock_source="tsc",
    clock_step_ns=30,
    real_time=True,
    nice=True,
    aslr="2",
    hugepages="madvise",
    python="cpython 3.12.1",
    versions={"numpy": "2.0"},
    state="/var/bench",
    disk_free_bytes=100 * GIB,
    noise=Noise(slices=300, disturbed=0.0, worst=1.1),
)


def test_a_quiet_dedicated_machine_is_fit_and_there_is_nothing_to_do():
    findings = examine(QUIET)
    assert {finding.status for finding in findings} == {Status.OK}
    assert overall(findings) == "fit"
    assert not any(finding.advice for finding in findings)


@pytest.mark.parametrize(
    ("name", "change", "status"),
    [
        ("load", {"load": 4.0}, "warn"),
        ("load", {"load": 16.0}, "bad"),
        ("load", {"load": None}, "unknown"),
        ("other tenants", {"foreign_cpu": 0.2, "tenants": (Tenant(name="cc1plus", pid=7, cpus=1.6),)}, "warn"),
        ("other tenants", {"foreign_cpu": 0.8}, "bad"),
        ("other tenants", {"foreign_cpu": None}, "unknown"),
        ("timer noise", {"noise": Noise(slices=300, disturbed=0.2, worst=5)}, "warn"),
        ("timer noise", {"noise": Noise(slices=300, disturbed=0.7, worst=5)}, "bad"),
        ("timer noise", {"noise": None}, "unknown"),
        ("virtualisation", {"virtual": "kvm"}, "warn"),
        ("virtualisation", {"virtual": "docker"}, "ok"),
        ("virtualisation", {"virtual": "docker on kvm"}, "warn"),
        ("virtualisation", {"steal": 0.05}, "warn"),
        ("virtualisation", {"steal": 0.3}, "bad"),
        ("CPU governor", {"governor": "powersave"}, "warn"),
        ("CPU governor", {"governor": "performance, powersave"}, "warn"),
        ("CPU governor", {"governor": None}, "unknown"),
        ("turbo", {"turbo": "on"}, "warn"),
        ("turbo", {"turbo": None}, "unknown"),
        ("SMT", {"physical_cores": 4}, "warn"),
        ("SMT", {"smt": "on"}, "warn"),
        ("SMT", {"smt": None, "physical_cores": None}, "unknown"),
        ("temperature", {"temperature_c": 80.0}, "warn"),
        ("temperature", {"temperature_c": 97.0}, "bad"),
        ("temperature", {"temperature_c": None}, "unknown"),
        ("clock", {"clock_source": "hpet"}, "warn"),
        ("clock", {"clock_step_ns": 15_000_000}, "bad"),
        ("priority", {"real_time": False}, "warn"),
        ("priority", {"real_time": None}, "unknown"),
        ("memory", {"memory_free_bytes": GIB}, "warn"),
        ("memory", {"memory_free_bytes": GIB // 4}, "bad"),
        ("memory", {"swap_used_bytes": 20 * GIB}, "warn"),
        ("memory", {"memory_free_bytes": None}, "unknown"),
        ("disk", {"disk_free_bytes": GIB}, "warn"),
        ("disk", {"disk_free_bytes": 2**20}, "bad"),
        ("disk", {"disk_free_bytes": None}, "unknown"),
        ("ASLR", {"aslr": "0"}, "warn"),
        ("ASLR", {"aslr": None}, "unknown"),
        ("huge pages", {"hugepages": None}, "unknown"),
        ("Python", {"python_debug": True}, "bad"),
        ("packages", {"missing": ("torch",)}, "warn"),
    ],
)
def test_one_fact_moves_one_finding(name, change, status):
    findings = {finding.name: finding for finding in examine(replace(QUIET, **change))}
    assert findings.pop(name).status == status
    assert {finding.status for finding in findings.values()} == {Status.OK}
    assert overall(examine(replace(QUIET, **change))) == {
        "ok": "fit", "unknown": "fit", "warn": "usable with care", "bad": "not fit",
    }[status]  # fmt: skip


def test_advice_is_one_sentence_wherever_something_is_wrong():
    wrong = Checkup(
        cpus=2, physical_cores=1, load=20, governor="ondemand", turbo="on", virtual="kvm", steal=0.2, foreign_cpu=0.9,
        memory_bytes=GIB, memory_free_bytes=0, temperature_c=99, clock_source="acpi_pm", clock_step_ns=2000,
        real_time=False, aslr="0", python_debug=True, missing=("torch", "onnx"), disk_free_bytes=0,
        noise=Noise(slices=9, disturbed=1.0, worst=9),
    )  # fmt: skip
    for finding in examine(wrong):
        if finding.status in (Status.WARN, Status.BAD):
            assert finding.advice.endswith(".")
            assert ". " not in finding.advice
        assert finding.seen


def test_disturbed_slices_are_counted_against_the_lower_quartile():
    noise = judge([1000] * 80 + [1150] * 10 + [3000] * 10)
    assert (noise.slices, noise.disturbed, noise.worst) == (100, 0.1, 3.0)


def test_disk_is_asked_above_a_folder_that_does_not_exist_yet(tmp_path):
    assert disk_free(tmp_path / "not" / "yet") > 0


def test_trying_priorities_leaves_them_as_they_were():
    os = checkup.os
    before = os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0)
    priorities()
    assert (os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0)) == before


def test_cached_files_of_a_control_group_count_as_free(tmp_path):
    group = tmp_path / "sys/fs/cgroup/bench"
    group.mkdir(parents=True)
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/bench\n")
    for name, text in (("max", str(GIB)), ("current", str(GIB)), ("stat", f"anon 5\ninactive_file {GIB // 2}\n")):
        (group / f"memory.{name}").write_text(text)
    assert Host(root=tmp_path).memory_left() == GIB // 2
    assert Host(root=tmp_path / "elsewhere").memory_left() is None


def test_this_machine_can_be_read():
    """Whatever it is, every check must have an answer."""
    found = read_checkup(Path("/"), watch_s=0.05, probe_s=0.05)
    assert len(examine(found)) == len(doctor.CHECKS)
    assert found.clock_step_ns > 0
    assert found.noise.slices >= 8


@pytest.fixture
def fake(monkeypatch, tmp_path):
    """The verb on a made-up machine."""
    monkeypatch.chdir(tmp_path)

    def use(**change):
        monkeypatch.setattr(checkup, "read_checkup", lambda state: replace(QUIET, **change))

    return use


def test_the_verb_exits_with_0_unless_something_is_bad(fake):
    fake(governor="powersave")
    result = CliRunner().invoke(command)
    assert (result.exit_code, "usable with care" in result.stdout) == (0, True)
    fake(load=100.0)
    result = CliRunner().invoke(command)
    assert (result.exit_code, "not fit" in result.stdout) == (7, True)


def test_piped_text_has_no_colours_and_fits_80_columns(fake):
    fake(load=100.0, governor="powersave", turbo="on", missing=("torch", "onnxruntime", "tokenizers"))
    lines = CliRunner().invoke(command).stdout.splitlines()
    assert not any("\x1b" in line for line in lines)
    assert max(len(line.rstrip()) for line in lines) <= 80
    todo = lines[lines.index("What to do") + 1 :]
    assert todo[0].startswith("load ")  # what is bad comes first


def test_json_carries_the_same_verdict(fake):
    fake(steal=0.5)
    result = CliRunner().invoke(command, ["--json"])
    document = json.loads(result.stdout)
    assert (result.exit_code, document["overall"]) == (7, "not fit")
    finding = next(f for f in document["findings"] if f["name"] == "virtualisation")
    assert (finding["status"], set(finding)) == ("bad", {"name", "status", "seen", "advice"})
    assert len(document["machine"]["fingerprint"]) == 16
