"""Regressions as text for a terminal."""

from __future__ import annotations

import io
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from bench.history import ChangePoint, Event, KeptProfile, Regression, State
from bench.night import Story
from bench.reports.format import interval, title
from bench.reports.night import effect, proof, where
from bench.reports.profile import change_of, profile_from
from bench.reports.text import WIDTH, escape

MOST_FRAMES = 5
"""Of a kept profile."""


def regressions_text(stories: Sequence[Story], *, hidden: int, width: int | None = None) -> str:
    """One line each, in the order given."""
    if not stories:
        return "no open regression" + (f"; {hidden} closed or improvements (--all)" if hidden else "") + "\n"
    console = _console(width)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=False)
    for name in ("key", "state", "what", "effect", "cause", "where", "evidence", "owner"):
        table.add_column(name, overflow="fold", no_wrap=name in ("key", "state", "effect"))
    for story in stories:
        found, worst = story.regression, story.worst
        table.add_row(
            found.key[:8], found.state.value, escape(found.title), effect(worst) if worst else "—", found.cause.value,
            escape(found.culprit or (where(worst) if worst else "—")), proof(worst) if worst else "—",
            escape(found.owner or "—"),
        )  # fmt: skip
    console.print(table)
    if hidden:
        console.print(f"{hidden} more are closed or improvements (--all)")
    return _text(console)


def regression_text(
    found: Regression,
    events: Sequence[Event],
    changes: Sequence[ChangePoint],
    profiles: Sequence[KeptProfile] = (),
    *,
    width: int | None = None,
) -> str:
    """Everything that is known of one."""
    console = _console(width)
    console.print(f"[bold]{escape(found.title)}[/bold]")
    console.print(state_line(found), soft_wrap=True)
    for link in found.links:
        console.print(f"link {escape(link)}", soft_wrap=True)
    console.print()
    for change in changes:
        _change(console, change)
    for profile in profiles:
        _profile(console, profile, found)
    console.print("[bold]what happened[/bold]")
    for event in events:
        until = f" until {event.expires_at:%Y-%m-%d}" if event.expires_at else ""
        plural = "" if len(event.changes) == 1 else "s"
        more = f"  {len(event.changes)} change point{plural}" if event.changes else ""
        text = f"  {escape(event.text)}" if event.text else ""
        what = f"{event.action.value}{until}{more}{text}"
        console.print(f"  {event.number}  {event.at:%Y-%m-%d %H:%M} UTC  {escape(event.who)}  {what}", soft_wrap=True)
    return _text(console)


def state_line(found: Regression) -> str:
    """`3f2a91c0 expected until 2027-01-31 (reason), code, owner ada`."""
    text = f"{found.key[:8]} {found.state.value}"
    if found.state is State.EXPECTED and found.expires_at is not None:
        text += f" until {found.expires_at:%Y-%m-%d}"
    if found.reason:
        text += f" ({escape(found.reason)})"
    text += f", {found.cause.value}"
    if found.culprit:
        text += f", culprit {escape(found.culprit)}"
    if found.owner:
        text += f", owner {escape(found.owner)}"
    return text


def _profile(console: Console, kept: KeptProfile, found: Regression) -> None:
    """The frames that became most slower; the whole is one command away."""
    made = profile_from(kept.document)
    console.print(f"[bold]where the time went[/bold]  {escape(made.variant)}, by {escape(kept.engine)}")
    for frame in made.frames[:MOST_FRAMES]:
        console.print(f"  {change_of(frame.change)}  {escape(frame.name)}", soft_wrap=True)
    if not made.frames:
        console.print("  no frame differs by more than the repetitions do")
    console.print(f"  whole: bench profile --regression {found.key[:8]} --stored\n")


def _change(console: Console, change: ChangePoint) -> None:
    metric = change.series.metric
    gone = " (superseded)" if change.superseded_by is not None else ""
    console.print(f"  {escape(change.series.variant)}  {title(metric)}  {effect(change)}{gone}", soft_wrap=True)
    console.print(
        f"    {interval(change.before, metric)} → {interval(change.after, metric)}, {escape(where(change))}, "
        f"{escape(change.series.machine_label)}", soft_wrap=True,
    )  # fmt: skip
    settings = ", ".join(f"{name} {value}" for name, value in change.parameters.items())
    console.print(f"    found by {change.detector} ({settings}); {proof(change)}", soft_wrap=True)
    for difference in change.environment:
        console.print(
            f"    {escape(difference.name)}: {escape(difference.before or 'absent')} → "
            f"{escape(difference.after or 'absent')}", soft_wrap=True,
        )  # fmt: skip
    if change.proof is not None:
        console.print(f"    {escape(change.proof.command)}", soft_wrap=True)
    console.print()


def _console(width: int | None) -> Console:
    return Console(file=io.StringIO(), width=width or WIDTH, highlight=False, legacy_windows=False, no_color=True)


def _text(console: Console) -> str:
    file = console.file
    assert isinstance(file, io.StringIO)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines()) + "\n"
