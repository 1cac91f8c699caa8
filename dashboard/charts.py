"""Figures out of variant summaries. Pure: no store, no Streamlit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

import plotly.graph_objects as go

from bench.metrics import TIME, Better, Kind, Metric
from bench.model import Estimate, Verdict
from bench.reports.format import title
from bench.tradeoffs import VariantSummary
from dashboard.markup import chart_text
from dashboard.palette import Palette
from dashboard.wording import Scale, direction, kind_order, scale_of

FONT = '"Source Sans", "Source Sans Pro", sans-serif'
HEIGHT = 440
"""Height of a figure in pixels; `_NOMINAL` is the width that labels are laid out for."""
_NOMINAL = 960
_PHONE = 300
_LOG_FROM = 8.0
"""An axis whose values span more than this factor is logarithmic."""

_DECADE = 0.9
"""Powers of ten from which on 1, 2 and 5 are ticks enough; from `_MANY_DECADES` on only 1."""
_MANY_DECADES = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One variant in the plane of two metrics."""

    label: str
    baseline: bool
    x: Estimate
    y: Estimate
    beaten_by: str  # label of a variant that is better in both beyond the intervals, or empty


def labels(variants: Sequence[VariantSummary]) -> dict[str, str]:
    """Label by arm key: the axis values that differ inside the experiment, else the whole name."""
    params = [v.arm.variant.params for v in variants]
    differing = [axis for axis in (params[0] if params else {}) if len({repr(p.get(axis)) for p in params}) > 1]
    found = {}
    for variant in variants:
        values = [str(variant.arm.variant.params.get(axis, "")) for axis in differing]
        found[variant.arm.key] = ", ".join(values) or variant.label
    targets = {v.arm.target.label for v in variants}
    if len(targets) > 1:
        return {v.arm.key: f"{found[v.arm.key]} @ {v.arm.target.label}" for v in variants}
    return found


def metrics_of(variants: Sequence[VariantSummary]) -> dict[str, Metric]:
    """All metrics that some variant has, by name, in the order of measuring."""
    found: dict[str, Metric] = {}
    for variant in variants:
        for name, metric in variant.metrics.items():
            found.setdefault(name, metric)
    return found


def y_choices(variants: Sequence[VariantSummary]) -> list[str]:
    """Metrics worth plotting against latency: answers first, among them those that got worse.

    Throughput is latency again.
    """
    metrics = {n: m for n, m in metrics_of(variants).items() if n not in (TIME.name, "throughput")}
    lost = {
        name for v in variants for name, c in v.comparisons.items()
        if c.verdict is Verdict.REGRESSED and c.metric.kind is Kind.ACCURACY
    }  # fmt: skip
    return sorted(metrics, key=lambda name: (kind_order(metrics[name]), name not in lost))


def points(variants: Sequence[VariantSummary], y: str) -> list[Point]:
    """The variants that have both latency and `y`, with who is beaten beyond the intervals."""
    names = labels(variants)
    metrics = metrics_of(variants)
    having = [v for v in variants if TIME.name in v.estimates and y in v.estimates]
    found = []
    for own in having:
        beaten = next((names[o.arm.key] for o in having if o is not own and _beats(o, own, metrics, y)), "")
        found.append(
            Point(
                label=names[own.arm.key], baseline=own.baseline, x=own.estimates[TIME.name], y=own.estimates[y],
                beaten_by=beaten,
            )
        )  # fmt: skip
    return found


def _beats(one: VariantSummary, other: VariantSummary, metrics: Mapping[str, Metric], y: str) -> bool:
    """Better beyond the intervals in both, or in one while the other value is exactly equal."""
    better = [_better(one.estimates[n], other.estimates[n], metrics[n].better) for n in (TIME.name, y)]
    equal = [one.estimates[n] == other.estimates[n] for n in (TIME.name, y)]
    return any(better) and all(b or e for b, e in zip(better, equal, strict=True))


def _better(one: Estimate, other: Estimate, better: Better) -> bool:
    low, high = ends(one)
    other_low, other_high = ends(other)
    return high < other_low if better is Better.LOWER else low > other_high


def ends(estimate: Estimate) -> tuple[float, float]:
    """Ends of the interval; the value twice where there is none."""
    low = estimate.value if estimate.low is None else estimate.low
    high = estimate.value if estimate.high is None else estimate.high
    return low, high


