"""Numbers, moments and conditions as a person reads them, on top of bench.reports.format. Pure.

A column or an axis has one unit and one number of decimals, so that its numbers can be compared at
a glance; the terminal, which writes each value by itself, shows the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from math import floor, inf, isfinite, log10
from urllib.parse import urlsplit

from bench.metrics import Better, Kind, Metric
from bench.model import Conditions, Estimate
from bench.reports.format import is_share
from bench.reports.format import scale_of as unit_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How the numbers of one column are written: shown = value / divisor, with `decimals`."""

    divisor: float
    unit: str  # empty: a bare number
    decimals: int
    scientific: bool = False
    sign: bool = False

    def number(self, value: float) -> str:
        """The bare number; the unit stands in the column's head."""
        if not isfinite(value):
            return str(value)
        if self.scientific:
            return "0" if value == 0 else f"{value / self.divisor:.{self.decimals}e}"
        shown = round(value / self.divisor, self.decimals) + 0.0  # + 0.0: no negative zero
        text = f"{shown:+,.{self.decimals}f}" if self.sign and shown else f"{shown:,.{self.decimals}f}"
        return text.replace("-", "−")

    def span(self, estimate: Estimate) -> str:
        """The interval, or why there is none."""
        if estimate.low is None or estimate.high is None:
            return estimate.note
        between = " … " if self.sign else " – "
        return f"{self.number(estimate.low)}{between}{self.number(estimate.high)}"


def direction(metric: Metric) -> str:
    """`lower is better` or `higher is better`."""
    return "lower is better" if metric.better is Better.LOWER else "higher is better"


def scale_of(metric: Metric, estimates: Iterable[Estimate]) -> Scale:
    """One scale for all estimates of a metric: three digits of the smallest value (four of a bare figure such
    as a cosine, as in the terminal), at most five of the largest.
    """
    values = [abs(e.value) for e in estimates if e.value and isfinite(e.value)]
    if is_share(metric):
        return Scale(divisor=0.01, unit="%", decimals=1)
    divisor, unit = unit_of(max(values, default=0.0), metric.unit)
    if not values:
        return Scale(divisor=divisor, unit=unit, decimals=0)
    figures = 4 if metric.kind is Kind.ACCURACY and metric.unit == "1" else 3
    least, most = floor(log10(min(values) / divisor)), floor(log10(max(values) / divisor))
    if unit == "" and (least < -3 or most > 6):
        return Scale(divisor=divisor, unit=unit, decimals=2, scientific=True)
    decimals = min(figures - 1 - least, max(4 - most, 1 - least))
    whole = all(float(v).is_integer() for v in values) and divisor == 1.0
    return Scale(divisor=divisor, unit=unit, decimals=0 if whole else max(0, decimals))


def kind_order(metric: Metric) -> int:
    """Answers first, then memory and size, then the rest; times last: they are the other axis."""
    order = (Kind.ACCURACY, Kind.MEMORY, Kind.SIZE, Kind.ENERGY, Kind.COUNT, Kind.THROUGHPUT, Kind.TIME)
    return order.index(metric.kind)


def plural(count: int, noun: str) -> str:
    """`1 run`, `2 runs`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def ago(moment: datetime, now: datetime) -> str:
    """`just now`, `12 min ago`, `3 h ago`, `5 days ago`; a moment to come says so."""
    seconds = (now - moment) / timedelta(seconds=1)
    if seconds < -60:
        return "in the future (a clock is wrong)"
    if seconds < 60:
        return "just now"
    if seconds < 3600:
        return f"{seconds // 60:.0f} min ago"
    if seconds < 2 * 86400:
        return f"{seconds // 3600:.0f} h ago"
    return f"{seconds // 86400:.0f} days ago"


def clock(moment: datetime, zone: tzinfo) -> str:
    """Date and time of day in the reader's zone."""
    return f"{moment.astimezone(zone):%Y-%m-%d %H:%M}"


def short(key: str) -> str:
    """The beginning of a key or commit that is enough for a person."""
    return key[:8]


def database_name(url: str) -> str:
    """A database's address without its password."""
    if "://" not in url:
        return url
    parts = urlsplit(url)
    if parts.scheme.startswith("sqlite"):
        return url.partition(":///")[2] or "a database in memory"
    return f"{parts.path.strip('/') or parts.scheme} on {parts.hostname or 'this machine'}"


def busy_with(conditions: Conditions, cores: int | None) -> bool | None:
    """Whether other work disturbed the run enough to say so first; null: nothing was recorded.

    The limits (a twentieth of the CPU, a tenth of the time, half a load per core, one per cent of
    steal) only choose a word on a page; verdicts come from intervals.
    """
    signs = [
        value > limit
        for value, limit in (
            (conditions.foreign_cpu, 0.05),
            (conditions.cpu_pressure, 0.10),
            (conditions.steal, 0.01),
            (conditions.load_before, 0.5 * cores if cores else inf),
        )
        if value is not None
    ]
    return any(signs) if signs else None


def conditions_line(busy: bool | None, facts: Sequence[str]) -> str:
    """One sentence for above a chart: how far to trust the clock, then what was recorded."""
    lead = {
        True: "Busy machine", False: "Quiet machine", None: "What else the machine was doing was not recorded"
    }[busy]  # fmt: skip
    return f"{lead}: {'; '.join(facts)}." if facts else f"{lead}."
