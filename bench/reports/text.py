"""Plain text for a terminal or a log. Tables by rich; no colour unless the output is a terminal."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.markup import escape as escape_markup
from rich.table import Table

from bench.compare import RunComparison
from bench.metrics import (
    ALLOCATION_PEAK,
    DEVICE_ENERGY,
    DEVICE_TIME,
    ENERGY,
    INSTRUCTIONS,
    PEAK_MEMORY,
    SIZE,
    TAILS,
    TIME,
    Kind,
    Metric,
    Summary,
)
from bench.model import ExperimentResult, FailureKind, Run, RunStatus
from bench.ports import RunInfo
from bench.reports.format import (
    SYMBOLS,
    change,
    duration,
    interval,
    quantity,
    ratio,
    ratio_span,
    side,
    span,
    times,
    title,
)
from bench.reports.rows import counts, rows, rules
from bench.selftest import Trial
from bench.tradeoffs import VariantSummary, speedup, tradeoffs

WIDTH = 200
"""Columns where the output is not a terminal: logs scroll sideways better than they wrap."""

WHOLE = ("base → head", "head / base", "measured")
"""Columns of a comparison that are never wrapped."""

LEAST = {"variant": 30, "reason": 24}
"""Columns that may be, and how narrow they get."""

WORDS = ("variant", "metric", "reason", "suites", "machine", "commit", "workload", "change")
"""Columns of words."""

SPEEDUP = "speedup"

ASKED = (TIME.name, ALLOCATION_PEAK.name, INSTRUCTIONS.name)
"""Metrics that somebody asked for, so that their absence is worth a line."""

MISSING = "—"


def printable(text: str) -> str:
    """Foreign text without anything that a terminal would obey."""
    return "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text)


def escape(text: str) -> str:
    """The same for rich: no markup either."""
    return escape_markup(printable(text))


class TextReport:
    """See bench.ports.Report."""

    name = "text"

    def __init__(self, width: int | None = None, colour: bool = False, *, tail: bool = False) -> None:
        self._width = width or WIDTH
        self._colour = colour
        self._tail = tail

    def run(self, run: Run) -> str:
        """One table per experiment: what each variant gives over its baseline."""
        console = self.console()
        console.print(headline(run))
        for line in circumstances(run):
            console.print(line, style="dim", soft_wrap=True)
        for result in run.experiments:
            if _skipped_for(result) is None:
                console.print()
                self._experiment(console, result)
        for line in _skipped_lines(run.experiments):
            console.print(f"\n{line}", soft_wrap=True)
        for problem in run.problems:
            console.print(f"\n✗ {escape(problem.message)}", style="red", soft_wrap=True)
        console.print()
        console.print(closing(run), soft_wrap=True)
        return self.text_of(console)

    def comparison(self, comparison: RunComparison) -> str:
        """Two runs or targets: lines for what is not unchanged, worst first; the unchanged ones counted."""
        console = self.console()
        console.print(f"base {escape(side(comparison.base))}  head {escape(side(comparison.head))}")
        for line in comparison.notes:
            console.print(f"note: {escape(line)}", style="dim", soft_wrap=True)
        for line in rules(comparison):
            console.print(escape(line), style="dim", soft_wrap=True)
        console.print()
        table = new_table("verdict", "variant", "metric", "base → head", "head / base", "measured", "reason")
        for row in rows(comparison):
            cells = (row.variant, row.metric, row.values, row.change, row.behind, row.reason)
            table.add_row(row.word, *(escape(cell) or MISSING for cell in cells[:-1]), escape(cells[-1]))
        if table.row_count:
            console.print(table)
        if self._tail and (changes := _tail_changes(comparison)).row_count:
            console.print(changes)
        console.print(counts(comparison) + (f"  ({escape(comparison.machine)})" if comparison.machine else ""))
        return self.text_of(console)

    def _experiment(self, console: Console, result: ExperimentResult) -> None:
        benchmark = result.experiment.benchmark
        console.print(f"[bold]{escape(result.experiment.name)}[/bold]  {escape(benchmark.title)}", soft_wrap=True)
        summaries = tradeoffs(result)
        columns = _columns(summaries, benchmark.metrics)
        table = new_table("variant", *columns.values())
        for summary in summaries:
            if summary.failure is None:
                table.add_row(*_variant_row(summary, list(columns)))
        if table.row_count:
            console.print(table)
        if self._tail and any(summary.failure is None for summary in summaries):
            console.print(_tail_table(summaries))
        for line in _absences(summaries):
            console.print(f"  – {escape(line)}", style="dim", soft_wrap=True)
        for summary in summaries:
            if summary.failure is not None:
                failure = summary.failure
                sign = "–" if failure.kind is FailureKind.SKIPPED else "✗"
                console.print(
                    f"  {sign} {escape(summary.label)}: {failure.kind.value.upper()} in {failure.phase}: "
                    f"{escape(failure.message)}", soft_wrap=True,
                )  # fmt: skip
                if failure.kind is not FailureKind.SKIPPED and failure.detail:
                    console.print(f"      {escape(failure.detail.splitlines()[-1])}", style="dim", soft_wrap=True)

    def console(self) -> Console:
        """Where a report is written; `text_of` reads it."""
        return Console(
            file=io.StringIO(), width=self._width, force_terminal=self._colour, no_color=not self._colour,
            highlight=False, legacy_windows=False,
        )  # fmt: skip

    @staticmethod
    def text_of(console: Console) -> str:
        """What was written, without spaces at the ends of lines."""
        assert isinstance(console.file, io.StringIO)
        return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())


def _skipped_for(result: ExperimentResult) -> str | None:
    """The one reason for which every arm of an experiment was skipped; null where there is none."""
    failures = [arm.failure for arm in result.results]
    reasons = {f.message if f is not None and f.kind is FailureKind.SKIPPED else None for f in failures}
    return reasons.pop() if len(reasons) == 1 else None


def _skipped_lines(experiments: Sequence[ExperimentResult]) -> list[str]:
    """A line a benchmark and reason, last: what this machine lacks must not bury what it measured."""
    count: Counter[tuple[str, str]] = Counter()
    for result in experiments:
        if (reason := _skipped_for(result)) is not None:
            count[result.experiment.benchmark.name, reason] += len(result.results)
    return [
        f"– [bold]{escape(name)}[/bold]: {n} variant{'s' if n > 1 else ''} SKIPPED: {escape(reason)}"
        for (name, reason), n in count.items()
    ]


def new_table(first: str, *columns: str) -> Table:
    """A table whose words stand left and whose figures stand right."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column(first, overflow="fold", min_width=10, no_wrap=first == "verdict")
    for column in columns:
        left = column in WORDS
        table.add_column(
            column, justify="left" if left else "right", overflow="fold", no_wrap=column in WHOLE,
            min_width=LEAST.get(column),
        )  # fmt: skip
    return table


