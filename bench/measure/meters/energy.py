"""Energy counters of the processor packages (RAPL by the kernel's powercap, Intel and AMD).

A counter is the whole package's: it holds what every process on it used, and what it uses idle. It says
nothing of memory modules, disks and devices. Standard library only.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

POWERCAP = Path("/sys/class/powercap")


@dataclass(frozen=True, slots=True)
class _Zone:
    counter: Path
    range_uj: int  # where it starts again at 0


class EnergyMeter:
    """All packages together. `absent` says why there is no reading; empty where there is."""

    def __init__(self, root: Path = POWERCAP) -> None:
        self._zones: list[_Zone] = []
        self.absent = self._open(root)

    def read(self) -> list[int] | None:
        """Microjoules by package since some time ago; null where one cannot be read."""
        if self.absent:
            return None
        try:
            return [int(zone.counter.read_text()) for zone in self._zones]
        except (OSError, ValueError):
            return None

    def since(self, earlier: list[int] | None) -> int | None:
        """Microjoules since that reading; null where either is. A counter may have started again once."""
        now = self.read()
        if now is None or earlier is None:
            return None
        return sum(
            new - old if new >= old else new - old + zone.range_uj
            for new, old, zone in zip(now, earlier, self._zones, strict=True)
        )

    def _open(self, root: Path) -> str:
        zones = [folder for folder in sorted(root.glob("intel-rapl:*")) if _text(folder / "name").startswith("package")]
        if not zones:
            return "this machine shows no energy counter of its processor (RAPL)"
        for folder in zones:
            counter, most = folder / "energy_uj", _text(folder / "max_energy_range_uj")
            try:
                int(counter.read_text())
            except PermissionError:
                return f"{counter} may not be read; let an administrator give read permission to it"
            except (OSError, ValueError):
                return f"{counter} holds no number"
            if not most.isdigit():
                return f"{folder / 'max_energy_range_uj'} holds no number"
            self._zones.append(_Zone(counter, int(most)))
        return ""


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, ValueError):
        return ""
