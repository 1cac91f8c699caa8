"""What ran where and when, and what failed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import streamlit as st

from bench.ports import RunInfo
from dashboard import data
from dashboard.markup import esc, failure, line, link, state, steps, table
from dashboard.state import zone
from dashboard.tables import commit_of, failures_of, headline, machines_table, runs_table, tone_of
from dashboard.wording import clock, plural, short

SHOWN = 20  # runs in the table

FIRST_STEPS = (
    ("See what can be measured here.", "bench list"),
    ("Measure for a few minutes, every variant side by side with its baseline.", "bench run --profile quick"),
    ("Reload this page. The terminal shows the same numbers.", "bench show latest"),
)


@st.fragment(run_every=60)
def page() -> None:
    """The whole page, read again every minute; a person gets a sentence, whatever broke."""
    try:
        infos = data.runs()
        failures = data.run(_chosen(infos).key).failures() if infos and failures_of(_chosen(infos)) else []
    except Exception as error:  # noqa: BLE001
        st.html(state("The runs cannot be shown", [esc(data.sentence(error))], "bad"))
        return
    if not infos:
        st.html(steps("No run is stored yet", f"This page reads {data.where()}.", FIRST_STEPS))
        return
    now, newest, chosen = datetime.now(UTC), infos[0], _chosen(infos)
    st.html(state(headline(newest, now), [_facts(newest)], tone_of(newest)))
    if failures:
        opened = "run" in st.query_params or tone_of(chosen) == "bad"
        with st.expander(f"{failures_of(chosen)} in run {short(chosen.key)}", expanded=opened):
            st.html("".join(failure(name, what) for name, what in failures))
    elif chosen is not newest:
        st.html(line(f"Nothing failed in run {short(chosen.key)}.", "good"))

    st.subheader("Runs", anchor=False)
    columns, rows = runs_table(infos[:SHOWN], now, zone(), chosen.key)
    st.html(table(columns, rows, "Newest runs"))
    if len(infos) > SHOWN:
        st.html(line(f"The newest {SHOWN} of {plural(len(infos), 'run')}; `bench show --list` lists them all."))
    st.subheader("Machines", anchor=False)
    columns, rows = machines_table(infos, now)
    st.html(table(columns, rows, "Machines"))
    st.html(line(f"Read from {data.where()}. Times of day are {zone().key}."))


def _facts(info: RunInfo) -> str:
    commit = commit_of(info)
    facts = [
        f"{info.profile} profile", info.machine_label, ", ".join(filter(None, (commit.text, commit.sub))),
        clock(info.started_at, zone()),
    ]  # fmt: skip
    return " · ".join([*map(esc, facts), link("tradeoffs", "See its tradeoffs", run=info.key)])


def _chosen(infos: Sequence[RunInfo]) -> RunInfo:
    """The run of `?run=…` where it is among those shown, else the newest."""
    wanted = st.query_params.get("run", "")
    return next((i for i in infos if len(wanted) >= 4 and i.key.startswith(wanted)), infos[0])


page()
