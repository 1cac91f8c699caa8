"""The NVIDIA GPU as its libraries are told to answer: no GPU is needed, and none is proven by this."""

# ruff: noqa: N802 - names are those of the libraries

import os
from types import SimpleNamespace

import pytest

from bench.api import Skip
from bench.measure.meters.device import DeviceMeter
from runners.devices.cuda import Cuda
from runners.nvidia import INSUFFICIENT_SIZE, Nvml

NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE


def put(pointer, value):
    """What C does with an output argument."""
    pointer._obj.value = value
    return 0


class FakeDriver:
    """libcuda: keeps what was put into the queue, in order."""

    def __init__(self, gpus=2, init=0):
        self.gpus, self.init, self.queue, self.events = gpus, init, [], 0

    def cuInit(self, flags):
        return self.init

    def cuDeviceGetCount(self, count):
        return put(count, self.gpus)

    def cuDeviceGet(self, device, index):
        return put(device, index.value)

    def cuDevicePrimaryCtxRetain(self, context, device):
        return put(context, 7)

    def cuCtxSetCurrent(self, context):
        assert context.value == 7
        return 0

    def cuDeviceGetPCIBusId(self, text, size, device):
        text.value = f"0000:{device.value:02d}:00.0".encode()
        return 0

    def cuEventCreate(self, event, flags):
        self.events += 1
        return put(event, self.events)

    def cuEventRecord(self, event, stream):
        assert not stream.value, "the default stream"
        self.queue.append(event.value)
        return 0

    def cuCtxSynchronize(self):
        self.queue.append("wait")
        return 0

    def cuEventSynchronize(self, event):
        assert event.value in self.queue
        return 0

    def cuEventElapsedTime(self, milliseconds, start, end):
        first, last = self.queue.index(start.value), len(self.queue) - 1 - self.queue[::-1].index(end.value)
        return put(milliseconds, 0.5 * (last - first))

    def cuGetErrorName(self, code, name):
        return put(name, b"CUDA_ERROR_NO_DEVICE")


class FakeNvml:
    """libnvidia-ml of one GPU."""

    reasons, pids, asked = 0x24, [], None

    def nvmlInit_v2(self):
        return 0

    def nvmlDeviceGetHandleByPciBusId_v2(self, bus, device):
        self.asked = bus
        return put(device, 3)

    def nvmlDeviceGetClockInfo(self, device, which, value):
        return put(value, 1980)

    def nvmlDeviceGetTemperature(self, device, which, value):
        return put(value, 61)

    def nvmlDeviceGetPowerUsage(self, device, value):
        return put(value, 412_500)

    def nvmlDeviceGetTotalEnergyConsumption(self, device, value):
        self.energy = getattr(self, "energy", 1_000_000) + 250
        return put(value, self.energy)

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, device, value):
        return put(value, self.reasons)

    def nvmlDeviceGetComputeRunningProcesses_v3(self, device, count, found):
        if len(found) < len(self.pids):
            put(count, len(self.pids))
            return INSUFFICIENT_SIZE
        for place, pid in enumerate(self.pids):
            found[place].pid = pid
        return put(count, len(self.pids))


@pytest.fixture
def libraries():
    return SimpleNamespace(cuda=FakeDriver(), nvml=FakeNvml())


def loader(libraries):
    def load(name):
        found = libraries.cuda if name == "libcuda.so.1" else libraries.nvml
        if found is None:
            raise OSError(name)
        return found

    return load


def test_a_batch_lies_between_two_marks_of_the_devices_queue(libraries):
    device = Cuda(1, load=loader(libraries))
    device.begin()
    libraries.cuda.queue += ["kernel", "kernel"]
    device.synchronize()
    assert libraries.cuda.queue == [1, "kernel", "kernel", 2, "wait"], "the end is marked before we wait"
    assert device.elapsed_ns() == 1_500_000


def test_the_meter_takes_marks_energy_and_conditions(libraries, tmp_path):
    device = Cuda(1, load=loader(libraries), processes=tmp_path)
    meter = DeviceMeter(device)
    meter.open()
    for _ in range(2):
        meter.begin()
        device.synchronize()
        meter.end()
    told = meter.close()
    assert len(told["spans"]) == 2
    assert told["energy_uj"] == 250_000, "by the counter's difference"
    assert told["conditions"] == {
        "clock_mhz": 1980, "temperature_c": 61, "power_w": 412.5, "foreign": None,
        "throttled": ("power cap", "software thermal slowdown"),
    }  # fmt: skip


def test_other_arms_are_not_foreign_and_unknown_numbers_are_not_guessed(libraries, tmp_path):
    for pid, command in ((os.getpid(), b"python"), (41, b"python\0-m\0bench.measure.worker\x003"), (42, b"train.py")):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "cmdline").write_bytes(b"bench.measure.worker" if pid == os.getpid() else command)
    device = Cuda(1, load=loader(libraries), processes=tmp_path)
    libraries.nvml.pids = [os.getpid(), 41, 42, 43]
    assert device.conditions()["foreign"] == 2, "a training, and one that has gone or is hidden"
    libraries.nvml.pids = [9001, 9002]
    assert device.conditions()["foreign"] is None, "a container's own numbers"
    libraries.nvml.pids = [os.getpid(), *range(10_000, 10_200)]
    assert device.conditions()["foreign"] == 200, "asked again with room enough"


def test_the_sensors_are_those_of_the_same_gpu(libraries):
    device = Cuda(1, "1", load=loader(libraries))
    assert device.name == "cuda:1"
    assert libraries.nvml.asked == b"0000:01:00.0"


@pytest.mark.parametrize(
    ("part", "driver", "says"),
    [
        ("", None, "needs the device cuda: no NVIDIA driver is installed"),
        ("", FakeDriver(init=NO_DEVICE), "cuInit failed: CUDA_ERROR_NO_DEVICE"),
        ("2", FakeDriver(gpus=2), "there is no GPU 2: the driver shows 2"),
        ("first", FakeDriver(), "give a number"),
    ],
)
def test_a_gpu_that_is_not_here_is_a_reason(part, driver, says, libraries):
    libraries.cuda = driver
    with pytest.raises(Skip, match=says):
        Cuda(1, part, load=loader(libraries))


def test_without_the_library_or_on_an_old_gpu_sensors_read_null(libraries):
    libraries.nvml = None
    device = Cuda(1, load=loader(libraries))
    assert device.energy_uj() is None
    assert set(device.conditions().values()) == {None}
    bare = SimpleNamespace(nvmlInit_v2=lambda: 0, nvmlDeviceGetHandleByPciBusId_v2=lambda bus, device: 0)
    assert Nvml("x", lambda name: bare).throttle() is None
    bare.nvmlDeviceGetPowerUsage = lambda device, value: 3  # NVML_ERROR_NOT_SUPPORTED
    assert Nvml("x", lambda name: bare).power_mw() is None
