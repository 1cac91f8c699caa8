"""Names and instruction sets of processors, out of the text of /proc/cpuinfo. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

X86_SETS = (
    "sse4_2", "f16c", "fma", "avx", "avx2", "avx_vnni", "avx_vnni_int8", "avx512f", "avx512bw", "avx512vl",
    "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_int8", "amx_bf16", "amx_fp16",
)  # fmt: skip
"""What oneDNN, MLAS, XNNPACK and OpenBLAS dispatch on, by the kernel's names."""

ARM_SETS = {
    "asimd": "neon", "neon": "neon", "asimdhp": "fp16", "asimddp": "dotprod", "i8mm": "i8mm", "bf16": "bf16",
    "sve": "sve", "sve2": "sve2", "svei8mm": "svei8mm", "svebf16": "svebf16", "sme": "sme", "sme2": "sme2",
}  # fmt: skip
"""The kernel's names (Documentation/arch/arm64/elf_hwcaps.rst) and ours."""

ARM_CORES = {
    "0x41": ("ARM", {
        "0xd03": "Cortex-A53", "0xd04": "Cortex-A35", "0xd05": "Cortex-A55", "0xd07": "Cortex-A57",
        "0xd08": "Cortex-A72", "0xd09": "Cortex-A73", "0xd0a": "Cortex-A75", "0xd0b": "Cortex-A76",
        "0xd0c": "Neoverse-N1", "0xd0d": "Cortex-A77", "0xd40": "Neoverse-V1", "0xd41": "Cortex-A78",
        "0xd42": "Cortex-A78AE", "0xd44": "Cortex-X1", "0xd46": "Cortex-A510", "0xd47": "Cortex-A710",
        "0xd48": "Cortex-X2", "0xd49": "Neoverse-N2", "0xd4b": "Cortex-A78C", "0xd4c": "Cortex-X1C",
        "0xd4d": "Cortex-A715", "0xd4e": "Cortex-X3", "0xd4f": "Neoverse-V2", "0xd80": "Cortex-A520",
        "0xd81": "Cortex-A720", "0xd82": "Cortex-X4", "0xd84": "Neoverse-V3", "0xd85": "Cortex-X925",
        "0xd87": "Cortex-A725", "0xd8e": "Neoverse-N3",
    }),
    "0x46": ("Fujitsu", {"0x001": "A64FX"}),
    "0x48": ("HiSilicon", {"0xd01": "TaiShan-v110", "0xd02": "TaiShan-v120"}),
    "0x4e": ("NVIDIA", {"0x003": "Denver-2", "0x004": "Carmel"}),
    "0x51": ("Qualcomm", {"0x001": "Oryon"}),
    "0x61": ("Apple", {
        "0x022": "Icestorm-M1", "0x023": "Firestorm-M1", "0x024": "Icestorm-M1-Pro", "0x025": "Firestorm-M1-Pro",
        "0x028": "Icestorm-M1-Max", "0x029": "Firestorm-M1-Max", "0x032": "Blizzard-M2", "0x033": "Avalanche-M2",
        "0x034": "Blizzard-M2-Pro", "0x035": "Avalanche-M2-Pro", "0x038": "Blizzard-M2-Max",
        "0x039": "Avalanche-M2-Max",
    }),
    "0xc0": ("Ampere", {"0xac3": "Ampere-1", "0xac4": "Ampere-1a"}),
}  # fmt: skip
"""Implementer → its name and parts, from the kernel's arch/arm64/include/asm/cputype.h."""


def parse_cpuinfo(text: str) -> list[dict[str, str]]:
    """One mapping per block of /proc/cpuinfo: a processor, or the trailing facts of a board."""
    blocks: list[dict[str, str]] = []
    for chunk in re.split(r"\n\s*\n", text):
        block = {}
        for line in chunk.splitlines():
            key, colon, value = line.partition(":")
            if colon:
                block[key.strip()] = value.strip()
        if block:
            blocks.append(block)
    return blocks


def cpu_name(blocks: Iterable[Mapping[str, str]], board: str | None = None) -> str | None:
    """What the processor is called; null where cpuinfo does not say.

    Hypervisors hide the model ("Intel(R) Xeon(R) Processor"): then family, model and stepping are
    added, without which two generations would be one machine. ARM tells implementer and part
    only; cores of several kinds are counted, and `board` (the device tree's model) stands first.
    """
    found = list(blocks)
    for block in found:
        name = " ".join((block.get("model name") or "").split())
        if name and "CPU implementer" not in block and "cpu family" in block:
            if _anonymous(name):
                name += f" (family {block['cpu family']} model {block.get('model')} stepping {block.get('stepping')})"
            return name
    cores = Counter(_arm_core(block) for block in found if "CPU part" in block)
    if cores:
        kinds = sorted(cores.items(), key=lambda item: (-item[1], item[0]))
        name = kinds[0][0] if len(kinds) == 1 else " + ".join(f"{count} × {kind}" for kind, count in kinds)
        return f"{board} ({name})" if board else name
    for block in found:
        for key in ("model name", "cpu", "uarch", "cpu model", "vendor_id", "isa"):
            if block.get(key):
                return f"{board} ({block[key]})" if board else block[key]
    return board


def _anonymous(name: str) -> bool:
    """Whether no word of the name is a model number, like 8259CL, 7B13, i7-8650U or N100."""
    words = re.sub(r"\(.*?\)|@.*$", " ", name).split()
    return not any(sum(c.isdigit() for c in word) >= 3 for word in words) and not re.search(
        r"\b(Ryzen AI|Apple M|Core\(TM\) Ultra)\b", name
    )


def _arm_core(block: Mapping[str, str]) -> str:
    implementer, part = block.get("CPU implementer", "?").lower(), block.get("CPU part", "?").lower()
    maker, parts = ARM_CORES.get(implementer, (f"ARM implementer {implementer}", {}))
    variant, revision = block.get("CPU variant", "0x0"), block.get("CPU revision", "0")
    return f"{maker} {parts.get(part, f'part {part}')} r{int(variant, 16)}p{revision}"


def isa(blocks: Iterable[Mapping[str, str]]) -> tuple[str, ...]:
    """Instruction sets that inference kernels choose by, those that every processor has, in a fixed order."""
    common: set[str] | None = None
    for block in blocks:
        words = block.get("flags") or block.get("Features")
        if words is None:
            continue
        have = set(words.split())
        names = {flag for flag in X86_SETS if flag in have} | {name for flag, name in ARM_SETS.items() if flag in have}
        common = names if common is None else common & names
    order = [*X86_SETS, *dict.fromkeys(ARM_SETS.values())]
    return tuple(sorted(common or (), key=order.index))


def hypervisor_flag(blocks: Iterable[Mapping[str, str]]) -> bool:
    """Whether the CPU says that a hypervisor is below it (x86 only)."""
    return any("hypervisor" in block.get("flags", "").split() for block in blocks)


def core_ids(blocks: Iterable[Mapping[str, str]]) -> dict[int, tuple[str, str]]:
    """Logical CPU → its (package, core), where cpuinfo tells (x86)."""
    return {
        int(block["processor"]): (block.get("physical id", "0"), block["core id"])
        for block in blocks
        if block.get("processor", "").isdigit() and "core id" in block
    }
