"""State in the URL: what a page shows can be copied from the address bar."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import streamlit as st


def choose(
    label: str, parameter: str, options: Sequence[str], name: Callable[[str], str] = str, *, first: str | None = None
) -> str:
    """A select box bound to a query parameter: the URL wins when it changed, the box otherwise.

    A value that is no option falls back to `first` (default: the first option), and the URL follows.
    """
    box, seen = f"box-{parameter}", f"seen-{parameter}"
    wanted = st.query_params.get(parameter)
    fallback = first if first in options else options[0]
    if wanted is not None and wanted != st.session_state.get(seen):
        st.session_state[box] = wanted  # a link, the back button or a typed address
    if st.session_state.get(box) not in options:
        st.session_state[box] = fallback
    value: str = st.selectbox(label, list(options), key=box, format_func=name)
    st.session_state[seen] = value
    if wanted != value:
        st.query_params[parameter] = value
    return value


def choose_many(
    label: str, parameter: str, options: Sequence[str], name: Callable[[str], str], *, first: Sequence[str], most: int
) -> list[str]:
    """The same for up to `most` values, which stand in the URL with commas between. May be empty."""
    box, seen = f"box-{parameter}", f"seen-{parameter}"
    wanted = st.query_params.get(parameter)
    if wanted is not None and wanted != st.session_state.get(seen):
        st.session_state[box] = wanted.split(",")
    given = st.session_state.get(box)
    known = [value for value in given or () if value in options][:most]
    if given is None or (given and not known):
        known = list(first)[:most]
    if known != given:
        st.session_state[box] = known
    chosen: list[str] = st.multiselect(label, list(options), key=box, format_func=name, max_selections=most)
    text = ",".join(chosen)
    st.session_state[seen] = text
    if wanted != text:
        st.query_params[parameter] = text
    return chosen


def zone() -> ZoneInfo:
    """The reader's time zone as the browser tells it, else UTC."""
    try:
        return ZoneInfo(st.context.timezone or "UTC")
    except (ZoneInfoNotFoundError, ValueError):
        return ZoneInfo("UTC")
