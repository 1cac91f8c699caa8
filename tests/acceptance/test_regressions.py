"""`bench regressions` and `bench notify` as a person uses them."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from bench.errors import Exit
from bench.history import Action
from bench.testing import make_change, make_event, make_regression, make_run
from db.store import open_store


@pytest.fixture
def opened(bench):
    """A database with one open regression, whose key begins with ab12."""
    store = open_store(f"sqlite:///{bench.folder / '.bench' / 'bench.db'}", summarise=_estimates)
    store.add(make_run(seed=1))
    store.add(make_run(seed=2))
    history = store.history
    series = next(s for s in history.series() if s.metric.name == "time")
    good, bad = history.points([series.fingerprint])[series.fingerprint]
    change = replace(make_change(1.25), series=series, last_good=good, first_changed=bad)
    history.record([change], seen={})
    found = make_regression("ab12cd34", title="demo.net latency 1.25×")
    event = replace(make_event(found.key, 1, Action.OPENED), changes=(change.key,), at=datetime.now(UTC))
    history.open_regression(found, event)
    store.close()
    return bench


def _estimates(result):
    from bench.compare import estimate

    return {m.metric.name: estimate(m) for m in result.measurements}


def test_a_regression_is_listed_decided_and_shown_with_who_and_when(opened):
    assert "demo.net latency 1.25×" in opened("regressions", "list")[0]
    opened("regressions", "ack", "ab12", "on it", "--who", "ada")
    opened("regressions", "assign", "ab12", "bob", "--who", "ada")
    out, _ = opened("regressions", "expect", "ab12", "the price of accuracy", "--until", "2999-01-31", "--json")
    assert json.loads(out)["state"] == "expected"
    out, _ = opened("regressions", "show", "ab12")
    assert "ab12cd34 expected until 2999-01-31 (the price of accuracy), code, owner bob" in out
    assert "ada  acknowledged  on it" in out
    assert "no open regression" in opened("regressions", "list")[0]
    (row,) = json.loads(opened("regressions", "list", "--all", "--json")[0])["regressions"]
    assert row["owner"] == "bob"


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("show", "ffff"), Exit.FAILED, "none has that key"),
        (("expect", "ab12", "why", "--until", "soon"), Exit.USAGE, "no date"),
        (("expect", "ab12", "why", "--until", "2001-01-01"), Exit.USAGE, "a date to come"),
        (("reopen", "ab12"), Exit.USAGE, "it is open"),
        (("link", "ab12", "javascript:alert(1)"), Exit.USAGE, "no http(s) address"),
        (("note", "ab12", "  "), Exit.USAGE, "text is empty"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(opened, arguments, code, says):
    assert says in opened.sentence("regressions", *arguments, code=code)


def test_a_night_is_told_once_to_the_channels_of_the_project(opened):
    (opened.folder / "pyproject.toml").write_text("[[tool.bench.notify]]\nkind='stdout'\n")
    assert "ab12cd34" in opened("notify", "--dry-run")[0]
    assert "demo.net" in opened("notify")[0]
    assert opened("notify")[0] == ""


def test_nobody_to_tell_and_a_channel_without_its_secret_are_one_sentence(opened):
    assert "[[tool.bench.notify]]" in opened.sentence("notify", code=Exit.USAGE)
    (opened.folder / "pyproject.toml").write_text(
        "[[tool.bench.notify]]\nkind='slack'\nurl_variable='NO_SUCH_VARIABLE'\n"
    )
    assert "NO_SUCH_VARIABLE is not set" in opened.sentence("notify", code=Exit.USAGE)


def test_a_channel_that_cannot_be_reached_ends_with_7(opened):
    (opened.folder / "pyproject.toml").write_text("[[tool.bench.notify]]\nkind='webhook'\nurl_variable='HOOK'\n")
    line = opened("notify", code=Exit.ENVIRONMENT, HOOK="http://127.0.0.1:9/x")[1]
    assert "webhook: the receiver cannot be reached" in line
