"""From which change on a metric's change is one: by its kind, unless a rule names the metric. Pure."""

from __future__ import annotations

from bench.metrics import INSTRUCTIONS, Kind, Metric, Summary
from bench.model import Policy, Threshold

INSTRUCTION_FLOOR = 0.002
"""Smallest change of an instruction count that is called one: rustc-perf's limit where it has no history.

A count is exact, but not the code's alone: whatever else a process has loaded moves allocations, and with
them a few instructions of the same call.
"""


def threshold(policy: Policy, metric: str) -> Threshold | None:
    """What a rule says of that metric; null where none names it."""
    return next((t for t in policy.thresholds if t.metric == metric), None)


def floor_of(policy: Policy, metric: Metric) -> float:
    """Smallest relative change that is called one."""
    own = threshold(policy, metric.name)
    if own is not None and own.floor is not None:
        return own.floor
    if metric.summary is Summary.EXACT:
        return INSTRUCTION_FLOOR if metric.name == INSTRUCTIONS.name else 0.0
    return policy.memory_floor if metric.kind is Kind.MEMORY else policy.floor


def margin_of(policy: Policy, metric: Metric) -> float:
    """UNCHANGED: the whole interval lies inside ± this. Never below the floor of a metric that is named."""
    own = threshold(policy, metric.name)
    if own is not None and own.margin is not None:
        return own.margin
    if metric.kind is Kind.MEMORY:
        return policy.memory_floor if own is None else max(policy.memory_floor, floor_of(policy, metric))
    return policy.margin if own is None else max(policy.margin, floor_of(policy, metric))
