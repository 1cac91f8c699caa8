"""Which change of a history moved a metric: a search that is told answers and asks for the next candidate. Pure.

Every candidate is compared with GOOD, never with its neighbour, so that its answer is a *level*:
log(candidate / good) of one metric, with an interval. The search knows two levels, that of the good
end (0) and that of the bad end, and a candidate belongs to the nearer one: its whole interval must lie
on one side of the middle. So each question needs a resolution of half the effect and no more, and a
slowdown that came in small parts is not lost, as it would be by asking "slower than the one before?".

A candidate clearly away from both ends lies between two changes. Its level then takes the place of
the nearer end's, so that the search goes on in the part that holds the larger rest.

The suspects are those of `git bisect`: a bad candidate leaves its ancestors and itself, a good one
everything but these; the next candidate halves them. What cannot be tested stays a suspect, and the
next candidate is taken from elsewhere, since such candidates come in stretches.

How 2000 searches among 64 candidates end (benchmarks/bisection_errors.py; launches have a spread of 1 %
and are normal unless it says otherwise, alpha is 1 % a question, wrong with its 95 % interval):

                                             wrong                  one of several   launches
    2 %                                      0.00 % (0.00–0.19)         0.0 %          162
    3 %                                      0.00 % (0.00–0.19)         0.0 %          103
    5 %                                      0.00 % (0.00–0.19)         0.0 %           73
    10 %                                     0.00 % (0.00–0.19)         0.0 %           61
    5 %, launches of 5 % spread              0.45 % (0.24–0.85)        17.2 %          504
    5 %, a tenth of the launches disturbed   0.00 % (0.00–0.19)         0.0 %           80
    5 %, a fifth does not build              0.00 % (0.00–0.19)        36.0 %           73
    6 %, and 3 % elsewhere                   0.05 % (0.01–0.28)         0.0 %           71

A candidate's level is rarely near the middle, which is why the errors lie far under alpha.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import pairwise
from math import isnan

from bench.stats.location import Interval
from bench.stats.sequential import ALPHA, LOOKS, interval_at_look, student_interval


class Place(StrEnum):
    """Where a candidate lies."""

    GOOD = "good"
    BAD = "bad"
    BETWEEN = "between"


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """What the two ends are worth, on one scale.

    slack: a candidate that lies between keeps this distance from both ends.
    """

    good: Interval
    bad: Interval
    slack: float = 0.0

    @property
    def middle(self) -> float:
        """Half-way."""
        return (self.good.value + self.bad.value) / 2

    @property
    def upward(self) -> bool:
        """Whether the bad end is the higher one."""
        return self.bad.value > self.good.value

    def place(self, seen: Interval) -> Place | None:
        """Where a candidate with that level lies; null where its interval allows more than one answer."""
        if isnan(seen.low):
            return None
        if not self.upward:
            return Levels(good=_turned(self.good), bad=_turned(self.bad), slack=self.slack).place(_turned(seen))
        if seen.low > self.good.high + self.slack and seen.high < self.bad.low - self.slack:
            return Place.BETWEEN
        if seen.high < self.middle:
            return Place.GOOD
        if seen.low > self.middle:
            return Place.BAD
        return None

    def after(self, seen: Interval) -> tuple[Levels, Place]:
        """Levels once a candidate between them was seen, and the end whose place it takes: the nearer one."""
        nearer_good = (seen.value < self.middle) == self.upward
        return (replace(self, good=seen), Place.GOOD) if nearer_good else (replace(self, bad=seen), Place.BAD)


def _turned(interval: Interval) -> Interval:
    return Interval(-interval.value, -interval.high, -interval.low, interval.n)


def level_of(
    values: Sequence[float], levels: Levels, *, alpha: float = ALPHA, final: bool = False
) -> tuple[Interval, Place | None]:
    """Level and place of a candidate after these launches, in their order; the place is null while it is open.

    Judged at the looks of `bench.stats.sequential`, which keep the chance that any interval misses the
    truth under `alpha`; `final`: no launch will follow.
    """
    seen = interval_at_look(values, alpha)
    judged = len(values) in LOOKS or (final and len(values) >= LOOKS[0])
    return seen, levels.place(seen) if judged else None


def level_again(
    first: Sequence[float], fresh: Sequence[float], levels: Levels, *, alpha: float = ALPHA
) -> tuple[Interval, Place | None]:
    """The same when it was measured again: all launches together, judged once."""
    seen = student_interval([*first, *fresh], 1 - alpha / 2)
    return seen, levels.place(seen)


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What lies after GOOD up to BAD.

    names: oldest first, each after its parents; the last is BAD. parents: by name; those that are not
    among the names are older than GOOD, or GOOD itself.
    """

    names: tuple[str, ...]
    parents: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def line(cls, names: Sequence[str]) -> History:
        """One after the other."""
        return cls(names=tuple(names), parents={new: (old,) for old, new in pairwise(names)})


