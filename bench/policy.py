"""What matters for which benchmark: rules of `[[tool.bench.policy]]`, the nearest match wins. Pure.

[[tool.bench.policy]]
match = "recommender.*"          # a benchmark or a variant, with * and ?
floor = 0.05                     # smallest change of time that counts
reason = "reads a shared disk"
expires = 2027-03-31             # after it the rule is ignored, and said to be

[[tool.bench.policy]]
match = "search"
metric = "p99"                   # this one is judged too, by floor and margin of its own
floor = 0.1
reason = "people wait for the slow ones"
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from fnmatch import fnmatchcase
from typing import Any

from bench.errors import ConfigError
from bench.model import Policy, Threshold

BY_METRIC = ("floor", "margin")
"""What a rule that names a metric may set."""

LIMITS = {"floor": 1.0, "margin": 1.0, "memory_floor": 10.0, "alpha": 0.5, "budget_s": 86_400.0}
"""What a rule may set, and the largest value that makes sense."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule. Settings that are null are left as they are."""

    match: str
    reason: str
    expires: date | None = None
    metric: str | None = None  # the rule is about this metric alone, and has it judged
    floor: float | None = None
    margin: float | None = None
    memory_floor: float | None = None
    alpha: float | None = None
    budget_s: float | None = None

    def matches(self, variant: str) -> bool:
        """Whether the pattern is the variant, its benchmark or its suite."""
        benchmark = variant.partition("[")[0]
        names = (variant, benchmark, benchmark.partition(".")[0])
        return any(name == self.match or fnmatchcase(name, self.match) for name in names)

    @property
    def nearness(self) -> int:
        """Characters that are no wildcard: the more, the nearer."""
        return sum(1 for c in self.match if c not in "*?")


def read_rules(value: Any, layer: str) -> tuple[Rule, ...]:
    """Rules out of a configuration file. Raises ConfigError that names the rule and the setting."""
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise ConfigError(f"{layer}: policy must be written as [[tool.bench.policy]] tables.")
    return tuple(_rule(item, f"{layer}: policy {number}") for number, item in enumerate(value, 1))


def _rule(item: Mapping[str, Any], where: str) -> Rule:
    known = {"match", "reason", "expires", "metric", *LIMITS}
    if unknown := set(item) - known:
        raise ConfigError(f"{where} has an unknown setting {min(unknown)!r}; known are {', '.join(sorted(known))}.")
    for name in ("match", "reason"):
        if not isinstance(item.get(name), str) or not item[name].strip():
            raise ConfigError(f"{where} needs {name}, a text that is not empty.")
    if "metric" in item:
        _check_metric(item, where)
    if not isinstance(item.get("expires", date.min), date):
        raise ConfigError(f"{where}: expires must be a date like 2027-03-31, not {item['expires']!r}.")
    for name, most in LIMITS.items():
        value = item.get(name, most)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= most:
            raise ConfigError(f"{where}: {name} must be a number over 0 and at most {most:g}, not {value!r}.")
    return Rule(**item)


def _check_metric(item: Mapping[str, Any], where: str) -> None:
    if not isinstance(item["metric"], str) or not item["metric"].strip():
        raise ConfigError(f"{where}: metric must be the name of one, like p99, not {item['metric']!r}.")
    if wrong := set(item) & set(LIMITS) - set(BY_METRIC):
        raise ConfigError(f"{where}: {min(wrong)} is not one metric's; give it in a rule without metric.")


def apply(rules: Sequence[Rule], variant: str, policy: Policy, today: date) -> Policy:
    """The policy of one variant: each setting from the nearest rule that sets it; of equals the later."""
    living = [r for r in rules if r.matches(variant) and (r.expires is None or today <= r.expires)]
    thresholds = {t.metric: t for t in policy.thresholds}
    for rule in sorted(living, key=lambda r: r.nearness):
        settings = {name: value for name in LIMITS if (value := getattr(rule, name)) is not None}
        if rule.metric is None:
            policy = replace(policy, **settings)
        else:
            old = thresholds.get(rule.metric, Threshold(metric=rule.metric))
            thresholds[rule.metric] = replace(old, **settings)
    return replace(policy, thresholds=tuple(thresholds.values()))


def expired(rules: Sequence[Rule], today: date) -> list[Rule]:
    """Rules whose day has passed."""
    return [r for r in rules if r.expires is not None and r.expires < today]
