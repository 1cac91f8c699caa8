"""Where two sides spend their time: a table, and `bench-profile` version 1 for machines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from bench.errors import WireError
from bench.metrics import TIME
from bench.model import Estimate
from bench.profiles import FrameDifference, ProfileDifference
from bench.reports.format import digits, quantity, ratio, side
from bench.reports.text import MISSING, TextReport, escape, new_table
from bench.wire import convert, plain

SCHEMA = "bench-profile"
VERSION = 1

MOST = 25
"""Frames in the table; the JSON has all."""


def profile_text(found: ProfileDifference, width: int | None = None, *, colour: bool = False) -> str:
    """Frames that differ, largest difference first."""
    report = TextReport(width, colour)
    console = report.console()
    console.print(
        f"[bold]{escape(found.variant)}[/bold]  base {escape(side(found.base))}  head {escape(side(found.head))}"
    )
    console.print(
        f"a call takes {quantity(found.real_ns, TIME)} of CPU time in base, head / base {ratio(found.real, 3)}; under "
        f"{found.engine} {quantity(found.base_ns, TIME)} and {ratio(found.total, 3)}; {found.repetitions} repetitions",
        soft_wrap=True,
    )  # fmt: skip
    for line in found.notes:
        console.print(f"note: {escape(line)}", soft_wrap=True)
    console.print()
    if found.frames:
        table = new_table("frame", "self, base", "self, head", "difference (95 %)", "calls, base → head")
        for frame in found.frames[:MOST]:
            table.add_row(
                escape(frame.name), _percent(frame.base.value), _percent(frame.head.value), change_of(frame.change),
                _counts(frame),
            )  # fmt: skip
        console.print(table)
        console.print("self: time in the frame itself, in per cent of a whole call of base", style="dim")
    rest = len(found.frames) - MOST
    if rest > 0:
        console.print(f"{rest} more frames differ; --format json has them")
    noun = "frame does" if found.quiet == 1 else "frames do"
    console.print(f"{found.quiet} {noun} not differ by more than the repetitions do")
    return report.text_of(console)


def profile_json(found: ProfileDifference) -> str:
    """Everything, the tree of the flame graph included."""
    return json.dumps(document_of(found), indent=1, ensure_ascii=False)


def document_of(found: ProfileDifference) -> dict[str, Any]:
    """The same as plain values."""
    return {"schema": SCHEMA, "version": VERSION, **plain(found)}


def profile_from(document: Mapping[str, Any]) -> ProfileDifference:
    """What `document_of` was given. Raises WireError for anything else."""
    if (document.get("schema"), document.get("version")) != (SCHEMA, VERSION):
        raise WireError(f"a profile of schema {SCHEMA} version {VERSION} is wanted; this is another document.")
    facts = {name: value for name, value in document.items() if name not in ("schema", "version")}
    return convert(facts, ProfileDifference, "a stored profile")


def _percent(share: float) -> str:
    return f"{share * 100:.1f} %" if share else MISSING


def change_of(change: Estimate) -> str:
    """`+12.5 pp (+11.9…+13.1)`: share of base's call, with its interval or why there is none."""
    text = f"{change.value * 100:+.1f} pp"
    if change.low is None or change.high is None:
        return f"{text} ({change.note})"
    return f"{text} ({change.low * 100:+.1f}…{change.high * 100:+.1f})".replace("-", "−")


def _counts(frame: FrameDifference) -> str:
    if not frame.base_count and not frame.head_count:
        return MISSING
    if round(frame.base_count, 6) == round(frame.head_count, 6):
        return digits(frame.base_count)
    return f"{digits(frame.base_count)} → {digits(frame.head_count)}"
