"""How often a bisection names a wrong change: the table in bench/bisection.py.

    python -m benchmarks.bisection_errors [--searches 2000] [--seed 5]

Each search measures GOOD against BAD with 18 launches, then asks up
to 50 launches a candidate, and 50 more where that leaves it open, as bench.bisecting does.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from math import log

import numpy as np

from bench.bisection import History, Levels, Place, Search, level_again, level_of
from bench.stats.location import Interval, trimmed_interval
from bench.stats.proportions import wilson
from bench.stats.sequential import CONFIRMATION_LAUNCHES, LOOKS
from benchmarks.streams import NOISES

CANDIDATES = 64
SLACK = log(1.01)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A world: what changed where, and what cannot be tested. Effects are logarithms."""

    name: str
    effects: tuple[float, ...]  # placed at random; the largest is the one to find
    spread: float = 0.01  # of launch values
    noise: str = "normal"
    broken: float = 0.0  # share of candidates that do not build


CASES = (
    Case(name="2 %", effects=(0.02,)),
    Case(name="3 %", effects=(0.03,)),
    Case(name="5 %", effects=(0.05,)),
    Case(name="10 %", effects=(0.1,)),
    Case(name="5 %, launches of 5 % spread", effects=(0.05,), spread=0.05),
    Case(name="5 %, a tenth of the launches disturbed", effects=(0.05,), noise="contaminated"),
    Case(name="5 %, a fifth does not build", effects=(0.05,), broken=0.2),
    Case(name="6 % and 3 % elsewhere", effects=(0.06, 0.03)),
)


@dataclass(slots=True)
class Count:
    """Searches by how they ended."""

    right: int = 0
    among: int = 0
    wrong: int = 0
    launches: int = 0


def search(case: Case, rng: np.random.Generator) -> tuple[str, int]:
    """(right, among or wrong; launches): `among`: the right one is among several suspects."""
    names = [str(i) for i in range(CANDIDATES)]
    places = sorted(rng.choice(CANDIDATES, len(case.effects), replace=False))
    steps = dict(zip(places, rng.permutation(case.effects), strict=True))
    levels = np.cumsum([steps.get(i, 0.0) for i in range(CANDIDATES)])
    broken = rng.random(CANDIDATES) < case.broken
    culprit = names[max(steps, key=lambda place: steps[place])]

    def measure(level: float, n: int) -> list[float]:
        return list(level + case.spread * NOISES[case.noise](rng, (1, n))[0])

    spent = CONFIRMATION_LAUNCHES
    ends = Levels(
        good=Interval(0.0, 0.0, 0.0, 0), bad=trimmed_interval(measure(levels[-1], CONFIRMATION_LAUNCHES)), slack=SLACK
    )
    found = Search(History.line(names), ends)
    while (name := found.next()) is not None:
        if broken[int(name)]:
            found.skip(name)
            continue
        place, seen, n = ask(measure(levels[int(name)], LOOKS[-1]), measure(levels[int(name)], LOOKS[-1]), found.levels)
        spent += n
        found.answer(name, place, seen) if place is not None else found.skip(name)
    if culprit not in found.suspects:
        return "wrong", spent
    return ("right" if len(found.suspects) == 1 else "among"), spent


def ask(first: list[float], fresh: list[float], levels: Levels) -> tuple[Place | None, Interval, int]:
    """One question, with its second attempt."""
    for look in LOOKS:
        seen, place = level_of(first[:look], levels, final=look == LOOKS[-1])
        if place is not None:
            return place, seen, look
    seen, place = level_again(first, fresh, levels)
    return place, seen, len(first) + len(fresh)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a row a case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--searches", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=5)
    chosen = parser.parse_args(arguments)
    rng = np.random.default_rng(chosen.seed)
    write = sys.stdout.write
    write(f"{'':42}wrong (95 %)          several suspects   launches\n")
    for case in CASES:
        count = Count()
        for _ in range(chosen.searches):
            ended, spent = search(case, rng)
            setattr(count, ended, getattr(count, ended) + 1)
            count.launches += spent
        share = wilson(count.wrong, chosen.searches)
        among = count.among / chosen.searches
        mean = count.launches / chosen.searches
        write(f"{case.name:42}{share.value:.2%} ({share.low:.2%}–{share.high:.2%})   {among:.1%}   {mean:.0f}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
