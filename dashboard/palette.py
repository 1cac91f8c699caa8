"""Colours of both themes and the one style sheet. Pure.

Hues are Okabe & Ito's ("Color Universal Design", 2008), darkened for text on white and lightened on
the dark ground until they keep a contrast of 4.5:1. Colour never carries a meaning alone: a mark
and a word go with it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Palette:
    """Colours as #RRGGBB."""

    ground: str
    text: str
    quiet: str  # secondary text
    line: str  # grids, borders
    link: str
    accent: str  # measured points
    baseline: str
    good: str
    bad: str
    warn: str
    series: tuple[str, ...]  # told apart by shape too (dashboard.trend_charts)


LIGHT = Palette(
    ground="#FFFFFF", text="#1B2026", quiet="#5A6570", line="#E3E7EB", link="#0067A1", accent="#0072B2",
    baseline="#1B2026", good="#00775A", bad="#B84A00", warn="#8A6100",
    series=("#0072B2", "#A35C00", "#7A3E9D", "#00775A", "#B0387F", "#4D5A66"),
)  # fmt: skip
DARK = Palette(
    ground="#11151A", text="#E4E9EE", quiet="#9AA6B2", line="#2C343D", link="#7CC4EE", accent="#56B4E9",
    baseline="#E4E9EE", good="#3CC9A0", bad="#FF8F57", warn="#EDB440",
    series=("#56B4E9", "#E69F00", "#C9A0F0", "#3CC9A0", "#F08CC0", "#B4C0CC"),
)  # fmt: skip


def palette(theme: str | None) -> Palette:
    """Palette of a theme's name as the browser tells it; light where it tells none."""
    return DARK if theme == "dark" else LIGHT


