"""Which lines of a comparison a reader must see, and what stands in them: shared by every report."""

from __future__ import annotations

from dataclasses import dataclass

from bench.compare import ArmComparison, RunComparison
from bench.model import Comparison, Verdict
from bench.reports.format import SYMBOLS, change, quantity, title

LOUD = (Verdict.REGRESSED, Verdict.IMPROVED, Verdict.INCOMPARABLE)
"""Verdicts that make a metric worth a line of its own."""

ORDER = (
    Verdict.REGRESSED, Verdict.TRADE, Verdict.FAILED, Verdict.INCOMPARABLE, Verdict.INCONCLUSIVE, Verdict.IMPROVED,
    Verdict.UNCHANGED,
)  # fmt: skip
"""What needs a person first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line."""

    verdict: Verdict
    variant: str
    metric: str = ""
    values: str = ""  # base → head
    change: str = ""  # head / base with its interval
    behind: str = ""  # launches or items
    reason: str = ""

    @property
    def word(self) -> str:
        """Shape and word."""
        return f"{SYMBOLS[self.verdict]} {self.verdict.value}"


def rows(comparison: RunComparison, *, everything: bool = False) -> list[Row]:
    """Lines of all variants that are not unchanged, or of `everything`, worst first."""
    ordered = sorted(comparison.arms, key=lambda arm: ORDER.index(arm.verdict))
    return [row for arm in ordered if everything or arm.verdict is not Verdict.UNCHANGED for row in _rows(arm)]


def _rows(arm: ArmComparison) -> list[Row]:
    basis = arm.basis or "time"
    shown = [c for c in arm.comparisons if c.verdict in LOUD]
    first = next((c for c in arm.comparisons if c.metric.name == basis), None)
    if first is not None and first not in shown:
        shown.append(first)
    if not shown:
        return [Row(verdict=arm.verdict, variant=arm.name, reason=arm.reason)]
    lines = []
    for index, found in enumerate(shown):
        verdict = arm.verdict if index == 0 and len(shown) == 1 else found.verdict
        own = arm.reason if found is first else found.reason
        lines.append(_row(arm, found, verdict, own))
    return lines


def _row(arm: ArmComparison, found: Comparison, verdict: Verdict, reason: str) -> Row:
    if not reason and not found.paired and verdict is Verdict.INCONCLUSIVE:
        reason = "not paired"
    one = found.change.n == 1
    paired = ("pair" if one else "pairs") if found.paired and arm.launches else "launch" if one else "launches"
    return Row(
        verdict=verdict,
        variant=arm.name,
        metric=title(found.metric),
        values=f"{quantity(found.base.value, found.metric)} → {quantity(found.head.value, found.metric)}",
        change=change(found),
        behind="exact" if found.change.note == "exact" else f"{found.change.n} {paired if found.relative else 'items'}",
        reason=reason,
    )


def counts(comparison: RunComparison) -> str:
    """`3 variants: 1 regressed, 2 unchanged`."""
    parts = [f"{comparison.count(v)} {v.value}" for v in ORDER if comparison.count(v)]
    noun = "variant" if len(comparison.arms) == 1 else "variants"
    return f"{len(comparison.arms)} {noun}: {', '.join(parts) or 'nothing compared'}"


def rules(comparison: RunComparison) -> list[str]:
    """By which rule the verdicts were reached: each once, with its number of variants where there are several."""
    found: dict[str, int] = {}
    for arm in comparison.arms:
        if arm.rule:
            found[arm.rule] = found.get(arm.rule, 0) + 1
    if len(found) < 2:
        return [f"rule: {rule}" for rule in found]
    return [f"rule of {n} variant{'' if n == 1 else 's'}: {rule}" for rule, n in found.items()]
