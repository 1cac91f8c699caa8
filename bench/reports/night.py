"""A night as text, Markdown and plain values: at most a handful of causes, the rest counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.history import Action, Answer, Cause, ChangePoint, Direction
from bench.metrics import Kind, Metric
from bench.model import Estimate
from bench.night import Night, Story, is_relative
from bench.reports.format import digits, interval, is_share, ratio, title
from bench.reports.markdown import as_code, as_text

MOST = 5
"""Causes that are told one by one; nobody reads a sixth before the first is understood."""

MOST_CHANGES = 3
"""Series that are named under one cause."""

_HEADS = {
    "worse": ("slower or worse", "▼"),
    "suspicious": ("suspiciously better: the answer or the work changed too", "⚠"),
    "fixed": ("fixed", "✓"),
    "better": ("better", "▲"),
}


def headline(night: Night) -> str:
    """One line: what a subject or a notification's title shows."""
    parts = []
    if night.worse:
        parts.append(f"{_count(night.worse, 'cause')} of regressions")
    if night.suspicious:
        parts.append(f"{len(night.suspicious)} suspiciously better")
    if night.missing:
        parts.append(f"{len(night.missing)} missing")
    if night.fixed:
        parts.append(f"{len(night.fixed)} fixed")
    if night.better:
        parts.append(f"{len(night.better)} better")
    text = ", ".join(parts) or "nothing to tell"
    worst = night.worse[0].worst if night.worse else None
    return f"{text}; worst: {worst.series.variant} {title(worst.series.metric)} {effect(worst)}" if worst else text


def night_text(night: Night) -> str:
    """For a terminal or a mail."""
    lines = [headline(night)]
    for name, (head, symbol) in _HEADS.items():
        stories: Sequence[Story] = getattr(night, name)
        if not stories:
            continue
        lines += ["", f"{symbol} {head}"]
        for story in stories[:MOST]:
            lines += _story_lines(story)
        if len(stories) > MOST:
            lines.append(f"  and {_count(stories[MOST:], 'more cause')}: `bench regressions list`")
    if night.missing:
        lines += ["", "✗ missing", *(f"  {text}" for text in night.missing)]
    if night.refuted:
        lines += ["", f"suspected and refuted by a re-run: {len(night.refuted)}"]
        lines += [f"  {c.series.variant} {title(c.series.metric)} {effect(c)}" for c in night.refuted[:MOST]]
    return "\n".join(lines) + "\n"


def night_markdown(night: Night) -> str:
    """For an issue or a chat that knows Markdown; foreign names cannot become markup."""
    lines = [f"**bench:** {as_text(headline(night))}"]
    for name, (head, symbol) in _HEADS.items():
        stories: Sequence[Story] = getattr(night, name)
        if stories:
            lines += ["", f"### {symbol} {head}", ""]
            lines += [line for story in stories[:MOST] for line in story_markdown(story)]
        if len(stories) > MOST:
            lines.append(f"- and {_count(stories[MOST:], 'more cause')}")
    if night.missing:
        lines += ["", "### ✗ missing", "", *(f"- {as_text(text)}" for text in night.missing)]
    if night.refuted:
        lines += ["", f"Suspected and refuted by a re-run: {len(night.refuted)}."]
    return "\n".join(lines) + "\n"


def story_markdown(story: Story) -> list[str]:
    """One cause as list items."""
    found = story.regression
    lines = [f"- **{as_text(found.title)}** ({', '.join(_facts(story))}) {as_code(found.key[:8])}"]
    for change in story.changes[:MOST_CHANGES]:
        series = change.series
        figures = f"{as_text(title(series.metric))} {as_text(effect(change))}"
        lines.append(f"  - {as_code(series.variant)} {figures}, {as_text(where(change))}")
    if len(story.changes) > MOST_CHANGES:
        lines.append(f"  - and {len(story.changes) - MOST_CHANGES} more series")
    return lines


def night_document(night: Night) -> dict[str, Any]:
    """Plain values for a webhook; the layout is documented as `bench-night`."""
    return {
        "schema": "bench-night",
        "version": 1,
        "headline": headline(night),
        "since": night.since.isoformat(),
        "until": night.until.isoformat(),
        **{name: [_story_document(story) for story in getattr(night, name)] for name in _HEADS},
        "refuted": [_change_document(change) for change in night.refuted],
        "missing": list(night.missing),
    }


def effect(change: ChangePoint) -> str:
    """`1.12× (1.10–1.15)`, or a difference for accuracy."""
    return effect_text(change.effect, change.series.metric, relative=is_relative(change))


