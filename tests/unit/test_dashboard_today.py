"""The first page: the night in one line, and nothing called good that nobody measured or looked at."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest

from bench.history import Action, Answer, Direction, State
from bench.model import Estimate, Failure, FailureKind
from bench.night import Night, story
from bench.selftest import SOURCE
from bench.testing import MemoryStore, make_change, make_event, make_regression, make_run
from dashboard.markup import strip, table
from dashboard.tables import tone_of
from dashboard.today_tables import (
    days,
    health_table,
    last_good,
    living,
    measured_since,
    newest_move,
    nights,
    verdict,
)

EVIL = "<script>alert(1)</script>[x](javascript:alert(1))"
NOW = datetime(2027, 1, 10, 6, tzinfo=UTC)
BROKEN = Failure(kind=FailureKind.RAISED, phase="round", message="boom")


def infos(*runs):
    store = MemoryStore()
    store.add_many(runs)
    return store.runs()


def at(hours, **kwargs):
    return make_run(seed=hours, started_at=NOW - timedelta(hours=hours), **kwargs)


def told(effect=1.3, key="ab12cd34", **kwargs):
    regression = replace(make_regression(key, **kwargs), opened_at=NOW - timedelta(hours=3))
    return story(regression, [make_event(key, 1, Action.OPENED)], [make_change(effect, regression=key)])


QUIET = Night(since=NOW - timedelta(days=1), until=NOW)


@pytest.mark.parametrize(
    ("night", "runs", "open_", "unseen", "says", "tone"),
    [
        (replace(QUIET, worse=(told(),)), [at(2)], [told()], 0, "Last 24 hours: 1 cause of regressions; worst:", "bad"),
        (QUIET, [], [told()], 0, "Nothing was measured in the last 24 hours; 1 older cause still open", "warn"),
        (QUIET, [at(2, failure=BROKEN)], [], 0,
         "No regression was found in the last 24 hours, but something failed in 1 run", "bad"),
        (QUIET, [at(2)], [], 7, "Measured in the last 24 hours, not yet looked at by the detector", "warn"),
        (QUIET, [at(2)], [told()], 0, "No regression was found in the last 24 hours; 1 older cause still open", "warn"),
        (QUIET, [at(2)], [], 0, "No regression was found in the last 24 hours", "good"),
    ],
)  # fmt: skip
def test_the_night_in_one_line(night, runs, open_, unseen, says, tone):
    text, found = verdict(night, infos(*runs), open_, unseen)
    assert text.startswith(says)
    assert found == tone


def test_imports_and_self_tests_are_no_night():
    own, foreign = at(2), replace(at(5), source="asv")  # foreign suites that bench itself measured
    imported = replace(at(3), source="asv", profile="imported")
    every = infos(own, foreign, imported, replace(at(4), source=SOURCE), at(40))
    assert {i.key for i in measured_since(every, NOW - timedelta(days=1))} == {own.key, foreign.key}
    assert health_table([i for i in every if i.key == imported.key], {}, {}, NOW)[1] == []


def test_days_know_good_from_unmeasured_failed_and_worse():
    every = infos(at(1), at(26, failure=BROKEN), at(50), at(74))
    assert tone_of(every[1]) == "bad"
    opened = replace(make_regression(), opened_at=NOW - timedelta(hours=49))
    none = replace(opened, opened_at=NOW - timedelta(hours=73), state=State.INVALID)
    found = days(every, [opened, none], NOW.date(), UTC, count=5)
    assert [kind for _, kind in found] == ["none", "good", "worse", "failed", "good"]
    assert found[-1][0] == date(2027, 1, 10)
    assert last_good(found) == "last good day: today"
    assert last_good(found[:-1]) == "last good day: 2027-01-07, 2 days ago"
    assert last_good(found[:1]) == "no good day among the last 1"
    assert "2027-01-08: a regression was found" in strip(nights(found), "days")


def test_what_lives_is_open_and_no_improvement():
    closed = replace(told(), regression=replace(make_regression(), state=State.FIXED))
    better = told(direction=Direction.BETTER)
    assert living([told(), closed, better]) == [told()]


def canary(effect=1.08, *, days_ago=1, **kwargs):
    change = make_change(effect, variant="canary.reference[work=memory]", **kwargs)
    moved = replace(change.first_changed, measured_at=NOW - timedelta(days=days_ago))
    return replace(change, first_changed=moved, series=replace(change.series, suite="canary", machine_fingerprint="m"))


def test_the_newest_move_of_the_canary_counts_and_a_refuted_one_is_none():
    old, new = canary(1.2, days_ago=9), canary(1.08)
    still = replace(old.series, machine_fingerprint="still")
    assert newest_move([old.series, still], [new, old]) == {"m": new, "still": None}
    assert newest_move([old.series], [canary(answer=Answer.REFUTED)]) == {"m": None}


@pytest.mark.parametrize(
    ("moves", "says"),
    [
        ({}, "never measured"),
        ({"m": None}, "it has not moved"),
        ({"m": canary()}, "moved: ▼ worse"),
        ({"m": canary(days_ago=20)}, "steady since"),
    ],
)
def test_health_says_in_words_whether_a_machine_moved(moves, says):
    (info,) = infos(at(2))
    info = replace(info, machine_fingerprint="m", machine_label=EVIL)
    share = Estimate(value=0.0, low=0.0, high=0.079, n=45)
    text = table(*health_table([info], moves, {"m": share}, NOW), "Machines")
    assert says in text
    assert "0 of 45" in text
    assert "at most 7.9%" in text
    assert "<script" not in text
    assert "bench selftest" in table(*health_table([info], moves, {}, NOW), "Machines")


# The page


def open_one(site, title=EVIL):
    key = "ab12cd34" * 4
    with site.store() as store:
        series = next(s for s in store.history.series() if s.metric.name == "time")
        change = replace(make_change(1.3, regression=key), series=series)
        every = store.history.series(changed=True)
        newest = {s.fingerprint: store.history.points([s.fingerprint])[s.fingerprint][-1].run_key for s in every}
        store.history.record([change], seen=newest)
        now = datetime.now(UTC)
        found = replace(make_regression(key, title=title, changes=[change]), events=1, opened_at=now)
        event = replace(make_event(key, 1, Action.OPENED), at=now, changes=(change.key,))
        store.history.open_regression(found, event)


def test_an_empty_database_explains_the_first_three_steps(site):
    text = site.text("today")
    assert text.index("bench list") < text.index("bench run") < text.index("bench show")
    assert not site.file.exists()


def test_a_bad_night_names_its_worst_cause_and_leads_to_it(site):
    site.fill(make_run(started_at=datetime.now(UTC) - timedelta(hours=2)))
    open_one(site)
    text = site.text("today")
    assert "Last 24 hours: 1 cause of regressions; worst: demo.net" in text
    assert 'href="regressions?regression=ab12cd34' in text
    assert "<script" not in text
    assert "1 run with 3 variants measured" in text


def test_a_night_that_nobody_looked_at_is_not_called_good(site):
    site.fill(make_run(started_at=datetime.now(UTC) - timedelta(hours=2)))
    text = site.text("today")
    assert "not yet looked at by the detector" in text
    assert "series have points that the detector has not looked at: bench detect" in text
    assert "last good day" in text


def test_a_database_that_cannot_be_opened_gives_a_sentence(site):
    site.file.write_bytes(b"this is no database at all" * 100)
    text = site.text("today")
    assert "cannot be shown" in text
    assert "Traceback" not in text