def tradeoff_figure(variants: Sequence[VariantSummary], y: str, colours: Palette) -> go.Figure:
    """Latency against the metric named `y`, with 95 % intervals on both axes.

    The baseline is a diamond and carries the word; a variant that another one beats in both metrics
    beyond the intervals is hollow. Values are in the unit that the axis names.
    """
    metric = metrics_of(variants)[y]
    found = points(variants, y)
    x_scale, y_scale = scale_of(TIME, [p.x for p in found]), scale_of(metric, [p.y for p in found])
    x_log, x_range = _axis([p.x for p in found], x_scale, positive=True)
    y_log, y_range = _axis([p.y for p in found], y_scale, positive=False)
    figure = go.Figure()
    sides = _sides(found, x_scale, y_scale, (x_log, x_range), (y_log, y_range))
    for name, symbol, colour, keep in (
        ("baseline", "diamond", colours.baseline, lambda p: p.baseline),
        ("variant", "circle", colours.accent, lambda p: not p.baseline and not p.beaten_by),
        (
            "beaten in both beyond the intervals",
            "circle-open",
            colours.accent,
            lambda p: not p.baseline and p.beaten_by,
        ),
    ):
        chosen = [(p, side) for p, side in zip(found, sides, strict=True) if keep(p)]
        if chosen:
            figure.add_trace(_trace(name, symbol, colour, chosen, (x_scale, y_scale), metric, colours))
    figure.update_layout(**layout(colours))
    figure.update_xaxes(**axis_style(colours, x_log, x_range, _title("latency per call", x_scale.unit, "←", TIME)))
    arrow = "↓" if metric.better is Better.LOWER else "↑"
    figure.update_yaxes(**axis_style(colours, y_log, y_range, _title(title(metric), y_scale.unit, arrow, metric)))
    return figure


def _title(name: str, unit: str, arrow: str, metric: Metric) -> str:
    return chart_text(f"{name}{f', {unit}' if unit else ''}  ({direction(metric)} {arrow})")


def _trace(
    name: str, symbol: str, colour: str, chosen: Sequence[tuple[Point, str]], scales: tuple[Scale, Scale],
    metric: Metric, colours: Palette,
) -> go.Scatter:  # fmt: skip
    x_scale, y_scale = scales
    shown = [p for p, _ in chosen]
    return go.Scatter(
        name=name, mode="markers+text",
        x=[p.x.value / x_scale.divisor for p in shown], y=[p.y.value / y_scale.divisor for p in shown],
        error_x=bars([p.x for p in shown], x_scale, colour), error_y=bars([p.y for p in shown], y_scale, colour),
        marker={
            "symbol": symbol.removesuffix("-open"), "size": 13 if symbol == "diamond" else 11,
            "color": colours.ground if symbol.endswith("-open") else colour,
            "line": {"width": 2 if symbol.endswith("-open") else 0, "color": colour},
        },
        text=[chart_text(f"{p.label} (baseline)" if p.baseline else p.label) for p in shown],
        textposition=[side for _, side in chosen],
        textfont={"color": colours.text, "size": 14},
        cliponaxis=False,
        customdata=[
            [
                chart_text(p.label),
                chart_text(spoken(p.x, x_scale)),
                chart_text(spoken(p.y, y_scale)),
                chart_text(f"beaten in both by {p.beaten_by}" if p.beaten_by else ""),
            ]
            for p in shown
        ],
        hovertemplate="<b>%{customdata[0]}</b><br>latency %{customdata[1]}<br>"
        + chart_text(title(metric)).replace("%", "%\u200b")
        + " %{customdata[2]}<br>%{customdata[3]}<extra></extra>",
    )  # fmt: skip


def spoken(estimate: Estimate, scale: Scale) -> str:
    """Value, unit and interval, for what a pointer or a screen reader shows."""
    unit = f" {scale.unit}" if scale.unit else ""
    span = scale.span(estimate)
    return f"{scale.number(estimate.value)}{unit}" + (f" ({span})" if span else "")


def bars(estimates: Sequence[Estimate], scale: Scale, colour: str) -> dict[str, object]:
    """Error bars of the intervals; none where there is no interval."""
    return {
        "type": "data", "symmetric": False, "thickness": 1.5, "width": 5, "color": colour,
        "array": [(ends(e)[1] - e.value) / scale.divisor for e in estimates],
        "arrayminus": [(e.value - ends(e)[0]) / scale.divisor for e in estimates],
    }  # fmt: skip


def _axis(estimates: Sequence[Estimate], scale: Scale, *, positive: bool) -> tuple[bool, tuple[float, float]]:
    """Whether the axis is logarithmic, and its range in what it shows (a power of ten if logarithmic).

    At least 4 % of the value is shown (latency 10 %), so that noise does not fill the picture.
    """
    low = min(ends(e)[0] for e in estimates) / scale.divisor
    high = max(ends(e)[1] for e in estimates) / scale.divisor
    log = is_wide(low, high)
    return log, axis_range(low, high, log=log, least=0.10 if positive else 0.04)


def is_wide(low: float, high: float) -> bool:
    """Whether values from `low` to `high` need a logarithmic axis."""
    return low > 0 and high / low > _LOG_FROM


