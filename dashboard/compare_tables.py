"""What the page of comparisons says: the verdicts of `bench compare`, which of them are shown, and why. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bench.causes import CANARY
from bench.compare import ArmComparison, RunComparison
from bench.metrics import Metric
from bench.model import Comparison, Verdict
from bench.ports import RunInfo
from bench.reports.format import SYMBOLS
from bench.reports.rows import ORDER, counts, rows
from dashboard.markup import Cell, Column, Row

ANY = "*"
"""The choice that leaves nothing out."""

CHANGED = "changed"
TONES = {
    Verdict.REGRESSED: "bad", Verdict.FAILED: "bad", Verdict.TRADE: "warn", Verdict.INCOMPARABLE: "warn",
    Verdict.IMPROVED: "good", Verdict.UNCHANGED: "good", Verdict.INCONCLUSIVE: "quiet",
}  # fmt: skip
"""Only repeats what mark and word say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which variants a reader asked for; ANY leaves a matter open."""

    suite: str = ANY
    verdict: str = ANY  # a verdict, or CHANGED: all but the unchanged


def base_of(head: str, infos: Sequence[RunInfo]) -> str:
    """Key of the run that the one of key `head` is compared with at first; `infos` are newest first.

    The newest one before it of its machine that measured one of its suites, else of its machine, else any.
    """
    place = next((k for k, info in enumerate(infos) if info.key == head), len(infos))
    if place == len(infos):
        return infos[0].key if infos else head
    own, older = infos[place], infos[place + 1 :]
    same = [i for i in older if i.machine_fingerprint == own.machine_fingerprint]
    suites = set(own.suites) - {CANARY}  # which every run has
    near = [i for i in same if suites & set(i.suites)]
    return next((i.key for i in [*near, *same, *older]), head)


def suite_of(arm: ArmComparison) -> str:
    """A variant's name begins with its suite."""
    return arm.name.partition(".")[0]


def verdict_choices(comparison: RunComparison) -> dict[str, str]:
    """Choice → its words: everything, what is not unchanged, and each verdict that occurs."""
    found = {ANY: "any verdict", CHANGED: "all but unchanged"}
    return found | {v.value: f"{SYMBOLS[v]} {v.value}" for v in ORDER if comparison.count(v)}


def matching(comparison: RunComparison, wanted: Wanted) -> RunComparison:
    """The same comparison with only the variants that were asked for, what needs a person first."""
    shown = [
        arm for arm in comparison.arms
        if wanted.suite in (ANY, suite_of(arm))
        and (wanted.verdict in (ANY, arm.verdict.value)
             or (wanted.verdict == CHANGED and arm.verdict is not Verdict.UNCHANGED))
    ]  # fmt: skip
    return replace(comparison, arms=tuple(sorted(shown, key=lambda arm: ORDER.index(arm.verdict))))


def headline(comparison: RunComparison) -> tuple[str, str]:
    """The counts as the terminal writes them, and the tone of the worst verdict."""
    present = [verdict for verdict in ORDER if comparison.count(verdict)]
    return counts(comparison), TONES[present[0]] if present else "quiet"


def metrics_of(comparison: RunComparison) -> dict[str, Metric]:
    """Metrics of which some variant has a ratio, in the order of measuring."""
    found: dict[str, Metric] = {}
    for arm in comparison.arms:
        for comparison_ in arm.comparisons:
            if has_ratio(comparison_):
                found.setdefault(comparison_.metric.name, comparison_.metric)
    return found


def has_ratio(found: Comparison) -> bool:
    """Whether it can stand on an axis of ratios."""
    return found.relative and found.change.value > 0


def verdicts_table(comparison: RunComparison) -> tuple[list[Column], list[Row]]:
    """The lines of `bench compare`, unchanged variants included; those without a number are `left_out`."""
    columns = [
        Column(title="variant"), Column(title="verdict"), Column(title="metric"),
        Column(title="base → head", number=True), Column(title="head / base", number=True, help="95 % interval below"),
        Column(title="measured", number=True), Column(title="reason"),
    ]  # fmt: skip
    built = []
    before = ""
    for row in rows(comparison, everything=True):
        if not row.metric:
            continue
        change, _, span = row.change.partition(" (")
        name = Cell(text=row.variant) if row.variant != before else Cell(text="", sub=row.variant)
        before = row.variant
        built.append(
            Row(
                cells=(
                    name, Cell(text=row.word.replace(" ", "\u00a0"), tone=TONES[row.verdict]), Cell(text=row.metric),
                    Cell(text=row.values), Cell(text=change, sub=span.removesuffix(")")), Cell(text=row.behind),
                    Cell(text=row.reason, tone="quiet"),
                )
            )
        )  # fmt: skip
    return columns, built


def left_out(comparison: RunComparison) -> tuple[list[Column], list[Row]]:
    """Variants that have no number to compare, and why."""
    columns = [Column(title="variant"), Column(title="verdict"), Column(title="why")]
    return columns, [
        Row(cells=(
            Cell(text=row.variant), Cell(text=row.word.replace(" ", "\u00a0"), tone=TONES[row.verdict]),
            Cell(text=row.reason),
        ))
        for row in rows(comparison, everything=True) if not row.metric
    ]  # fmt: skip


def short_names(names: Sequence[str], most: int = 44) -> list[str]:
    """Names for a figure: without the benchmark where all share it, and no longer than fits on a phone."""
    heads = {name.partition("[")[0] for name in names}
    bare = [name.partition("[")[2].removesuffix("]") for name in names]
    chosen = bare if len(heads) == 1 and len(names) > 1 and all(bare) else list(names)
    return [n if len(n) <= most else f"{n[: most // 2 - 1]}…{n[len(n) - most // 2 :]}" for n in chosen]
