"""Trends and regressions: figures, lines and words are those of the series and change points."""

import shlex
from dataclasses import replace
from statistics import median
from zoneinfo import ZoneInfo

import pytest

from bench.history import Action, Answer, Cause, Difference, Direction, State
from bench.metrics import PEAK_MEMORY, TIME, Better
from bench.model import Estimate
from bench.night import story
from bench.testing.history import START, make_change, make_event, make_points, make_regression
from dashboard.markup import legend, outside
from dashboard.palette import DARK, LIGHT
from dashboard.regression_tables import (
    ANY,
    Wanted,
    changes_table,
    commands,
    differences_table,
    effect_cell,
    events_table,
    headline,
    matching,
    proofs_table,
    regressions_table,
)
from dashboard.tracks import around, names_of, track_of
from dashboard.trend_charts import GLYPHS, MOST, SYMBOLS, can_log, commits, places, trend_figure, wants_log
from dashboard.trend_tables import finding, legend_of, marks_table, without_interval

STEP = [1e6 * f for f in (1.0, 1.001, 0.999, 1.002, 0.998) * 4] + [1.2e6 * f for f in (1.0, 1.001, 0.999) * 7]
EVIL = '<a href="https://example.org">x</a><script>'


def track(values=STEP, *, known=(), **kwargs):
    return track_of(make_change(**kwargs).series, make_points(values), known)


def traces(figure):
    return {t.name: t for t in figure.data}


def table_text(columns, rows):
    return " ".join(f"{cell.text}{cell.html} {cell.sub}" for row in rows for cell in row.cells)


def one(effect=1.1, *, cause=Cause.CODE, state=State.OPEN, key="ab12cd34", **kwargs):
    change = make_change(effect, regression=key, **kwargs)
    found = make_regression(key, changes=(change,), cause=cause, direction=change.direction)
    return story(replace(found, state=state), (), (change,))


def test_points_levels_and_changes_of_the_figure_are_those_of_the_series():
    shown = track()
    figure = trend_figure([shown], LIGHT)
    name = shown.series.variant
    found = traces(figure)
    assert list(found[name].x) == list(range(len(STEP)))
    assert list(found[name].y) == pytest.approx([v / 1e6 for v in STEP])
    highs = [y + up for y, up in zip(found[name].y, found[name].error_y.array, strict=True)]
    assert highs == pytest.approx([v * 1.01 / 1e6 for v in STEP])
    levels = [median(STEP[:20]) / 1e6, median(STEP[20:]) / 1e6]
    lines = found[f"levels of {name}"]
    assert list(lines.x) == [0, 19, None, 20, len(STEP) - 1, None]
    assert [y for y in lines.y if y is not None] == pytest.approx([levels[0]] * 2 + [levels[1]] * 2)
    changes = found[f"changes of {name}"]
    assert (list(changes.x), list(changes.marker.symbol)) == ([20], ["triangle-down"])
    assert "▼ worse 1.20×" in changes.customdata[0][1]


def test_points_are_never_joined():
    assert {t.mode for t in trend_figure([track()], LIGHT).data if not t.name.startswith("levels")} == {"markers"}


def test_a_metric_of_which_more_is_better_turns_the_triangle():
    better = replace(make_change().series, metric=replace(TIME, name="rate", better=Better.HIGHER))
    shown = track_of(better, make_points(STEP), ())
    assert list(traces(trend_figure([shown], LIGHT))[f"changes of {better.variant}"].marker.symbol) == ["triangle-up"]


def test_series_share_the_commits_and_time_places_them_by_date():
    late = track()
    late = replace(late, points=late.points[5:], marks=())
    assert [p[0] for p in places([track(), late], by_time=False)] == [0, 5]
    assert len(commits([track(), late])) == len(STEP)
    assert places([late], by_time=True)[0][0] == late.points[0].at
    assert trend_figure([late], LIGHT, by_time=True).layout.xaxis.type == "date"


