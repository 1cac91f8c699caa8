"""What the events of a regression make of it, and which of them are allowed when. Pure.

    OPEN                        → ACKNOWLEDGED, EXPECTED, INVALID, FIXED
    ACKNOWLEDGED                → EXPECTED, INVALID, FIXED
    EXPECTED, INVALID, FIXED    → OPEN, by REOPENED

An expected regression whose date is past counts as open. Other events leave the state as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time

from bench.errors import StaleError, UsageError
from bench.history import Action, Cause, ChangePoint, Event, Regression, State

LEADS_TO = {
    Action.ACKNOWLEDGED: State.ACKNOWLEDGED,
    Action.EXPECTED: State.EXPECTED,
    Action.INVALIDATED: State.INVALID,
    Action.FIXED: State.FIXED,
    Action.REOPENED: State.OPEN,
}
"""Events that change the state, and the state they lead to."""

LAST_SECOND = time(23, 59, 59)
"""Of the day until which a regression is expected."""

_CLOSING = frozenset({Action.EXPECTED, Action.INVALIDATED, Action.FIXED})
ALLOWED: dict[State, frozenset[Action]] = {
    State.OPEN: _CLOSING | {Action.ACKNOWLEDGED},
    State.ACKNOWLEDGED: _CLOSING,
    State.EXPECTED: frozenset({Action.REOPENED}),
    State.INVALID: frozenset({Action.REOPENED}),
    State.FIXED: frozenset({Action.REOPENED}),
}
"""Events that may change each state."""


def fold(opened: Regression, events: Iterable[Event]) -> Regression:
    """`opened` with `events` applied in order; their numbers go on from `opened.events` (0: before its first).

    The state that comes out is the one the events left; `as_of` says what it counts as today.
    Raises StaleError for a number that does not follow, UsageError for an event that makes no sense.
    """
    found = opened
    for event in events:
        if event.regression != found.key or event.number != found.events + 1:
            raise StaleError(
                f"regression {found.key[:8]} has changed (event {event.number} does not follow {found.events}); "
                "read it again and decide again."
            )
        found = replace(_applied(found, event), events=event.number)
    return found


def decision(
    seen: Regression, action: Action, text: str = "", *, who: str, at: datetime, until: date | None = None,
    changes: Sequence[str] = (),
) -> Event:  # fmt: skip
    """The event that follows `seen`: where more has happened since, a store refuses it as stale.

    `until`: the last day (UTC) of an expected one. Raises UsageError for a link that is no web address.
    """
    if action is Action.LINKED and not text.startswith(("https://", "http://")):
        raise UsageError(f"{text!r} is no http(s) address.")
    return Event(
        regression=seen.key, number=seen.events + 1, at=at, who=who, action=action, text=text.strip(),
        expires_at=datetime.combine(until, LAST_SECOND, UTC) if until else None, changes=tuple(changes),
    )  # fmt: skip


def as_of(regression: Regression, now: datetime) -> Regression:
    """What it counts as at that moment: an expected one whose date is past is open again."""
    past = regression.state is State.EXPECTED and regression.expires_at is not None and regression.expires_at <= now
    return replace(regression, state=State.OPEN) if past else regression


def merged(old: ChangePoint, new: ChangePoint) -> ChangePoint:
    """`new` in place of `old`, which has the same key; a proof and a regression are kept where `new` has none."""
    return replace(new, proof=new.proof or old.proof, regression=new.regression or old.regression)


def _applied(regression: Regression, event: Event) -> Regression:
    if event.action in LEADS_TO:
        return _moved(regression, event)
    if (event.action is Action.OPENED) != (event.number == 1):
        raise _refused(regression, event, "it is the first event, and no other")
    match event.action:
        case Action.OPENED | Action.GREW:
            return replace(regression, changes=tuple(dict.fromkeys((*regression.changes, *event.changes))))
        case Action.CAUSE:
            return replace(regression, cause=_cause(regression, event))
        case Action.ASSIGNED:
            return replace(regression, owner=event.text or None)
        case Action.NOTED:
            return replace(regression, notes=(*regression.notes, _text(regression, event)))
        case Action.LINKED:
            return replace(regression, links=tuple(dict.fromkeys((*regression.links, _text(regression, event)))))
        case Action.BISECTED:
            return replace(regression, culprit=_text(regression, event))
    return regression  # PROVED: the proof is on the change point


def _moved(regression: Regression, event: Event) -> Regression:
    state = as_of(regression, event.at).state
    if event.action not in ALLOWED[state]:
        again = "" if state in (State.OPEN, State.ACKNOWLEDGED) else "; reopen it first"
        raise _refused(regression, event, f"it is {state.value}{again}")
    if event.action is Action.EXPECTED and not (event.text and event.expires_at and event.expires_at > event.at):
        raise _refused(regression, event, "that needs a reason, and a date to come")
    expires_at = event.expires_at if event.action is Action.EXPECTED else None
    return replace(regression, state=LEADS_TO[event.action], reason=event.text, expires_at=expires_at)


def _cause(regression: Regression, event: Event) -> Cause:
    """The first word of the text; what follows says why."""
    word = event.text.partition(" ")[0].rstrip(":")
    if word not in set(Cause):
        raise _refused(regression, event, f"{word!r} is no cause; known are {', '.join(Cause)}")
    return Cause(word)


def _text(regression: Regression, event: Event) -> str:
    if not event.text:
        raise _refused(regression, event, "its text is empty")
    return event.text


def _refused(regression: Regression, event: Event, why: str) -> UsageError:
    return UsageError(f"regression {regression.key[:8]} cannot be marked {event.action.value}: {why}.")
