"""What a period has to say, read from what is stored."""

from __future__ import annotations

from datetime import datetime

from bench.history import State
from bench.night import Night, night, refuted_in, story
from bench.ports import History


def tonight(history: History, *, since: datetime, until: datetime) -> Night:
    """What happened to regressions in the period."""
    stories = []
    for regression in history.regressions(states=(State.OPEN, State.ACKNOWLEDGED, State.FIXED)):
        events = [event for event in history.events(regression.key) if since < event.at <= until]
        if events:
            stories.append(story(regression, events, history.changes(regression=regression.key)))
    refuted = refuted_in(history.changes(superseded=True), since, until)
    return night(stories, refuted, since=since, until=until)
