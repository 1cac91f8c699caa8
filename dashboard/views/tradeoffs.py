"""What each variant gives over its baseline, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from bench.ports import RunInfo
from bench.reports.format import title
from bench.tradeoffs import VariantSummary
from dashboard import data
from dashboard.charts import labels, metrics_of, points, tradeoff_figure, y_choices
from dashboard.markup import esc, failure, line, link, state, table
from dashboard.palette import palette
from dashboard.state import choose, zone
from dashboard.tables import finding, variant_table
from dashboard.wording import clock, conditions_line, plural, short


def page() -> None:
    """The whole page; a person gets a sentence, whatever broke."""
    try:
        infos = {info.key: info for info in data.runs()}
        if not infos:
            st.html(state("No run is stored yet", [link("./", "The first page says how to make the first.")], "quiet"))
            return
        options = _with_wanted(list(infos))
        with st.container(horizontal=True, key="choices"):
            key = choose("Run", "run", options, lambda k: _run_name(k, infos.get(k)))
            run = data.run(key)
            suites = list(dict.fromkeys(e.suite for e in run.experiments))
            suite = choose("Suite", "suite", suites) if suites else ""
            names = [e.name for e in run.experiments if e.suite == suite]
            name = choose("Benchmark", "benchmark", names) if names else ""
            experiment = next((e for e in run.experiments if e.name == name and e.suite == suite), None)
            metrics = metrics_of(experiment.variants) if experiment else {}
            against = y_choices(experiment.variants) if experiment else []
            y = choose("Latency against", "y", against, lambda m: title(metrics[m])) if against else ""
    except Exception as error:  # noqa: BLE001
        newest = link("tradeoffs", "Show the newest run", run="latest")
        st.html(state("This run cannot be shown", [esc(data.sentence(error)), newest], "bad"))
        return
    if experiment is None:
        st.html(state("This run measured nothing", [esc(conditions_line(run.busy, run.conditions))], "bad"))
        st.html("".join(failure(who, what) for who, what in run.failures()))
        return
    about = [f"<strong>{esc(experiment.name)}</strong> {esc(experiment.title)}"]
    about.append(esc(conditions_line(run.busy, run.conditions)))
    st.html(state(finding(experiment.variants), about, "quiet"))
    _chart(experiment.variants, y)
    _failures(experiment.variants)
    _tables(experiment)


def _chart(variants: Sequence[VariantSummary], y: str) -> None:
    if not y or not points(variants, y):
        st.html(line("Nothing to draw: no variant has both a latency and another metric."))
        return
    figure = tradeoff_figure(variants, y, palette(st.context.theme.type))
    name = title(metrics_of(variants)[y])
    st.plotly_chart(
        figure, theme=None, key="tradeoffs", config={"displayModeBar": False, "responsive": True},
        alt=f"Latency against {name} of {plural(len(points(variants, y)), 'variant')}; the table below has the numbers",
    )  # fmt: skip


def _failures(variants: Sequence[VariantSummary]) -> None:
    names = labels(variants)
    failed = [(names[v.arm.key], v.failure) for v in variants if v.failure is not None]
    if failed:
        st.subheader("Not in the chart", anchor=False)
        st.html("".join(failure(name, what) for name, what in failed))


def _tables(experiment: data.ExperimentView) -> None:
    st.subheader("Variants", anchor=False)
    columns, rows = variant_table(experiment.variants)
    st.html(table(columns, rows, "Variants"))
    launches = plural(experiment.launches, "launch").replace("launchs", "launches")
    st.html(
        line(
            f"Under each number its 95 % interval, or why there is none. {launches} of every variant, side by side; "
            "changes are paired launch by launch."
        )
    )
    columns, rows = variant_table(experiment.variants, rest=True)
    if len(columns) > 1:
        with st.expander("Everything else that was measured"):
            st.html(table(columns, rows, "Other metrics"))


def _with_wanted(keys: list[str]) -> list[str]:
    """The keys, and that of `?run=` where it is `latest`, a beginning, or too old for the list."""
    wanted = st.query_params.get("run")
    if wanted and wanted not in keys:
        key = data.find(wanted)
        st.query_params["run"] = key
        return keys if key in keys else [*keys, key]
    return keys


def _run_name(key: str, info: RunInfo | None) -> str:
    if info is None:
        return short(key)
    commit = short(info.commit) if info.commit else "no commit"
    return f"{clock(info.started_at, zone())}, {info.profile}, {commit} · {short(key)}"


page()
