"""One contract for every device; and what becomes of a benchmark whose device is not here."""

import pkgutil
from importlib import import_module

import pytest

from bench.api import Skip
from bench.cli import run
from bench.commands._devices import device_names, known_device
from bench.errors import Exit, UsageError
from bench.measure.contract import device_of, require
from bench.model import Benchmark, Target
from bench.plan import placed, plan, sides
from runners import devices

NAMES = [module.name for module in pkgutil.iter_modules(devices.__path__)]
KINDS = {"real", "emulated", "estimated"}


@pytest.mark.parametrize("name", NAMES)
def test_every_device_keeps_the_contract_or_says_why_it_is_not_here(name):
    module = import_module(f"runners.devices.{name}")
    try:
        device = module.DEVICE(2)
    except Skip as reason:
        pytest.skip(str(reason))
    assert device.name.partition(":")[0].replace("-", "_") == name
    assert device.kind in KINDS
    assert device.threads == 2
    assert device.synchronize() is None


def test_a_device_has_a_name_and_may_have_a_part():
    assert device_of("cpu", 1).name == "cpu"
    assert device_of("bench.testing:FakeDevice", 3).threads == 3
    with pytest.raises(Skip, match="no device called abacus"):
        device_of("abacus", 1)
    with pytest.raises(Skip, match="give a number"):
        device_of("cuda:first", 1)


def test_a_kind_of_device_stands_for_each_of_its_kind():
    require(["device:openvino"], "openvino:NPU")
    require(["device:openvino:NPU"], "openvino:NPU")
    for need, device in (("openvino:NPU", "openvino:GPU"), ("cuda", "cpu"), ("cud", "cuda")):
        with pytest.raises(Skip, match=f"needs the device {need}; this worker runs on {device}"):
            require([f"device:{need}"], device)


def test_the_command_line_knows_the_names():
    assert device_names()[0] == "cpu"
    assert {"cuda", "null"} <= set(device_names())
    assert known_device("cuda:1") == "cuda:1"
    with pytest.raises(UsageError, match=r"no device 'abacus'; there are cpu, .*cuda"):
        known_device("abacus")


@pytest.mark.parametrize(
    "words",
    [["run", "--device", "abacus"], ["profile", "HEAD device:abacus", "HEAD", "s.b"]],
    ids=lambda words: words[0],
)
def test_a_device_that_nobody_wrote_is_a_usage_error(words, capsys):
    assert run([*words]) == Exit.USAGE
    assert "there is no device 'abacus'; there are cpu," in capsys.readouterr().err


def bound(*requires):
    return Benchmark(name="s.b", version="1", suite="s", source="s:b", requires=requires, profiles=("quick",))


def test_a_benchmark_runs_on_the_device_that_it_requires():
    assert placed(Target(), bound("numpy", "device:cuda")).device == "cuda"
    assert placed(Target(device="qnn"), bound("device:cuda")).device == "qnn"  # and is skipped there
    assert placed(Target(), bound("numpy")).device == "cpu"
    experiments = plan([bound("device:cuda")], (), profile="quick", target=Target(), seed=1)
    assert [arm.target.device for arm in experiments[0].arms] == ["cuda"]


def test_two_devices_compared_stay_what_they_are():
    cpu, cuda = Target(), Target(device="cuda")
    assert sides(cpu, cuda, bound("device:cuda")) == (cpu, cuda)
    assert [side.device for side in sides(cpu, cpu, bound("device:cuda"))] == ["cuda", "cuda"]
