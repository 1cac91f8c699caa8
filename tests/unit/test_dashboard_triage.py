"""Deciding on a regression's page: only who may, under a name, and never over somebody else's decision."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import streamlit as st

from bench.errors import UsageError
from bench.history import Action, State
from bench.testing import make_change, make_event, make_regression, make_run
from bench.triage import ALLOWED, decision
from dashboard import triage
from dashboard.decisions import CHOICES, choices_of, said

EVIL = "<script>alert(1)</script>[x](javascript:alert(1))"
KEY = "ab12cd34" * 4


@pytest.fixture
def opened(site, monkeypatch):
    """A database with one open regression, read by a dashboard that lets everybody decide."""
    monkeypatch.setenv(triage.ALLOWED, "1")
    with site.store() as store:
        run = make_run()
        store.add(run)
        series = next(s for s in store.history.series() if s.metric.name == "time")
        change = replace(make_change(regression=KEY), series=series)
        store.history.record([change], seen={})
        found = replace(make_regression(KEY, changes=[change]), events=1)
        store.history.open_regression(found, replace(make_event(KEY, 1, Action.OPENED, "."), changes=(change.key,)))
    return site


def stored(site):
    with site.store() as store:
        return store.history.regression(KEY), store.history.events(KEY)


def choose(test, action):
    test.button_group[0].set_value(action).run()


def press(test):
    test.button[0].click().run()


@pytest.mark.parametrize("state", State)
def test_only_what_makes_sense_may_be_decided(state):
    offered = set(choices_of(state))
    assert offered == ALLOWED[state] | {Action.ASSIGNED, Action.NOTED, Action.LINKED}
    assert offered <= set(CHOICES)


def test_a_decision_follows_what_was_seen_until_the_end_of_its_day():
    seen = replace(make_regression(), events=4)
    now = datetime(2027, 1, 1, 12, tzinfo=UTC)
    found = decision(seen, Action.EXPECTED, " pays for the cache ", who="ada", at=now, until=now.date())
    assert (found.number, found.text) == (5, "pays for the cache")
    assert found.expires_at == datetime(2027, 1, 1, 23, 59, 59, tzinfo=UTC)
    with pytest.raises(UsageError, match="no http"):
        decision(seen, Action.LINKED, "javascript:alert(1)", who="ada", at=now)


@pytest.mark.parametrize("action", CHOICES)
def test_every_decision_is_answered_in_words(action):
    assert said(make_regression(), action).startswith("Written down: ")


def test_without_permission_there_is_nothing_to_press(opened, monkeypatch):
    monkeypatch.setenv(triage.ALLOWED, "")
    test = opened.show("regressions", regression=KEY)
    assert "This page only reads" in opened.html(test)
    assert not test.button
    assert not test.text_input


def test_who_signed_in_decides_under_their_own_name(opened, monkeypatch):
    monkeypatch.setenv(triage.ALLOWED, "")
    monkeypatch.setattr(triage, "signed_in", lambda: "ada@example.org")
    test = opened.show("regressions", regression=KEY)
    assert "signed in as ada@example.org" in opened.html(test)
    assert [field.label for field in test.text_input] == ["Note (may stay empty)"]
    press(test)
    found, events = stored(opened)
    assert (found.state, events[-1].who) == (State.ACKNOWLEDGED, "ada@example.org")


def test_expected_needs_a_reason_and_holds_until_a_day(opened):
    test = opened.show("regressions", regression=KEY)
    choose(test, Action.EXPECTED)
    test.text_input(key="triage-who").set_value("ada")
    press(test)
    assert "reason is missing" in opened.html(test)
    assert len(stored(opened)[1]) == 1
    day = (datetime.now(UTC) + timedelta(days=9)).date()
    test.text_input(key="triage-text").set_value(EVIL)
    test.date_input[0].set_value(day)
    press(test)
    text = opened.html(test)
    assert "Written down: it is expected" in text
    assert f"expected until {day}" in text
    assert "<script" not in text
    found, events = stored(opened)
    assert (found.reason, events[-1].who, found.expires_at.date()) == (EVIL, "ada", day)
    assert test.text_input(key="triage-text").value == ""
    assert "Written down" not in opened.html(test.run())


def test_who_was_slower_is_told_and_nothing_is_lost(opened):
    test = opened.show("regressions", regression=KEY)
    with opened.store() as store:  # somebody else, after this page was shown
        seen = store.history.regression(KEY)
        store.history.append(decision(seen, Action.ACKNOWLEDGED, "mine", who="grace", at=datetime.now(UTC)))
    test.text_input(key="triage-text").set_value("I look into it")
    press(test)
    text = opened.html(test)
    assert "Somebody decided meanwhile" in text
    assert "grace" in text
    assert test.text_input(key="triage-text").value == "I look into it"
    assert [e.who for e in stored(opened)[1]] == ["bench", "grace"]
    choose(test, Action.NOTED)
    press(test)
    assert [e.action for e in stored(opened)[1]] == [Action.OPENED, Action.ACKNOWLEDGED, Action.NOTED]


def test_what_the_store_refuses_is_a_sentence(opened):
    test = opened.show("regressions", regression=KEY)
    choose(test, Action.LINKED)
    test.text_input(key="triage-text").set_value("javascript:alert(1)")
    press(test)
    assert "no http(s) address" in opened.html(test)
    assert len(stored(opened)[1]) == 1


def test_a_name_is_needed(opened):
    test = opened.show("regressions", regression=KEY)
    test.text_input(key="triage-who").set_value(" ")
    press(test)
    assert "your name is missing" in opened.html(test)


def test_nobody_is_signed_in_without_a_provider(opened):
    assert st.user.get("is_logged_in") is None
    assert triage.signed_in() == ""