class Search:
    """The suspects and what is known of the others."""

    def __init__(self, history: History, levels: Levels) -> None:
        self.history = history
        self.levels = levels
        self._index = {name: i for i, name in enumerate(history.names)}
        self._ancestors: list[int] = []  # as bits, the candidate itself included
        for i, name in enumerate(history.names):
            bits = 1 << i
            for parent in history.parents.get(name, ()):
                if parent in self._index:
                    bits |= self._ancestors[self._index[parent]]
            self._ancestors.append(bits)
        self._bad = len(history.names) - 1
        self._suspects = self._ancestors[self._bad]
        self._tested = 1 << self._bad
        self._good: int | None = None

    @property
    def suspects(self) -> tuple[str, ...]:
        """One of them is the first bad one; the last is known to be bad. Oldest first."""
        return tuple(name for i, name in enumerate(self.history.names) if self._suspects >> i & 1)

    @property
    def last_good(self) -> str | None:
        """The youngest candidate known to be good; null: GOOD itself."""
        return None if self._good is None else self.history.names[self._good]

    def next(self) -> str | None:
        """The candidate that tells most; null when no suspect is left that could be tested."""
        open_ = [i for i in range(len(self._ancestors)) if (self._suspects & ~self._tested) >> i & 1]
        if not open_:
            return None
        untestable = (self._suspects & self._tested).bit_count() - 1
        goal = _spread(untestable) * self._suspects.bit_count()
        return self.history.names[min(open_, key=lambda i: abs(self._weight(i) - goal))]

    @property
    def questions_left(self) -> int:
        """About how many candidates are still to be tested."""
        return (self._suspects & ~self._tested).bit_count().bit_length()

    def answer(self, name: str, place: Place, seen: Interval) -> Place:
        """Learn where a candidate lies. Returns the end that it was counted to."""
        index = self._index[name]
        if place is Place.BETWEEN:
            self.levels, place = self.levels.after(seen)
        self._tested |= 1 << index
        if place is Place.BAD:
            self._bad = index
            self._suspects &= self._ancestors[index]
        else:
            self._suspects &= ~self._ancestors[index]
            self._good = index if self._good is None else max(self._good, index)
        return place

    def skip(self, name: str) -> None:
        """It cannot be tested; it may be the first bad one all the same."""
        self._tested |= 1 << self._index[name]

    def drop(self, name: str) -> None:
        """It is no candidate after all."""
        self._suspects &= ~(1 << self._index[name])

    def _weight(self, index: int) -> int:
        """Suspects that are cleared if this one is good."""
        return (self._ancestors[index] & self._suspects).bit_count()


def _spread(k: int) -> float:
    """1/2, 1/4, 3/4, 1/8, 5/8, …: van der Corput's sequence, each away from those before."""
    value, step, k = 0.0, 0.5, k + 1
    while k:
        value += step * (k & 1)
        k >>= 1
        step /= 2
    return value
