"""Every run: what ran where and when, what failed; of one, everything that is stored."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from importlib.util import find_spec

import streamlit as st

from bench.model import ArmResult, ExperimentResult, Failure
from bench.ports import RunInfo
from bench.reports.format import title
from dashboard import data
from dashboard.markup import esc, failure, legend, line, link, state, steps, table
from dashboard.palette import palette
from dashboard.run_tables import environment_table, packages_table, run_facts, run_headline
from dashboard.sample_charts import has_launches, names_of, samples_figure, samples_legend, samples_of
from dashboard.state import choose, zone
from dashboard.tables import commit_of, failures_of, headline, machines_table, runs_table, tone_of
from dashboard.wording import clock, conditions_line, plural, short

SHOWN = 20  # runs in the table before the rest, which is one click away

FIRST_STEPS = (
    ("See what can be measured here.", "bench list"),
    ("Measure for a few minutes, every variant side by side with its baseline.", "bench run --profile quick"),
    ("Reload this page. The terminal shows the same numbers.", "bench show latest"),
)

FORMS = {
    "csv": ("CSV", "text/csv", "one row a raw sample"),
    "json": ("JSON", "application/json", "the whole run, readable by every verb that takes a run"),
    "parquet": ("Parquet", "application/vnd.apache.parquet", "one row a raw sample"),
}
"""Format → name, type, what is in it."""


def page() -> None:
    """The list, or one run; a person gets a sentence, whatever broke."""
    wanted = st.query_params.get("run", "")
    try:
        if wanted:
            run = data.run(data.find(wanted))
            arms = data.sampled(run.key)
        else:
            infos = data.runs()
            broken = _newest_failed(infos[0]) if infos else []
    except Exception as error:  # noqa: BLE001
        back = link("runs", "Show all runs")
        st.html(state("The runs cannot be shown", [esc(data.sentence(error)), back], "bad"))
        return
    if wanted:
        _one(run, arms)
    elif infos:
        _list(infos, broken)
    else:
        st.html(steps("No run is stored yet", f"This page reads {data.where()}.", FIRST_STEPS))


def _newest_failed(newest: RunInfo) -> list[tuple[str, Failure]]:
    return data.run(newest.key).failures() if failures_of(newest) else []


def _list(infos: Sequence[RunInfo], broken: Sequence[tuple[str, Failure]]) -> None:
    now, newest = datetime.now(UTC), infos[0]
    st.html(state(headline(newest, now), [_facts(newest)], tone_of(newest)))
    if broken:
        with st.expander(f"{failures_of(newest)} in run {short(newest.key)}", expanded=tone_of(newest) == "bad"):
            st.html("".join(failure(name, what) for name, what in broken))
    st.subheader("Runs", anchor=False)
    columns, rows = runs_table(infos, now, zone())
    st.html(table(columns, rows[:SHOWN], "Newest runs"))
    if len(rows) > SHOWN:
        with st.expander(f"{len(rows) - SHOWN} more"):
            st.html(table(columns, rows[SHOWN:], "Older runs"))
            st.html(line("`bench show --list` lists them all."))
    st.subheader("Machines", anchor=False)
    columns, rows = machines_table(infos, now)
    st.html(table(columns, rows, "Machines"))
    st.html(line(f"Read from {data.where()}. Times of day are {zone().key}."))


def _one(run: data.RunView, arms: Sequence[tuple[ExperimentResult, ArmResult]]) -> None:
    text, tone = run_headline(run)
    ways = [
        link("tradeoffs", "Tradeoffs", run=run.key), link("compare", "Compare with the run before", head=run.key),
        link("runs", "← All runs"),
    ]  # fmt: skip
    about = [esc(run_facts(run, zone())), esc(conditions_line(run.busy, run.conditions)), " · ".join(ways)]
    st.html(state(text, about, tone))
    if failures := run.failures():
        st.subheader("What failed or was skipped", anchor=False)
        st.html("".join(failure(name, what) for name, what in failures))
    st.subheader("Raw samples", anchor=False)
    _samples(arms)
    st.subheader("Download", anchor=False)
    _downloads(run.key)
    st.subheader("Environment", anchor=False)
    st.html(table(*environment_table(run.environment, run.hardware), "Environment"))
    columns, rows = packages_table(run.environment)
    if rows:
        with st.expander(plural(len(rows), "package")):
            st.html(table(columns, rows, "Packages"))
    st.html(line(f"Key {run.key}. Times of day are {zone().key}."))


def _samples(arms: Sequence[tuple[ExperimentResult, ArmResult]]) -> None:
    if not arms:
        st.html(line("No variant has samples: nothing was measured."))
        return
    by_name = dict(zip(names_of(arms), arms, strict=True))
    with st.container(horizontal=True, key="choices"):
        name = choose("Variant", "variant", list(by_name))
        found = {m.metric.name: m for m in by_name[name][1].measurements if has_launches(m)}
        metric = choose("Metric", "metric", list(found), lambda m: title(found[m].metric)) if found else ""
    if not metric:
        st.html(line("This variant was measured in nothing that varies from launch to launch."))
        return
    shown, colours = samples_of(found[metric]), palette(st.context.theme.type)
    st.html(legend(samples_legend(shown, colours)))
    st.plotly_chart(
        samples_figure(shown, colours), theme=None, key="samples", config={"displayModeBar": False, "responsive": True},
        alt=f"{shown.count:,} samples of {title(shown.metric)} in {len(shown.launches)} launches",
    )  # fmt: skip
    thinned = f", one of {shown.every} drawn" if shown.every > 1 else ""
    loops = found[metric].loops
    calls = f"; each is the mean of {loops:,} calls" if loops > 1 else ""
    st.html(line(f"{shown.count:,} samples in {len(shown.launches)} launches{thinned}{calls}."))


def _downloads(key: str) -> None:
    with st.container(horizontal=True):
        for form, (name, kind, what) in FORMS.items():
            if form == "parquet" and find_spec("pyarrow") is None:
                continue
            st.download_button(
                name, partial(data.exported, key, form), file_name=f"bench-{short(key)}.{form}", mime=kind, help=what,
                on_click="ignore",
            )  # fmt: skip
    st.html(line(f"The same as bench export {short(key)} --format csv, json or parquet."))


def _facts(info: RunInfo) -> str:
    commit = commit_of(info)
    facts = [
        f"{info.profile} profile", info.machine_label, ", ".join(filter(None, (commit.text, commit.sub))),
        clock(info.started_at, zone()),
    ]  # fmt: skip
    return " · ".join([*map(esc, facts), link("tradeoffs", "See its tradeoffs", run=info.key)])


page()
