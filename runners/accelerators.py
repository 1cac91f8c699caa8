"""Devices beside the CPU, from drivers' files and tools; nothing there, nothing listed."""

from __future__ import annotations

import re

from bench.model import Accelerator
from runners.host import Host

NPUS = {
    ("0x8086", "0x7d1d"): "Intel NPU (Meteor Lake)",
    ("0x8086", "0xad1d"): "Intel NPU (Arrow Lake)",
    ("0x8086", "0x643e"): "Intel NPU (Lunar Lake)",
    ("0x8086", "0xb03e"): "Intel NPU (Panther Lake)",
    ("0x1022", "0x1502"): "AMD NPU (Ryzen AI, XDNA)",
    ("0x1022", "0x17f0"): "AMD NPU (Ryzen AI, XDNA 2)",
}
"""PCI vendor and device, from the kernel's drivers/accel/ivpu and drivers/accel/amdxdna."""


def accelerators(host: Host) -> tuple[Accelerator, ...]:
    """All devices that a benchmark could compute on, GPUs first."""
    return (*nvidia(host), *npus(host))


def nvidia(host: Host) -> list[Accelerator]:
    """NVIDIA GPUs by nvidia-smi, else by what the kernel module tells (no memory size there)."""
    table = host.tool(
        ["nvidia-smi", "--query-gpu=name,memory.total,driver_version,vbios_version", "--format=csv,noheader,nounits"]
    )
    if table is not None and (found := parse_nvidia_smi(table)):
        return found
    driver = nvidia_driver(host)
    devices = []
    for path in host.glob("proc/driver/nvidia/gpus/*/information"):
        facts = dict(re.findall(r"^([^:\n]+):\s*(.+?)\s*$", host.text(str(path)) or "", flags=re.MULTILINE))
        devices.append(
            Accelerator(
                kind="gpu", model=facts.get("Model", "NVIDIA GPU"), driver=driver, firmware=facts.get("Video BIOS")
            )
        )
    return devices


def parse_nvidia_smi(table: str) -> list[Accelerator]:
    """Rows of `name, MiB, driver, video BIOS`; "[N/A]" is null."""
    devices = []
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) != 4 or not cells[0]:
            continue
        name, memory, driver, firmware = (None if cell.startswith("[") else cell for cell in cells)
        devices.append(
            Accelerator(
                kind="gpu",
                model=name or "NVIDIA GPU",
                memory_bytes=int(memory) * 2**20 if memory and memory.isdigit() else None,
                driver=driver,
                firmware=firmware,
            )
        )
    return devices


def nvidia_driver(host: Host) -> str | None:
    """Version of the loaded NVIDIA kernel module."""
    match = re.search(r"Kernel Module.*?\s(\d+\.\d[\d.]*)", host.text("proc/driver/nvidia/version") or "")
    return match.group(1) if match else None


def npus(host: Host) -> list[Accelerator]:
    """Devices of the kernel's accel class: NPUs of Intel and AMD, and others by their driver's name."""
    devices = []
    for path in host.glob("sys/class/accel/accel*"):
        vendor, device = host.text(f"{path}/device/vendor"), host.text(f"{path}/device/device")
        driver = re.search(r"^DRIVER=(.+)$", host.text(f"{path}/device/uevent") or "", flags=re.MULTILINE)
        name = driver.group(1) if driver else None
        model = NPUS.get((vendor or "", device or ""))
        if model is None:
            model = f"{'Intel NPU' if vendor == '0x8086' else name or 'accelerator'} ({vendor}:{device})"
        devices.append(Accelerator(kind="npu", model=model, driver=name))
    return devices
