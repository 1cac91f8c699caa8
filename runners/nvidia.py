"""NVIDIA's driver and management libraries by ctypes: no torch, no toolkit, standard library only.

Names and numbers are those of NVIDIA's documents "CUDA Driver API" and "NVML API Reference Guide".
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import byref, c_char_p, c_float, c_int, c_uint, c_ulonglong, c_void_p, create_string_buffer
from typing import Any

Load = Callable[[str], Any]

SM_CLOCK = 1  # NVML_CLOCK_SM
GPU_SENSOR = 0  # NVML_TEMPERATURE_GPU
INSUFFICIENT_SIZE = 7  # NVML_ERROR_INSUFFICIENT_SIZE

THROTTLE_REASONS = {
    0x04: "power cap", 0x08: "hardware slowdown", 0x10: "sync boost", 0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown", 0x80: "power brake", 0x100: "display clocks",
}  # fmt: skip
"""nvmlClocksEventReasons that hold a clock down. Idle (0x1) and clocks that a person set (0x2) are none."""


class DriverError(Exception):
    """A call of the driver failed; says which and how."""


class Driver:
    """The primary context of one GPU, which torch, ONNX Runtime and CuPy compute in as well."""

    def __init__(self, index: int = 0, load: Load = ctypes.CDLL) -> None:
        """Raises DriverError with a sentence for a person when there is no such GPU."""
        try:
            self._cuda = load("libcuda.so.1")
        except OSError:
            raise DriverError("no NVIDIA driver is installed (libcuda.so.1 cannot be loaded)") from None
        self._call("cuInit", c_uint(0))
        count = c_int()
        self._call("cuDeviceGetCount", byref(count))
        if index >= count.value:
            raise DriverError(f"there is no GPU {index}: the driver shows {count.value} (CUDA_VISIBLE_DEVICES counts)")
        self._device = c_int()
        self._call("cuDeviceGet", byref(self._device), c_int(index))
        self._context = c_void_p()
        self._call("cuDevicePrimaryCtxRetain", byref(self._context), self._device)
        self._call("cuCtxSetCurrent", self._context)

    @property
    def bus(self) -> str:
        """PCI address, by which NVML finds the same GPU: the two libraries count GPUs differently."""
        text = create_string_buffer(32)
        self._call("cuDeviceGetPCIBusId", text, c_int(len(text)), self._device)
        return text.value.decode()

    def synchronize(self) -> None:
        """Wait for all streams of the context."""
        self._call("cuCtxSynchronize")

    def event(self) -> c_void_p:
        """A mark that can be put into a stream and read as a time."""
        event = c_void_p()
        self._call("cuEventCreate", byref(event), c_uint(0))
        return event

    def record(self, event: c_void_p) -> None:
        """Put it into the default stream, which waits for the others and which the others wait for."""
        self._call("cuEventRecord", event, c_void_p(0))

    def between(self, start: c_void_p, end: c_void_p) -> int:
        """Nanoseconds from one mark to the other, both passed; the driver's resolution is about 0.5 µs."""
        milliseconds = c_float()
        self._call("cuEventSynchronize", end)
        self._call("cuEventElapsedTime", byref(milliseconds), start, end)
        return round(milliseconds.value * 1e6)

    def _call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._cuda, name)(*arguments)
        if code:
            text = c_char_p()
            self._cuda.cuGetErrorName(c_int(code), byref(text))
            raise DriverError(f"{name} failed: {text.value.decode() if text.value else f'error {code}'}")


class Process(ctypes.Structure):
    """nvmlProcessInfo_t of version 2 and 3."""

    _fields_ = [
        ("pid", c_uint),
        ("used_bytes", c_ulonglong),
        ("gpu_instance", c_uint),
        ("compute_instance", c_uint),
    ]


class Nvml:
    """Sensors of one GPU. What a GPU or a driver does not tell reads as null."""

    def __init__(self, bus: str, load: Load = ctypes.CDLL) -> None:
        """`bus`: PCI address. Without the library everything reads as null."""
        self._device = c_void_p()
        self._nvml: Any = None
        try:
            nvml = load("libnvidia-ml.so.1")
            if nvml.nvmlInit_v2() or nvml.nvmlDeviceGetHandleByPciBusId_v2(bus.encode(), byref(self._device)):
                return
        except (OSError, AttributeError):
            return
        self._nvml = nvml

    def clock_mhz(self) -> int | None:
        """Of the multiprocessors, now."""
        return self._read("nvmlDeviceGetClockInfo", c_uint(), c_int(SM_CLOCK))

    def temperature_c(self) -> int | None:
        """Of the GPU's die."""
        return self._read("nvmlDeviceGetTemperature", c_uint(), c_int(GPU_SENSOR))

    def power_mw(self) -> int | None:
        """Of the whole board: an average that the driver renews every few tens of milliseconds."""
        return self._read("nvmlDeviceGetPowerUsage", c_uint())

    def energy_mj(self) -> int | None:
        """Of the whole board since the driver was loaded, in millijoules (Volta and newer)."""
        return self._read("nvmlDeviceGetTotalEnergyConsumption", c_ulonglong())

    def throttle(self) -> tuple[str, ...] | None:
        """What holds the clocks down now; empty: nothing."""
        value = self._read("nvmlDeviceGetCurrentClocksEventReasons", c_ulonglong())
        if value is None:  # the name before driver 535
            value = self._read("nvmlDeviceGetCurrentClocksThrottleReasons", c_ulonglong())
        return None if value is None else tuple(name for bit, name in THROTTLE_REASONS.items() if value & bit)

    def processes(self) -> list[int] | None:
        """Process ids that compute on the GPU, as the host counts them."""
        function = getattr(self._nvml, "nvmlDeviceGetComputeRunningProcesses_v3", None) if self._nvml else None
        if function is None:
            return None
        room = 64
        while True:
            count, found = c_uint(room), (Process * room)()
            code = function(self._device, byref(count), found)
            if code != INSUFFICIENT_SIZE:
                return None if code else [found[k].pid for k in range(count.value)]
            room = 2 * max(room, count.value)

    def _read(self, name: str, value: Any, *which: Any) -> int | None:
        function = getattr(self._nvml, name, None) if self._nvml else None
        if function is None or function(self._device, *which, byref(value)):
            return None
        return int(value.value)
