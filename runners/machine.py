"""The machine we run on, as facts that change speed and survive a reboot."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from bench.model import Machine
from runners.accelerators import accelerators
from runners.host import Host
from runners.processors import core_ids, cpu_name, hypervisor_flag, isa, parse_cpuinfo

GIB = 2**30

APPLE_SETS = {
    "hw.optional.AdvSIMD": "neon",
    "hw.optional.arm.FEAT_FP16": "fp16",
    "hw.optional.arm.FEAT_DotProd": "dotprod",
    "hw.optional.arm.FEAT_I8MM": "i8mm",
    "hw.optional.arm.FEAT_BF16": "bf16",
    "hw.optional.arm.FEAT_SME": "sme",
    "hw.optional.arm.FEAT_SME2": "sme2",
    "hw.optional.avx2_0": "avx2",
    "hw.optional.avx512f": "avx512f",
}
"""sysctl names (Apple: Determining Instruction Set Characteristics) and ours."""

HYPERVISORS = {
    "amazon ec2": "nitro", "google": "kvm", "qemu": "kvm", "kvm": "kvm", "vmware": "vmware", "xen": "xen",
    "microsoft corporation": "hyper-v", "innotek": "virtualbox", "parallels": "parallels", "bochs": "kvm",
    "digitalocean": "kvm", "hetzner": "kvm", "openstack": "kvm", "alibaba cloud": "kvm", "scaleway": "kvm",
}  # fmt: skip
"""Beginnings of the firmware's vendor, and what runs below. Believed only where a guest is likely."""


def read_machine(tags: Sequence[str] = (), host: Host | None = None) -> Machine:
    """Facts of this machine; cores and memory are what this process may use (affinity, control group).

    Never a hostname and never a live reading, so the fingerprint is equal at every call and under load.
    """
    host = host or Host()
    if host.system == "Darwin":
        return _apple(host, tags)
    blocks = parse_cpuinfo(host.text("proc/cpuinfo") or "")
    board = host.text("proc/device-tree/model")
    logical = host.usable_cpus()
    physical = physical_cores(host, blocks)
    return Machine(
        architecture=host.architecture,
        cpu=cpu_name(blocks, board) or f"unknown {host.architecture} processor",
        physical_cores=None if physical is None else min(physical, logical),
        logical_cores=logical,
        memory_gib=memory_gib(host),
        isa=isa(blocks),
        accelerators=accelerators(host),
        virtual=virtual(host, blocks),
        tags=tuple(dict.fromkeys(tags)),
    )


def physical_cores(host: Host, blocks: Sequence[Mapping[str, str]]) -> int | None:
    """Cores behind the CPUs that we may use; null where neither sysfs nor cpuinfo tells."""
    folders = {cpu: f"sys/devices/system/cpu/cpu{cpu}/topology" for cpu in host.cpus}
    siblings = {cpu: host.text(f"{folder}/thread_siblings_list") for cpu, folder in folders.items()}
    if all(siblings.values()):
        return len(set(siblings.values()))
    cores = core_ids(blocks)
    if cores and host.cpus <= cores.keys():
        return len({cores[cpu] for cpu in host.cpus})
    return None


def memory_gib(host: Host) -> int:
    """Installed memory, or the control group's limit where that is smaller, in whole GiB.

    MemTotal lacks what the kernel keeps for itself, which moves with every kernel: near a half it
    would round to another machine. The sizes of the memory banks do not move, so they are taken
    where they are shown and fit.
    """
    match = re.search(r"^MemTotal:\s*(\d+) kB", host.text("proc/meminfo") or "", flags=re.MULTILINE)
    total = int(match.group(1)) * 1024 if match else 0
    block = host.text("sys/devices/system/memory/block_size_bytes")
    if block:
        banks = len(host.glob("sys/devices/system/memory/memory[0-9]*"))
        installed = banks * int(block, 16)
        if 0.8 * installed <= total <= installed:
            total = installed
    limit = host.memory_limit()
    if limit is not None and (not total or limit < total):
        total = limit
    return max(1, round(total / GIB)) if total else 0


def virtual(host: Host, blocks: Sequence[Mapping[str, str]]) -> str | None:
    """`docker`, `kvm`, `docker on kvm`, …; null on bare metal, or where nothing tells."""
    return " on ".join(filter(None, (_container(host), _hypervisor(host, blocks)))) or None


def _container(host: Host) -> str | None:
    if host.exists(".dockerenv"):
        return "docker"
    if host.exists("run/.containerenv"):
        return "podman"
    named = host.text("run/systemd/container")
    if named:
        return named
    groups = host.text("proc/1/cgroup") or ""
    for word, name in (("kubepods", "kubernetes"), ("docker", "docker"), ("lxc", "lxc")):
        if word in groups:
            return name
    return None


def _hypervisor(host: Host, blocks: Sequence[Mapping[str, str]]) -> str | None:
    if "microsoft" in (host.text("proc/sys/kernel/osrelease") or "").lower():
        return "wsl"
    below = host.text("sys/hypervisor/type") or host.text("proc/device-tree/hypervisor/compatible")
    if below:
        return below.replace("linux,", "")
    clocks = host.text("sys/devices/system/clocksource/clocksource0/available_clocksource") or ""
    product = (host.text("sys/class/dmi/id/product_name") or "").lower()
    vendor = (host.text("sys/class/dmi/id/sys_vendor") or "").lower()
    guest = hypervisor_flag(blocks) or "virtual" in product or (vendor == "amazon ec2" and "metal" not in product)
    if guest or vendor in ("qemu", "xen"):
        for beginning, name in HYPERVISORS.items():
            if vendor.startswith(beginning):
                return name
    for clock, name in (("kvm-clock", "kvm"), ("hyperv", "hyper-v"), ("xen", "xen")):
        if clock in clocks:
            return name
    return "unknown hypervisor" if guest else None


def _apple(host: Host, tags: Sequence[str]) -> Machine:
    def fact(name: str) -> str:
        return (host.tool(["sysctl", "-n", name]) or "").strip()

    memory, cores, threads = fact("hw.memsize"), fact("hw.physicalcpu"), fact("hw.logicalcpu")
    return Machine(
        architecture=host.architecture,
        cpu=fact("machdep.cpu.brand_string") or f"unknown {host.architecture} processor",
        physical_cores=int(cores) if cores.isdigit() else None,
        logical_cores=int(threads) if threads.isdigit() else len(host.cpus),
        memory_gib=round(int(memory) / GIB) if memory.isdigit() else 0,
        isa=tuple(name for key, name in APPLE_SETS.items() if fact(key) == "1"),
        virtual="hypervisor" if fact("kern.hv_vmm_present") == "1" else None,
        tags=tuple(dict.fromkeys(tags)),
    )
