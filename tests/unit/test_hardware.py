"""Tags and fingerprints: what makes another machine, and what does not."""

import json

import pytest

from bench.cli import run
from bench.model import KINDS
from runners.hardware import compute_capabilities, hardware_tags
from runners.host import Host
from runners.machine import read_machine

EPYC = "AMD EPYC 7763 64-Core Processor"

SMI = "NVIDIA H200, 143771, 570.86.15, 96.00.BC.00.01"


def tool(argv):
    return {"name": SMI, "compute_cap": "9.0\n9.0"}.get(argv[1].removeprefix("--query-gpu=").split(",")[0])


def host(folder, name=EPYC, flags="fpu avx2 fma", clock="2450.0", tool=lambda argv: None, files=None):
    """A machine of two cores."""
    block = "processor\t: {0}\ncpu family\t: 6\nmodel\t\t: 1\nmodel name\t: {1}\ncpu MHz\t\t: {2}\nflags\t\t: {3}\n"
    found = {
        "proc/cpuinfo": "\n".join(block.format(cpu, name, clock, flags) for cpu in (0, 1)),
        "proc/meminfo": "MemTotal:       65675112 kB",
        "etc/hostname": "bench-1",
        **(files or {}),
    }
    for path, text in found.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text + "\n")
    return Host(root=folder, system="Linux", architecture="x86_64", cpus=frozenset((0, 1)), tool=tool)


def test_tags_of_a_processor_are_its_instruction_sets_and_what_people_say(tmp_path):
    here = host(tmp_path, flags="fpu avx512_vnni amx_int8")
    tags = hardware_tags(read_machine(("lab",), here), tmp_path / "cache", here)
    assert {"cpu", "x86_64", "avx512_vnni", "amx_int8", "lab"} <= set(tags)
    assert not {"gpu", "cuda", "npu", "npu:emulated"} & set(tags)
    assert tags == tuple(sorted(tags))


def test_a_gpu_has_its_compute_capability_and_an_npu_is_one(tmp_path):
    npu = {"vendor": "0x8086", "device": "0x7d1d", "uevent": "DRIVER=intel_vpu"}
    files = {f"sys/class/accel/accel0/device/{name}": text for name, text in npu.items()}
    here = host(tmp_path, tool=tool, files=files)
    tags = set(hardware_tags(read_machine((), here), tmp_path / "cache", here))
    assert {"gpu", "cuda", "sm_90", "npu"} <= tags
    assert compute_capabilities(host(tmp_path / "none")) == []


def test_vendors_tools_that_were_made_ready_are_tags(tmp_path):
    here = host(tmp_path)
    for name in ("qnn-0123456789ab", "ethos-u-0123456789ab"):
        (tmp_path / "cache" / "environments" / name).mkdir(parents=True)
    assert not {"npu:emulated"} & set(hardware_tags(read_machine((), here), tmp_path / "cache", here)), "begun only"
    (tmp_path / "cache" / "environments" / "ethos-u-0123456789ab" / "made.json").touch()
    tags = set(hardware_tags(read_machine((), here), tmp_path / "cache", here))
    assert {"npu:emulated", "npu:estimated"} <= tags


def test_two_processors_under_one_hostname_are_two_machines(tmp_path):
    one, other = host(tmp_path / "a"), host(tmp_path / "b", "AMD EPYC 9654 96-Core Processor")
    assert one.text("etc/hostname") == other.text("etc/hostname")
    assert read_machine((), one).fingerprint != read_machine((), other).fingerprint


def test_a_reboot_another_clock_and_a_tag_leave_the_machine_what_it_is(tmp_path):
    before = read_machine((), host(tmp_path / "a", files={"proc/uptime": "3000000.1 1", "proc/loadavg": "9.1 8 7"}))
    after = {"proc/uptime": "12.3 4", "proc/loadavg": "0.0 0 0", "etc/hostname": "new"}
    rebooted = host(tmp_path / "b", clock="1500.3", files=after)
    assert read_machine(("renamed",), rebooted).fingerprint == before.fingerprint


def test_the_verb_tells_of_this_machine(capsys):
    assert run(["hardware", "--tag", "lab", "--json"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert first["fingerprint"] == read_machine().fingerprint
    assert {"cpu", "lab"} <= set(first["tags"])
    assert first["devices"]["cpu"] == "real"
    assert all(state in KINDS or state.startswith("no: ") for state in first["devices"].values())
    assert run(["hardware"]) == 0
    text = capsys.readouterr().out
    assert first["fingerprint"] in text
    assert "cuda" in text


@pytest.mark.parametrize("table", ["", "[N/A]", "9.0 x"])
def test_a_driver_that_does_not_tell_gives_no_tag(table, tmp_path):
    assert compute_capabilities(host(tmp_path, tool=lambda argv: table)) == []
