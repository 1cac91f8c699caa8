"""Clock and temperature of the processor, read beside a round; null where the system does not tell.

Standard library only. Files are looked for once; a reading then costs two small reads.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

SYS = Path("/sys")

SENSORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal", "cpu-thermal", "soc_thermal", "x86_pkg_temp")
"""Names under which kernels show the CPU's temperature; the first that is there counts."""

PACKAGE_LABELS = ("package", "tctl", "tdie")
"""Beginnings of labels of the one reading that stands for a whole package (coretemp, k10temp)."""

MOST_CPUS = 8
"""CPUs whose clock is read where a worker is not pinned: more would cost more than they tell."""


class Sensors:
    """What can be read on this machine."""

    def __init__(self, root: Path = SYS) -> None:
        self._root = root
        self._temperature = next(_temperatures(root), None)
        self._clocks: list[Path] = []

    def follow(self, cpus: set[int]) -> None:
        """Read the clock of these CPUs, the lowest MOST_CPUS of them, from now on."""
        folder = self._root / "devices" / "system" / "cpu"
        paths = [folder / f"cpu{cpu}" / "cpufreq" / "scaling_cur_freq" for cpu in sorted(cpus)[:MOST_CPUS]]
        self._clocks = [path for path in paths if path.is_file()]

    def read(self) -> dict[str, float | None]:
        """Mean clock in MHz (cpufreq tells kHz) and temperature in °C (hwmon and thermal tell thousandths)."""
        clocks = [value for path in self._clocks if (value := _number(path))]
        celsius = _number(self._temperature) if self._temperature else None
        return {
            "clock_mhz": sum(clocks) / len(clocks) / 1e3 if clocks else None,
            "temperature_c": celsius / 1e3 if celsius else None,
        }


def own_cpus() -> set[int]:
    """CPUs that this process may run on; empty where the system does not tell."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()


def _temperatures(root: Path) -> Iterator[Path]:
    """Files of the CPU's temperature, the best first."""
    chips = {_text(folder / "name"): folder for folder in sorted((root / "class" / "hwmon").glob("hwmon*"))}
    zones = {_text(folder / "type"): folder for folder in sorted((root / "class" / "thermal").glob("thermal_zone*"))}
    for name in SENSORS:
        if name in chips:
            inputs = sorted(chips[name].glob("temp*_input"))
            yield from sorted(inputs, key=lambda path: not _is_package(path))
        if name in zones:
            yield zones[name] / "temp"


def _is_package(path: Path) -> bool:
    return _text(path.with_name(path.name.replace("_input", "_label"))).lower().startswith(PACKAGE_LABELS)


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, ValueError):
        return ""


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None