def _variant_row(summary: VariantSummary, columns: Sequence[str]) -> list[str]:
    """Two lines a cell: the value, and under it the interval or the change against the baseline."""
    cells = [escape(summary.label) + ("\n(baseline)" if summary.baseline else "")]
    for name in columns:
        if name == SPEEDUP:
            time = summary.comparisons.get("time")
            gain = None if time is None else speedup(time)
            cells.append(MISSING if gain is None else f"{times(gain.value)}×\n{ratio_span(gain)}")
        elif name in ("time", "throughput", "cpu_time"):
            cells.append(_value_and_span(summary, name))
        else:
            cells.append(_value_and_change(summary, name))
    return cells


def _columns(summaries: Sequence[VariantSummary], own: Sequence[Metric]) -> dict[str, str]:
    """Metric → title of the columns that have something to show."""
    compared = any("time" in s.comparisons for s in summaries)
    named = {"time": "latency", SPEEDUP: "speedup", "throughput": "throughput", "cpu_time": "CPU time"}
    named |= {m.name: title(m) for m in own}
    named |= {
        m.name: title(m) for m in (DEVICE_TIME, PEAK_MEMORY, ALLOCATION_PEAK, INSTRUCTIONS, ENERGY, DEVICE_ENERGY, SIZE)
    }
    known = {name for s in summaries for name in s.metrics} | ({SPEEDUP} if compared else set())
    return {name: words for name, words in named.items() if name in known}


def _tail_table(summaries: Sequence[VariantSummary]) -> Table:
    """Single calls: what part of them takes how long, or why nobody knows."""
    table = new_table("single calls", *(title(metric) for metric in TAILS))
    for summary in summaries:
        if summary.failure is None:
            cells = [_value_and_span(summary, m.name) for m in TAILS if m.name in summary.estimates]
            cells += [summary.absent[m.name] for m in TAILS if m.name in summary.absent]
            table.add_row(escape(summary.label), *cells)
    return table


def _tail_changes(comparison: RunComparison) -> Table:
    """Quantiles of single calls, head / base, or why there is no interval."""
    table = new_table("single calls, head / base", *(title(metric) for metric in TAILS))
    for arm in comparison.arms:
        found = {c.metric.name: c for c in arm.comparisons}
        if any(metric.name in found for metric in TAILS):
            cells = [change(found[m.name]) if m.name in found else MISSING for m in TAILS]
            table.add_row(escape(arm.name), *cells)
    return table


def _absences(summaries: Sequence[VariantSummary]) -> list[str]:
    """What was asked for and could not be had: once where all variants agree."""
    found: dict[str, list[str]] = {}
    for summary in summaries:
        for name in ASKED:
            if name in summary.absent:
                found.setdefault(f"no {name.replace('_', ' ')}: {summary.absent[name]}", []).append(summary.label)
    measured = sum(1 for summary in summaries if summary.failure is None)
    return [text if len(labels) == measured else f"{', '.join(labels)}: {text}" for text, labels in found.items()]


