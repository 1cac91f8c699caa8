"""What became worse and why, the weightiest first; of one, everything that is known."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import streamlit as st

from bench.history import Cause, KeptProfile
from bench.night import Story
from bench.reports.flame import flame_svg
from bench.reports.profile import profile_from
from dashboard import data
from dashboard.markup import Column, Row, esc, legend, line, link, numbered, outside, state, steps, table
from dashboard.palette import palette
from dashboard.profile_tables import frames_table, summary
from dashboard.regression_tables import (
    ANY,
    BAD,
    DIRECTIONS,
    LIVING,
    STATES,
    Wanted,
    changes_table,
    commands,
    differences_table,
    events_table,
    facts,
    headline,
    machines_of,
    matching,
    proofs_table,
    regressions_table,
    suites_of,
)
from dashboard.state import choose, zone
from dashboard.tracks import around
from dashboard.trend_charts import trend_figure, wants_log
from dashboard.trend_tables import legend_of, without_interval
from dashboard.triage import panel
from dashboard.wording import plural, short

SHOWN = 50  # lines in the table
FIRST = 8  # lines of one regression's tables before the rest, which is one click away
FILTERS = ("state", "direction", "cause", "suite", "machine")

FIRST_STEPS = (
    ("Bring in or measure what there is: a change needs points before and after it.", "bench import FILE"),
    ("Look for changes in every series that has a new point, and group them by cause.", "bench detect"),
    ("Reload this page. The terminal lists the same.", "bench regressions list"),
)


def page() -> None:
    """The list, or one regression; a person gets a sentence, whatever broke."""
    wanted = st.query_params.get("regression", "")
    try:
        stories = data.stories()
        if wanted:
            one = data.regression(wanted)
        elif not stories:
            st.html(steps("No change is known yet", f"This page reads {data.where()}.", FIRST_STEPS))
            return
    except Exception as error:  # noqa: BLE001
        back = link("regressions", "Show all regressions")
        st.html(state("The regressions cannot be shown", [esc(data.sentence(error)), back], "bad"))
        return
    if wanted:
        _one(one)
    else:
        _list(stories)


def _list(stories: Sequence[Story]) -> None:
    machines = {key: label for s in stories for key, label in machines_of(s).items()}
    suites = sorted({suite for s in stories for suite in suites_of(s)})
    with st.container(horizontal=True, key="choices"):
        chosen = Wanted(
            state=choose("State", "state", list(STATES), STATES.__getitem__, first=LIVING),
            direction=choose("Direction", "direction", list(DIRECTIONS), DIRECTIONS.__getitem__, first=BAD),
            cause=choose("Cause", "cause", [ANY, *(c.value for c in Cause)], lambda c: _named(c, "cause")),
            suite=choose("Suite", "suite", [ANY, *suites], lambda s: _named(s, "suite")),
            machine=choose(
                "Machine", "machine", [ANY, *machines],
                lambda m: f"{machines[m]} · {short(m)}" if m in machines else _named(m, "machine"),
            ),
        )  # fmt: skip
    shown = matching(stories, chosen)
    text, tone = headline(shown, chosen)
    points = plural(sum(len(s.changes) for s in shown), "change point")
    hidden = len(stories) - len(shown)
    about = [esc(f"{points} grouped by what caused them; the weightiest (effect × confidence) stand first.")]
    if hidden:
        every = link("regressions", "show all", state=ANY, direction=ANY)
        about.append(f"{esc(plural(hidden, 'other cause'))} left out by the choices above: {every}")
    st.html(state(text, about if shown else about[1:], tone))
    if not shown:
        return
    filters = {name: st.query_params.get(name, "") for name in FILTERS}
    columns, rows = regressions_table(shown[:SHOWN], datetime.now(UTC), **filters)
    st.html(table(columns, rows, "Regressions"))
    if len(shown) > SHOWN:
        st.html(line(f"The weightiest {SHOWN} of {len(shown)}; `bench regressions list --all` lists them all."))


def _named(value: str, noun: str) -> str:
    return f"any {noun}" if value == ANY else value


def _one(one: data.RegressionView) -> None:
    found, worst = one.story.regression, one.story.worst
    back = link("regressions", "← All regressions", **{name: st.query_params.get(name, "") for name in FILTERS})
    about = [esc(" · ".join(facts(found, worst, datetime.now(UTC)))), *map(outside, found.links), back]
    tone = {"worse": "bad", "suspicious": "warn", "better": "good"}[found.direction.value]
    st.html(state(found.title, about, tone))
    if worst is not None:
        _plot(one.story)
    if worst is not None and (again := commands(found, worst)):
        st.subheader("Reproduce it", anchor=False)
        st.html(numbered(again))
    panel(found)
    _table("Evidence", *proofs_table(one.changes, zone()), "No paired experiment was made yet: `bench prove` makes it.")
    for kept in one.profiles:
        _profile(kept)
    _table("What else changed", *differences_table(one.changes), "Nothing that is known, between the two sides.")
    _table("Change points", *changes_table(one.changes), "None of its change points stands any more.")
    _table("What happened", *events_table(one.events, zone()), "Nothing is recorded.")
    st.html(line(f"Times of day are {zone().key}."))


def _plot(story: Story) -> None:
    worst = story.worst
    assert worst is not None
    st.subheader("Around the change", anchor=False)
    try:
        tracks = data.tracks([worst.series.fingerprint])
    except Exception as error:  # noqa: BLE001
        st.html(line(data.sentence(error), "bad"))
        return
    if not tracks or not tracks[0].points:
        st.html(line("The series of its weightiest change has no point any more."))
        return
    shown, at = around(tracks[0], worst)
    colours = palette(st.context.theme.type)
    st.html(legend([*legend_of([shown], colours), ("┊", colours.quiet, "this change")]))
    st.plotly_chart(
        trend_figure([shown], colours, log=wants_log([shown]), at=at), theme=None, key="around",
        config={"displayModeBar": False, "responsive": True},
        alt=f"{plural(len(shown.points), 'point')} of {worst.series.variant} around the change; numbers in the table",
    )  # fmt: skip
    whole = link("trends", "its whole history", series=worst.series.fingerprint)
    more = without_interval([shown])
    st.html(f'<p class="b-line b-quiet">The weightiest of its series; {whole}. {esc(more)}</p>')


def _profile(kept: KeptProfile) -> None:
    found = profile_from(kept.document)
    _table("Where the time went", *frames_table(found), "No frame differs beyond the repetitions.")
    st.html(line(summary(found)))
    with st.expander("Flame graph of the difference"):
        st.image(flame_svg(found), width="stretch")


def _table(heading: str, columns: Sequence[Column], rows: Sequence[Row], empty: str) -> None:
    st.subheader(heading, anchor=False)
    st.html(table(columns, rows[:FIRST], heading) if rows else line(empty))
    if len(rows) > FIRST:
        with st.expander(f"{len(rows) - FIRST} more"):
            st.html(table(columns, rows[FIRST:], f"{heading}, the rest"))


page()
