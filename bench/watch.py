"""A series watched point by point, as a service sees it. Pure."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from bench.detect import MINIMUM, NEAR, SUSPECT, Sensitivity, change_points
from bench.detectors.kernel import FEWEST

SETTLED = 40
"""Points after a change from which on it stands: newer points can no longer take it back."""


class Matched(NamedTuple):
    """Positions. `kept` pairs what was known with where it is now."""

    kept: list[tuple[int, int]]
    added: list[int]
    lost: list[int]


def match(known: list[int], found: list[int], *, start: int, end: int) -> Matched:
    """What became of known changes when a detector saw points start … end − 1; all positions ascending.

    One-to-one, nearest pairs first, at most NEAR apart. A known change that was not found again is
    lost, unless it lies before the window or is settled: every change may be lost and found again only
    while it is young. At the edge of a window that has moved, the shortest level pushes a change to where it
    is allowed: what is found there is not new, and does not move what is known.
    """
    pairs = sorted((abs(k - f), k, f) for k in known for f in found if abs(k - f) <= NEAR)
    now: dict[int, int] = {}
    taken: set[int] = set()
    for _, k, f in pairs:
        if k not in now and f not in taken:
            now[k] = f
            taken.add(f)
    edge = start + FEWEST if start else -1
    stands = {k for k in known if k < start + NEAR or end - k > SETTLED}
    return Matched(
        kept=[(k, now[k] if now.get(k, edge) > edge else k) for k in known if k in now or k in stands],
        added=[f for f in found if f not in taken and f > edge],
        lost=[k for k in known if k not in now and k not in stands],
    )


class Watch:
    """Holds the last `sensitivity.window` values of one series."""

    def __init__(self, sensitivity: Sensitivity = SUSPECT, minimum: float = MINIMUM) -> None:
        self.sensitivity = sensitivity
        self.minimum = minimum
        self.known: list[int] = []
        self._values: deque[float] = deque(maxlen=sensitivity.window)
        self._seen = 0

    def update(self, value: float) -> list[int]:
        """Positions (from 0, over the whole life) of the changes that were not known before this value."""
        self._values.append(value)
        self._seen += 1
        start = self._seen - len(self._values)
        found = [start + i for i in change_points(list(self._values), self.sensitivity, self.minimum)]
        matched = match(self.known, found, start=start, end=self._seen)
        self.known = sorted({now for _, now in matched.kept} | set(matched.added))
        return matched.added
