"""An NVIDIA GPU. Standard library only, so that any interpreter with any framework can be measured on it."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from bench.api import Skip
from runners.nvidia import Driver, DriverError, Load, Nvml

WORKER = b"bench.measure.worker"
"""In the command line of a process of ours that measures."""


class Cuda:
    """GPU number `part`, as torch counts: its name is torch's too (`cuda`, `cuda:1`). See bench.ports.Metered.

    What runs on streams that do not wait for the default stream is in the wall clock, not in `elapsed_ns`.
    """

    kind = "real"

    def __init__(
        self, threads: int = 1, part: str = "", load: Load = ctypes.CDLL, processes: Path = Path("/proc")
    ) -> None:
        """Raises Skip where there is no such GPU."""
        if part and not part.isdigit():
            raise Skip(f"cuda:{part}: give a number, as in cuda:0")
        self.name = f"cuda:{part}" if part else "cuda"
        self.threads = threads
        self._processes = processes
        try:
            self._driver = Driver(int(part or 0), load)
            self._start, self._end = self._driver.event(), self._driver.event()
            self._nvml = Nvml(self._driver.bus, load)
        except DriverError as error:
            raise Skip(f"needs the device {self.name}: {error}") from None

    def synchronize(self) -> None:
        """Mark the end of what was handed over, and wait for all streams."""
        self._driver.record(self._end)
        self._driver.synchronize()

    def begin(self) -> None:
        """Mark where the next batch begins."""
        self._driver.record(self._start)

    def elapsed_ns(self) -> int:
        """Between the two marks."""
        return self._driver.between(self._start, self._end)

    def energy_uj(self) -> int | None:
        """Of the whole board, since the driver was loaded."""
        millijoules = self._nvml.energy_mj()
        return None if millijoules is None else millijoules * 1000

    def conditions(self) -> dict[str, object]:
        """Fields of bench.model.DeviceConditions, now."""
        milliwatts = self._nvml.power_mw()
        return {
            "clock_mhz": self._nvml.clock_mhz(),
            "temperature_c": self._nvml.temperature_c(),
            "power_w": None if milliwatts is None else milliwatts / 1000,
            "throttled": self._nvml.throttle(),
            "foreign": self._foreign(),
        }

    def _foreign(self) -> int | None:
        """Processes on the GPU that are no worker of the session: the other arms wait there too.

        The driver counts processes as the host does. In a container that numbers its own, ours is not
        among them, and nobody knows whose the others are.
        """
        found = self._nvml.processes()
        if found is None or os.getpid() not in found:
            return None
        return sum(1 for pid in found if WORKER not in self._command(pid))

    def _command(self, pid: int) -> bytes:
        try:
            return (self._processes / str(pid) / "cmdline").read_bytes()
        except OSError:
            return b""


DEVICE = Cuda
