"""What one sweep of the detector did, as text and as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.history import ChangePoint, Direction, Regression
from bench.reports.format import title
from bench.reports.night import effect, where
from bench.reports.text import printable
from bench.sweep import Swept
from bench.wire import plain

MOST = 20
"""Lines of one kind; the rest is counted."""

SYMBOLS = {Direction.WORSE: "▼", Direction.BETTER: "▲", Direction.SUSPICIOUS: "⚠"}


def sweep_text(done: Swept) -> str:
    """Regressions first: they are what a person must see."""
    lines = [f"{done.series} series with {done.points} points looked at"]
    lines += _regressions("opened", done.opened)
    lines += _regressions("grew", done.grown)
    lines += _regressions("closed", done.closed)
    lines += _changes("change", done.found)
    lines += _changes("suspect", done.suspects)
    if done.superseded:
        lines.append(f"superseded: {done.superseded}")
    if done.asked:
        lines.append(f"asked for {_count(len(done.asked), 'paired experiment')}: `bench prove` runs them")
    if len(lines) == 1:
        lines.append("nothing new")
    return "\n".join(lines) + "\n"


def sweep_document(done: Swept) -> dict[str, Any]:
    """Schema `bench-detect`."""
    return {
        "schema": "bench-detect",
        "version": 1,
        "series": done.series,
        "points": done.points,
        "superseded": done.superseded,
        "changes": [plain(change) for change in done.found],
        "suspects": [plain(change) for change in done.suspects],
        "opened": [plain(regression) for regression in done.opened],
        "grown": [plain(regression) for regression in done.grown],
        "closed": [plain(regression) for regression in done.closed],
        "asked": [plain(request) for request in done.asked],
    }


def _regressions(word: str, found: Sequence[Regression]) -> list[str]:
    lines = [
        f"{word} {SYMBOLS[r.direction]} {r.key[:8]}  {printable(r.title)}  ({r.cause.value}, "
        f"{_count(len(r.changes), 'change point')}{f', {r.state.value}' if word == 'closed' else ''})"
        for r in found[:MOST]
    ]
    return lines + ([f"{word}: {len(found) - MOST} more"] if len(found) > MOST else [])


def _changes(word: str, found: Sequence[ChangePoint]) -> list[str]:
    lines = [
        f"{word} {SYMBOLS[c.direction]} {printable(c.series.variant)}  {title(c.series.metric)} {effect(c)}  "
        f"{printable(where(c))}"
        for c in found[:MOST]
    ]
    return lines + ([f"{word}s: {len(found) - MOST} more"] if len(found) > MOST else [])


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