def test_every_point_and_interval_is_inside_a_logarithmic_axis_too():
    shown = track([1e6] * 10 + [4e7] * 10)
    assert wants_log([shown])
    assert not wants_log([track()])
    axis = trend_figure([shown], LIGHT, log=True).layout.yaxis
    assert axis.type == "log"
    assert 10 ** axis.range[0] < 0.99
    assert 10 ** axis.range[1] > 40 * 1.01
    assert {"1", "2", "5", "10", "20"} <= set(axis.ticktext)


def test_a_value_of_zero_keeps_the_axis_linear():
    shown = track([0.0, 1.0, 2.0])
    assert not can_log([shown])
    assert trend_figure([shown], LIGHT, log=True).layout.yaxis.type is None


def test_series_are_told_apart_by_shape_and_colour():
    several = [track(variant=f"demo.net[engine=e{k}]") for k in range(MOST)]
    figure = trend_figure(several, DARK)
    points = [t for t in figure.data if t.name.startswith("engine=")]
    assert [t.marker.symbol for t in points] == list(SYMBOLS)
    assert len({t.marker.color for t in points}) == MOST == len(GLYPHS)
    assert [glyph for glyph, _, _ in legend_of(several, DARK)][:MOST] == list(GLYPHS)


def test_names_cannot_become_markup_in_a_figure_or_a_legend():
    evil = [track(variant=f"demo.net[engine={EVIL}{k}]") for k in range(2)]
    text = str(trend_figure(evil, LIGHT).to_dict())
    assert "<a" not in text
    assert "&lt;a" in text
    assert "<script" not in legend(legend_of(evil, LIGHT))
    assert "<script" not in table_text(*changes_table([make_change(variant=EVIL)]))


def test_around_a_change_shows_it_though_the_detector_no_longer_does():
    flat = track([1e6] * 60)
    change = replace(make_change(1.1), first_changed=flat.points[50])
    shown, at = around(flat, change, reach=10)
    assert (len(shown.points), at) == (20, 10)
    assert [m.index for m in shown.marks] == [10]
    assert shown.points[at] == flat.points[50]


def test_around_a_change_that_the_detector_sees_marks_it_once():
    shown, at = around(track(), replace(make_change(1.2), first_changed=track().points[20]), reach=10)
    assert [m.index for m in shown.marks] == [at]


def test_names_say_what_differs():
    one, two = make_change(variant="demo.net[engine=e1]").series, make_change(variant="demo.net[engine=e2]").series
    assert list(names_of([one, two]).values()) == ["engine=e1", "engine=e2"]
    other = replace(one, fingerprint="0" * 32, target="numpy==2.0")
    assert list(names_of([one, other]).values()) == ["cpu", "numpy==2.0"]
    assert list(names_of([one]).values()) == ["engine=e1"]


def test_words_of_a_trend_count_changes_and_say_why_intervals_are_missing():
    assert finding([track()]).startswith("1 change in 41 points; the last at ")
    assert finding([track([1e6] * 5)]) == "No change in 5 points"
    assert without_interval([track()]) == ""
    bare = track()
    first = replace(bare.points[0], estimate=Estimate(value=1e6, note="one launch"))
    assert without_interval([replace(bare, points=(first, *bare.points[1:]))]) == (
        "1 of 41 points has no interval: one launch."
    )
    _, rows = marks_table([track()])
    assert rows[0].cells[1].text == "▼ worse\u00a01.20×"


