"""Qualcomm's Hexagon NPU through onnxruntime-qnn: the device on a Snapdragon, Qualcomm's emulator on x86-64."""

from __future__ import annotations

import importlib.util
import platform

from bench.api import Skip
from bench.model import EMULATED, REAL


class Qnn:
    """A session's `run` returns when the NPU is done, so there is nothing to wait for. See bench.ports.Device."""

    name = "qnn"

    def __init__(self, threads: int = 1) -> None:
        """Raises Skip where the package is missing."""
        if importlib.util.find_spec("onnxruntime_qnn") is None:
            raise Skip(
                "needs the device qnn: onnxruntime-qnn is not installed here (pip install onnxruntime-qnn, or "
                "bench run --python with the one of an environment that has it)"
            )
        self.kind = REAL if platform.machine().lower() in ("aarch64", "arm64") else EMULATED
        self.threads = threads

    def synchronize(self) -> None:
        """Nothing is ever pending."""


DEVICE = Qnn
