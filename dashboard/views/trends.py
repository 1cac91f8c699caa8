"""Series over commits or time: points with their interval, levels, and where they changed."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from bench.history import Series
from bench.reports.format import title
from dashboard import data
from dashboard.markup import esc, legend, line, state, steps, table
from dashboard.palette import palette
from dashboard.regression_tables import ANY
from dashboard.state import choose, choose_many
from dashboard.tracks import Track, names_of
from dashboard.trend_charts import MOST, can_log, trend_figure, wants_log
from dashboard.trend_tables import finding, last_values, legend_of, marks_table, without_interval
from dashboard.wording import short

AT_FIRST = 3  # series that are shown before somebody chooses

FIRST_STEPS = (
    ("Measure, today and after the next commit; every run adds a point to each series.", "bench run"),
    ("Or bring in the history that another tool kept.", "bench import FILE"),
    ("Reload this page. The terminal plots the same.", "bench history SUITE"),
)


def page() -> None:
    """The whole page; a person gets a sentence, whatever broke."""
    try:
        every = data.series()
        if not every:
            st.html(steps("No history yet", f"This page reads {data.where()}.", FIRST_STEPS))
            return
        _follow_link(every)
        with st.container(horizontal=True, key="choices"):
            candidates = _narrowed(every)
        by_name = {s.fingerprint: s for s in candidates}
        names = names_of(candidates)
        chosen = choose_many(
            f"Series (up to {MOST})", "series", list(by_name), names.__getitem__, first=list(by_name)[:AT_FIRST],
            most=MOST,
        )  # fmt: skip
        tracks = [t for t in data.tracks(chosen) if t.points]
    except Exception as error:  # noqa: BLE001
        st.html(state("The history cannot be shown", [esc(data.sentence(error))], "bad"))
        return
    if not tracks:
        st.html(state("No series is chosen", [esc(f"{len(candidates)} to choose from, above.")], "quiet"))
        return
    st.html(state(finding(tracks), [esc(text) for text in last_values(tracks)], "quiet"))
    _chart(tracks)
    _tables(tracks)


def _follow_link(every: Sequence[Series]) -> None:
    """A link may name series alone: the other choices are then theirs."""
    first = st.query_params.get("series", "").partition(",")[0]
    found = next((s for s in every if s.fingerprint == first), None)
    if found is None or "suite" in st.query_params:
        return
    st.query_params["suite"] = found.suite
    st.query_params["benchmark"] = found.benchmark
    st.query_params["metric"] = found.metric.name
    st.query_params["machine"] = found.machine_fingerprint


def _narrowed(every: Sequence[Series]) -> list[Series]:
    """The series of the chosen suite, benchmark, metric and machine."""
    suite = choose("Suite", "suite", sorted({s.suite for s in every}))
    shown = [s for s in every if s.suite == suite]
    names = sorted({s.benchmark for s in shown})
    benchmark = choose(
        "Benchmark", "benchmark", names if len(names) == 1 else [*names, ANY], lambda b: _named(b, "any benchmark")
    )
    shown = [s for s in shown if benchmark in (ANY, s.benchmark)]
    metrics = {s.metric.name: s.metric for s in shown}
    metric = choose("Metric", "metric", list(metrics), lambda m: title(metrics[m]), first="time")
    shown = [s for s in shown if s.metric.name == metric]
    machines = {s.machine_fingerprint: s.machine_label for s in shown}
    keys = list(machines)
    machine = choose(
        "Machine", "machine", keys if len(keys) == 1 else [*keys, ANY],
        lambda m: f"{machines[m]} · {short(m)}" if m in machines else "any machine",
    )  # fmt: skip
    return [s for s in shown if machine in (ANY, s.machine_fingerprint)]


def _named(value: str, every: str) -> str:
    return every if value == ANY else value


def _chart(tracks: Sequence[Track]) -> None:
    possible = can_log(tracks)
    with st.container(horizontal=True, key="axes"):
        over = choose("Over", "over", ["commits", "time"])
        scale = choose(
            "Scale", "scale", ["linear", "logarithmic"] if possible else ["linear"],
            first="logarithmic" if possible and wants_log(tracks) else "linear",
        )  # fmt: skip
    colours = palette(st.context.theme.type)
    st.html(legend(legend_of(tracks, colours)))
    st.plotly_chart(
        trend_figure(tracks, colours, by_time=over == "time", log=scale == "logarithmic"), theme=None, key="trends",
        config={"displayModeBar": False, "responsive": True},
        alt=f"{title(tracks[0].series.metric)} of {len(tracks)} series; the table below has the changes",
    )  # fmt: skip
    if reason := without_interval(tracks):
        st.html(line(reason))


def _tables(tracks: Sequence[Track]) -> None:
    st.subheader("Changes", anchor=False)
    columns, rows = marks_table(tracks)
    if not rows:
        st.html(line("The detector sees none. It needs five points on each side of a change."))
        return
    st.html(table(columns, rows, "Changes"))
    st.html(line("As the detector sees them now, at its sensitivity to show; an alarm asks for more (`bench detect`)."))


page()
