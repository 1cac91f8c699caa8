"""What the page of claims says: which are shown, their lines, and one with its experiments. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.claims.words import Answer, Finding, Kind, Reading, counts
from bench.reports.claims import CHINESE, SYMBOLS, citation, measured, span, statements, value, word
from dashboard.markup import Cell, Column, Row, esc, link
from dashboard.wording import plural, short

ANY = "*"
"""The choice that leaves nothing out."""

FINDINGS = {ANY: "any verdict", **{finding.value: finding.value for finding in Finding}}
ARTICLES = {ANY: "both articles", "A": "A: five misconceptions", "B": "B: a guide to speed"}
LANGUAGES = {"both": "English and 中文", "en": "English", "zh": "中文"}

TONES = {
    Finding.REPRODUCED: "good", Finding.EXCEEDED: "good", Finding.CONFIRMED: "good", Finding.PARTLY: "warn",
    Finding.INCONCLUSIVE: "quiet",
    Finding.NOT_REPRODUCED: "bad", Finding.WRONG: "bad", Finding.NOT_MEASURABLE: "quiet", Finding.NOT_MEASURED: "quiet",
}  # fmt: skip
"""Only repeats what mark and word say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which claims a reader asked for; ANY leaves a matter open."""

    finding: str = ANY
    article: str = ANY


def matching(answers: Sequence[Answer], wanted: Wanted) -> list[Answer]:
    """Those that were asked for, in the order of the file."""
    return [
        answer
        for answer in answers
        if wanted.finding in (ANY, answer.finding.value) and wanted.article in (ANY, answer.claim.id[0])
    ]


def headline(answers: Sequence[Answer]) -> str:
    """How the claims stand in one sentence."""
    found = counts(answers)
    hold = sum(found.get(f, 0) for f in (Finding.REPRODUCED, Finding.EXCEEDED, Finding.CONFIRMED))
    fail = sum(found.get(f, 0) for f in (Finding.NOT_REPRODUCED, Finding.WRONG))
    open_ = sum(found.get(f, 0) for f in (Finding.INCONCLUSIVE, Finding.NOT_MEASURABLE, Finding.NOT_MEASURED))
    parts = [f"{hold} hold", f"{found.get(Finding.PARTLY, 0)} partly", f"{fail} do not", f"{open_} unanswered"]
    return f"Of {plural(len(answers), 'claim')} {', '.join(parts)}"


def claims_table(answers: Sequence[Answer], language: str, state: Mapping[str, str]) -> tuple[list[Column], list[Row]]:
    """One line for each claim; `state` goes along with the links."""
    columns = [
        Column(title="claim"), Column(title="stated"), Column(title="measured here"),
        Column(title="verdict", help="How each is reached stands below the table."), Column(title="run"),
    ]  # fmt: skip
    rows = []
    for answer in answers:
        claim = answer.claim
        first, *rest = statements(claim, language)
        name = link("claims", claim.id, claim=claim.id, **state)
        rows.append(
            Row(
                cells=(
                    Cell(text="", html=f"{name} {_marked(first)}{''.join(map(_small, rest))}"),
                    Cell(text=claim.figure),
                    Cell(text=measured(answer)),
                    _verdict(answer.finding, language),
                    _runs(answer),
                )
            )
        )
    return columns, rows


def readings_table(answer: Answer) -> tuple[list[Column], list[Row]]:
    """One line for each experiment of a claim."""
    columns = [
        Column(title="experiment"), Column(title="measured", help="with its 95 % interval"), Column(title="made of"),
        Column(title="finding"), Column(title="run"),
    ]  # fmt: skip
    rows = []
    for reading in answer.readings:
        finding = _verdict(reading.finding, "en") if reading.judged else Cell(text="for comparison", tone="quiet")
        if reading.found is None:
            number = Cell(text=reading.reason, tone="quiet")
        else:
            whole, ends = value(reading), span(reading)
            number = Cell(text=whole.replace(f" ({ends})", "") if ends else whole, sub=ends)
        rows.append(Row(cells=(Cell(text=reading.label), number, Cell(text=reading.detail), finding, _run_of(reading))))
    return columns, rows


def facts(answer: Answer) -> list[str]:
    """What else is known of a claim: plain sentences."""
    claim = answer.claim
    lines = [claim.note]
    if claim.source is not None:
        lines.append(f"Source: {citation(claim.source)}.")
    if answer.reason and not answer.readings:
        lines.append(f"Not answered: {answer.reason}.")
    if claim.kind is Kind.COUNTED:
        lines.append("Counted by code from the definition of the network; nothing was timed.")
    return lines


def title(answer: Answer) -> str:
    """`B13 PARTLY: INT8 is 2–4 times as fast`."""
    return f"{answer.claim.id}  {word(answer.finding)}: {answer.claim.en}"


def _marked(text: str) -> str:
    """Chinese is said to be Chinese, for fonts and for readers by voice."""
    return f'<span lang="zh-Hans">{esc(text)}</span>' if any("一" <= c <= "鿿" for c in text) else esc(text)


def _small(text: str) -> str:
    return f"<small>{_marked(text)}</small>"


def _verdict(finding: Finding, language: str) -> Cell:
    text = word(finding, "zh" if language == "zh" else "en")
    sub = CHINESE[finding] if language == "both" else ""
    return Cell(text=f"{SYMBOLS[finding]} {text}".replace(" ", "\u00a0"), sub=sub, tone=TONES[finding])


def _runs(answer: Answer) -> Cell:
    found = {r.origin.run: _link(r) for r in answer.readings if r.origin is not None}
    return Cell(text="", html=", ".join(found.values()))


def _run_of(reading: Reading) -> Cell:
    return Cell(text="", html=_link(reading)) if reading.origin is not None else Cell(text="")


def _link(reading: Reading) -> str:
    assert reading.origin is not None
    suite = reading.experiment.partition(".")[0]
    run = reading.origin.run
    return link("tradeoffs", short(run), run=run, suite=suite, benchmark=reading.experiment)
