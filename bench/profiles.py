"""Where a call spends its time, and where two sides differ. Pure.

A repetition is a process on each side, profiled in turns. What differs between the sides is told from what
differs between repetitions by the trimmed t test of the gate (bench.stats), and the share of false names among
those listed is held to FALSE_SHARE (Benjamini & Hochberg).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, isnan, log

from bench.compare import TOO_FEW
from bench.model import Estimate
from bench.stats.location import Interval, trimmed_interval
from bench.stats.multiplicity import benjamini_hochberg, p_value

FALSE_SHARE = 0.05
"""Largest expected share of listed frames that do not differ."""

LEAST = 0.001
"""Share of base's time under which a difference is nobody's problem, however certain."""

PRUNED = 0.001
"""Share of the whole under which a branch of the tree is counted to the frame above it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One process: nanoseconds and calls in one call of the work.

    own: time in each frame itself. stacks: time by `outer;inner`, in the innermost frame itself.
    """

    own: dict[str, float]
    counts: dict[str, float]
    stacks: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A frame under its callers: time in it and below, in ns a call.

    noise: half of the 95 % interval of head − base; null with too few repetitions. differs: whether the difference
    stands out of the repetitions, the share of false ones among all nodes held to FALSE_SHARE.
    """

    name: str
    base_ns: float
    head_ns: float
    noise_ns: float | None
    differs: bool = False
    children: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameDifference:
    """One function or operator. Times are shares of base's whole call; counts are calls in one call."""

    name: str
    base: Estimate
    head: Estimate
    change: Estimate
    base_count: float
    head_count: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileDifference:
    """What became slower or faster between two sides.

    real: head / base of CPU time without the profiler, real_ns base's call then; total and base_ns: of the time
    under it. frames: those whose time stands out of the repetitions, or that are called more or less often, largest
    difference first. quiet: how many others there are.
    """

    variant: str
    engine: str
    base: str
    head: str
    repetitions: int
    real: Estimate
    real_ns: float
    total: Estimate
    base_ns: float
    frames: tuple[FrameDifference, ...]
    quiet: int
    tree: Node
    notes: tuple[str, ...] = field(default=())


def compare_profiles(
    pairs: Sequence[tuple[Profile, Profile]],
    bare: Sequence[tuple[float, float]],
    *,
    variant: str,
    engine: str,
    base: str,
    head: str,
) -> ProfileDifference:
    """Compare (base, head) of each repetition; `bare` is CPU ns a call without the profiler.

    Raises ValueError without a repetition, or where base was seen doing nothing.
    """
    wholes = [sum(one.own.values()) for one, _ in pairs]
    if not pairs or min(wholes) <= 0:
        raise ValueError("a profile without time cannot be compared")
    whole = sum(wholes) / len(wholes)
    names = sorted({name for pair in pairs for profile in pair for name in profile.own})
    differences = {name: [h.own.get(name, 0.0) - b.own.get(name, 0.0) for b, h in pairs] for name in names}
    loud = benjamini_hochberg([p_value(differences[name]) for name in names], FALSE_SHARE) if len(pairs) > 1 else []
    frames = [_frame(name, pairs, whole) for name, certain in zip(names, loud, strict=False) if certain]
    frames = [f for f in frames if abs(f.change.value) >= LEAST]
    seen = {f.name for f in frames}
    recounted = [_frame(name, pairs, whole) for name in names if name not in seen and _counted_otherwise(name, pairs)]
    frames += [f for f in recounted if max(f.base.value, f.head.value) >= LEAST]
    listed = sorted(frames, key=lambda f: -abs(f.change.value))
    ratios = [log(sum(h.own.values()) / w) for (_, h), w in zip(pairs, wholes, strict=True) if sum(h.own.values()) > 0]
    total = _ratio(trimmed_interval(ratios))
    real = _ratio(trimmed_interval([log(h / b) for b, h in bare]))
    return ProfileDifference(
        variant=variant, engine=engine, base=base, head=head, repetitions=len(pairs), base_ns=whole,
        total=total, real=real, real_ns=sum(b for b, _ in bare) / len(bare), frames=tuple(listed),
        quiet=len(names) - len(listed), tree=_tree(pairs, whole), notes=_notes(total, real, engine),
    )  # fmt: skip


def _notes(total: Estimate, real: Estimate, engine: str) -> tuple[str, ...]:
    """Say so where the profiler's own price makes the difference another one."""
    ends = (total.low, total.high, real.low, real.high)
    if any(end is None for end in ends) or engine != "cprofile":
        return ()
    if total.low is not None and real.high is not None and total.low > real.high:
        what = "larger"
    elif total.high is not None and real.low is not None and total.high < real.low:
        what = "smaller"
    else:
        return ()
    text = (
        f"under cprofile head / base is {what} than without it: it inflates what makes many calls; look with py-spy too"
    )
    return (text,)


def _counted_otherwise(name: str, pairs: Sequence[tuple[Profile, Profile]]) -> bool:
    """Whether every process of one side makes more calls than every process of the other: no matter of chance."""
    base, head = ([round(side.counts.get(name, 0.0), 6) for side in sides] for sides in zip(*pairs, strict=True))
    return len(pairs) > 1 and (min(head) > max(base) or max(head) < min(base))


