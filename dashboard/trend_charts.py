"""The figure of series over commits or time. Pure: no store, no Streamlit."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import plotly.graph_objects as go

from bench.history import Point
from bench.metrics import Better
from bench.model import Estimate
from bench.reports.format import title
from bench.reports.history import Mark, is_worse
from bench.reports.night import effect_text
from dashboard.charts import HEIGHT, axis_range, axis_style, bars, ends, is_wide, layout, spoken
from dashboard.markup import chart_text
from dashboard.palette import Palette
from dashboard.tracks import Track, names_of
from dashboard.wording import Scale, direction, scale_of

SYMBOLS = ("circle", "square", "diamond", "cross", "x", "star")
GLYPHS = ("●", "■", "◆", "✚", "✖", "★")
MOST = len(SYMBOLS)
"""Series in one figure: more cannot be told apart."""

_TICKS = 4
_SMALL_FROM = 150
"""Points from which on their marks are small."""

Place = int | datetime


def places(tracks: Sequence[Track], *, by_time: bool) -> list[list[Place]]:
    """Where each point of each series stands: its time, or its place among the commits of all of them."""
    if by_time:
        return [[p.at for p in track.points] for track in tracks]
    order = {name: i for i, (name, _) in enumerate(commits(tracks))}
    return [[order[_commit(p)] for p in track.points] for track in tracks]


def commits(tracks: Sequence[Track]) -> list[tuple[str, Point]]:
    """Each commit (a run, where it has none) with its first point, oldest first."""
    first: dict[str, Point] = {}
    for point in sorted((p for t in tracks for p in t.points), key=lambda p: (p.at, p.measured_at, p.run_key)):
        first.setdefault(_commit(point), point)
    return list(first.items())


def wants_log(tracks: Sequence[Track]) -> bool:
    """Whether the values span so much that a linear axis would hide the small ones."""
    found = [end for t in tracks for p in t.points for end in ends(p.estimate)]
    return bool(found) and is_wide(min(found), max(found))


def can_log(tracks: Sequence[Track]) -> bool:
    """Whether every value and interval is positive."""
    return all(end > 0 for t in tracks for p in t.points for end in ends(p.estimate))


def trend_figure(
    tracks: Sequence[Track], colours: Palette, *, by_time: bool = False, log: bool = False, at: int | None = None
) -> go.Figure:
    """Points with their 95 % interval, a line a level, a triangle where a level begins.

    All series have one metric and together at least one point; at most MOST are told apart. A series' points
    are the trace of its name, its levels `levels of …`, its changes `changes of …`. A dotted line stands
    before the first series' point `at`.
    """
    metric = tracks[0].series.metric
    every = [p.estimate for t in tracks for p in t.points]
    scale = scale_of(metric, every)
    names = names_of(t.series for t in tracks)
    small = len(every) > _SMALL_FROM
    figure = go.Figure()
    for k, (track, xs) in enumerate(zip(tracks, places(tracks, by_time=by_time), strict=True)):
        colour = colours.series[k % MOST]
        name = names[track.series.fingerprint] if len(tracks) > 1 else track.series.variant
        figure.add_trace(_points(track, xs, scale, name, (SYMBOLS[k % MOST], colour, 5 if small else 8)))
        figure.add_trace(_levels(track, xs, scale, name, colour))
        if track.marks:
            figure.add_trace(_changes(track, xs, scale, name, colours))
    low = min(ends(e)[0] for e in every) / scale.divisor
    high = max(ends(e)[1] for e in every) / scale.divisor
    log = log and low > 0
    arrow = "↓" if metric.better is Better.LOWER else "↑"
    text = f"{title(metric)}{f', {scale.unit}' if scale.unit else ''}  ({direction(metric)} {arrow})"
    figure.update_layout(**layout(colours) | {"showlegend": False, "height": HEIGHT})
    limits = axis_range(low, high, log=log, least=0.10)
    figure.update_yaxes(**axis_style(colours, log, limits, chart_text(text)))
    figure.update_xaxes(**_across(tracks, colours, by_time=by_time))
    if at is not None and not by_time:
        line = places(tracks, by_time=False)[0][at] - 0.5
        figure.add_vline(x=line, line={"dash": "dot", "width": 1.5, "color": colours.quiet})
    return figure


def _points(track: Track, xs: Sequence[Place], scale: Scale, name: str, look: tuple[str, str, int]) -> go.Scatter:
    symbol, colour, size = look
    estimates = [p.estimate for p in track.points]
    known = any(e.low is not None for e in estimates)
    return go.Scatter(
        name=chart_text(name), mode="markers", x=list(xs), y=[e.value / scale.divisor for e in estimates],
        error_y=bars(estimates, scale, colour) | {"width": 0, "thickness": 1} if known else None,
        marker={"symbol": symbol, "size": size, "color": colour, "opacity": 0.75},
        customdata=[
            [chart_text(name), chart_text(spoken(p.estimate, scale)), chart_text(when(p)), p.run_key]
            for p in track.points
        ],
        hovertemplate="<b>%{customdata[0]}</b><br>%{customdata[1]}<br>%{customdata[2]}<extra></extra>",
    )  # fmt: skip


def _levels(track: Track, xs: Sequence[Place], scale: Scale, name: str, colour: str) -> go.Scatter:
    """One line a level, with gaps between: what lies between two levels was never measured."""
    x: list[Place | None] = []
    y: list[float | None] = []
    for level in track.levels():
        value = level.value / scale.divisor
        x += [xs[level.first], xs[level.end - 1], None]
        y += [value, value, None]
    return go.Scatter(
        name=chart_text(f"levels of {name}"), mode="lines", x=x, y=y, line={"color": colour, "width": 2.5},
        hoverinfo="skip", connectgaps=False,
    )  # fmt: skip


def _changes(track: Track, xs: Sequence[Place], scale: Scale, name: str, colours: Palette) -> go.Scatter:
    levels = {level.first: level.value / scale.divisor for level in track.levels()}
    better = track.series.metric.better
    worse = [is_worse(m, better) for m in track.marks]
    return go.Scatter(
        name=chart_text(f"changes of {name}"), mode="markers",
        x=[xs[m.index] for m in track.marks], y=[levels[m.index] for m in track.marks],
        marker={
            "symbol": ["triangle-down" if bad else "triangle-up" for bad in worse], "size": 15,
            "color": [colours.bad if bad else colours.good for bad in worse],
            "line": {"width": 1.5, "color": colours.ground},
        },
        customdata=[_told(track, m, scale, name, bad=bad) for m, bad in zip(track.marks, worse, strict=True)],
        hovertemplate="<b>%{customdata[0]}</b><br>%{customdata[1]}<br>%{customdata[2]}<br>%{customdata[3]}"
        "<extra></extra>",
    )  # fmt: skip


def _told(track: Track, mark: Mark, scale: Scale, name: str, *, bad: bool) -> list[str]:
    levels = f"{_bare(mark.before, scale)} → {_bare(mark.after, scale)}"
    effect = (
        f"{'▼ worse' if bad else '▲ better'} {effect_text(mark.effect, track.series.metric, relative=mark.relative)}"
    )
    return [chart_text(text) for text in (name, effect, levels, when(track.points[mark.index]))]


def _bare(estimate: Estimate, scale: Scale) -> str:
    return f"{scale.number(estimate.value)} {scale.unit}".rstrip()


def when(point: Point) -> str:
    """`a1b2c3d4e, 2027-01-31`: commit and day (UTC), or the minute where there is no commit."""
    return f"{point.commit[:9]}, {point.at:%Y-%m-%d}" if point.commit else f"{point.at:%Y-%m-%d %H:%M} UTC"


def _across(tracks: Sequence[Track], colours: Palette, *, by_time: bool) -> dict[str, object]:
    style = axis_style(colours, False, (0, 1), "date (UTC)" if by_time else "commit, oldest first")
    del style["range"]
    style |= {"showgrid": False}
    if by_time:
        return style | {"type": "date", "nticks": _TICKS + 2, "ticklabelstandoff": 8}
    shown = commits(tracks)
    last = len(shown) - 1
    chosen = sorted({round(i * last / (_TICKS - 1)) for i in range(_TICKS)})
    texts = [f"{(shown[i][1].commit or shown[i][0])[:7]}<br>{shown[i][1].at:%Y-%m-%d}" for i in chosen]
    edge = 0.5 + 0.03 * last
    return style | {
        "type": "linear", "tickmode": "array", "tickvals": chosen, "ticktext": [_tick(t) for t in texts],
        "tickangle": 0, "ticklabelstandoff": 8, "range": [-edge, last + edge],
    }  # fmt: skip


def _tick(text: str) -> str:
    commit, _, day = text.rpartition("<br>")
    return f"{chart_text(commit)}<br>{day}"


def _commit(point: Point) -> str:
    return point.commit or point.run_key
