"""Figures of the literature, and what a machine's stored runs say of them."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from bench.claims.words import TOLERANCE, Answer
from bench.reports.claims import RULES, origins
from dashboard import data
from dashboard.claim_tables import (
    ANY,
    ARTICLES,
    FINDINGS,
    LANGUAGES,
    TONES,
    Wanted,
    claims_table,
    facts,
    headline,
    matching,
    readings_table,
    title,
)
from dashboard.markup import esc, line, link, state, table
from dashboard.state import choose
from dashboard.wording import plural, short

FILTERS = ("finding", "article", "machine", "language")


def page() -> None:
    """The list, or one claim; a person gets a sentence, whatever broke."""
    wanted = st.query_params.get("claim", "")
    try:
        machines = data.machines()
        if wanted:
            machine = st.query_params.get("machine", "")
            answers = data.claims(machine if machine in machines else next(iter(machines), ""))
        else:
            with st.container(horizontal=True, key="choices"):
                chosen, language, machine = _choices(machines)
            answers = data.claims(machine)
    except Exception as error:  # noqa: BLE001
        st.html(state("The claims cannot be shown", [esc(data.sentence(error))], "bad"))
        return
    if wanted:
        _one(next((a for a in answers if a.claim.id == wanted), None), wanted)
    else:
        _list(answers, chosen, language)


def _choices(machines: dict[str, str]) -> tuple[Wanted, str, str]:
    wanted = Wanted(
        finding=choose("Verdict", "finding", list(FINDINGS), FINDINGS.__getitem__),
        article=choose("Article", "article", list(ARTICLES), ARTICLES.__getitem__),
    )
    language = choose("Language", "language", list(LANGUAGES), LANGUAGES.__getitem__)
    if not machines:
        return wanted, language, ""
    machine = choose("Machine", "machine", list(machines), lambda m: f"{machines[m]} · {short(m)}")
    return wanted, language, machine


def _list(answers: Sequence[Answer], chosen: Wanted, language: str) -> None:
    shown = matching(answers, chosen)
    used = origins(answers)
    about = [esc(used[0]) if used else "No stored run answers any of them: `bench run --profile full` does."]
    if len(used) > 1:
        about[0] += esc(f"; and {plural(len(used) - 1, 'older run')}")
    if hidden := len(answers) - len(shown):
        every = link("claims", "show all", finding=ANY, article=ANY)
        about.append(f"{esc(plural(hidden, 'other claim'))} left out by the choices above: {every}")
    st.html(state(headline(answers), about, "quiet"))
    if not shown:
        return
    columns, rows = claims_table(shown, language, _filters())
    st.html(table(columns, rows, "Claims"))
    with st.expander("How a verdict is reached"):
        st.html("".join(line(f"{name}: {text}.") for name, text in RULES))
        st.html(line(f"A single stated number stands for ± {TOLERANCE * 100:.0f} % around it."))


def _filters() -> dict[str, str]:
    return {name: st.query_params.get(name, "") for name in FILTERS}


def _one(answer: Answer | None, wanted: str) -> None:
    back = link("claims", "← All claims", **_filters())
    if answer is None:
        st.html(state(f"There is no claim {wanted}", [back], "bad"))
        return
    about = [esc(answer.claim.zh), esc(f"Stated: {answer.claim.figure}"), *map(esc, facts(answer)), back]
    st.html(state(title(answer), about, TONES[answer.finding]))
    if answer.readings:
        st.subheader("Experiments", anchor=False)
        st.html(table(*readings_table(answer), "Experiments"))
    for origin in origins([answer]):
        st.html(line(f"Read from {origin}."))


page()