def axis_range(low: float, high: float, *, log: bool, least: float) -> tuple[float, float]:
    """Ends of an axis that shows `low` to `high` and at least the share `least` of the value, with some room."""
    if log:
        room = max(0.12 * log10(high / low), 0.02)
        return log10(low) - room, log10(high) + room
    shown = least * max(abs(low), abs(high)) or 1.0
    room = max(0.12 * (high - low), (shown - (high - low)) / 2)
    floor = low - room
    if low >= 0 > floor:  # what cannot be negative shows no negative ticks
        floor = -0.12 * (high + room)
    return floor, high + room


def _sides(
    found: Sequence[Point], x_scale: Scale, y_scale: Scale, x_axis: tuple[bool, tuple[float, float]],
    y_axis: tuple[bool, tuple[float, float]],
) -> list[str]:  # fmt: skip
    """Where each label goes: the first of four corners that runs into nothing."""

    def place(estimate: Estimate, scale: Scale, axis: tuple[bool, tuple[float, float]], length: float) -> float:
        value = estimate.value / scale.divisor
        value = log10(value) if axis[0] else value
        return (value - axis[1][0]) / (axis[1][1] - axis[1][0]) * length

    spots = [(place(p.x, x_scale, x_axis, _NOMINAL), place(p.y, y_scale, y_axis, HEIGHT - 90)) for p in found]
    taken = [(x - 9, y - 9, x + 9, y + 9) for x, y in spots]
    sides = []
    for point, (x, y) in zip(found, spots, strict=True):
        width = 7.5 * len(point.label + (" (baseline)" if point.baseline else "")) + 8
        boxes = {
            "top right": (x, y + 9, x + width, y + 27), "top left": (x - width, y + 9, x, y + 27),
            "bottom right": (x, y - 27, x + width, y - 9), "bottom left": (x - width, y - 27, x, y - 9),
        }  # fmt: skip
        side = min(
            boxes,
            key=lambda s: sum(_overlap(boxes[s], t) for t in taken) + _outside(boxes[s], from_left=s.endswith("right")),
        )
        taken.append(boxes[side])
        sides.append(side)
    return sides


def _overlap(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    wide = min(one[2], other[2]) - max(one[0], other[0])
    high = min(one[3], other[3]) - max(one[1], other[1])
    return wide * high if wide > 0 and high > 0 else 0.0


def _outside(box: tuple[float, ...], *, from_left: bool) -> float:
    """How far a label sticks out, and a little for sticking out on a phone, where points draw together."""
    narrow = _PHONE / _NOMINAL
    anchor = box[0] if from_left else box[2]
    width = box[2] - box[0]
    left, right = (
        (anchor * narrow, anchor * narrow + width) if from_left else (anchor * narrow - width, anchor * narrow)
    )
    return 20.0 * _beyond(box[0], box[2], _NOMINAL) + _beyond(left, right, _PHONE)


def _beyond(left: float, right: float, length: float) -> float:
    return max(0.0, -left) + max(0.0, right - length)


def layout(colours: Palette) -> dict[str, object]:
    """What all figures share."""
    return {
        "height": HEIGHT, "margin": {"l": 8, "r": 16, "t": 36, "b": 8},
        "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": FONT, "size": 14, "color": colours.text},
        "hoverlabel": {"bgcolor": colours.ground, "bordercolor": colours.quiet, "align": "left",
                       "font": {"family": FONT, "size": 14, "color": colours.text}},
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "font": {"color": colours.quiet},
                   "itemclick": False, "itemdoubleclick": False},
        "showlegend": True, "hovermode": "closest", "dragmode": False,
    }  # fmt: skip


def axis_style(colours: Palette, log: bool, limits: tuple[float, float], title: str) -> dict[str, object]:
    """What all axes share; `limits` are powers of ten where it is logarithmic."""
    style: dict[str, object] = {
        "title": {"text": title, "font": {"color": colours.quiet, "size": 14}, "standoff": 12}, "range": list(limits),
        "gridcolor": colours.line, "zeroline": False, "showline": False, "automargin": True,
        "tickfont": {"color": colours.quiet}, "ticks": "", "fixedrange": True,
    }  # fmt: skip
    if log:
        style |= {"type": "log"} | (_log_ticks(limits) if limits[1] - limits[0] > _DECADE else {})
    return style


def _log_ticks(limits: tuple[float, float]) -> dict[str, object]:
    """1, 2 and 5 of each power of ten, written out: Plotly itself leaves the power of 2 and 5 to be guessed."""
    steps = (1,) if limits[1] - limits[0] > _MANY_DECADES else (1, 2, 5)
    values = [n * 10.0**k for k in range(floor(limits[0]), ceil(limits[1]) + 1) for n in steps]
    shown = [v for v in values if limits[0] <= log10(v) <= limits[1]]
    return {"tickmode": "array", "tickvals": shown, "ticktext": [f"{v:,.10g}" for v in shown]}
