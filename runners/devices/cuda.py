"""An NVIDIA GPU. Standard library only, so that any interpreter with any framework can be measured on it."""

from __future__ import annotations

import ctypes

from bench.api import Skip
from runners.nvidia import Driver, DriverError, Load


class Cuda:
    """GPU number `part`, as torch counts: its name is torch's too (`cuda`, `cuda:1`). See bench.ports.Device."""

    kind = "real"

    def __init__(self, threads: int = 1, part: str = "", load: Load = ctypes.CDLL) -> None:
        """Raises Skip where there is no such GPU."""
        if part and not part.isdigit():
            raise Skip(f"cuda:{part}: give a number, as in cuda:0")
        self.name = f"cuda:{part}" if part else "cuda"
        self.threads = threads
        try:
            self._driver = Driver(int(part or 0), load)
        except DriverError as error:
            raise Skip(f"needs the device {self.name}: {error}") from None

    def synchronize(self) -> None:
        """Wait for all streams."""
        self._driver.synchronize()


DEVICE = Cuda
