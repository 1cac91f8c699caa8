"""What a bisection found: for a terminal, a comment and a machine (`bench-bisection` version 1)."""

from __future__ import annotations

import json
from typing import Any

from bench.model import Estimate, Verdict
from bench.reports.format import quantity, ratio, title
from bench.reports.markdown import as_code, as_text
from bench.reports.text import MISSING, TextReport, escape, new_table
from bench.suspects import Effect, Outcome, Step
from bench.targets.history import Change
from bench.wire import plain

SCHEMA = "bench-bisection"
VERSION = 1

PLACES = {"good": "=", "bad": "≠", "between": "±", "inconclusive": "?", "untestable": "✗"}
"""Shape beside the word of a step."""


def bisection_text(outcome: Outcome, width: int | None = None, *, colour: bool = False) -> str:
    """The change and its effect first, then how it was found."""
    report = TextReport(width, colour)
    console = report.console()
    console.print(f"[bold]{escape(headline(outcome))}[/bold]", soft_wrap=True)
    for change in outcome.suspects:
        console.print(f"  {escape(_line(change))}", soft_wrap=True)
    console.print()
    for line in (*figures(outcome), *(f"note: {note}" for note in outcome.notes)):
        console.print(escape(line), soft_wrap=True)
    if outcome.steps:
        steps = new_table("place", "change", "against good", "measured", "reason")
        for step in outcome.steps:
            steps.add_row(
                f"{PLACES[step.place]} {step.place}", step.change.short, escape(_level(outcome, step.level)),
                _measured(step), escape(step.reason or step.change.subject),
            )  # fmt: skip
        console.print()
        console.print(steps)
    return report.text_of(console)


def bisection_markdown(outcome: Outcome) -> str:
    """The same for a comment or an issue."""
    lines = [f"**bench bisect:** {as_text(headline(outcome))}", ""]
    lines += [f"- {as_code(c.short)} {as_text(_line(c).removeprefix(c.short).strip())}" for c in outcome.suspects]
    lines += ["", *(f"{as_text(line)}<br>" for line in figures(outcome))]
    lines += [f"note: {as_text(note)}<br>" for note in outcome.notes]
    if outcome.steps:
        lines += ["", "| place | change | against good (99 %) | measured | reason |"]
        lines += ["| --- | --- | ---: | ---: | --- |"]
        for step in outcome.steps:
            cells = (_level(outcome, step.level), _measured(step), step.reason or step.change.subject)
            place = f"{PLACES[step.place]} {step.place}"
            lines.append(f"| {' | '.join([place, as_code(step.change.short), *map(as_text, cells)])} |")
    return "\n".join(lines) + "\n"


def bisection_json(outcome: Outcome, *, exit_code: int) -> str:
    """Everything, for machines."""
    question = outcome.question
    document = {
        "schema": SCHEMA,
        "version": VERSION,
        "good": _change(question.good),
        "bad": _change(question.bad),
        "variant": question.variant,
        "metric": outcome.metric.name,
        "kind": "ratio" if outcome.relative else "difference",
        "verdict": outcome.verdict.value,
        "ended": outcome.ended,
        "reason": outcome.reason,
        "exit_code": exit_code,
        "change": plain(outcome.whole),
        "candidates": len(question.changes) - 1,
        "suspects": [_change(change) for change in outcome.suspects],
        "effect": _effect(outcome.effect),
        "steps": [_step(step) for step in outcome.steps],
        "notes": list(outcome.notes),
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


def headline(outcome: Outcome) -> str:
    """One sentence."""
    question, count = outcome.question, len(outcome.suspects)
    if not outcome.suspects:
        told = {Verdict.UNCHANGED: "does not differ", Verdict.INCONCLUSIVE: "is not proven to differ"}
        words = told.get(outcome.verdict, "differs")
        if outcome.ended == "interrupted":
            words = "was interrupted before it was known whether it differs"
        return f"{question.variant}: {question.bad.short} {words} from {question.good.short}"
    what = "regressed" if outcome.verdict is Verdict.REGRESSED else "improved"
    if outcome.ended == "found":
        return f"{question.variant} {what} in this change:"
    why = {
        "budget": "the budget is spent; the same command goes on",
        "interrupted": "interrupted; the same command goes on",
        "narrowed": "the others could not be tested",
    }[outcome.ended]
    return f"{question.variant} {what} in one of these {count} changes ({why}):"


def figures(outcome: Outcome) -> list[str]:
    """The effect of the change, that of the whole range, and how many were asked."""
    question, lines = outcome.question, []
    if (effect := outcome.effect) is not None:
        state = "confirmed" if effect.confirmed else "NOT confirmed"
        lines.append(
            f"{title(outcome.metric)} {_level(outcome, effect.change)} "
            f"from {effect.base.short} to {effect.head.short}, {state}{_fresh(effect)}"
        )
    if outcome.whole is not None:
        ends = f"{question.good.short} to {question.bad.short}"
        lines.append(f"{title(outcome.metric)} {_level(outcome, outcome.whole)} from {ends}, {outcome.verdict.value}")
    if outcome.reason:
        lines.append(outcome.reason)
    if outcome.steps:
        tested = sum(1 for step in outcome.steps if step.launches)
        untold = sum(1 for step in outcome.steps if step.place in ("untestable", "inconclusive"))
        lines.append(
            f"{tested} of {len(question.changes) - 1} changes measured, {untold} without an answer, "
            f"{sum(step.launches for step in outcome.steps)} pairs of launches"
        )
    return lines


def _line(change: Change) -> str:
    parts = [change.short]
    if change.authored_at is not None:
        parts.append(change.authored_at.strftime("%Y-%m-%d"))
    return "  ".join(filter(None, (*parts, change.author, change.subject)))


def _fresh(effect: Effect) -> str:
    return "" if effect.change.note == "exact" else f" by {effect.launches} fresh launches"


def _level(outcome: Outcome, level: Estimate | None) -> str:
    if level is None:
        return ""
    if outcome.relative:
        return ratio(level, 3)
    sign = "+" if level.value > 0 else "−" if level.value < 0 else "±"
    return f"{sign}{quantity(abs(level.value), outcome.metric)}"


def _measured(step: Step) -> str:
    if step.level is not None and step.level.note == "exact":
        return "exact"
    return f"{step.launches} pairs" if step.launches else MISSING


def _change(change: Change) -> dict[str, Any]:
    moment = None if change.authored_at is None else change.authored_at.isoformat()
    return {"name": change.name, "author": change.author, "authored_at": moment, "subject": change.subject}


def _effect(effect: Effect | None) -> dict[str, Any] | None:
    if effect is None:
        return None
    return {
        "base": _change(effect.base), "head": _change(effect.head), "change": plain(effect.change),
        "confirmed": effect.confirmed, "launches": effect.launches,
    }  # fmt: skip


def _step(step: Step) -> dict[str, Any]:
    return {
        "change": _change(step.change), "place": step.place, "level": plain(step.level), "launches": step.launches,
        "reason": step.reason,
    }  # fmt: skip
