"""Who may decide on a regression, and the form in which they do. Reading is for everybody.

A decision rests on what its author saw: it is appended behind the last event that the page showed.
Whoever was faster wins, and the other one is told to read again; what they typed stays in the form.
"""

from __future__ import annotations

import getpass
import os
from datetime import UTC, datetime, timedelta

import streamlit as st

from bench.errors import StaleError
from bench.history import Action, Regression
from dashboard import data
from dashboard.decisions import CHOICES, choices_of, said
from dashboard.markup import line

ALLOWED = "BENCH_ALLOW_TRIAGE"
"""Set by `bench dashboard --allow-triage`."""

SHORTEST, USUAL, LONGEST = timedelta(days=1), timedelta(days=30), timedelta(days=365)
"""How long something may be expected."""

_TEXT, _DAY, _WHO, _TOLD = "triage-text", "triage-day", "triage-who", "triage-told"


def signed_in() -> str:
    """Address or name of a reader who signed in at the provider of `secrets.toml`; empty without one."""
    if not st.user.get("is_logged_in"):
        return ""
    return str(st.user.get("email") or st.user.get("name") or st.user.get("sub") or "")


def panel(found: Regression) -> None:
    """The section of a regression's page: a form for who may decide, else how to get there."""
    name = signed_in()
    everybody = bool(os.environ.get(ALLOWED))
    st.subheader("Decide", anchor=False)
    _answer(found)
    if not (name or everybody):
        st.html(line("This page only reads. `bench regressions` decides in a terminal, as does a dashboard that was "
                     "started with --allow-triage."))  # fmt: skip
        if "is_logged_in" in st.user:
            st.button("Sign in to decide", on_click=st.login)
        return
    choices = choices_of(found.state)
    action = st.segmented_control(
        "What becomes of it", list(choices), format_func=lambda a: choices[a].word, default=next(iter(choices)),
        key=f"triage-action-{found.state.value}", required=True,
    )  # fmt: skip
    choice = choices[action or next(iter(choices))]
    st.html(line(choice.help))
    with st.form("triage", border=False), st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input(f"{choice.field}{'' if choice.needed else ' (may stay empty)'}", key=_TEXT)
        if choice.dated:
            today = datetime.now(UTC).date()
            st.date_input(
                "Until the end of (UTC)", today + USUAL, min_value=today + SHORTEST, max_value=today + LONGEST, key=_DAY
            )
        if not name:
            st.session_state.setdefault(_WHO, _process_owner())
            st.text_input("Your name", key=_WHO)
        st.form_submit_button(choice.button, on_click=_decide, args=(found, action, name))
    if name:
        st.html(line(f"You are signed in as {name}."))


def _decide(seen: Regression, action: Action, name: str) -> None:
    """Called before the page is read again; `seen` is what the page showed when the button was pressed."""
    text = str(st.session_state.get(_TEXT, "")).strip()
    who = name or str(st.session_state.get(_WHO, "")).strip()
    choice = CHOICES[action]
    if not who or (choice.needed and not text):
        missing = "your name" if not who else choice.field.partition(" (")[0].lower()
        _tell(seen, "warn", f"Nothing is written down: {missing} is missing.")
        return
    try:
        became = data.decide(
            seen, action, text, who=who, until=st.session_state.get(_DAY) if choice.dated else None
        )  # fmt: skip
    except StaleError:
        _tell(seen, "warn", "Somebody decided meanwhile: read again what happened, below, and decide again. "
                            "What you typed is still here, and nothing of theirs is lost.")  # fmt: skip
    except Exception as error:  # noqa: BLE001
        _tell(seen, "bad", f"Nothing is written down: {data.sentence(error)}")
    else:
        _tell(seen, "good", said(became, action))
        st.session_state[_TEXT] = ""


def _tell(seen: Regression, tone: str, text: str) -> None:
    st.session_state[_TOLD] = (seen.key, tone, text)


def _answer(found: Regression) -> None:
    """What became of the last press of the button, once."""
    key, tone, text = st.session_state.pop(_TOLD, ("", "", ""))
    if key == found.key:
        st.html(f'<div role="status">{line(text, tone)}</div>')


def _process_owner() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""