def _frame(name: str, pairs: Sequence[tuple[Profile, Profile]], whole: float) -> FrameDifference:
    base = [one.own.get(name, 0.0) / whole for one, _ in pairs]
    head = [other.own.get(name, 0.0) / whole for _, other in pairs]
    counts = [[side.counts.get(name, 0.0) for side in sides] for sides in zip(*pairs, strict=True)]
    return FrameDifference(
        name=name, base=_share(base), head=_share(head),
        change=_share([h - b for b, h in zip(base, head, strict=True)]),
        base_count=sum(counts[0]) / len(pairs), head_count=sum(counts[1]) / len(pairs),
    )  # fmt: skip


def _share(values: Sequence[float]) -> Estimate:
    return _estimate(trimmed_interval(values))


def _estimate(interval: Interval) -> Estimate:
    if isnan(interval.low):
        return Estimate(value=interval.value, n=interval.n, note=TOO_FEW)
    return Estimate(value=interval.value, low=interval.low, high=interval.high, n=interval.n)


def _ratio(interval: Interval) -> Estimate:
    found = _estimate(interval)
    low, high = (None if end is None else exp(end) for end in (found.low, found.high))
    return Estimate(value=exp(found.value), low=low, high=high, n=found.n, note=found.note)


# The tree of both sides


def _tree(pairs: Sequence[tuple[Profile, Profile]], whole: float) -> Node:
    """Stacks of all repetitions as one tree."""
    count = len(pairs)
    root = _Branch("call", count)
    for number, pair in enumerate(pairs):
        for side, profile in enumerate(pair):
            for stack, ns in profile.stacks.items():
                branch = root
                branch.add(side, number, ns)
                for frame in stack.split(";"):
                    branch = branch.below(frame)
                    branch.add(side, number, ns)
    kept = list(root.kept(whole * PRUNED))
    certain = benjamini_hochberg([p_value(branch.differences) for branch in kept], FALSE_SHARE) if count > 1 else []
    return root.node({id(branch) for branch, yes in zip(kept, certain, strict=False) if yes}, {id(b) for b in kept})


class _Branch:
    """A node while it is filled: times by side and repetition."""

    def __init__(self, name: str, count: int) -> None:
        self.name = name
        self.times = ([0.0] * count, [0.0] * count)
        self._below: dict[str, _Branch] = {}

    @property
    def differences(self) -> list[float]:
        """Head − base of each repetition."""
        return [h - b for b, h in zip(*self.times, strict=True)]

    def below(self, name: str) -> _Branch:
        """The branch of that name."""
        return self._below.setdefault(name, _Branch(name, len(self.times[0])))

    def add(self, side: int, repetition: int, ns: float) -> None:
        """Time in it or below."""
        self.times[side][repetition] += ns

    def kept(self, least: float) -> Iterator[_Branch]:
        """Itself and all below that take their share on a side."""
        yield self
        for child in self._below.values():
            if max(map(sum, child.times)) >= least * len(self.times[0]):
                yield from child.kept(least)

    def node(self, certain: set[int], kept: set[int]) -> Node:
        """As a value."""
        base, head = (sum(times) / len(times) for times in self.times)
        seen = trimmed_interval(self.differences)
        children = [child.node(certain, kept) for child in self._below.values() if id(child) in kept]
        return Node(
            name=self.name, base_ns=base, head_ns=head, differs=id(self) in certain,
            noise_ns=None if isnan(seen.low) else (seen.high - seen.low) / 2,
            children=tuple(sorted(children, key=lambda c: c.name)),
        )  # fmt: skip


def stacks_of_calls(
    own: Mapping[str, float], edges: Sequence[tuple[str, str, float]], least: float = 1e-4
) -> dict[str, float]:
    """Stacks made from who called whom for how long, which is all that cProfile tells.

    The time of a function is split over its callers as it was seen, and below that in proportion: right where
    what a function does not depend on its caller. A recursive call is counted to the frame it comes back to, and
    paths under `least` of the whole to the frame above.
    """
    below: dict[str, list[tuple[str, float]]] = defaultdict(list)
    for caller, callee, ns in edges:
        below[caller].append((callee, ns))
    called = {callee for _, callee, _ in edges}
    totals = {name: ns + sum(t for _, t in below[name]) for name, ns in own.items()}
    smallest = least * sum(own.values())
    stacks: dict[str, float] = defaultdict(float)
    # A cycle that nothing outside calls has no root of its own: its most costly member is one.
    roots = [name for name in own if name not in called] or sorted(own, key=lambda n: -totals[n])[:1]
    for root in roots:
        for stack, ns in _paths(root, totals[root], (root,), own, below, totals, smallest):
            stacks[stack] += ns
    return dict(stacks)


def _paths(
    name: str,
    time: float,
    path: tuple[str, ...],
    own: Mapping[str, float],
    below: Mapping[str, list[tuple[str, float]]],
    totals: Mapping[str, float],
    smallest: float,
) -> Iterator[tuple[str, float]]:
    """Self time of every path from here, which together make up `time`."""
    total = totals.get(name, 0.0)
    if total <= 0:
        return
    share = time / total
    mine = own.get(name, 0.0) * share
    for callee, ns in below.get(name, ()):
        if callee in path or ns * share < smallest:
            mine += ns * share
        else:
            yield from _paths(callee, ns * share, (*path, callee), own, below, totals, smallest)
    yield ";".join(path), mine
