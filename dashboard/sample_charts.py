"""Raw samples of one variant, launch by launch. Pure: no store, no Streamlit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from bench.compare import estimate, launch_values
from bench.metrics import Better, Metric, Summary
from bench.model import ArmResult, Estimate, ExperimentResult, Measurement
from bench.reports.format import title
from dashboard.charts import axis_range, axis_style, ends, is_wide, layout
from dashboard.markup import chart_text
from dashboard.palette import Palette
from dashboard.wording import direction, scale_of

MOST = 3000
"""Samples that are drawn; of more every second, third, … of each launch."""

_WIDE = 0.7
"""Share of a launch's place that its samples take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """What a figure shows of one measurement; values are per call, in the metric's unit."""

    metric: Metric
    launches: tuple[tuple[float, ...], ...]  # by launch, in the order of measuring; thinned where there are many
    quartiles: tuple[float, ...]  # of each launch that has samples: what stands for it
    whole: Estimate
    every: int  # one of so many samples is there
    count: int  # samples before thinning


def has_launches(measurement: Measurement) -> bool:
    """Whether it was sampled in launches: exact values and items are read once."""
    return measurement.metric.summary not in (Summary.EXACT, Summary.ITEMS) and any(measurement.launches)


def samples_of(measurement: Measurement, most: int = MOST) -> Samples:
    """The samples of a measurement that `has_launches`."""
    count = sum(map(len, measurement.launches))
    every = max(1, -(-count // most))
    return Samples(
        metric=measurement.metric, whole=estimate(measurement), every=every, count=count,
        launches=tuple(tuple(v / measurement.loops for v in row[::every]) for row in measurement.launches),
        quartiles=tuple(launch_values(measurement)),
    )  # fmt: skip


def names_of(arms: Sequence[tuple[ExperimentResult, ArmResult]]) -> list[str]:
    """What to choose a variant by; with its place where a name occurs twice (a confirmation measures again)."""
    names = [result.arm.variant.name for _, result in arms]
    labels = {result.arm.target.label for _, result in arms}
    if len(labels) > 1:
        names = [f"{name} @ {result.arm.target.label}" for name, (_, result) in zip(names, arms, strict=True)]
    seen: dict[str, int] = {}
    unique = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        unique.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return unique


def samples_figure(found: Samples, colours: Palette) -> go.Figure:
    """One place a launch: its samples from left to right as they were measured, and the value that stands for it.

    The band is the variant's 95 % interval over launches, the line its value.
    """
    scale = scale_of(found.metric, [found.whole])
    xs, ys, told = [], [], []
    for launch, row in enumerate(found.launches):
        for place, value in enumerate(row):
            xs.append(launch + 1 + _WIDE * ((place + 0.5) / len(row) - 0.5))
            ys.append(value / scale.divisor)
            told.append([f"launch {launch + 1}", f"sample {place * found.every + 1}",
                         f"{scale.number(value)} {scale.unit}".strip()])  # fmt: skip
    figure = go.Figure()
    figure.add_trace(
        go.Scatter(
            name="samples", mode="markers", x=xs, y=ys, customdata=told,
            marker={"symbol": "circle", "size": 5 if len(xs) < 600 else 4, "color": colours.accent, "opacity": 0.45},
            hovertemplate="%{customdata[0]}, %{customdata[1]}<br>%{customdata[2]}<extra></extra>",
        )
    )  # fmt: skip
    full = [launch + 1 for launch, row in enumerate(found.launches) if row]
    figure.add_trace(
        go.Scatter(
            name="launches", mode="markers", x=full, y=[v / scale.divisor for v in found.quartiles],
            customdata=[[f"launch {k}", "its lower quartile", f"{scale.number(v)} {scale.unit}".strip()]
                        for k, v in zip(full, found.quartiles, strict=True)],
            marker={"symbol": "diamond", "size": 10, "color": colours.baseline,
                    "line": {"width": 1.5, "color": colours.ground}},
            hovertemplate="%{customdata[0]}, %{customdata[1]}<br>%{customdata[2]}<extra></extra>",
        )
    )  # fmt: skip
    low, high = ends(found.whole)
    if found.whole.low is not None:
        figure.add_hrect(
            y0=low / scale.divisor, y1=high / scale.divisor, fillcolor=colours.quiet, opacity=0.18, line_width=0
        )
    figure.add_hline(y=found.whole.value / scale.divisor, line={"width": 1.5, "color": colours.quiet}, layer="below")
    log = is_wide(min(ys), max(ys))
    limits = axis_range(min(ys), max(ys), log=log, least=0.04)
    arrow = "↓" if found.metric.better is Better.LOWER else "↑"
    text = f"{title(found.metric)}{f', {scale.unit}' if scale.unit else ''}  ({direction(found.metric)} {arrow})"
    figure.update_layout(**layout(colours) | {"showlegend": False, "margin": {"l": 8, "r": 8, "t": 8, "b": 8}})
    figure.update_yaxes(**axis_style(colours, log, limits, chart_text(text)))
    last = len(found.launches)
    across = axis_style(colours, False, (0.4, last + 0.6), "launch, a process of its own each")
    figure.update_xaxes(**across | {"showgrid": False, "dtick": max(1, -(-last // 12)), "tick0": 1})
    return figure


def samples_legend(found: Samples, colours: Palette) -> list[tuple[str, str, str]]:
    """(mark, colour, words) for `dashboard.markup.legend`."""
    band = [("■", colours.quiet, "95 % interval over launches")] if found.whole.low is not None else []
    return [
        ("●", colours.accent, "sample, in the order of measuring"),
        ("◆", colours.baseline, "lower quartile of a launch: what stands for it"), *band,
    ]  # fmt: skip
