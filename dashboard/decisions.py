"""What may be decided on a regression as it stands, in words. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from bench.history import Action, Regression, State
from bench.triage import ALLOWED


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One thing to decide."""

    word: str  # on the choice
    help: str
    field: str  # label of the text
    needed: bool  # whether the text may be left empty
    button: str
    dated: bool = False  # whether it holds until a day


CHOICES = {
    Action.ACKNOWLEDGED: Choice(
        word="Acknowledge", help="Somebody looks into it: no more of it is told.", field="Note", needed=False,
        button="Acknowledge",
    ),
    Action.EXPECTED: Choice(
        word="Expected", help="It is meant to be so, a price paid for something else. After the day it is open again.",
        field="Reason", needed=True, button="Mark as expected", dated=True,
    ),
    Action.INVALIDATED: Choice(
        word="Invalid", help="It is none: a broken run, a wrong benchmark.", field="Reason", needed=True,
        button="Mark as invalid",
    ),
    Action.FIXED: Choice(
        word="Fixed", help="It is fixed; the detector says so too once it sees it.", field="Note", needed=False,
        button="Mark as fixed",
    ),
    Action.REOPENED: Choice(
        word="Reopen", help="It is not over after all.", field="Note", needed=False, button="Reopen"
    ),
    Action.ASSIGNED: Choice(
        word="Assign", help="Whose it is; an empty name for nobody's.", field="Owner", needed=False, button="Assign"
    ),
    Action.NOTED: Choice(
        word="Note", help="Something worth knowing.", field="Note", needed=True, button="Add the note"
    ),
    Action.LINKED: Choice(
        word="Link", help="Where it is talked about.", field="Address (https://…)", needed=True, button="Add the link"
    ),
}  # fmt: skip
"""Every decision that a person may take, in the order of the page."""

_ALWAYS = frozenset({Action.ASSIGNED, Action.NOTED, Action.LINKED})


def choices_of(state: State) -> dict[Action, Choice]:
    """The decisions that make sense in a state."""
    return {action: choice for action, choice in CHOICES.items() if action in ALLOWED[state] | _ALWAYS}


def said(found: Regression, action: Action) -> str:
    """What the page answers once it is written down."""
    word = {
        Action.ASSIGNED: f"it belongs to {found.owner}" if found.owner else "it belongs to nobody",
        Action.NOTED: "the note is added", Action.LINKED: "the link is added",
    }.get(action, f"it is {found.state.value}")  # fmt: skip
    return f"Written down: {word}. Event {found.events} in the list below says who and when."