def style_sheet(colours: Palette) -> str:
    """CSS of everything that dashboard.markup writes. One type scale: 1.6, 1.15, 1, 0.87 rem."""
    return f"""<style>
@media (min-width: 641px) {{ [data-testid=stMainBlockContainer] {{ padding-left: 3.5rem; padding-right: 3.5rem; }} }}
.b-state a, .b-table a, .b-line a {{ color: {colours.link}; text-decoration-thickness: 1px;
  text-underline-offset: 0.2em; white-space: nowrap; }}
.b-quiet {{ color: {colours.quiet}; }}
.b-good {{ color: {colours.good}; }} .b-bad {{ color: {colours.bad}; }} .b-warn {{ color: {colours.warn}; }}
.b-state {{ border-left: 4px solid {colours.quiet}; padding: 0.1rem 0 0.1rem 1rem; margin: 0.25rem 0 0.5rem; }}
.b-state.is-good {{ border-color: {colours.good}; }} .b-state.is-bad {{ border-color: {colours.bad}; }}
.b-state.is-warn {{ border-color: {colours.warn}; }}
.b-state h1 {{ font-size: 1.6rem; font-weight: 600; line-height: 1.3; margin: 0; padding: 0; letter-spacing: -0.01em; }}
.b-state p {{ margin: 0.35rem 0 0; }}
.b-line {{ line-height: 1.5; max-width: 60rem; margin: 0; overflow-wrap: anywhere; }}
.b-name {{ overflow-wrap: anywhere; }}
.b-scroll {{ overflow-x: auto; }}
.b-table {{ border-collapse: collapse; width: 100%; font-size: 0.93rem; line-height: 1.35;
  font-variant-numeric: tabular-nums lining-nums; }}
.b-table th {{ text-align: left; font-weight: 600; vertical-align: bottom; padding: 0.4rem 0.9rem 0.5rem 0;
  border-bottom: 1px solid {colours.quiet}; white-space: nowrap; }}
.b-table th small, .b-table td small {{ display: block; font-size: 0.87em; font-weight: 400; color: {colours.quiet}; }}
.b-table td {{ padding: 0.5rem 0.9rem 0.5rem 0; vertical-align: top; border-bottom: 1px solid {colours.line}; }}
.b-table th:last-child, .b-table td:last-child {{ padding-right: 0; }}
.b-table th a {{ white-space: normal; overflow-wrap: anywhere; }}
.b-state h1 {{ overflow-wrap: anywhere; }}
.b-legend.b-legend {{ list-style: none; display: flex; flex-wrap: wrap; gap: 0.2rem 1.4rem; padding: 0; margin: 0; }}
.b-legend.b-legend li {{ margin: 0; padding: 0; overflow-wrap: anywhere; font-size: 0.93rem; line-height: 1.45; }}
.b-table .n {{ text-align: right; white-space: nowrap; }}
.b-table tbody th div {{ min-width: 6.5rem; }}
.b-table tbody th {{ border-bottom: 1px solid {colours.line}; vertical-align: top; padding: 0.5rem 0.9rem 0.5rem 0;
  white-space: normal; overflow-wrap: anywhere; }}
.b-fail {{ margin: 0 0 0.6rem; padding: 0 0 0 1rem; border-left: 4px solid {colours.line}; overflow-wrap: anywhere; }}
.b-fail.is-bad {{ border-color: {colours.bad}; }} .b-fail.is-warn {{ border-color: {colours.warn}; }}
.b-fail pre {{ margin: 0.35rem 0 0; padding: 0.6rem 0.8rem; font-size: 0.87rem; white-space: pre-wrap;
  background: color-mix(in srgb, {colours.quiet} 10%, transparent); border-radius: 0.375rem; color: inherit; }}
.b-fail summary {{ cursor: pointer; color: {colours.quiet}; font-size: 0.93rem; }}
.b-steps {{ counter-reset: step; list-style: none; padding: 0; margin: 0.75rem 0; max-width: 44rem; }}
.b-steps li {{ counter-increment: step; position: relative; padding: 0 0 1.1rem 2.6rem; margin: 0; }}
.b-steps li::before {{ content: counter(step); position: absolute; left: 0; top: 0; width: 1.7rem; height: 1.7rem;
  border: 1px solid {colours.quiet}; border-radius: 50%; text-align: center; line-height: 1.6rem; }}
.b-steps code {{ display: inline-block; margin-top: 0.25rem; padding: 0.2rem 0.6rem; border-radius: 0.375rem;
  overflow-wrap: anywhere;
  background: color-mix(in srgb, {colours.quiet} 12%, transparent); color: inherit; font-size: 0.93rem; }}
.b-nights.b-nights {{ list-style: none; display: flex; flex-wrap: wrap; gap: 0.4rem 0; padding: 0;
  margin: 0.2rem 0 0.6rem; }}
.b-nights.b-nights li {{ width: 3.4rem; margin: 0; padding: 0; text-align: center; line-height: 1.35; }}
.b-nights li span {{ display: block; font-size: 1.15rem; }}
.b-nights li small {{ font-size: 0.87rem; color: {colours.quiet}; }}
@media (max-width: 640px) {{
  .b-state h1 {{ font-size: 1.3rem; }}
  .b-table.is-cards thead {{ display: none; }}
  .b-table.is-cards, .b-table.is-cards tbody, .b-table.is-cards tr {{ display: block; }}
  .b-table.is-cards tr {{ padding: 0.6rem 0; border-bottom: 1px solid {colours.quiet}; }}
  .b-table.is-cards td, .b-table.is-cards tbody th {{ display: flex; justify-content: space-between; gap: 1rem;
    border: 0; padding: 0.2rem 0; text-align: right; white-space: normal; }}
  .b-table.is-cards td::before {{ content: attr(data-label); color: {colours.quiet}; text-align: left; }}
  .b-table.is-cards td:empty {{ display: none; }}
  .b-table.is-cards td.note {{ text-align: left; }}
  .b-table.is-cards td.note::before {{ content: none; }}
  .b-table.is-cards tbody th {{ text-align: left; font-size: 1rem; }}
}}
</style>"""
