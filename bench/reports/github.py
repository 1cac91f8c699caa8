"""Workflow commands for GitHub Actions: an annotation for each variant that needs a person."""

from __future__ import annotations

from bench.compare import RunComparison
from bench.model import Verdict
from bench.reports.rows import counts, rows, rules

LEVELS = {
    Verdict.REGRESSED: "error",
    Verdict.FAILED: "error",
    Verdict.TRADE: "warning",
    Verdict.INCOMPARABLE: "warning",
}


def comparison_github(comparison: RunComparison) -> str:
    """One `::error` or `::warning` a line, then a notice with counts, notes and rules."""
    lines = []
    trades = {arm.name for arm in comparison.arms if arm.verdict is Verdict.TRADE}
    for row in rows(comparison):
        if level := LEVELS.get(row.verdict):
            level = LEVELS[Verdict.TRADE] if row.variant in trades else level  # it has a good side too
            text = " ".join(filter(None, (row.metric, row.values, row.change, row.behind, row.reason)))
            lines.append(f"::{level} title={_property(f'{row.verdict.value}: {row.variant}')}::{_data(text)}")
    summary = "\n".join([counts(comparison), *comparison.notes, *rules(comparison)])
    lines.append(f"::notice title=bench compare::{_data(summary)}")
    return "\n".join(lines) + "\n"


def _data(text: str) -> str:
    """Escapes of the workflow-command syntax (GitHub's toolkit): a line break would end the command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
