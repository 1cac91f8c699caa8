"""What a device tells of itself around a sample and a round, where it has marks and sensors (bench.ports.Metered).

Standard library only. For a device without them every call here is one comparison.
"""

from __future__ import annotations

from typing import Any


class DeviceMeter:
    """Of one device; `device` is any bench.ports.Device."""

    def __init__(self, device: Any) -> None:
        self._device = device if hasattr(device, "elapsed_ns") else None
        self._spans: list[int] = []
        self._energy: int | None = None

    def open(self) -> None:
        """A round begins."""
        self._spans = []
        if self._device is not None:
            self._energy = self._device.energy_uj()

    def begin(self) -> None:
        """A batch begins: put a mark behind what the device still has to do."""
        if self._device is not None:
            self._device.begin()

    def end(self) -> None:
        """The batch is over and the device synchronized."""
        if self._device is not None:
            self._spans.append(self._device.elapsed_ns())

    def close(self) -> dict[str, Any] | None:
        """Times of the round's batches in ns, its energy, its conditions; null for a device that tells nothing."""
        if self._device is None:
            return None
        now = self._device.energy_uj()
        used = None if now is None or self._energy is None else now - self._energy
        return {"spans": self._spans, "energy_uj": used, "conditions": self._device.conditions()}
