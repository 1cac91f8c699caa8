"""Two stored runs, or the two sides of one that `bench compare` made: the same verdicts as in the terminal."""

from __future__ import annotations

import streamlit as st

from bench.compare import RunComparison
from bench.ports import RunInfo
from bench.reports.format import side, title
from bench.reports.rows import rules
from dashboard import data
from dashboard.compare_tables import (
    ANY,
    Wanted,
    base_of,
    headline,
    left_out,
    matching,
    metrics_of,
    suite_of,
    verdict_choices,
    verdicts_table,
)
from dashboard.forest import MOST, forest_figure, forest_legend, lines_of
from dashboard.markup import esc, legend, line, link, numbered, state, steps, table
from dashboard.palette import palette
from dashboard.state import choose, zone
from dashboard.wording import clock, plural, short

FIRST = 60  # lines of the table before the rest, which is one click away

FIRST_STEPS = (
    ("Measure two commits together, in pairs, until each variant is decided.", "bench compare main ."),
    ("Or measure twice: two stored runs can be compared in size and answers, never decided in time.", "bench run"),
    ("Reload this page. The terminal prints the same verdicts.", "bench compare latest~1 latest"),
)


def page() -> None:
    """The whole page; a person gets a sentence, whatever broke."""
    try:
        infos = {info.key: info for info in data.runs()}
        if not infos:
            st.html(steps("No run is stored yet", f"This page reads {data.where()}.", FIRST_STEPS))
            return
        keys = _with_wanted(list(infos))
        with st.container(horizontal=True, key="choices"):
            head = choose("Head", "head", keys, lambda k: _run_name(k, infos.get(k)))
            base = choose("Base", "base", keys, lambda k: _base_name(k, head, infos.get(k)), first=_before(head, infos))
            found = data.comparison(base, head)
            suites = sorted({suite_of(arm) for arm in found.verdicts.arms})
            verdicts = verdict_choices(found.verdicts)
            metrics = metrics_of(found.verdicts)
            wanted = Wanted(
                suite=choose("Suite", "suite", [ANY, *suites], lambda s: "any suite" if s == ANY else s),
                verdict=choose("Verdict", "verdict", list(verdicts), verdicts.__getitem__),
            )
            metric = ""
            if metrics:
                metric = choose("Figure shows", "metric", list(metrics), lambda m: title(metrics[m]), first="time")
    except Exception as error:  # noqa: BLE001
        newest = link("compare", "Compare the newest run", head="latest")
        st.html(state("These runs cannot be compared", [esc(data.sentence(error)), newest], "bad"))
        return
    shown = matching(found.verdicts, wanted)
    _head(found, len(found.verdicts.arms) - len(shown.arms), infos, (base, head))
    _figure(shown, metric)
    _tables(shown)
    st.subheader("Repeat it", anchor=False)
    st.html(numbered([(found.repeats, found.command)]))


def _head(found: data.Compared, hidden: int, infos: dict[str, RunInfo], keys: tuple[str, str]) -> None:
    text, tone = headline(found.verdicts)
    base, head = keys
    about = [
        f"<strong>base</strong> {_side(found.verdicts.base, infos.get(base))}<br>"
        f"<strong>head</strong> {_side(found.verdicts.head, infos.get(head))}"
    ]
    about += [esc(note[:1].upper() + note[1:]) for note in found.verdicts.notes]
    about += [esc(rule[:1].upper() + rule[1:]) for rule in rules(found.verdicts)]
    if hidden:
        every = link("compare", "show all", base=base, head=head, suite=ANY, verdict=ANY)
        about.append(f"{esc(plural(hidden, 'variant'))} left out by the choices above: {every}")
    st.html(state(text, about, tone))


def _side(label: str, info: RunInfo | None) -> str:
    if info is None:
        return esc(side(label))
    commit = f"commit {short(info.commit)}{' with changes' * info.dirty}" if info.commit else "no commit"
    facts = [side(label), clock(info.started_at, zone())]
    facts += [commit] if side(label) != label else []
    return " · ".join(map(esc, [*facts, info.machine_label]))


def _figure(shown: RunComparison, metric: str) -> None:
    lines = lines_of(shown, metric)
    if not lines:
        if shown.arms:
            st.html(line("Nothing to draw: no variant shown has a ratio of both sides."))
        return
    colours = palette(st.context.theme.type)
    name = title(lines[0][1].metric)
    st.subheader(f"{name[:1].upper()}{name[1:]}, head / base", anchor=False)
    st.html(legend(forest_legend(lines[:MOST], colours)))
    st.plotly_chart(
        forest_figure(lines[:MOST], colours), theme=None, key="forest",
        config={"displayModeBar": False, "responsive": True},
        alt=f"Ratio of {name} with its interval for {plural(len(lines[:MOST]), 'variant')}; numbers in the table",
    )  # fmt: skip
    more = f" The first {MOST} of {len(lines)}, worst first." if len(lines) > MOST else ""
    elsewhere = sum(1 for arm in shown.arms if arm.basis not in ("", metric))
    if elsewhere:
        more += f" {plural(elsewhere, 'verdict')} below {'rests' if elsewhere == 1 else 'rest'} on another metric."
    st.html(line(f"Bars are 95 % intervals; without one the value is exact or there were too few launches.{more}"))


def _tables(shown: RunComparison) -> None:
    columns, missing = left_out(shown)
    if missing:
        st.subheader("Without a comparison", anchor=False)
        st.html(table(columns, missing, "Without a comparison"))
    columns, rows = verdicts_table(shown)
    if not rows:
        if not missing:
            st.html(line("No variant matches the choices above."))
        return
    st.subheader("Verdicts", anchor=False)
    st.html(table(columns, rows[:FIRST], "Verdicts"))
    if len(rows) > FIRST:
        with st.expander(f"{len(rows) - FIRST} more"):
            st.html(table(columns, rows[FIRST:], "Verdicts, the rest"))


def _with_wanted(keys: list[str]) -> list[str]:
    """The keys, and those of the URL: `latest~1`, a beginning, or too old for the list become whole keys."""
    for name in ("head", "base"):
        wanted = st.query_params.get(name)
        if wanted and wanted not in keys:
            key = data.find(wanted.removeprefix("run:"))
            st.query_params[name] = key
            keys = keys if key in keys else [*keys, key]
    return keys


def _before(head: str, infos: dict[str, RunInfo]) -> str:
    """What a run is compared with at first: itself where it holds both sides, else what `base_of` finds."""
    return head if data.holds_both_sides(head) else base_of(head, list(infos.values()))


def _run_name(key: str, info: RunInfo | None) -> str:
    if info is None:
        return short(key)
    commit = f"commit {short(info.commit)}" if info.commit else info.profile
    return f"{clock(info.started_at, zone())} · {short(key)} · {commit}"


def _base_name(key: str, head: str, info: RunInfo | None) -> str:
    return "both sides are in it" if key == head else _run_name(key, info)


page()
