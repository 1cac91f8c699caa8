"""Facts of several real machines, fed as the files that were read from them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.model import Accelerator
from runners.accelerators import npus, nvidia, parse_nvidia_smi
from runners.host import Host
from runners.machine import read_machine
from runners.processors import cpu_name, isa, parse_cpuinfo

EPYC_FLAGS = "fpu sse4_2 avx f16c rdrand fma avx2 sha_ni"
SAPPHIRE_FLAGS = (
    "fpu sse4_2 avx f16c fma avx2 avx512f avx512bw avx512vl avx512_vnni avx_vnni avx512_bf16 amx_bf16 avx512_fp16 "
    "amx_tile amx_int8 hypervisor"
)


def x86(name: str, flags: str, cpus: int = 2, threads: int = 1, family: int = 6, model: int = 143) -> str:
    return "\n\n".join(
        f"processor\t: {cpu}\nvendor_id\t: X\ncpu family\t: {family}\nmodel\t\t: {model}\nmodel name\t: {name}\n"
        f"stepping\t: 8\ncpu MHz\t\t: 24{cpu}9.{cpu}\nphysical id\t: 0\ncore id\t\t: {cpu // threads}\n"
        f"flags\t\t: {flags}"
        for cpu in range(cpus)
    )


def arm(parts: list[tuple[str, str]], features: str) -> str:
    return "\n\n".join(
        f"processor\t: {cpu}\nBogoMIPS\t: 2100.00\nFeatures\t: {features}\nCPU implementer\t: {maker}\n"
        f"CPU architecture: 8\nCPU variant\t: 0x1\nCPU part\t: {part}\nCPU revision\t: 1"
        for cpu, (maker, part) in enumerate(parts)
    )


def make_host(root: Path, files: dict[str, str], cpus: int = 2, architecture: str = "x86_64", **more) -> Host:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    more.setdefault("tool", lambda argv: None)
    return Host(root=root, system="Linux", architecture=architecture, cpus=frozenset(range(cpus)), **more)


MEMINFO = "MemTotal:       65675112 kB\nMemFree:        1000 kB"  # 62.6 GiB of 64


def test_bare_metal_epyc_with_two_threads_a_core(tmp_path):
    files = {"proc/cpuinfo": x86("AMD EPYC 7763 64-Core Processor", EPYC_FLAGS, 8, threads=2), "proc/meminfo": MEMINFO}
    machine = read_machine(("lab", "amd", "lab"), make_host(tmp_path, files, cpus=8))
    assert machine.cpu == "AMD EPYC 7763 64-Core Processor"
    assert (machine.physical_cores, machine.logical_cores, machine.memory_gib) == (4, 8, 63)
    assert machine.isa == ("sse4_2", "f16c", "fma", "avx", "avx2")
    assert (machine.virtual, machine.accelerators, machine.tags) == (None, (), ("lab", "amd"))


def test_siblings_of_sysfs_count_before_cpuinfo(tmp_path):
    files = {"proc/cpuinfo": x86("AMD EPYC 7763 64-Core Processor", EPYC_FLAGS, 4)}
    files |= {f"sys/devices/system/cpu/cpu{c}/topology/thread_siblings_list": f"{c % 2},{c % 2 + 2}" for c in range(4)}
    assert read_machine(host=make_host(tmp_path, files, cpus=4)).physical_cores == 2


def test_affinity_limits_the_cores(tmp_path):
    host = make_host(tmp_path, {"proc/cpuinfo": x86("AMD EPYC 7763", EPYC_FLAGS, 8, threads=2)}, cpus=8)
    machine = read_machine(host=replace(host, cpus=frozenset({2, 3})))
    assert (machine.physical_cores, machine.logical_cores) == (1, 2)


@pytest.mark.parametrize(
    ("name", "anonymous"),
    [
        ("Intel(R) Xeon(R) Processor", True),
        ("Intel(R) Xeon(R) CPU @ 2.20GHz", True),
        ("Intel Xeon Processor (Skylake, IBRS)", True),
        ("AMD EPYC-Milan Processor", True),
        ("QEMU Virtual CPU version 2.5+", True),
        ("Common KVM processor", True),
        ("DO-Regular", True),
        ("Intel(R) Xeon(R) Platinum 8259CL CPU @ 2.50GHz", False),
        ("AMD EPYC 7B13", False),
        ("AMD EPYC 9654 96-Core Processor", False),
        ("Intel(R) Core(TM) i7-8650U CPU @ 1.90GHz", False),
        ("13th Gen Intel(R) Core(TM) i7-1365U", False),
        ("Intel(R) Core(TM) Ultra 7 155H", False),
        ("AMD Ryzen AI 9 HX 370 w/ Radeon 890M", False),
        ("Intel(R) N100", False),
    ],
)
def test_only_a_hidden_model_gets_family_model_stepping(name, anonymous):
    found = cpu_name(parse_cpuinfo(x86(name, EPYC_FLAGS)))
    assert found == (f"{name} (family 6 model 143 stepping 8)" if anonymous else name)


def test_two_generations_behind_one_anonymous_name_differ(tmp_path):
    hosts = [
        make_host(tmp_path / str(model), {"proc/cpuinfo": x86("Intel(R) Xeon(R) Processor", "avx2", model=model)})
        for model in (85, 143)
    ]
    assert len({read_machine(host=host).fingerprint for host in hosts}) == 2


def test_container_with_cgroup_v2_limits_on_kvm(tmp_path):
    files = {
        "proc/cpuinfo": x86("Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz", SAPPHIRE_FLAGS, 8, threads=2),
        "proc/meminfo": MEMINFO,
        ".dockerenv": "",
        "proc/self/cgroup": "0::/",
        "sys/fs/cgroup/cpu.max": "250000 100000",
        "sys/fs/cgroup/memory.max": str(6 * 2**30),
        "sys/class/dmi/id/sys_vendor": "Google",
    }
    machine = read_machine(host=make_host(tmp_path, files, cpus=8))
    assert (machine.physical_cores, machine.logical_cores, machine.memory_gib) == (3, 3, 6)
    assert machine.virtual == "docker on kvm"
    assert machine.isa[-4:] == ("avx512_fp16", "amx_tile", "amx_int8", "amx_bf16")


def test_limit_of_a_group_above_ours_counts(tmp_path):
    files = {
        "proc/self/cgroup": "0::/user.slice/bench.scope",
        "sys/fs/cgroup/user.slice/memory.max": str(4 * 2**30),
        "sys/fs/cgroup/user.slice/cpu.max": "100000 100000",
        "sys/fs/cgroup/user.slice/bench.scope/memory.max": "max",
        "sys/fs/cgroup/user.slice/bench.scope/cpu.max": "max 100000",
    }
    host = make_host(tmp_path, files, cpus=4)
    assert (host.memory_limit(), host.cpu_limit(), host.usable_cpus()) == (4 * 2**30, 1.0, 1)


def test_cgroup_v1_limits_and_its_spelling_of_none(tmp_path):
    files = {
        "proc/self/cgroup": "4:memory:/docker/abc\n2:cpu,cpuacct:/docker/abc\n0::/",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": str(2**31),  # the path of cpuinfo is the outer one
        "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "150000",
        "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000",
    }
    host = make_host(tmp_path / "limited", files, cpus=4)
    assert (host.memory_limit(), host.cpu_limit(), host.usable_cpus()) == (2**31, 1.5, 2)
    files |= {
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
        "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1",
    }
    host = make_host(tmp_path / "free", files, cpus=4)
    assert (host.memory_limit(), host.cpu_limit(), host.usable_cpus()) == (None, None, 4)


def test_graviton3(tmp_path):
    features = "fp asimd aes sha2 asimdhp cpuid asimddp sha512 sve asimdfhm svei8mm svebf16 i8mm bf16"
    files = {
        "proc/cpuinfo": arm([("0x41", "0xd40")] * 2, features),
        "sys/class/dmi/id/sys_vendor": "Amazon EC2",
        "sys/class/dmi/id/product_name": "c7g.large",
    }
    machine = read_machine(host=make_host(tmp_path, files, architecture="aarch64"))
    assert machine.cpu == "ARM Neoverse-V1 r1p1"
    assert machine.isa == ("neon", "fp16", "dotprod", "i8mm", "bf16", "sve", "svei8mm", "svebf16")
    assert (machine.physical_cores, machine.virtual) == (None, "nitro")


def test_apple_cores_of_two_kinds_under_linux():
    blocks = parse_cpuinfo(arm([("0x61", "0x022")] * 2 + [("0x61", "0x023")] * 4, "fp asimd asimddp"))
    assert cpu_name(blocks) == "4 × Apple Firestorm-M1 r1p1 + 2 × Apple Icestorm-M1 r1p1"


def test_board_names_itself_in_the_device_tree(tmp_path):
    text = arm([("0x41", "0xd0b")], "asimd asimddp") + "\n\nRevision\t: c04170\nModel\t\t: Raspberry Pi 5"
    files = {"proc/cpuinfo": text, "proc/device-tree/model": "Raspberry Pi 5 Model B Rev 1.0\0"}
    machine = read_machine(host=make_host(tmp_path, files, cpus=1, architecture="aarch64"))
    assert machine.cpu == "Raspberry Pi 5 Model B Rev 1.0 (ARM Cortex-A76 r1p1)"


def test_unknown_arm_part_still_differs_from_others():
    names = {cpu_name(parse_cpuinfo(arm([("0x99", part)], "asimd"))) for part in ("0x001", "0x002")}
    assert len(names) == 2
    assert not any(name is None for name in names)


def test_instruction_sets_are_those_that_every_core_has():
    """A hybrid machine's kernels may run anywhere."""
    assert isa(parse_cpuinfo(x86("A 1234", "avx2 avx512f", 1) + "\n\n" + x86("A 1234", "avx2", 1))) == ("avx2",)


