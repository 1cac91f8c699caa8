"""The frame of all pages. Started by `bench dashboard`, which runs Streamlit on this file."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from dashboard.palette import palette, style_sheet

_HERE = Path(__file__).parent

st.set_page_config(page_title="bench", page_icon=str(_HERE / "mark.svg"), layout="wide")
st.logo(str(_HERE / "mark.svg"), size="small")
st.html(style_sheet(palette(st.context.theme.type)))

st.navigation(
    [
        st.Page(_HERE / "views" / "today.py", title="Today", default=True),
        st.Page(_HERE / "views" / "regressions.py", title="Regressions", url_path="regressions"),
        st.Page(_HERE / "views" / "trends.py", title="Trends", url_path="trends"),
        st.Page(_HERE / "views" / "tradeoffs.py", title="Tradeoffs", url_path="tradeoffs"),
        st.Page(_HERE / "views" / "compare.py", title="Compare", url_path="compare"),
        st.Page(_HERE / "views" / "claims.py", title="Claims", url_path="claims"),
        st.Page(_HERE / "views" / "runs.py", title="Runs", url_path="runs"),
    ],
    position="top",
).run()
