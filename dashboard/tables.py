"""Rows of the tables, as plain cells. Pure: dashboard.markup writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo

from bench.metrics import CPU_TIME, PEAK_MEMORY, SIZE, THROUGHPUT, TIME, Kind, Metric, Summary
from bench.model import Comparison, Estimate, RunStatus, Verdict
from bench.ports import RunInfo
from bench.reports.format import SYMBOLS, change, duration, is_share, quantity, ratio, times, title
from bench.tradeoffs import VariantSummary, speedup
from dashboard.charts import labels, metrics_of
from dashboard.markup import WORDS, Cell, Column, Row, link
from dashboard.wording import (
    Scale,
    ago,
    clock,
    direction,
    plural,
    scale_of,
    short,
)

MAIN = (TIME.name, THROUGHPUT.name, CPU_TIME.name, PEAK_MEMORY.name, SIZE.name)
"""Metrics of the harness that the first table shows, beside every one of kind accuracy."""

Built = tuple[Column, dict[str, Cell]]
"""A column and its cells by arm key."""


def variant_table(variants: Sequence[VariantSummary], *, rest: bool = False) -> tuple[list[Column], list[Row]]:
    """One row a variant. `rest`: the metrics that the first table leaves out."""
    names = labels(variants)
    metrics = metrics_of(variants)
    first = [m for n, m in metrics.items() if n in MAIN or m.kind is Kind.ACCURACY]
    order = [*MAIN[:3], *(m.name for m in first if m.kind is Kind.ACCURACY), *MAIN[3:]]
    chosen = sorted(first, key=lambda m: order.index(m.name))
    if rest:
        chosen = [m for m in metrics.values() if m not in first]
    built: list[Built] = []
    for metric in chosen:
        built.append(_values(variants, metric))
        if metric.name == TIME.name:
            times_ = {v.arm.key: v.comparisons[TIME.name] for v in variants if TIME.name in v.comparisons}
            faster = {key: (c, speedup(c)) for key, c in times_.items()}
            built.append(_changes(faster, metric, "speedup", None, ("faster", "slower"), "over baseline"))
        elif metric.name not in (THROUGHPUT.name, CPU_TIME.name):
            column = _change_column(variants, metric)
            built += [column] if column else []
    built = [b for b in built if b[1]]
    columns = [Column(title="variant"), *(column for column, _ in built)]
    rows = []
    for variant in variants:
        key = variant.arm.key
        head = Cell(text=names[key], sub="baseline" if variant.baseline else "")
        if variant.failure is not None:
            what = variant.failure
            tone = "warn" if what.kind.value in ("skipped", "unmeasured") else "bad"
            cell = Cell(text=f"{WORDS[what.kind.value]}, see above", tone=tone)
            rows.append(Row(cells=(head,), note=cell))
            continue
        rows.append(Row(cells=(head, *(cells.get(key, Cell(text="")) for _, cells in built))))
    return columns, rows


def _values(variants: Sequence[VariantSummary], metric: Metric) -> Built:
    having = [v for v in variants if metric.name in v.estimates]
    scale = scale_of(metric, [v.estimates[metric.name] for v in having])
    help = f"{metric.help} ({direction(metric)})" if metric.help else direction(metric)
    column = Column(title=title(metric), unit=scale.unit, number=True, help=help)
    cells = {}
    for variant in having:
        estimate = variant.estimates[metric.name]
        sub = scale.span(estimate)
        comparison = variant.comparisons.get(metric.name)
        if metric.summary is Summary.EXACT and metric.kind is not Kind.ACCURACY and comparison is not None:
            sub = f"{sub}, {times(comparison.change.value)}×" if comparison.relative else sub
        cells[variant.arm.key] = Cell(text=scale.number(estimate.value), sub=sub)
    return column, cells


def _change_column(variants: Sequence[VariantSummary], metric: Metric) -> Built | None:
    """Difference of a share in percentage points, ratio of anything else; none for exact values."""
    found = {v.arm.key: v.comparisons[metric.name] for v in variants if metric.name in v.comparisons}
    words = ("smaller", "larger") if metric.kind in (Kind.MEMORY, Kind.SIZE) else ("better", "worse")
    if is_share(metric):
        points = Scale(divisor=0.01, unit="pp", decimals=1, sign=True)
        return _changes({k: (c, c.change) for k, c in found.items()}, metric, "change", points, words)
    if metric.summary is Summary.EXACT:
        return None
    ratios = {k: (c, c.change) for k, c in found.items() if c.relative}
    return _changes(ratios, metric, "change", None, words) if ratios else None


def _changes(
    found: Mapping[str, tuple[Comparison, Estimate]], metric: Metric, name: str, scale: Scale | None,
    words: tuple[str, str], unit: str = "of baseline",
) -> Built:  # fmt: skip
    """Changes by arm key with their verdicts in words; without a scale they are ratios."""
    cells = {}
    for key, (comparison, seen) in found.items():
        good, bad = words
        word = {Verdict.IMPROVED: good, Verdict.REGRESSED: bad, Verdict.UNCHANGED: "same"}.get(
            comparison.verdict, "undecided" if comparison.verdict is Verdict.INCONCLUSIVE else comparison.verdict.value
        )
        if scale is not None:
            number, span = scale.number(seen.value), scale.span(seen)
        elif seen.low is None or seen.high is None:
            number, span = f"{times(seen.value)}×", seen.note
        else:
            number, span = f"{times(seen.value)}×", f"{times(seen.low)} – {times(seen.high)}"
        tone = {Verdict.IMPROVED: "good", Verdict.REGRESSED: "bad"}.get(comparison.verdict, "quiet")
        cells[key] = Cell(text=f"{SYMBOLS[comparison.verdict]} {word}\u00a0{number}", sub=span, tone=tone)
    help = f"{title(metric)} against the baseline, launched side by side"
    label = name if name == "speedup" else f"{name} of {title(metric)}"
    return Column(title=name, unit=scale.unit if scale else unit, number=True, help=help, label=label), cells


def failures_of(info: RunInfo) -> str:
    """`1 WRONG answer, 2 skipped`, the worst first; empty where all went well."""
    parts = [f"{info.failures[kind]} {word}" for kind, word in WORDS.items() if kind in info.failures]
    if info.problems:
        parts.append(plural(info.problems, "unreadable suite"))
    return ", ".join(parts)


def tone_of(info: RunInfo) -> str:
    """good, warn (something was not measured) or bad (something failed)."""
    if info.problems or set(info.failures) - {"skipped", "unmeasured"}:
        return "bad"
    return "warn" if info.failures or info.status is RunStatus.INTERRUPTED else "good"


def headline(info: RunInfo, now: datetime) -> str:
    """The one-line state: `Last run 12 min ago: 11 variants measured, 1 skipped, 0 wrong`."""
    counts = dict(info.failures)
    parts = [f"{plural(info.arms - sum(counts.values()), 'variant')} measured"]
    parts += [f"{counts.pop('skipped')} skipped"] if "skipped" in counts else []
    parts.append(f"{counts.pop('wrong', 0)} wrong")
    parts += [f"{count} {WORDS[kind]}" for kind, count in counts.items()]
    if info.problems:
        parts.append(plural(info.problems, "unreadable suite"))
    broken = ", interrupted" if info.status is RunStatus.INTERRUPTED else ""
    return f"Last run {ago(info.finished_at, now)}{broken}: {', '.join(parts)}"


def commit_of(info: RunInfo) -> Cell:
    """Commit and branch; `with changes` where the checkout was not clean."""
    if info.commit is None:
        return Cell(text="no commit")
    return Cell(text=short(info.commit), sub=", ".join(filter(None, (info.branch, "with changes" * info.dirty))))


def runs_table(infos: Sequence[RunInfo], now: datetime, zone: tzinfo) -> tuple[list[Column], list[Row]]:
    """One row a run, newest first; what failed links to the messages."""
    columns = [
        Column(title="started"), Column(title="suites"), Column(title="measured", number=True),
        Column(title="failed or skipped"), Column(title="machine"), Column(title="commit"),
        Column(title="took", number=True), Column(title=""),
    ]  # fmt: skip
    rows = []
    for info in infos:
        failed = failures_of(info)
        tone = tone_of(info)
        what = Cell(text="none", tone="good") if tone == "good" else Cell(
            text="", html=link("runs", failed, run=info.key) if failed else "",
            sub="interrupted" if info.status is RunStatus.INTERRUPTED else "",
        )  # fmt: skip
        took = duration((info.finished_at - info.started_at).total_seconds())
        cells = (
            Cell(
                text="", html=link("runs", clock(info.started_at, zone), run=info.key),
                sub=f"{ago(info.started_at, now)}, {info.profile}",
            ),
            Cell(text=", ".join(info.suites) or "none"),
            Cell(text=f"{info.arms - sum(info.failures.values())} of {info.arms}"),
            what, Cell(text=info.machine_label), commit_of(info), Cell(text=took),
            Cell(
                text="",
                html=f'{link("tradeoffs", "Tradeoffs", run=info.key)} {link("compare", "Compare", head=info.key)}',
            ),
        )  # fmt: skip
        rows.append(Row(cells=cells))
    return columns, rows


def machines_table(infos: Sequence[RunInfo], now: datetime) -> tuple[list[Column], list[Row]]:
    """One row a machine among these runs, the one seen last first."""
    columns = [
        Column(title="machine"), Column(title="fingerprint"), Column(title="runs", number=True),
        Column(title="last run"), Column(title="what failed there last"),
    ]  # fmt: skip
    rows = []
    for fingerprint in dict.fromkeys(info.machine_fingerprint for info in infos):
        own = [info for info in infos if info.machine_fingerprint == fingerprint]
        rows.append(
            Row(
                cells=(
                    Cell(text=own[0].machine_label),
                    Cell(text=short(fingerprint)),
                    Cell(text=f"{len(own):,}"),
                    Cell(text=ago(own[0].finished_at, now)),
                    Cell(text=failures_of(own[0]) or "nothing"),
                )
            )
        )
    return columns, rows


def finding(variants: Sequence[VariantSummary]) -> str:
    """What the numbers say in one sentence: the fastest variant and what its answers cost."""
    names = labels(variants)
    baseline = next((v for v in variants if v.baseline), None)
    if baseline is None:
        return "No baseline is declared: the values stand by themselves"
    base = names[baseline.arm.key]
    if baseline.failure is not None:
        return f"The baseline {base} failed: there is nothing to compare with"
    compared = [v for v in variants if TIME.name in v.comparisons]
    if not compared:
        return f"Only the baseline {base} was measured"
    best = max(compared, key=lambda v: speedup(v.comparisons[TIME.name]).value)
    time = best.comparisons[TIME.name]
    if time.verdict is not Verdict.IMPROVED:
        slower = all(v.comparisons[TIME.name].verdict is Verdict.REGRESSED for v in compared)
        return f"Every variant is slower than {base}" if slower else f"No variant is clearly faster than {base}"
    text = f"{names[best.arm.key]} is {ratio(speedup(time))} as fast as {base}"
    answers = [c for c in best.comparisons.values() if c.metric.kind is Kind.ACCURACY]
    if not answers:
        return text
    worst = next((c for c in answers if c.verdict is Verdict.REGRESSED), answers[0])
    cost = f", {change(worst)}" if is_share(worst.metric) else ""
    return f"{text}; {title(worst.metric)} {quantity(worst.head.value, worst.metric)}{cost}"
