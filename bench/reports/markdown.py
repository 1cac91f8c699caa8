"""A comment for a pull request: short, worst first, folded beyond MOST rows, empty when nothing changed."""

from __future__ import annotations

from bench.compare import RunComparison
from bench.model import Verdict
from bench.reports.format import side
from bench.reports.rows import Row, counts, rows, rules

MOST = 20
"""Rows outside the fold."""

MARKER = "<!-- bench-compare -->"
"""First line: a bot finds its own comment by it and updates it in place."""


def comparison_markdown(comparison: RunComparison) -> str:
    """Empty text when every variant is unchanged: then nothing is posted."""
    if comparison.arms and comparison.count(Verdict.UNCHANGED) == len(comparison.arms):
        return ""
    found = rows(comparison)
    lines = [MARKER, f"**bench:** {counts(comparison)}", ""]
    lines += _table(found[:MOST])
    if len(found) > MOST:
        lines += [
            "",
            f"<details><summary>{len(found) - MOST} more</summary>",
            "",
            *_table(found[MOST:]),
            "",
            "</details>",
        ]
    lines += [
        "",
        f"base {as_code(side(comparison.base))}, head {as_code(side(comparison.head))}, {as_text(comparison.machine)}",
    ]
    lines += [f"<br>{as_text(note)}" for note in (*comparison.notes, *rules(comparison))]
    return "\n".join(lines) + "\n"


def _table(found: list[Row]) -> list[str]:
    lines = ["| verdict | variant | metric | base → head | head / base (95 %) | measured | reason |"]
    lines.append("| --- | --- | --- | ---: | ---: | ---: | --- |")
    for row in found:
        figures = (row.metric, row.values, row.change, row.behind, row.reason)
        lines.append(f"| {' | '.join([row.word, as_code(row.variant), *map(as_text, figures)])} |")
    return lines


def as_code(text: str) -> str:
    """Inside back ticks nothing is markup; a back tick, a bar and a line's end cannot stand there."""
    text = _line(text).replace("`", "'").replace("|", "/")
    return f"`{text}`" if text else ""


_ESCAPES = str.maketrans(
    {
        "&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "@\u200b",
        **{c: f"\\{c}" for c in "\\|[]`*_~"},
    }
)  # fmt: skip


def as_text(text: str) -> str:
    """Foreign text as text: no HTML, links, mentions, emphasis or cells of its own."""
    # GitHub makes links of bare addresses too; an unseen space inside keeps them text.
    unlinked = _line(text).replace("://", ":\u200b//").replace("www.", "www\u200b.")
    return unlinked.translate(_ESCAPES)


def _line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
