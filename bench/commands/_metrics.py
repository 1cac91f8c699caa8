"""Options for the metrics beside time that are taken only when asked, since they cost extra processes or calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from bench.model import Policy

F = TypeVar("F", bound=Callable[..., Any])

OPTIONS = (
    click.option("--tail", is_flag=True, help="Time enough single calls for p50, p90, p95 and p99, and show them."),
    click.option("--allocations", is_flag=True, help="Take the peak of Python's allocations in one call more."),
    click.option("--instructions", is_flag=True, help="Count the instructions of one call, under valgrind."),
)


def metric_options(function: F) -> F:
    """Add `--tail`, `--allocations` and `--instructions`."""
    for option in reversed(OPTIONS):
        function = option(function)
    return function


def asked(policy: Policy, options: dict[str, Any]) -> Policy:
    """The policy with what was asked for, taken out of `options`. Raises UsageError where it cannot be had."""
    from dataclasses import replace

    from bench.errors import UsageError
    from bench.measure.callgrind import missing
    from bench.plan import ASKED_TAIL_NS

    tail, allocations, instructions = (options.pop(name, False) for name in ("tail", "allocations", "instructions"))
    if instructions and (reason := missing()):
        raise UsageError(f"--instructions: {reason}, or leave the option out.")
    tail_ns = ASKED_TAIL_NS if tail else policy.tail_ns
    return replace(policy, tail_ns=tail_ns, allocations=allocations, instructions=instructions)
