"""Huawei's Ascend NPU: through torch-npu, or through ONNX Runtime's CANN provider, whichever this interpreter has.

Written by their documentation and tried without a device only. torch-npu breaks `import torch` where its
libraries are missing, so it is imported by whoever asks for this device, and by nobody else.
"""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import Any

from bench.api import Skip

DEVICE_FILES = Path("/dev")


class Ascend:
    """NPU number `part`; see bench.ports.Device. CANN's provider returns when the NPU is done."""

    kind = "real"

    def __init__(self, threads: int = 1, part: str = "", files: Path = DEVICE_FILES) -> None:
        """Raises Skip where the driver's file of that NPU or both packages are missing."""
        if part and not part.isdigit():
            raise Skip(f"ascend:{part}: give a number, as in ascend:0")
        self.name = f"ascend:{part}" if part else "ascend"
        self.threads = threads
        if not (files / f"davinci{part or 0}").exists():
            raise Skip(f"needs the device {self.name}: the driver shows none ({files / f'davinci{part or 0}'})")
        self._npu = self._torch(int(part or 0))
        if self._npu is None and "CANNExecutionProvider" not in _providers():
            raise Skip(f"needs the device {self.name}: neither torch_npu nor onnxruntime-cann is installed")

    def synchronize(self) -> None:
        """Wait for all streams."""
        if self._npu is not None:
            self._npu.synchronize()

    def _torch(self, index: int) -> Any:
        """`torch.npu`; null without torch-npu."""
        if importlib.util.find_spec("torch_npu") is None:
            return None
        try:
            importlib.import_module("torch_npu")
        except (ImportError, OSError) as error:
            raise Skip(f"needs the device {self.name}: torch_npu cannot be imported ({error})") from None
        npu = importlib.import_module("torch").npu
        npu.set_device(index)
        return npu


def _providers() -> list[str]:
    try:
        return list(importlib.import_module("onnxruntime").get_available_providers())
    except ImportError:
        return []


DEVICE = Ascend
