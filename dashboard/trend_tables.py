"""Words and rows of the page of trends. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from bench.metrics import Metric
from bench.reports.format import interval, title
from bench.reports.history import is_worse
from bench.reports.night import effect_text
from dashboard.markup import Cell, Column, Row, link
from dashboard.palette import Palette
from dashboard.tracks import Track, names_of
from dashboard.trend_charts import GLYPHS, MOST, when
from dashboard.wording import plural, short


def finding(tracks: Sequence[Track]) -> str:
    """How often what is shown changed, and how the newest change went."""
    points = plural(sum(len(t.points) for t in tracks), "point")
    count = sum(len(t.marks) for t in tracks)
    if not count:
        return f"No change in {points}"
    track, mark = max(((t, m) for t in tracks for m in t.marks), key=lambda pair: pair[0].points[pair[1].index].at)
    metric = track.series.metric
    word = "worse" if is_worse(mark, metric.better) else "better"
    size = effect_text(mark.effect, metric, relative=mark.relative)
    return f"{plural(count, 'change')} in {points}; the last at {when(track.points[mark.index])}: {word}, {size}"


def last_values(tracks: Sequence[Track]) -> list[str]:
    """`engine=e1: 1.02 ms (1.01–1.03)` of each, at its newest point."""
    names = names_of(t.series for t in tracks)
    return [
        f"{names[t.series.fingerprint]}: {interval(t.points[-1].estimate, t.series.metric)} at {when(t.points[-1])}"
        for t in tracks if t.points
    ]  # fmt: skip


def legend_of(tracks: Sequence[Track], colours: Palette) -> list[tuple[str, str, str]]:
    """(mark, colour, name) of everything in the figure."""
    names = names_of(t.series for t in tracks)
    items = [
        (GLYPHS[k % MOST], colours.series[k % MOST],
         names[t.series.fingerprint] if len(tracks) > 1 else t.series.variant)
        for k, t in enumerate(tracks)
    ]  # fmt: skip
    items.append(("━", colours.quiet, "level: the median between changes"))
    ways = {is_worse(m, t.series.metric.better) for t in tracks for m in t.marks}
    items += [("▼", colours.bad, "became worse")] if True in ways else []
    items += [("▲", colours.good, "became better")] if False in ways else []
    return items


def without_interval(tracks: Sequence[Track]) -> str:
    """Why some points have no interval; empty where all have one."""
    bare = [p.estimate for t in tracks for p in t.points if p.estimate.low is None or p.estimate.high is None]
    count = sum(len(t.points) for t in tracks)
    if not bare:
        return ""
    reasons = ", ".join(dict.fromkeys(e.note for e in bare if e.note)) or "no reason was recorded"
    if len(bare) == count:
        return f"No point has an interval: {reasons}."
    verb = "has" if len(bare) == 1 else "have"
    return f"{len(bare):,} of {plural(count, 'point')} {verb} no interval: {reasons}."


def marks_table(tracks: Sequence[Track]) -> tuple[list[Column], list[Row]]:
    """One line a change, the newest first; it leads to its regression where it has one."""
    names = names_of(t.series for t in tracks)
    columns = [
        Column(title="series"), Column(title="effect", number=True, help="95 % interval below"),
        Column(title="before → after"), Column(title="first changed"), Column(title="regression"),
    ]  # fmt: skip
    every = [(t, m) for t in tracks for m in t.marks]
    every.sort(key=lambda pair: pair[0].points[pair[1].index].at, reverse=True)
    rows = []
    for track, mark in every:
        metric: Metric = track.series.metric
        bad = is_worse(mark, metric.better)
        size, _, rest = effect_text(mark.effect, metric, relative=mark.relative).partition(" (")
        known = mark.regression
        rows.append(
            Row(
                cells=(
                    Cell(text=names[track.series.fingerprint], sub=title(metric)),
                    Cell(text=f"{'▼ worse' if bad else '▲ better'}\u00a0{size}", sub=rest.removesuffix(")"),
                         tone="bad" if bad else "good"),
                    Cell(text=interval(mark.before, metric), sub=f"→ {interval(mark.after, metric)}"),
                    Cell(text=when(track.points[mark.index])),
                    Cell(text="", html=link("regressions", short(known), regression=known)) if known
                    else Cell(text="none", tone="quiet"),
                )
            )
        )  # fmt: skip
    return columns, rows
