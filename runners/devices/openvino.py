"""What OpenVINO computes on: CPU, GPU or NPU, by its own names."""

from __future__ import annotations

import importlib

from bench.api import Skip


class OpenVino:
    """`openvino:NPU`, `openvino:GPU`, `openvino:GPU.1`, `openvino:CPU`; see bench.ports.Device.

    `infer` returns when the device is done; who starts asynchronous requests waits for them in the call.
    """

    kind = "real"

    def __init__(self, threads: int = 1, part: str = "CPU") -> None:
        """Raises Skip where OpenVINO or that device is missing."""
        self.name = f"openvino:{part}"
        self.threads = threads
        try:
            core = importlib.import_module("openvino").Core()
        except ImportError:
            raise Skip(f"needs the device {self.name}: openvino is not installed") from None
        found = list(core.available_devices)
        if part not in found and not any(name.startswith(f"{part}.") for name in found):
            raise Skip(f"needs the device {self.name}: OpenVINO sees {', '.join(found) or 'nothing'} here")

    def synchronize(self) -> None:
        """Nothing is ever pending."""


DEVICE = OpenVino
