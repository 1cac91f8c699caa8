"""Tags by which work finds the machines that can do it: what is here, and what people call it."""

from __future__ import annotations

import re
from pathlib import Path

from bench.model import Machine
from runners.host import Host

EMULATORS = {"qnn": ("npu:emulated",), "ethos-u": ("npu:emulated", "npu:estimated")}
"""Environments of vendors' tools (suites.environments), and what a machine that has made them can do."""


def hardware_tags(machine: Machine, cache: Path, host: Host | None = None) -> tuple[str, ...]:
    """Sorted tags of a machine: `cpu`, its instruction sets, `gpu`, `cuda`, `sm_90`, `npu`, …, and those of people.

    cache: where vendors' environments are (the setting `cache`). Tags are facts, like the fingerprint, but for
    those of people and for what was installed.
    """
    host = host or Host()
    tags = {"cpu", *machine.isa, *machine.tags, *emulated(cache)}
    if machine.architecture:
        tags.add(machine.architecture)
    for accelerator in machine.accelerators:
        tags.add(accelerator.kind)
        if accelerator.kind == "gpu":  # NVIDIA's: runners.accelerators looks for no others
            tags |= {"cuda", *compute_capabilities(host)}
    return tuple(sorted(tags))


def compute_capabilities(host: Host) -> list[str]:
    """`sm_90` for compute capability 9.0, of every NVIDIA GPU; empty without the driver's tool."""
    table = host.tool(["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"]) or ""
    return sorted({f"sm_{major}{minor}" for major, minor in re.findall(r"^(\d+)\.(\d+)$", table, flags=re.MULTILINE)})


def emulated(cache: Path) -> set[str]:
    """What the vendors' tools that were made ready here stand for."""
    folders = {file.parent.name.rpartition("-")[0] for file in (cache / "environments").glob("*/made.json")}
    return {tag for name in folders for tag in EMULATORS.get(name, ())}