def test_memory_banks_beat_what_the_kernel_left_over(tmp_path):
    """23.5 GiB of MemTotal is at the edge: another kernel would round it to another machine."""
    banks = {f"sys/devices/system/memory/memory{n}/online": "1" for n in range(24)}
    for n, total in enumerate((24684084, 24574084)):
        files = {"proc/meminfo": f"MemTotal: {total} kB", "sys/devices/system/memory/block_size_bytes": "40000000"}
        assert read_machine(host=make_host(tmp_path / str(n), files | banks)).memory_gib == 24


def test_memory_limit_shown_by_the_container_runtime_wins_over_banks(tmp_path):
    banks = {f"sys/devices/system/memory/memory{n}/online": "1" for n in range(24)}
    files = {"proc/meminfo": "MemTotal: 4194304 kB", "sys/devices/system/memory/block_size_bytes": "40000000"}
    assert read_machine(host=make_host(tmp_path, files | banks)).memory_gib == 4


def test_a_bare_system_gives_a_machine_all_the_same(tmp_path):
    machine = read_machine(host=make_host(tmp_path, {}, cpus=3, architecture="riscv64"))
    assert (machine.cpu, machine.logical_cores) == ("unknown riscv64 processor", 3)
    assert (machine.physical_cores, machine.virtual, machine.isa) == (None, None, ())