@pytest.mark.parametrize(
    ("wanted", "keys"),
    [
        (Wanted(), {"aaaa", "bbbb"}),
        (Wanted(direction="better"), {"cccc"}),
        (Wanted(direction=ANY), {"aaaa", "bbbb", "cccc"}),
        (Wanted(state="fixed"), {"dddd"}),
        (Wanted(state=ANY, direction=ANY), {"aaaa", "bbbb", "cccc", "dddd"}),
        (Wanted(cause="environment"), {"bbbb"}),
        (Wanted(suite="elsewhere"), set()),
        (Wanted(machine="f" * 16), {"aaaa", "bbbb"}),
        (Wanted(machine="0" * 16), set()),
    ],
)
def test_filters_keep_what_was_asked_for(wanted, keys):
    stories = [
        one(1.3, key="aaaa"), one(1.2, key="bbbb", cause=Cause.ENVIRONMENT), one(0.8, key="cccc"),
        one(1.1, key="dddd", state=State.FIXED),
    ]  # fmt: skip
    assert {s.regression.key for s in matching(stories, wanted)} == keys


def test_the_usual_choice_is_what_the_terminal_lists_and_its_headline_alarms():
    assert headline([one()], Wanted()) == ("1 cause of regressions is open", "bad")
    assert headline([], Wanted()) == ("No regression is open", "good")
    assert headline([], Wanted(state="fixed"))[1] == "quiet"


def test_a_line_says_what_effect_cause_where_evidence_and_owner():
    found = one(good="a" * 40, bad="b" * 40, answer=Answer.CONFIRMED)
    found = replace(found, regression=replace(found.regression, owner="ada", culprit="c" * 40))
    text = table_text(*regressions_table([found], START, state="living"))
    for part in ("regression=ab12cd34", "state=living", "▼ worse\u00a01.100×", "1.089–1.111", "code", "culprit cccccc",
                 "aaaaaaaaa..bbbbbbbbb", "confirmed by a re-run", "ada"):  # fmt: skip
        assert part in text


def test_suspiciously_better_is_no_good_news():
    cell = effect_cell(make_change(0.3), Direction.SUSPICIOUS)
    assert cell.text.startswith("⚠ suspicious")
    assert cell.tone == "warn"


def test_commands_repeat_the_proof_and_look_for_the_commit():
    change = make_change(variant="demo.net[engine='e 1']", good="a" * 40, bad="b" * 40)
    found = make_regression()
    texts = [command for _, command in commands(found, change)]
    assert texts[0].startswith(f"bench compare {'a' * 40} {'b' * 40} ")
    assert texts[1].startswith(f"bench bisect {'a' * 40} {'b' * 40} ")
    assert texts[1].endswith(" --regression ab12cd34")
    proved = make_change(answer=Answer.CONFIRMED)
    assert [command for _, command in commands(found, proved)] == ["bench compare 1 2 demo.net"]
    memory = make_change(metric=PEAK_MEMORY, good="a" * 40, bad="b" * 40)
    assert commands(found, memory)[1][1].endswith("--metric peak_memory")
    assert commands(found, make_change()) == []  # no commits: nothing to bring back


def test_commands_can_be_pasted_into_a_shell():
    change = make_change(variant="demo.net[x='a b';rm]", good="a" * 40, bad="b" * 40)
    for _, command in commands(make_regression(), change):
        assert "demo.net[x='a b';rm]" in shlex.split(command)


def test_differences_are_counted_once_each():
    change = replace(make_change(), environment=(Difference(name="numpy", before="1.26", after=None),))
    _, rows = differences_table([change, change, make_change()])
    assert [[cell.text for cell in row.cells] for row in rows] == [["numpy", "1.26", "absent", "2 of 3"]]


def test_proofs_and_events_are_told_in_the_readers_zone():
    zone = ZoneInfo("Asia/Tokyo")
    text = table_text(*proofs_table([make_change(answer=Answer.REFUTED), make_change()], zone))
    assert "refuted by a re-run" in text
    assert "2027-01-03 09:00" in text
    assert "2027-01-01 11:00" in table_text(*events_table([make_event("ab12cd34", 2, Action.NOTED, EVIL)], zone))


def test_only_web_addresses_become_links():
    assert outside("https://example.org/1").startswith("<a ")
    assert outside("javascript:alert(1)") == "javascript:alert(1)"
    assert "<b" not in outside("https://example.org/<b>")
