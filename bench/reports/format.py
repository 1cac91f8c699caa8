"""Numbers as a person reads them: unit always, interval or the reason why there is none."""

from __future__ import annotations

from bench.compare import TOO_FEW
from bench.metrics import Kind, Metric, Summary
from bench.model import Comparison, Estimate, Verdict

_TIME = ((1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s"))
_BYTES = ((1.0, "B"), (2.0**10, "KiB"), (2.0**20, "MiB"), (2.0**30, "GiB"))
_RATE = ((1.0, "/s"), (1e3, "k/s"), (1e6, "M/s"), (1e9, "G/s"))
_COUNT = ((1.0, "instr."), (1e3, "k instr."), (1e6, "M instr."), (1e9, "G instr."))
_FLOP = ((1.0, "FLOP"), (1e3, "kFLOP"), (1e6, "MFLOP"), (1e9, "GFLOP"), (1e12, "TFLOP"))
_ENERGY = ((1e-3, "nJ"), (1.0, "µJ"), (1e3, "mJ"), (1e6, "J"))
_SCALES = {"ns": _TIME, "B": _BYTES, "1/s": _RATE, "instructions": _COUNT, "FLOP": _FLOP, "uJ": _ENERGY}

TITLES = {
    "time": "latency",
    "cpu_time": "CPU time",
    "first_call": "first call",
    "set_up": "set-up",
    "peak_memory": "peak memory",
    "memory_growth": "memory growth",
    "allocation_peak": "peak of allocations",
}
"""Column titles of harness metrics; the others are their own name."""


def title(metric: Metric) -> str:
    """Name of a metric for a table or an axis."""
    return TITLES.get(metric.name, metric.name.replace("_", " "))


def scale_of(value: float, unit: str) -> tuple[float, str]:
    """(divisor, unit) that shows `value` with one to three digits before the point."""
    steps = _SCALES.get(unit)
    if steps is None:
        return 1.0, "" if unit == "1" else unit
    chosen = steps[0]
    for step in steps:
        if abs(value) >= step[0] * 0.9995:
            chosen = step
    return chosen


def digits(value: float) -> str:
    """Three significant digits, or all before the point from 1000 on; no exponent from 1e-4 on."""
    size = abs(value)
    if size == 0:
        return "0"
    if size >= 10_000:
        return f"{value:,.0f}"
    if size >= 1000:
        return f"{value:.0f}"
    if size >= 99.95:
        return f"{value:.0f}"
    if size >= 9.995:
        return f"{value:.1f}"
    if size >= 0.9995:
        return f"{value:.2f}"
    return f"{value:.3g}"


def is_share(metric: Metric) -> bool:
    """Shares of items are shown in percent; any other ratio (a cosine, a relative error) is not a share."""
    return metric.summary is Summary.ITEMS


def quantity(value: float, metric: Metric) -> str:
    """`1.23 ms`, `45.0 MiB`, `42.5 %`, `0.9612`."""
    if is_share(metric):
        return f"{value * 100:.1f} %"
    if metric.kind is Kind.ACCURACY and metric.unit == "1":
        return f"{value:.4g}"
    divisor, unit = scale_of(value, metric.unit)
    return f"{digits(value / divisor)} {unit}".rstrip()


def interval(estimate: Estimate, metric: Metric) -> str:
    """`1.23 ms (1.20–1.26)`; exact values alone; else the reason why there is no interval."""
    text, ends = quantity(estimate.value, metric), span(estimate, metric)
    return f"{text} ({ends})" if ends else text


def span(estimate: Estimate, metric: Metric) -> str:
    """`1.20–1.26` in the unit of the value; the reason where there is none; empty for exact values."""
    if estimate.low is None or estimate.high is None:
        return _why_no_span(estimate)
    if is_share(metric):
        return f"{estimate.low * 100:.1f}–{estimate.high * 100:.1f}"
    divisor, _ = scale_of(estimate.value, metric.unit)
    return f"{digits(estimate.low / divisor)}–{digits(estimate.high / divisor)}"


def _why_no_span(estimate: Estimate) -> str:
    if estimate.note == "exact":
        return ""
    return "one value" if estimate.note == TOO_FEW and estimate.n == 1 else estimate.note


def ratio_span(estimate: Estimate, decimals: int = 2) -> str:
    """`1.80–1.91`; the reason where there is none; empty for exact values."""
    if estimate.low is None or estimate.high is None:
        return _why_no_span(estimate)
    return f"{times(estimate.low, decimals)}–{times(estimate.high, decimals)}"


def ratio(estimate: Estimate, decimals: int = 2) -> str:
    """`1.85× (1.80–1.91)`; a third decimal where a few per cent matter."""
    ends = ratio_span(estimate, decimals)
    return f"{times(estimate.value, decimals)}× ({ends})" if ends else f"{times(estimate.value, decimals)}×"


def times(value: float, decimals: int = 2) -> str:
    """A ratio: two or more decimals, fewer when large."""
    return f"{value:.0f}" if value >= 99.5 else f"{value:.1f}" if value >= 9.95 else f"{value:.{decimals}f}"


def change(comparison: Comparison) -> str:
    """Difference in percentage points (pp) for shares of items, ratio for everything else."""
    if comparison.relative:
        if comparison.change.value == 0:
            return comparison.change.note  # one side is zero
        return ratio(comparison.change, 3 if 0.9 < comparison.change.value < 1.11 else 2)
    found = comparison.change
    if not is_share(comparison.metric):
        divisor, unit = scale_of(found.value, comparison.metric.unit)
        return f"{found.value / divisor:+.3g} {unit}".rstrip().replace("-", "−")
    text = f"{found.value * 100:+.1f} pp"
    if found.low is not None and found.high is not None:
        text += f" ({found.low * 100:+.1f}…{found.high * 100:+.1f})"
    return text.replace("-", "−")


SYMBOLS = {
    Verdict.IMPROVED: "▲",
    Verdict.REGRESSED: "▼",
    Verdict.UNCHANGED: "=",
    Verdict.INCONCLUSIVE: "?",
    Verdict.INCOMPARABLE: "≠",
    Verdict.FAILED: "✗",
    Verdict.TRADE: "⇄",
}
"""Shape beside the word, never instead of it."""


def duration(seconds: float) -> str:
    """`8 s`, `3 min 20 s`, `2 h 5 min`."""
    total = round(seconds)
    if total < 60:
        return f"{total} s"
    if total < 3600:
        return f"{total // 60} min {total % 60} s"
    return f"{total // 3600} h {total % 3600 // 60} min"


def side(label: str) -> str:
    """What a side of a comparison is called; of a run's key the beginning is enough for a person."""
    return label[:8] if len(label) == 32 and set(label) <= set("0123456789abcdef") else label
