"""Ratios with their intervals, a line a variant, on a logarithmic axis. Pure: no store, no Streamlit."""

from __future__ import annotations

from collections.abc import Sequence
from math import log10

import plotly.graph_objects as go

from bench.compare import RunComparison
from bench.gate import NOT_JUDGED
from bench.metrics import Better
from bench.model import Comparison, Verdict
from bench.reports.format import SYMBOLS, change, quantity, title
from dashboard.charts import axis_style, ends, layout
from dashboard.compare_tables import has_ratio, short_names
from dashboard.markup import chart_text
from dashboard.palette import Palette

PITCH = 46
"""Pixels of a line: the name above, the interval below."""

MOST = 40
"""Lines in one figure; the table has all."""

SHAPES = {
    Verdict.REGRESSED: "triangle-down", Verdict.IMPROVED: "triangle-up", Verdict.UNCHANGED: "square",
    Verdict.INCONCLUSIVE: "circle-open", Verdict.INCOMPARABLE: "x", Verdict.TRADE: "diamond", Verdict.FAILED: "x",
}  # fmt: skip

_TICKS = (
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.33, 0.5, 0.67, 0.8, 0.9, 0.95, 0.98, 0.99, 1.0, 1.01, 1.02, 1.05,
    1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0,
)  # fmt: skip
_NEAREST = 0.1
"""Ticks stand at least this share of the axis apart: on a phone a label is so wide."""


def colour_of(verdict: Verdict, colours: Palette) -> str:
    """Repeats what the shape says."""
    return {
        Verdict.REGRESSED: colours.bad, Verdict.FAILED: colours.bad, Verdict.IMPROVED: colours.good,
        Verdict.TRADE: colours.warn, Verdict.INCOMPARABLE: colours.warn, Verdict.UNCHANGED: colours.text,
        Verdict.INCONCLUSIVE: colours.quiet,
    }[verdict]  # fmt: skip


def lines_of(comparison: RunComparison, metric: str) -> list[tuple[str, Comparison]]:
    """(variant, what it says of the metric) of all that have a ratio, in the order of the comparison."""
    return [
        (arm.name, found) for arm in comparison.arms for found in arm.comparisons
        if found.metric.name == metric and has_ratio(found)
    ]  # fmt: skip


def forest_legend(found: Sequence[tuple[str, Comparison]], colours: Palette) -> list[tuple[str, str, str]]:
    """(mark, colour, word) of every verdict in the figure; for `dashboard.markup.legend`."""
    glyphs = {Verdict.UNCHANGED: "■", Verdict.INCONCLUSIVE: "○", Verdict.INCOMPARABLE: "✕", Verdict.TRADE: "◆"}
    present = dict.fromkeys(c.verdict for _, c in found)
    words = {Verdict.INCONCLUSIVE: "inconclusive, or shown and not judged"} if any(
        c.reason == NOT_JUDGED for _, c in found
    ) else {}  # fmt: skip
    return [(glyphs.get(v, SYMBOLS[v]), colour_of(v, colours), words.get(v, v.value)) for v in present]


def forest_figure(found: Sequence[tuple[str, Comparison]], colours: Palette) -> go.Figure:
    """One line a variant, the first on top: head / base with its 95 % interval, and 1 where nothing changed.

    At least one line; all are of one metric. A verdict's variants are a trace of its name.
    """
    names = short_names([name for name, _ in found])
    last = len(found) - 1
    figure = go.Figure()
    for verdict in dict.fromkeys(c.verdict for _, c in found):
        chosen = [(last - k, name, c) for k, (name, c) in enumerate(found) if c.verdict is verdict]
        figure.add_trace(_trace(verdict, chosen, colours))
    for k, (name, (_, c)) in enumerate(zip(names, found, strict=True)):
        near = {
            "y": last - k,
            "yshift": 17,
            "xref": "paper",
            "showarrow": False,
            "yanchor": "middle",
            "bgcolor": colours.ground,
            "borderpad": 1,
        }
        figure.add_annotation(
            **near, x=0, xanchor="left", text=chart_text(name), font={"color": colours.text, "size": 14}
        )
        said = f"{SYMBOLS[c.verdict]} {change(c).partition(' (')[0]}"
        figure.add_annotation(
            **near, x=1, xanchor="right", text=said, font={"color": colour_of(c.verdict, colours), "size": 14}
        )
    low, high = _limits([c for _, c in found])
    metric = found[0][1].metric
    way = "← better · worse →" if metric.better is Better.LOWER else "← worse · better →"
    figure.add_vline(x=1, line={"width": 1.5, "color": colours.quiet}, layer="below")
    figure.update_layout(**layout(colours) | {"showlegend": False, "height": PITCH * len(found) + 76,
                                              "margin": {"l": 8, "r": 8, "t": 8, "b": 8}})  # fmt: skip
    style = axis_style(colours, False, (low, high), chart_text(f"{title(metric)}, head / base  ({way})"))
    shown = _ticks(low, high)
    figure.update_xaxes(**style | {
        "type": "log", "tickmode": "array", "tickvals": shown, "ticktext": [f"{v:g}×" for v in shown],
        "ticklabelstandoff": 6,
    })  # fmt: skip
    figure.update_yaxes(visible=False, range=[-0.45, last + 0.75], fixedrange=True)
    return figure


def _trace(verdict: Verdict, chosen: Sequence[tuple[int, str, Comparison]], colours: Palette) -> go.Scatter:
    colour = colour_of(verdict, colours)
    values = [c.change.value for _, _, c in chosen]
    return go.Scatter(
        name=verdict.value, mode="markers", x=values, y=[y for y, _, _ in chosen], cliponaxis=False,
        error_x={
            "type": "data", "symmetric": False, "thickness": 2, "width": 4, "color": colour,
            "array": [ends(c.change)[1] - c.change.value for _, _, c in chosen],
            "arrayminus": [c.change.value - ends(c.change)[0] for _, _, c in chosen],
        },
        marker={"symbol": SHAPES[verdict], "size": 12, "color": colour, "line": {"width": 2, "color": colour}},
        customdata=[
            [
                chart_text(name),
                chart_text(f"{SYMBOLS[verdict]} {verdict.value} {change(c)}"),
                chart_text(f"{quantity(c.base.value, c.metric)} → {quantity(c.head.value, c.metric)}"),
                chart_text(c.reason),
            ]
            for _, name, c in chosen
        ],
        hovertemplate="<b>%{customdata[0]}</b><br>%{customdata[1]}<br>%{customdata[2]}<br>%{customdata[3]}"
        "<extra></extra>",
    )  # fmt: skip


def _limits(found: Sequence[Comparison]) -> tuple[float, float]:
    """Powers of ten that hold every interval and 1, at least 5 % to each side."""
    spans = [ends(c.change) for c in found]
    low = min(0.95, *(low if low > 0 else c.change.value for (low, _), c in zip(spans, found, strict=True)))
    high = max(1.05, *(high for _, high in spans))
    room = 0.06 * log10(high / low)
    return log10(low) - room, log10(high) + room


def _ticks(low: float, high: float) -> list[float]:
    """1 and the round ratios around it that are far enough from one another."""
    chosen = [1.0]
    inside = [v for v in _TICKS if low <= log10(v) <= high]
    for value in sorted(inside, key=lambda v: (v not in (0.1, 0.5, 2.0, 10.0, 100.0), abs(log10(v)))):
        if all(abs(log10(value / other)) >= _NEAREST * (high - low) for other in chosen):
            chosen.append(value)
    return sorted(chosen)
