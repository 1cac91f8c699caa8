"""What events make of a regression, and which are refused."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bench.errors import StaleError, UsageError
from bench.history import Action, Cause, Direction, Event, Regression, State
from bench.triage import ALLOWED, LEADS_TO, as_of, fold

START = datetime(2026, 3, 1, tzinfo=UTC)
LATER = START + timedelta(days=30)
NEW = Regression(
    key="ab12cd34", title="demo got slower", direction=Direction.WORSE, cause=Cause.CODE, machine_fingerprint="m",
    opened_at=START, state=State.OPEN, changes=(), events=0,
)  # fmt: skip


def events(*actions: Action | tuple[Action, dict[str, object]]) -> list[Event]:
    """OPENED and then those, an hour apart; each with a text and a date, unless told otherwise."""
    found = []
    for number, action in enumerate((Action.OPENED, *actions), start=1):
        kind, changes = action if isinstance(action, tuple) else (action, {})
        event = Event(
            regression=NEW.key, number=number, at=START + timedelta(hours=number), who="ada", action=kind,
            text="because", expires_at=LATER,
        )  # fmt: skip
        found.append(replace(event, **changes))  # type: ignore[arg-type]
    return found


WAYS: dict[State, list[Action | tuple[Action, dict[str, object]]]] = {
    State.OPEN: [],
    State.ACKNOWLEDGED: [Action.ACKNOWLEDGED],
    State.EXPECTED: [Action.EXPECTED],
    State.INVALID: [Action.INVALIDATED],
    State.FIXED: [Action.FIXED],
}


@pytest.mark.parametrize("action", LEADS_TO)
@pytest.mark.parametrize("state", State)
def test_a_state_changes_only_as_allowed(state: State, action: Action) -> None:
    before = events(*WAYS[state])
    assert fold(NEW, before).state is state
    if action in ALLOWED[state]:
        after = fold(NEW, events(*WAYS[state], action))
        assert (after.state, after.reason) == (LEADS_TO[action], "because")
        assert after.expires_at == (LATER if action is Action.EXPECTED else None)
    else:
        with pytest.raises(UsageError, match=f"cannot be marked {action.value}: it is {state.value}"):
            fold(NEW, events(*WAYS[state], action))


def test_what_was_closed_can_only_be_reopened() -> None:
    for state in (State.EXPECTED, State.INVALID, State.FIXED):
        assert ALLOWED[state] == {Action.REOPENED}
    assert Action.REOPENED not in ALLOWED[State.OPEN] | ALLOWED[State.ACKNOWLEDGED]


def test_an_expected_one_counts_as_open_from_its_date_on() -> None:
    found = fold(NEW, events(Action.EXPECTED))
    assert as_of(found, LATER - timedelta(seconds=1)).state is State.EXPECTED
    assert as_of(found, LATER).state is State.OPEN
    late = {"at": LATER + timedelta(days=1)}
    assert fold(NEW, events(Action.EXPECTED, (Action.FIXED, late))).state is State.FIXED
    with pytest.raises(UsageError, match="it is open"):
        fold(NEW, events(Action.EXPECTED, (Action.REOPENED, late)))


@pytest.mark.parametrize("lack", [{"text": ""}, {"expires_at": None}, {"expires_at": START}])
def test_expected_needs_a_reason_and_a_date_to_come(lack: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="needs a reason, and a date to come"):
        fold(NEW, events((Action.EXPECTED, lack)))


def test_events_gather_what_people_and_machines_learn() -> None:
    found = fold(NEW, events(
        (Action.GREW, {"changes": ("c2", "c1")}), Action.PROVED, (Action.CAUSE, {"text": "environment: numpy 2.1"}),
        (Action.ASSIGNED, {"text": "bob"}), (Action.NOTED, {"text": "one"}), (Action.NOTED, {"text": "two"}),
        (Action.LINKED, {"text": "https://a"}), (Action.LINKED, {"text": "https://a"}),
        (Action.BISECTED, {"text": "c0ffee"}),
    ))  # fmt: skip
    assert found == replace(
        NEW, changes=("c2", "c1"), cause=Cause.ENVIRONMENT, owner="bob", notes=("one", "two"), links=("https://a",),
        culprit="c0ffee", events=10,
    )  # fmt: skip
    assert fold(found, [replace(events()[0], number=11, action=Action.ASSIGNED, text="")]).owner is None


def test_other_events_are_allowed_in_every_state() -> None:
    for state, way in WAYS.items():
        found = fold(NEW, events(*way, Action.NOTED, (Action.GREW, {"changes": ("c",)}), Action.PROVED))
        assert found.state is state


def test_folding_in_two_steps_is_folding_in_one() -> None:
    found = events(Action.ACKNOWLEDGED, Action.NOTED, Action.FIXED, Action.REOPENED, Action.LINKED)
    whole = fold(NEW, found)
    for cut in range(len(found) + 1):
        assert fold(fold(NEW, found[:cut]), found[cut:]) == whole


@pytest.mark.parametrize("changes", [{"number": 1}, {"number": 3}, {"regression": "other"}])
def test_an_event_that_does_not_follow_is_stale(changes: dict[str, object]) -> None:
    with pytest.raises(StaleError, match="read it again"):
        fold(fold(NEW, events()), [replace(events(Action.NOTED)[1], **changes)])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ((Action.CAUSE, {"text": "magic"}), "'magic' is no cause"),
        ((Action.NOTED, {"text": ""}), "its text is empty"),
        (Action.OPENED, "it is the first event"),
    ],
)
def test_an_event_that_makes_no_sense_is_refused(wrong: tuple[Action, dict[str, object]] | Action, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        fold(NEW, events(wrong))


def test_the_first_event_opens() -> None:
    with pytest.raises(UsageError, match="it is the first event"):
        fold(NEW, [replace(events()[0], action=Action.NOTED)])
