"""Which modules of a suite a discovery imports: those that may hold what selectors name. Standard library only."""

from __future__ import annotations

from collections.abc import Sequence


def left_out(suite: str, patterns: Sequence[str]) -> bool:
    """Whether no benchmark of that suite can match any of the patterns; never without patterns.

    A benchmark is called `suite.name`, whatever the name; a pattern (`*` any text, `?` any
    character) that matches the suite means all of it.
    """
    return bool(patterns) and not any(_may_match(suite, pattern) for pattern in patterns)


def _may_match(suite: str, pattern: str) -> bool:
    """Follow the pattern along the text: what it can have consumed by then is a set of positions in it."""
    places = _skipping({0}, pattern)
    for letter in suite:
        places = _step(places, letter, pattern)
    whole = len(pattern) in places
    return whole or bool(_step(places, ".", pattern))


def _step(places: set[int], letter: str, pattern: str) -> set[int]:
    after = set()
    for place in places:
        if place < len(pattern):
            if pattern[place] == "*":
                after.add(place)
            elif pattern[place] in ("?", letter):
                after.add(place + 1)
    return _skipping(after, pattern)


def _skipping(places: set[int], pattern: str) -> set[int]:
    """With those behind stars, which match nothing too."""
    found = set(places)
    for place in places:
        while place < len(pattern) and pattern[place] == "*":
            place += 1
            found.add(place)
    return found