def _value_and_span(summary: VariantSummary, name: str) -> str:
    if name not in summary.estimates:
        return MISSING
    estimate, metric = summary.estimates[name], summary.metrics[name]
    return f"{quantity(estimate.value, metric)}\n{span(estimate, metric)}"


def _value_and_change(summary: VariantSummary, name: str) -> str:
    if name not in summary.estimates:
        return MISSING
    metric = summary.metrics[name]
    comparison = summary.comparisons.get(name)
    if metric.summary is Summary.EXACT and metric.kind is Kind.ACCURACY:
        return quantity(summary.estimates[name].value, metric)  # the figures themselves say more than their ratio
    text = interval(summary.estimates[name], metric)
    return text if comparison is None else f"{text}\n{change(comparison)}"


def headline(run: Run) -> str:
    """Key, time, machine."""
    when = run.started_at.astimezone().strftime("%Y-%m-%d %H:%M")
    took = duration((run.finished_at - run.started_at).total_seconds())
    state = "" if run.status is RunStatus.COMPLETE else " INTERRUPTED"
    return f"run {run.key[:8]}{state}  {when}  {run.profile}  {took}  {escape(run.machine.label)}"


def circumstances(run: Run) -> list[str]:
    """What the machine was doing, in words."""
    parts = []
    seen = run.conditions
    if seen.load_before is not None and seen.load_after is not None:
        parts.append(f"load {seen.load_before:.1f} → {seen.load_after:.1f}")
    if seen.foreign_cpu is not None:
        parts.append(f"other processes took {seen.foreign_cpu:.0%} of the CPUs")
    if seen.cpu_pressure is not None:
        parts.append(f"some task waited for a CPU {seen.cpu_pressure:.0%} of the time")
    if seen.steal is not None and seen.steal >= 0.001:
        parts.append(f"the hypervisor took {seen.steal:.1%}")
    priorities = {p for e in run.experiments for launch in e.launches for p in launch.priority.split("+")}
    if priorities:
        words = {"fifo": "real-time", "nice": "raised", "normal": "ordinary"}
        parts.append(f"priority {' and '.join(sorted(words.get(p, p) for p in priorities))}")
    launches = sorted({len(e.launches) for e in run.experiments if e.launches})
    if launches:
        parts.append(f"{'–'.join(map(str, launches))} launches; intervals are 95 % over launches or items")
    lines = ["; ".join(parts)] if parts else []
    if run.reduced:
        lines.append(f"pruned: of {len(run.reduced)} measurements one value a launch is left")
    if run.quarantine:
        lines.append(f"quarantined, kept out of history: the import lacks {', '.join(run.quarantine)}")
    return lines


def closing(run: Run) -> str:
    """How many variants were measured, skipped, failed."""
    counts: dict[str, int] = {}
    for _, result in run.arms():
        word = result.failure.kind.value if result.failure else "measured"
        counts[word] = counts.get(word, 0) + 1
    if run.problems:
        counts["unreadable suites"] = len(run.problems)
    return ", ".join(f"{n} {word.replace('_', ' ')}" for word, n in counts.items()) or "nothing was measured"


def runs_table(infos: Sequence[RunInfo]) -> str:
    """One line per stored run, newest first."""
    if not infos:
        return "no run is stored yet; `bench run` makes the first"
    console = TextReport().console()
    table = new_table("run", "started", "profile", "status", "suites", "variants", "failures", "commit", "machine")
    for info in infos:
        failures = ", ".join(f"{n} {kind.replace('_', ' ')}" for kind, n in info.failures.items())
        commit = (info.commit or "")[:9] + ("+" if info.dirty else "")
        table.add_row(
            info.key[:8], info.started_at.astimezone().strftime("%Y-%m-%d %H:%M"), info.profile, info.status.value,
            escape(" ".join(info.suites)), str(info.arms), failures or MISSING, commit or MISSING,
            escape(info.machine_label),
        )  # fmt: skip
    console.print(table)
    return TextReport.text_of(console)


def selftest_table(trials: Sequence[Trial]) -> str:
    """One line per trial: what was injected and what the gate said."""
    console = TextReport().console()
    table = new_table("injected", "workload", "verdict", "measured", "pairs", "reason")
    for trial in trials:
        basis = trial.answer.basis or "time"
        seen = next((c for c in trial.answer.comparisons if c.metric.name == basis), None)
        injected = "the same code" if trial.percent == 0 else f"+{trial.percent} %"
        table.add_row(
            injected, escape(trial.workload), f"{SYMBOLS[trial.verdict]} {trial.verdict.value}",
            MISSING if seen is None else ratio(seen.change, 3), str(trial.answer.launches),
            escape(trial.answer.reason),
        )  # fmt: skip
    console.print(table)
    return TextReport.text_of(console)
