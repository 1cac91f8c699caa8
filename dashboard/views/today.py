"""The morning's page: did something regress, where, and can the machines be believed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import streamlit as st

from bench.night import Story
from bench.ports import RunInfo
from dashboard import data
from dashboard.markup import esc, legend, line, link, state, steps, strip, table
from dashboard.palette import palette
from dashboard.regression_tables import regressions_table
from dashboard.state import zone
from dashboard.tables import tone_of
from dashboard.today_tables import (
    days,
    health_table,
    last_good,
    living,
    marks,
    measured_since,
    nights,
    verdict,
)
from dashboard.wording import plural

SHOWN = 5  # causes; nobody reads a sixth before the first is understood

FIRST_STEPS = (
    ("See what can be measured here.", "bench list"),
    ("Measure for a few minutes, every variant side by side with its baseline.", "bench run --profile quick"),
    ("Reload this page. The terminal shows the same numbers.", "bench show latest"),
)


@st.fragment(run_every=60)
def page() -> None:
    """The whole page, read again every minute; a person gets a sentence, whatever broke."""
    try:
        infos = data.runs(data.MACHINES)
        if not infos:
            st.html(steps("No run is stored yet", f"This page reads {data.where()}.", FIRST_STEPS))
            return
        night, stories, unseen, canary = data.tonight(), data.stories(), data.unseen(), data.canary()
        alarms = {key: data.false_alarms(key) for key in data.machines()}
    except Exception as error:  # noqa: BLE001
        st.html(state("This night cannot be shown", [esc(data.sentence(error))], "bad"))
        return
    now = datetime.now(UTC)
    open_, tonight = living(stories), measured_since(infos, now - data.NIGHT)
    found = days(infos, [s.regression for s in stories], now.astimezone(zone()).date(), zone())
    text, tone = verdict(night, tonight, open_, unseen)
    st.html(state(text, _facts(tonight, unseen, last_good(found)), tone))

    st.subheader("Open regressions", anchor=False)
    _open(open_, now)
    st.subheader(f"The last {len(found)} days", anchor=False)
    st.html(strip(nights(found), "The last days"))
    colours = palette(st.context.theme.type)
    tones = {"good": colours.good, "bad": colours.bad, "quiet": colours.quiet}
    st.html(legend([(mark, tones[tone], words) for mark, tone, words in marks()]))
    st.subheader("Machines", anchor=False)
    columns, rows = health_table(infos, canary, alarms, now)
    if rows:
        st.html(table(columns, rows, "Machines"))
    else:
        st.html(line("Only imported runs are stored: nothing was measured by bench itself."))
    st.html(line(f"Read from {data.where()}. Days are those of {zone().key}."))


def _facts(tonight: Sequence[RunInfo], unseen: int, good: str) -> list[str]:
    """What the verdict rests on, in one line."""
    measured = sum(info.arms - sum(info.failures.values()) for info in tonight)
    parts = [esc(f"{plural(len(tonight), 'run')} with {plural(measured, 'variant')} measured")] if tonight else []
    broken = next((info for info in tonight if tone_of(info) == "bad"), None)
    if broken is not None:
        parts.append(link("runs", "what failed", run=broken.key))
    parts.append(esc(good))
    lines = [" · ".join(parts)]
    if unseen:
        lines.append(esc(f"{unseen:,} series have points that the detector has not looked at: bench detect"))
    return lines


def _open(open_: Sequence[Story], now: datetime) -> None:
    if not open_:
        st.html(line("● None is open.", "good"))
        return
    columns, rows = regressions_table(open_[:SHOWN], now)
    st.html(table(columns, rows, "Open regressions"))
    more = f"The weightiest {SHOWN} (effect × confidence) of {len(open_)} · " if len(open_) > SHOWN else (
        "Grouped by cause, the weightiest (effect × confidence) first · "
    )  # fmt: skip
    st.html(f'<p class="b-line b-quiet">{esc(more)}{link("regressions", "all regressions")}</p>')


page()
