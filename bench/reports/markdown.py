"""A comment for a pull request: short, worst first, folded beyond MOST rows, empty when nothing changed."""

from __future__ import annotations

from bench.compare import RunComparison
from bench.model import Verdict
from bench.reports.format import side
from bench.reports.rows import Row, counts, rows

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
        f"base {_code(side(comparison.base))}, head {_code(side(comparison.head))}, {_text(comparison.machine)}",
    ]
    lines += [f"<br>{_text(note)}" for note in comparison.notes]
    return "\n".join(lines) + "\n"


_ESCAPES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "\\|", "[": "\\[", "]": "\\]", "@": "@\u200b", "`": "\\`"}
)


def _table(found: list[Row]) -> list[str]:
    lines = ["| verdict | variant | metric | base → head | head / base (95 %) | measured | reason |"]
    lines.append("| --- | --- | --- | ---: | ---: | ---: | --- |")
    for row in found:
        cells = (row.word, _code(row.variant), row.metric, row.values, row.change, row.behind, row.reason)
        lines.append(f"| {' | '.join(cell if cell.startswith('`') else _text(cell) for cell in cells)} |")
    return lines


def _code(text: str) -> str:
    """Inside back ticks nothing is markup; a back tick and a bar cannot stand there."""
    return f"`{text.replace('`', chr(39)).replace('|', '/')}`" if text else ""


def _text(text: str) -> str:
    """Foreign text as text: no HTML, links, mentions or cells of its own."""
    text = " ".join(text.split())
    for old, new in (
        ("&", "&amp;"),
        ("<", "&lt;"),
        (">", "&gt;"),
        ("|", "\\|"),
        ("[", "\\["),
        ("]", "\\]"),
        ("@", "@\u200b"),
    ):
        text = text.replace(old, new)
    return text