def test_live_readings_and_host_names_do_not_reach_the_fingerprint(tmp_path):
    text = x86("AMD EPYC 7763", EPYC_FLAGS)
    first = make_host(tmp_path / "a", {"proc/cpuinfo": text, "proc/meminfo": MEMINFO, "etc/hostname": "a"})
    files = {
        "proc/cpuinfo": text.replace(": 24", ": 31"),  # clock
        "proc/meminfo": MEMINFO.replace("1000 kB", "900000 kB"),
        "etc/hostname": "b",
        "proc/loadavg": "9.0 8.0 7.0 3/100 1",
    }
    second = make_host(tmp_path / "b", files)
    assert read_machine(host=first).fingerprint == read_machine(("other",), second).fingerprint


def test_this_machine_reads_the_same_twice():
    assert read_machine() == read_machine()
    assert read_machine().logical_cores >= 1


def test_nvidia_by_its_tool():
    table = "NVIDIA H100 80GB HBM3, 81559, 535.161.08, 96.00.74.00.01\nNVIDIA T4, [N/A], 535.161.08, [N/A]\n"
    first, second = parse_nvidia_smi(table)
    assert first == Accelerator(
        kind="gpu",
        model="NVIDIA H100 80GB HBM3",
        memory_bytes=81559 * 2**20,
        driver="535.161.08",
        firmware="96.00.74.00.01",
    )
    assert (second.model, second.memory_bytes, second.firmware) == ("NVIDIA T4", None, None)


def test_nvidia_without_its_tool(tmp_path):
    files = {
        "proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.161.08  Sat Feb 24 2024",
        "proc/driver/nvidia/gpus/0000:00:1e.0/information": "Model: \t\t Tesla T4\nIRQ:   \t\t 10\n"
        "Video BIOS: \t 90.04.96.00.02",
    }
    found = nvidia(make_host(tmp_path, files))
    assert found == [Accelerator(kind="gpu", model="Tesla T4", driver="535.161.08", firmware="90.04.96.00.02")]


def test_npus_by_pci_id(tmp_path):
    files = {
        "sys/class/accel/accel0/device/vendor": "0x8086",
        "sys/class/accel/accel0/device/device": "0x643e",
        "sys/class/accel/accel0/device/uevent": "DRIVER=intel_vpu\nPCI_CLASS=120000",
        "sys/class/accel/accel1/device/vendor": "0x1da3",
        "sys/class/accel/accel1/device/device": "0x1020",
        "sys/class/accel/accel1/device/uevent": "DRIVER=habanalabs",
    }
    first, second = npus(make_host(tmp_path, files))
    assert (first.model, first.driver) == ("Intel NPU (Lunar Lake)", "intel_vpu")
    assert second.model == "habanalabs (0x1da3:0x1020)"


def test_accelerators_are_part_of_the_fingerprint(tmp_path):
    files = {"proc/cpuinfo": x86("AMD EPYC 7763", EPYC_FLAGS)}
    plain = make_host(tmp_path, files)
    with_gpu = replace(plain, tool=lambda argv: "NVIDIA T4, 15360, 535.1, 90.0" if argv[0] == "nvidia-smi" else None)
    assert read_machine(host=plain).fingerprint != read_machine(host=with_gpu).fingerprint


def test_a_mac_is_read_by_sysctl():
    facts = {
        "machdep.cpu.brand_string": "Apple M2 Pro",
        "hw.memsize": str(16 * 2**30),
        "hw.physicalcpu": "10",
        "hw.logicalcpu": "10",
        "hw.optional.AdvSIMD": "1",
        "hw.optional.arm.FEAT_BF16": "1",
        "hw.optional.arm.FEAT_SME": "0",
        "kern.hv_vmm_present": "0",
    }
    host = Host(system="Darwin", architecture="arm64", cpus=frozenset(range(10)), tool=lambda argv: facts.get(argv[2]))
    machine = read_machine(host=host)
    assert (machine.cpu, machine.physical_cores, machine.memory_gib) == ("Apple M2 Pro", 10, 16)
    assert (machine.isa, machine.virtual) == (("neon", "bf16"), None)
