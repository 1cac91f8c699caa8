"""Our own HTML, written in one place where everything is escaped. Pure.

Streamlit would read names and messages as Markdown, Plotly as its own little HTML. Texts out of
results (a benchmark may be called `<script>` or `[x](javascript:…)`) therefore reach a page only
through this module's `esc`, through widgets that show plain text, or through `chart_text`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from urllib.parse import urlencode

from bench.model import Failure, FailureKind

SERIOUS = (FailureKind.WRONG, FailureKind.RAISED, FailureKind.DIED, FailureKind.TIMED_OUT)
"""Failures that someone has to look at; the others only say that nothing was measured."""

WORDS = {
    "wrong": "WRONG answer", "raised": "raised an error", "died": "died", "timed_out": "timed out",
    "skipped": "skipped", "unmeasured": "not measured",
}  # fmt: skip


def esc(text: object) -> str:
    """Text for HTML, attributes included."""
    return escape(str(text), quote=True)


def chart_text(text: object) -> str:
    """Text for Plotly, which reads `<b>` and `<a>` but knows these three entities."""
    return escape(str(text), quote=False)


def link(page: str, text: str, **state: str) -> str:
    """A link to another page of ours that carries state, opened in the same tab."""
    query = urlencode({k: v for k, v in state.items() if v})
    address = f"{page}?{query}" if query else page
    return f'<a href="{esc(address)}" target="_self">{esc(text)}</a>'


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell: a main text and a quiet second line. A tone only repeats what the text says."""

    text: str
    sub: str = ""
    tone: str = ""  # good, bad, warn, quiet or empty
    html: str = ""  # trusted HTML made by `link`, in place of the text


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """Head of a column."""

    title: str
    unit: str = ""
    number: bool = False
    help: str = ""
    label: str = ""  # where the column stands alone, on a narrow screen; empty: the title


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Cells by column; the first is the row's head. `note` replaces the cells after the first."""

    cells: Sequence[Cell] = field(default_factory=tuple)
    note: Cell | None = None


def table(columns: Sequence[Column], rows: Sequence[Row], caption: str) -> str:
    """A table that turns into cards on a narrow screen. `caption` is read to those who don't see it."""
    head = "".join(
        f'<th scope="col" class="{"n" if c.number else ""}" title="{esc(c.help)}">{esc(c.title)}'
        f"<small>{esc(c.unit) or '&nbsp;'}</small></th>"
        for c in columns
    )
    if not any(c.unit for c in columns):
        head = head.replace("<small>&nbsp;</small>", "")
    body = "".join(_row(columns, row) for row in rows)
    return (
        f'<div class="b-scroll"><table class="b-table is-cards" aria-label="{esc(caption)}">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _row(columns: Sequence[Column], row: Row) -> str:
    name = row.cells[0]
    parts = [f'<th scope="row">{_inner(name)}</th>']
    if row.note is not None:
        parts.append(f'<td colspan="{len(columns) - 1}" class="note">{_inner(row.note)}</td>')
    else:
        for column, cell in zip(columns[1:], row.cells[1:], strict=True):
            name = column.label or column.title
            label = f"{name}, {column.unit}" if column.unit else name
            empty = not (cell.text or cell.html)
            inner = "" if empty else _inner(cell)
            parts.append(f'<td class="{"n" if column.number else ""}" data-label="{esc(label)}">{inner}</td>')
    return f"<tr>{''.join(parts)}</tr>"


def _inner(cell: Cell) -> str:
    main = cell.html or esc(cell.text)
    if cell.tone:
        main = f'<span class="b-{cell.tone}">{main}</span>'
    return f"<div>{main}{f'<small>{esc(cell.sub)}</small>' if cell.sub else ''}</div>"


def state(headline: str, lines: Sequence[str], tone: str) -> str:
    """The one-line state on top of a page. `lines` are trusted HTML."""
    more = "".join(f'<p class="b-line b-quiet">{line}</p>' for line in lines)
    return f'<div class="b-state is-{tone}"><h1>{esc(headline)}</h1>{more}</div>'


def line(text: str, tone: str = "quiet") -> str:
    """One escaped sentence."""
    return f'<p class="b-line b-{tone}">{esc(text)}</p>'


def failure(title: str, what: Failure) -> str:
    """A failure in words: what, where, why; what was printed one click away."""
    tone = "bad" if what.kind in SERIOUS else "warn"
    mark = "✕" if tone == "bad" else "–"
    phase = what.phase.replace("_", " ")
    detail = ""
    if what.detail.strip():
        detail = f"<details><summary>What was printed</summary><pre>{esc(what.detail.strip())}</pre></details>"
    return (
        f'<div class="b-fail is-{tone}"><span class="b-{tone}">{mark} {esc(WORDS[what.kind.value])}</span> '
        f'<strong class="b-name">{esc(title)}</strong> <span class="b-quiet">during {esc(phase)}</span>'
        f"<div>{esc(what.message)}</div>{detail}</div>"
    )


def steps(heading: str, lead: str, items: Sequence[tuple[str, str]]) -> str:
    """Numbered steps below a state."""
    return f"{state(heading, [esc(lead)], 'quiet')}{numbered(items)}"


def numbered(items: Sequence[tuple[str, str]]) -> str:
    """Numbered steps, each a sentence and a command."""
    body = "".join(f"<li>{esc(text)}<br><code>{esc(command)}</code></li>" for text, command in items)
    return f'<ol class="b-steps">{body}</ol>'


def legend(items: Sequence[tuple[str, str, str]]) -> str:
    """What a figure's marks mean: (mark, colour #RRGGBB, name). Ours and not Plotly's: long names wrap."""
    body = "".join(
        f'<li><span aria-hidden="true" style="color: {esc(colour)}">{esc(mark)}</span>&nbsp;{esc(name)}</li>'
        for mark, colour, name in items
    )
    return f'<ul class="b-legend">{body}</ul>'


@dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    """One day in a strip of them: a mark, what it says in words, and the day's name."""

    mark: str
    tone: str
    day: str
    words: str


def strip(nights: Sequence[Night], caption: str) -> str:
    """Days side by side, the oldest first; each says its words to who points at it or listens."""
    body = "".join(
        f'<li title="{esc(n.words)}"><span class="b-{n.tone}" role="img" aria-label="{esc(n.words)}">{esc(n.mark)}'
        f"</span><small>{esc(n.day)}</small></li>"
        for n in nights
    )
    return f'<ol class="b-nights" aria-label="{esc(caption)}">{body}</ol>'


def outside(address: str) -> str:
    """A link that somebody noted: to the web it can be followed, anything else stays text."""
    if not address.startswith(("https://", "http://")):
        return esc(address)
    return f'<a href="{esc(address)}" target="_blank" rel="noopener noreferrer">{esc(address)}</a>'
