"""What moved several series at once: change points of one cause, and which cause that is. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from bench.history import Answer, Cause, ChangePoint, Difference, Direction, Point
from bench.metrics import Better, Kind
from bench.model import Environment

Environments = Mapping[str, Environment]
NO_ENVIRONMENTS: Environments = MappingProxyType({})

APART = 3
"""Change points at most so many commits from their neighbour are one group: 826 of a public history made 57."""

LONGEST = 10
"""Commits that a group may span, so that a chain of neighbours does not join a whole month."""

CANARY = "canary"
"""Suite of the work that never changes."""

WIDESPREAD = 0.5
"""Share of a machine's benchmarks that move together when it is the machine, not one commit."""

FEWEST_UNRELATED = 3
"""Benchmarks that must have moved, of two suites or more, before a group counts as widespread."""

TOO_GOOD = 2.0
"""Faster than this while answer, size or amount of work changed: less work was done, not better work."""

SIDE_EFFECTS = frozenset({Kind.ACCURACY, Kind.SIZE})

LASTING = 0.8
"""Share of the points on each side that must agree before a difference of environments lasts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Change points of one machine whose commits are neighbours. `first` and `last` are places in `commit_order`."""

    machine_fingerprint: str
    changes: tuple[ChangePoint, ...]
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The cause of a group, why that is thought, and the differences of environments that explain it."""

    cause: Cause
    reason: str
    environment: tuple[Difference, ...] = ()


def commit_order(histories: Iterable[Sequence[Point]]) -> dict[str, int]:
    """Place of every commit (of a run without one: its key) among all that these histories hold, oldest first."""
    earliest: dict[str, Point] = {}
    for point in (p for points in histories for p in points):
        name = place_of(point)
        if name not in earliest or (point.at, point.measured_at) < (earliest[name].at, earliest[name].measured_at):
            earliest[name] = point
    ordered = sorted(earliest, key=lambda name: (earliest[name].at, earliest[name].measured_at, name))
    return {name: i for i, name in enumerate(ordered)}


def place_of(point: Point) -> str:
    """What a point is found by in `commit_order`."""
    return point.commit or point.run_key


def group(changes: Iterable[ChangePoint], order: Mapping[str, int]) -> list[Group]:
    """Change points of one machine, each at most APART commits from the next and LONGEST in all; oldest first.

    Those whose first changed commit has no place in `order` are left out.
    """
    by_machine: dict[str, list[tuple[int, ChangePoint]]] = defaultdict(list)
    for change in changes:
        place = order.get(place_of(change.first_changed))
        if place is not None:
            by_machine[change.series.machine_fingerprint].append((place, change))
    groups = [
        Group(machine_fingerprint=machine, changes=tuple(c for _, c in part), first=part[0][0], last=part[-1][0])
        for machine, placed in by_machine.items()
        for part in _neighbours(sorted(placed, key=lambda p: (p[0], p[1].key)))
    ]
    return sorted(groups, key=lambda g: (g.first, g.machine_fingerprint))


def classify(found: Group, benchmarks: int) -> Finding:
    """What moved the group, where the machine has so many `benchmarks` (the canary not counted).

    In this order: a new version; a paired experiment, which cancels whatever the machine does; the canary;
    differences of environments that lasted; many unrelated benchmarks at once; else the code.
    """
    work = [c for c in found.changes if c.series.suite != CANARY]
    canary = _canary_moved(found.changes, work)
    shared = _shared(found.changes)
    answers = {c.proof.answer for c in work if c.proof is not None}
    if work and all(c.cause is Cause.METHOD for c in work):
        return Finding(cause=Cause.METHOD, reason="the benchmark has a new version")
    if Answer.CONFIRMED in answers:
        sure = [c for c in work if c.proof is not None and c.proof.answer is Answer.CONFIRMED]
        # At one commit the experiment asked about the packages that differ (bench.proving).
        code = any(place_of(c.last_good) != place_of(c.first_changed) for c in sure)
        cause = Cause.CODE if code else Cause.ENVIRONMENT
        return Finding(cause=cause, reason="a paired experiment confirmed it", environment=shared)
    if canary and not _explains_the_machine(shared):
        return Finding(cause=Cause.HARDWARE, reason="the canary moved", environment=shared)
    if shared:
        names = ", ".join(d.name for d in shared)
        return Finding(cause=Cause.ENVIRONMENT, reason=f"it came with another {names}", environment=shared)
    if Answer.REFUTED in answers:
        return Finding(cause=Cause.NOISE, reason="a paired experiment did not repeat it")
    moved = {c.series.benchmark for c in work}
    suites = {c.series.suite for c in work}
    if len(moved) >= max(FEWEST_UNRELATED, WIDESPREAD * benchmarks) and len(suites) > 1:
        return Finding(cause=Cause.HARDWARE, reason=f"{len(moved)} of {benchmarks} benchmarks moved at once")
    if work and all(place_of(c.last_good) == place_of(c.first_changed) for c in work):
        return Finding(cause=Cause.HARDWARE, reason="the same commit is on both sides")
    return Finding(cause=Cause.CODE, reason="nothing else changed that is known")


def mark_suspicious(changes: Sequence[ChangePoint], order: Mapping[str, int]) -> list[ChangePoint]:
    """The same changes: SUSPICIOUS where one is too good and came with another answer, size or amount of work."""
    return [
        replace(c, direction=Direction.SUSPICIOUS)
        if _too_good(c) and any(_tells_of(other, c, order) for other in changes)
        else c
        for c in changes
    ]


def differences(before: Environment, after: Environment) -> tuple[Difference, ...]:
    """Everything recorded that two environments do not share; what neither side tells is no difference."""
    found = [("python", before.python, after.python), ("system", before.system, after.system)]
    kinds = (("", before.packages, after.packages), ("driver:", before.drivers, after.drivers),
             ("setting:", before.settings, after.settings))  # fmt: skip
    for kind, one, other in kinds:
        found += [(kind + name, one.get(name), other.get(name)) for name in sorted(one.keys() | other.keys())]
    return tuple(Difference(name=n, before=a, after=b) for n, a, b in found if a != b)


def lasting_differences(
    before: Sequence[Point], after: Sequence[Point], environments: Environments
) -> tuple[Difference, ...]:
    """What differs between the points on each side of a change, nearest ones at its ends, and lasts on both.

    A package that changes with every commit, or a setting that comes and goes, explains no step.
    """
    sides = [[environments.get(p.environment_fingerprint) for p in side] for side in (before, after)]
    last_good, first_changed = sides[0][-1], sides[1][0]
    if last_good is None or first_changed is None:
        return ()
    return tuple(
        d
        for d in differences(last_good, first_changed)
        if _share(sides[0], d.name, d.before) >= LASTING and _share(sides[1], d.name, d.after) >= LASTING
    )


def _neighbours(placed: Sequence[tuple[int, ChangePoint]]) -> list[list[tuple[int, ChangePoint]]]:
    parts: list[list[tuple[int, ChangePoint]]] = []
    for place, change in placed:
        if parts and place - parts[-1][-1][0] <= APART and place - parts[-1][0][0] <= LONGEST:
            parts[-1].append((place, change))
        else:
            parts.append([(place, change)])
    return parts


def _canary_moved(changes: Sequence[ChangePoint], work: Sequence[ChangePoint]) -> bool:
    """Whether the canary moved, and the way that most of the others did: a faster disk slows no model down."""
    moved = {c.direction for c in changes if c.series.suite == CANARY}
    if not work:
        return bool(moved)
    worse = 2 * sum(c.direction is Direction.WORSE for c in work) >= len(work)
    return (Direction.WORSE in moved) if worse else bool(moved - {Direction.WORSE})


def _shared(changes: Sequence[ChangePoint]) -> tuple[Difference, ...]:
    """Differences that at least half of the changes came with."""
    count = Counter(d for c in changes for d in set(c.environment))
    return tuple(sorted((d for d, n in count.items() if 2 * n >= len(changes)), key=lambda d: d.name))


def _explains_the_machine(found: Sequence[Difference]) -> bool:
    """Whether one of them can move fixed work: all but packages, which the canary uses too little of."""
    return any(d.name in ("python", "system") or d.name.startswith(("driver:", "setting:")) for d in found)


def _too_good(change: ChangePoint) -> bool:
    if change.direction is Direction.WORSE or change.series.metric.kind not in (Kind.TIME, Kind.THROUGHPUT):
        return False
    ratio = change.effect.value
    return ratio > 0 and max(ratio, 1 / ratio) > TOO_GOOD


def _tells_of(other: ChangePoint, change: ChangePoint, order: Mapping[str, int]) -> bool:
    """Whether `other` says that the same variant answers otherwise, or does another amount of work, since then."""
    one, two = change.series, other.series
    if (one.variant, one.target, one.machine_fingerprint) != (two.variant, two.target, two.machine_fingerprint):
        return False
    work = two.metric.kind is Kind.COUNT and two.metric.better is Better.HIGHER
    places = [order.get(place_of(c.first_changed)) for c in (change, other)]
    if places[0] is None or places[1] is None:
        return False
    return (work or two.metric.kind in SIDE_EFFECTS) and abs(places[0] - places[1]) <= APART


def _share(side: Sequence[Environment | None], name: str, value: str | None) -> float:
    known = Counter(_value(environment, name) == value for environment in side if environment is not None)
    return known[True] / max(1, known.total())


def _value(environment: Environment, name: str) -> str | None:
    kind, _, rest = name.partition(":")
    if kind in ("python", "system") and not rest:
        return environment.python if kind == "python" else environment.system
    table = {"driver": environment.drivers, "setting": environment.settings}.get(kind) if rest else None
    return environment.packages.get(name) if table is None else table.get(rest)
