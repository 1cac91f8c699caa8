"""What a night tells: ranked by what its intervals vouch for, silent when there is nothing."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.history import Action, Answer, Cause, Direction
from bench.model import Estimate
from bench.night import least_effect, night, refuted_in, story, weight
from bench.reports.night import headline, night_document, night_markdown, night_text, regression_title
from bench.testing import make_change, make_event, make_regression

NOW = datetime(2027, 1, 2, 6, tzinfo=UTC)
SINCE = NOW - timedelta(hours=24)


def told(*stories, refuted=(), missing=()):
    return night(stories, refuted, since=SINCE, until=NOW, missing=missing)


def opened(key="a" * 32, *, changes=None, direction=Direction.WORSE, actions=(Action.OPENED,), **facts):
    changes = [make_change(1.1)] if changes is None else changes
    events = [make_event(key, number, action) for number, action in enumerate(actions, 1)]
    return story(make_regression(key, direction=direction, changes=changes, **facts), events, changes)


@pytest.mark.parametrize(
    ("low", "value", "high", "least"),
    [(1.05, 1.1, 1.2, 0.0488), (0.8, 0.9, 0.95, 0.0513), (0.98, 1.1, 1.2, 0.0), (None, 1.1, None, 0.0953)],
)
def test_an_effect_counts_for_as_much_as_its_interval_vouches_for(low, value, high, least):
    estimate = Estimate(value=value, low=low, high=high, note="" if low else "one launch")
    assert least_effect(estimate, relative=True) == pytest.approx(least, abs=1e-4)


def test_a_difference_of_accuracy_counts_as_it_is():
    assert least_effect(Estimate(value=-0.05, low=-0.08, high=-0.02), relative=False) == pytest.approx(0.02)


@given(st.floats(0.01, 100), st.floats(1.0001, 3))
def test_a_slowdown_and_its_reverse_weigh_the_same(ratio, width):
    there = Estimate(value=ratio, low=ratio / width, high=ratio * width)
    back = Estimate(value=1 / ratio, low=1 / ratio / width, high=1 / ratio * width)
    assert least_effect(there, relative=True) == pytest.approx(least_effect(back, relative=True), abs=1e-9)


def test_what_a_rerun_confirmed_goes_before_what_none_was_made_for_and_refuted_weighs_nothing():
    sure, alone, gone = (make_change(1.1, answer=answer) for answer in (Answer.CONFIRMED, None, Answer.REFUTED))
    assert weight(sure) > weight(alone) > weight(gone) == 0


def test_the_weightiest_cause_is_told_first():
    found = told(opened("a" * 32, changes=[make_change(1.05)]), opened("b" * 32, changes=[make_change(1.5)]))
    assert [s.regression.key[0] for s in found.worse] == ["b", "a"]


def test_a_night_without_news_is_silent():
    assert told().silent
    assert told(opened(actions=(Action.NOTED,))).silent
    assert told(opened(direction=Direction.BETTER), refuted=[make_change(1.1, answer=Answer.REFUTED)]).silent


def test_suspiciously_better_fixed_and_missing_are_not_silent():
    assert not told(opened(direction=Direction.SUSPICIOUS)).silent
    assert not told(opened(actions=(Action.FIXED,))).silent
    assert not told(missing=["quantization on cuda"]).silent


def test_a_regression_that_came_and_went_is_told_as_fixed():
    found = told(opened(actions=(Action.OPENED, Action.FIXED)))
    assert (len(found.fixed), found.worse) == (1, ())


def test_only_what_was_refuted_in_the_period_is_said():
    early = make_change(1.1, answer=Answer.REFUTED, proved_at=SINCE - timedelta(hours=1))
    now = make_change(1.1, answer=Answer.REFUTED, proved_at=NOW)
    assert refuted_in([early, now, make_change(1.1)], SINCE, NOW) == [now]


def test_the_text_names_cause_commits_and_evidence_and_counts_the_rest():
    change = make_change(1.2, answer=Answer.CONFIRMED, good="1" * 40, bad="2" * 40)
    stories = [opened(f"{k}" * 32, changes=[change] * 5, cause=Cause.CODE) for k in range(7)]
    text = night_text(told(*stories))
    assert text.startswith("7 causes of regressions; worst: demo.net[engine=e1] latency 1.20× ")
    assert "111111111..222222222" in text
    assert "confirmed by a re-run" in text
    assert "and 2 more series" in text
    assert "and 2 more causes" in text


def test_markdown_lets_no_name_become_markup():
    change = make_change(1.2, variant="x.y[a=<img src=x>`](javascript:alert(1))@team`]")
    text = night_markdown(told(opened(changes=[change], title="<b> @team [a](http://b)")))
    outside = "".join(text.split("`")[::2])
    assert "<" not in outside
    assert "@team" not in outside
    assert not re.search(r"(?<!\\)\]\(", outside)
    assert "&lt;b&gt;" in outside


def test_the_document_of_a_webhook_holds_every_list_and_survives_json():
    import json

    document = json.loads(json.dumps(night_document(told(opened(), missing=["x"]))))
    assert document["schema"] == "bench-night"
    assert document["worse"][0]["changes"][0]["effect"] == pytest.approx(1.1)
    assert document["missing"] == ["x"]
    assert headline(told()) == "nothing to tell"


def test_a_title_says_what_moved_by_how_much_and_how_many_with_it():
    changes = [make_change(1.123, variant="a.b"), make_change(1.1)]
    assert regression_title(changes, Direction.WORSE) == "a.b latency 1.12× and 1 more"