def effect_text(found: Estimate, metric: Metric, *, relative: bool) -> str:
    """The same for any effect: after / before where `relative`, else after − before."""
    if relative:
        return ratio(found, 3 if 0.9 < found.value < 1.11 else 2)
    factor, unit = (100, " pp") if is_share(metric) else (1, "")
    text = f"{found.value * factor:+.3g}{unit}"
    if found.low is not None and found.high is not None:
        text += f" ({found.low * factor:+.3g}…{found.high * factor:+.3g})"
    return text.replace("-", "−")


def where(change: ChangePoint) -> str:
    """`a1b2c3d..e4f5a6b` where commits are known, else the day."""
    good, bad = change.last_good, change.first_changed
    if good.commit and bad.commit and good.commit != bad.commit:
        return f"{good.commit[:9]}..{bad.commit[:9]}"
    at = bad.at.strftime("%Y-%m-%d %H:%M UTC")
    return f"at {bad.commit[:9]}, {at}" if bad.commit else at


def proof(change: ChangePoint) -> str:
    """What a paired experiment said, in a word."""
    if change.proof is None:
        return "not re-run"
    words = {
        Answer.CONFIRMED: "confirmed by a re-run", Answer.REFUTED: "refuted by a re-run",
        Answer.INCONCLUSIVE: "a re-run could not decide", Answer.FAILED: "could not be re-run",
    }  # fmt: skip
    return words[change.proof.answer]


def _story_lines(story: Story) -> list[str]:
    found = story.regression
    lines = [f"  {found.key[:8]}  {found.title} ({', '.join(_facts(story))})"]
    for change in story.changes[:MOST_CHANGES]:
        metric = change.series.metric
        values = f"{interval(change.before, metric)} → {interval(change.after, metric)}"
        lines.append(f"    {change.series.variant}  {title(metric)} {effect(change)}  {values}")
    if len(story.changes) > MOST_CHANGES:
        lines.append(f"    and {len(story.changes) - MOST_CHANGES} more series")
    return lines


def _facts(story: Story) -> list[str]:
    found = story.regression
    facts = [found.cause.value]
    worst = story.worst
    if worst is not None:
        facts += [where(worst), proof(worst)]
        if found.cause is Cause.ENVIRONMENT and worst.environment:
            moved = [f"{d.name} {d.before or 'absent'} → {d.after or 'absent'}" for d in worst.environment[:3]]
            facts.append(", ".join(moved))
    if found.culprit:
        facts.append(f"culprit {found.culprit}")
    if Action.GREW in story.happened:
        facts.append("grew")
    if found.owner:
        facts.append(f"owner {found.owner}")
    return facts


def _story_document(story: Story) -> dict[str, Any]:
    found = story.regression
    return {
        "regression": found.key,
        "title": found.title,
        "direction": found.direction.value,
        "cause": found.cause.value,
        "state": found.state.value,
        "owner": found.owner,
        "culprit": found.culprit,
        "happened": [action.value for action in story.happened],
        "weight": story.weight,
        "changes": [_change_document(change) for change in story.changes],
    }


def _change_document(change: ChangePoint) -> dict[str, Any]:
    series = change.series
    return {
        "key": change.key,
        "variant": series.variant,
        "metric": series.metric.name,
        "machine": series.machine_label,
        "effect": change.effect.value,
        "low": change.effect.low,
        "high": change.effect.high,
        "relative": is_relative(change),
        "direction": change.direction.value,
        "last_good": change.last_good.commit,
        "first_changed": change.first_changed.commit,
        "proof": change.proof.answer.value if change.proof else None,
    }


def _count(things: Sequence[object], word: str) -> str:
    return f"{len(things)} {word}{'' if len(things) == 1 else 's'}"


def regression_title(changes: Sequence[ChangePoint], direction: Direction) -> str:
    """`quantization.minilm[precision=int8] latency 1.12×` and how many others moved with it."""
    first = changes[0]
    words = {Direction.WORSE: "", Direction.BETTER: " better", Direction.SUSPICIOUS: " suspiciously better"}
    size = f"{first.effect.value:.3g}×" if is_relative(first) else f"{digits(first.effect.value)}"
    if first.series.metric.kind is Kind.ACCURACY and is_share(first.series.metric):
        size = f"{first.effect.value * 100:+.3g} pp".replace("-", "−")
    others = f" and {len(changes) - 1} more" if len(changes) > 1 else ""
    return f"{first.series.variant} {title(first.series.metric)} {size}{words[direction]}{others}"
