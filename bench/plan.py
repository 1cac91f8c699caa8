"""Selectors and profiles: which experiments a run consists of. Pure.

A selector is a suite (`quantization`), a benchmark (`quantization.minilm`, with `*` and `?`), or a
benchmark with some of its axes (`quantization.minilm[precision=int8]`).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from bench.errors import SelectorError
from bench.model import Arm, Benchmark, Experiment, Policy, Scalar, Target, Variant

TAIL_NS = 50_000_000
"""Time for calls that are timed alone, of one arm in one launch: a fifth of what its samples take at most."""

ASKED_TAIL_NS = 1_000_000_000
"""The same where somebody asks for the tail; the real-time class allows no more."""

POLICIES = {
    "quick": Policy(launches=7, tail_ns=TAIL_NS, budget_s=5.0),
    "full": Policy(launches=18, tail_ns=TAIL_NS, budget_s=10.0),
}
"""Seven launches are the fewest whose 20 % trimmed mean drops one at each end and keeps five.

The seconds are chosen so that quick takes under 3 minutes on two cores, and full about 35: what is expensive to
start gets FEWEST_LAUNCHES and no more.
"""

_SELECTOR = re.compile(r"(?P<name>[^\[\]]+)(?:\[(?P<axes>.*)\])?")


@dataclass(frozen=True, slots=True)
class Selector:
    """A parsed selector."""

    text: str
    pattern: str
    inside: str  # what stands between the brackets
    axes: dict[str, str]  # as it reads without knowing the benchmark's axes

    def matches(self, benchmark: Benchmark, variant: Variant | None = None) -> bool:
        """Whether it names that benchmark, and that variant where one is given."""
        if not (fnmatchcase(benchmark.name, self.pattern) or fnmatchcase(benchmark.suite, self.pattern)):
            return False
        if variant is None:
            return True
        wanted = _axes(self.inside, [re.escape(axis) for axis in variant.params]) or {}
        return all(axis in variant.params and _same(variant.params[axis], value) for axis, value in wanted.items())


def parse(text: str) -> Selector:
    """Raises SelectorError for text that is no selector."""
    match = _SELECTOR.fullmatch(text.strip())
    axes = None if match is None else _axes(match["axes"] or "", [r"\w+"])
    if match is None or axes is None:
        raise SelectorError(f"selector {text!r} is not a suite, a suite.benchmark or a suite.benchmark[axis=value].")
    return Selector(text, match["name"].strip(), match["axes"] or "", axes)


def _axes(inside: str, names: Sequence[str]) -> dict[str, str] | None:
    """`axis=value,…` by axis; a value may hold commas, and even `, other=1` where no axis is called so."""
    found: dict[str, str] = {}
    for part in filter(None, re.split(rf",(?=\s*(?:{'|'.join(names) or '$.'})=)", inside)):
        axis, equals, value = part.partition("=")
        if not equals:
            return None
        found[axis.strip()] = value.strip()
    return found


def _same(value: Scalar, text: str) -> bool:
    if isinstance(value, bool):
        return str(value).lower() == text.lower()
    return text in (str(value), str(value).strip("'\""))  # asv spells texts with their quotes


def select(benchmarks: Sequence[Benchmark], selectors: Sequence[str], profile: str | None) -> list[list[Variant]]:
    """Variants to measure, one list per benchmark; a chosen variant brings its baseline along.

    `profile` null: all profiles. Raises SelectorError when a selector matches nothing.
    """
    parsed = [parse(text) for text in selectors]
    chosen = []
    used: set[str] = set()
    for benchmark in benchmarks:
        if profile is not None and profile not in benchmark.profiles:
            continue
        variants = benchmark.variants()
        wanted = []
        for variant in variants:
            hits = [s.text for s in parsed if s.matches(benchmark, variant)]
            used.update(hits)
            if hits or not parsed:
                wanted.append(variant)
        groups = [benchmark.group_of(v) for v in wanted]
        kept = [v for v in variants if v in wanted or (v.baseline and benchmark.group_of(v) in groups)]
        if kept:
            chosen.append(kept)
    for selector in parsed:
        if selector.text not in used:
            raise SelectorError(_nothing(selector, benchmarks, profile))
    return chosen


def _nothing(selector: Selector, benchmarks: Sequence[Benchmark], profile: str | None) -> str:
    for benchmark in benchmarks:
        if selector.matches(benchmark):
            if profile is not None and profile not in benchmark.profiles:
                return (
                    f"{selector.text!r} runs only in the profile {' and '.join(benchmark.profiles)}; "
                    f"use --profile {benchmark.profiles[0]}."
                )
            axes = "; ".join(f"{axis}: {', '.join(map(str, values))}" for axis, values in benchmark.axes.items())
            return f"{selector.text!r} matches no variant of {benchmark.name}; its axes are {axes or 'none'}."
    names = sorted({b.name for b in benchmarks} | {b.suite for b in benchmarks})
    close = difflib.get_close_matches(selector.pattern, names, n=1)
    if any(selector.pattern in name for name in names):
        close = [f"'*{selector.pattern}*'"]
    hint = f"did you mean {close[0]}?" if close else "`bench list` shows what there is."
    return f"{selector.text!r} matches no benchmark; {hint}"


def plan(
    benchmarks: Sequence[Benchmark],
    selectors: Sequence[str],
    *,
    profile: str,
    target: Target,
    seed: int,
    launches: int | None = None,
    policy: Policy | None = None,
) -> list[Experiment]:
    """One experiment for each benchmark and each point of the axes that its baseline leaves free.

    A benchmark that requires a device runs on it, unless the target names another one than the processor.

    `policy` null: that of the profile; `launches` null: those of the policy, or fewer where a
    benchmark is expensive to start.
    """
    capped = launches is None
    policy = policy or POLICIES[profile]
    if launches is not None:
        policy = replace(policy, launches=launches, budget_s=None)
    by_name = {b.name: b for b in benchmarks}
    experiments: list[Experiment] = []
    for variants in select(benchmarks, selectors, profile):
        benchmark = by_name[variants[0].benchmark]
        own = policy
        if capped and benchmark.launches is not None:
            own = replace(policy, launches=min(policy.launches, benchmark.launches))
        groups: list[dict[str, Scalar]] = []
        for variant in variants:
            if (group := benchmark.group_of(variant)) not in groups:
                groups.append(group)
        for group in groups:
            members = [v for v in variants if benchmark.group_of(v) == group]
            experiments.append(
                Experiment(
                    benchmark=benchmark,
                    arms=tuple(Arm(variant=v, target=placed(target, benchmark)) for v in members),
                    policy=own,
                    seed=seed + len(experiments),
                )
            )
    return experiments


def placed(target: Target, benchmark: Benchmark) -> Target:
    """The target, on the device that the benchmark requires where it names only the processor."""
    needed = next((need.removeprefix("device:") for need in benchmark.requires if need.startswith("device:")), None)
    return replace(target, device=needed) if needed is not None and target.device == Target().device else target


def sides(base: Target, head: Target, benchmark: Benchmark) -> tuple[Target, Target]:
    """Both targets of a comparison, placed; as they are where their devices differ: then that is the question."""
    if base.device != head.device:
        return base, head
    return placed(base, benchmark), placed(head, benchmark)
