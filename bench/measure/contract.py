"""What a suite and whoever runs it owe each other: requirements before, a judged answer after. Standard library only.

The worker and the bridges to other tools (bench.bridges) share it, so that a variant is skipped or
wrong for the same reasons wherever it runs.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

from bench.api import Items, Skip, Work, Wrong
from bench.model import KINDS

if TYPE_CHECKING:
    from bench.ports import Device

DEVICES = "runners.devices"
"""Where names of devices are looked up: a module each, which holds its class as `DEVICE`."""

CPU = "cpu"
"""The device that every machine has."""


class Told(Exception):  # noqa: N818 - a report, not a mistake
    """A failure outside Python: its message, and the last lines of what was printed, say all."""

    def __init__(self, message: str, printed: str = "") -> None:
        super().__init__(message)
        self.printed = printed


def device_of(name: str, threads: int) -> Device:
    """The device of that name, with so many threads: `cuda`, or one of several as `openvino:NPU`.

    A class of another module is `module:class`. Raises Skip, with what to do, when the device is not here.
    """
    kind, _, part = name.partition(":")
    module = f"{DEVICES}.{kind.replace('-', '_')}"
    if "." not in kind and _is_installed(module):
        make = importlib.import_module(module).DEVICE
        device: Device = make(threads, part) if part else make(threads)
        return device
    if not part:
        raise Skip(f"there is no device called {name}")
    made: Device = getattr(importlib.import_module(kind), part)(threads)
    return made


def require(needs: Iterable[str], device: str) -> None:
    """Raises Skip, with what to do, when something that a benchmark `requires` is not here.

    A device's name also stands for each of its kind: `openvino` for `openvino:NPU`.
    """
    for need in needs:
        kind, _, name = need.partition(":")
        if kind == "device" and name != device and not device.startswith(f"{name}:"):
            raise Skip(f"needs the device {name}; this worker runs on {device} (choose with --device {name})")
        if ":" not in need and not _is_installed(need):
            raise Skip(f"needs the package {need}, which is not installed (pip install 'inference-bench[all]')")


def kind_of(work: Work, device: Device) -> str:
    """Whether the work's answers are real, emulated or estimated. Raises ValueError for another word."""
    kind = work.kind or device.kind
    if kind not in KINDS:
        raise ValueError(f"kind={kind!r} of the work; it is one of {', '.join(KINDS)}")
    return kind


def _is_installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:  # of the package that it is in
        return False


def judge(work: Work, answer: Any, metrics: Collection[str]) -> dict[str, float | int | Items]:
    """Check the first call's answer and collect the suite's own metrics, which are called `metrics`.

    Raises Wrong for a wrong answer or a metric that is no finite number, ValueError when the report
    and the declaration differ.
    """
    if work.check is not None and work.check(answer) is False:
        raise Wrong("the check of the benchmark says that the answer is wrong")
    values: dict[str, float | int | Items] = {}
    if work.report is not None:
        for name, value in work.report(answer).items():
            values[name] = value if isinstance(value, Items) else _number(name, value)
    if missing := set(metrics) ^ set(values):
        raise ValueError(f"declared metrics and the report differ in: {', '.join(sorted(missing))}")
    return values


def _number(name: str, value: Any) -> float | int:
    number = float(value)
    if number != number or number in (float("inf"), float("-inf")):
        raise Wrong(f"metric {name} is {number}")
    return int(value) if number == int(number) and isinstance(value, int) else number
