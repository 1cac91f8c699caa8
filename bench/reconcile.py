"""What became of the change points of one series, now that it was looked at again. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bench.detect import NEAR
from bench.history import Answer, Cause, ChangePoint, Point
from bench.series import position
from bench.watch import match

PATIENCE = 20
"""Points that a suspect waits for a detector or a proof: 90 % of all changes are found by then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciled:
    """What a new look at one series makes of what was known."""

    kept: tuple[ChangePoint, ...]  # with their old keys and what is known now
    added: tuple[ChangePoint, ...]  # seen for the first time, or seen again after they were superseded
    superseded: tuple[ChangePoint, ...]


def reconcile(
    old: Sequence[ChangePoint], new: Sequence[ChangePoint], points: Sequence[Point], window: int
) -> Reconciled:
    """What became of `old` (superseded ones too) now that `new` was found in the last `window` of folded `points`.

    All of one series. The same change keeps its key, proof, cause and regression, however its place or
    size is known better now; one that is seen again after it was superseded comes back under its old key.
    What is settled (bench.watch.SETTLED) or confirmed by a proof is never taken back; a suspect waits PATIENCE points.
    """
    end = len(points)
    start = max(0, end - window)
    live: dict[int, ChangePoint] = {}
    doubles: list[ChangePoint] = []
    for change in sorted((c for c in old if c.superseded_by is None), key=lambda c: c.suspect):
        place = position(change, points)
        if place in live:
            doubles.append(replace(change, superseded_by=live[place].key))
        else:
            live[place] = change
    found = {position(change, points): change for change in new}
    matched = match(sorted(live), sorted(found), start=start, end=end)
    added = _added([found[i] for i in matched.added], old, points)
    kept, gone = [], doubles
    now = dict(matched.kept)
    for place, change in sorted(live.items()):
        match_found = found.get(now[place]) if place in now else None
        if match_found is not None:
            kept.append(_same(change, match_found))
        elif _stands(change, end - place, lost=place not in now):
            kept.append(change)
        else:
            gone.append(replace(change, superseded_by=_successor(place, added, points)))
    return Reconciled(kept=tuple(kept), added=tuple(added), superseded=tuple(gone))


def _same(known: ChangePoint, found: ChangePoint) -> ChangePoint:
    """What is known now, under the old key; a suspect tells nothing of what a detector has seen."""
    if found.suspect:
        return known
    return replace(
        found, key=known.key, detected_at=known.detected_at, cause=known.cause, proof=known.proof,
        regression=known.regression, superseded_by=None,
    )  # fmt: skip


def _stands(change: ChangePoint, age: int, *, lost: bool) -> bool:
    """Whether a change that was not found this time is still one; `age` counts points from its first one."""
    if change.proof is not None and change.proof.answer is Answer.CONFIRMED:
        return True
    if change.cause is Cause.METHOD:
        return True
    return age <= PATIENCE if change.suspect else not lost


def _added(found: Sequence[ChangePoint], old: Sequence[ChangePoint], points: Sequence[Point]) -> list[ChangePoint]:
    """New ones; what was superseded within NEAR points of one comes back under its old key."""
    gone = {change.key: change for change in old if change.superseded_by is not None}
    places = {key: position(change, points) for key, change in gone.items()}
    taken = {change.key for change in old}
    added = []
    for change in found:
        place = position(change, points)
        nearest = min(places, key=lambda key: (abs(places[key] - place), key), default=None)
        if nearest is None or abs(places[nearest] - place) > NEAR:
            new = replace(change, key=_free(change.key, taken))
        else:
            del places[nearest]
            new = replace(_same(gone[nearest], replace(change, suspect=False)), suspect=change.suspect)
        taken.add(new.key)
        added.append(new)
    return added


def _free(key: str, taken: set[str]) -> str:
    """`key`, or the next in its chain: a known change may have moved away from the point that its key was made of."""
    while key in taken:
        key = hashlib.sha256(key.encode()).hexdigest()[: len(key)]
    return key


def _successor(place: int, added: Sequence[ChangePoint], points: Sequence[Point]) -> str:
    """Key of the new change that took its place; empty where there is none."""
    near = [(abs(position(c, points) - place), c.key) for c in added]
    distance, key = min(near, default=(NEAR * 2 + 1, ""))
    return key if distance <= NEAR * 2 else ""
