"""Bring a night to its channels: nothing twice, and again later what could not be brought."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from bench.errors import NotifyError, StaleError
from bench.history import Action, Event, Regression
from bench.night import Night, Story
from bench.ports import History, Notifier

TRIES = 3
PAUSES_S = (1.0, 5.0)
"""Between tries, where the receiver does not ask for more."""

LONGEST_PAUSE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """What became of one channel's part of a night."""

    channel: str
    stories: int
    error: str = ""


def deliver(
    night: Night, channels: Iterable[Notifier], history: History, *, sleep: Callable[[float], None] = time.sleep
) -> list[Delivery]:
    """Send to every channel what it has not been sent. A channel that fails is told again by the next call.

    A story is claimed in the store before it is sent: two services that tell the same night at once
    tell it once. A process that dies while it sends leaves its claim: rather not told than told twice.
    """
    return [_to(channel, part, history, sleep) for channel in channels for part in _parts(channel, night)]


def _parts(channel: Notifier, night: Night) -> list[Night]:
    """The whole night at once, or one cause at a time for channels that keep one thread a cause."""
    if not channel.one_by_one:
        return [night]
    bare = Night(since=night.since, until=night.until)
    return [
        *(replace(bare, worse=(story,)) for story in night.worse),
        *(replace(bare, suspicious=(story,)) for story in night.suspicious),
        *(replace(bare, fixed=(story,)) for story in night.fixed),
    ]


def _to(channel: Notifier, night: Night, history: History, sleep: Callable[[float], None]) -> Delivery:
    claims: list[str] = []

    def claimed(key: str) -> bool:
        key = f"{channel.name}:{key}"
        if not history.claim_notice(key):
            return False
        claims.append(key)
        return True

    mine = _unsent(night, claimed)
    stories = [*mine.worse, *mine.suspicious, *mine.fixed, *mine.better]
    if mine.silent:
        _release(history, claims)
        return Delivery(channel=channel.name, stories=0)
    try:
        links = _sent(channel, mine, sleep)
    except NotifyError as error:
        _release(history, claims)
        return Delivery(channel=channel.name, stories=len(stories), error=str(error))
    except BaseException:
        _release(history, claims)
        raise
    for story in stories:
        if link := links.get(story.regression.key):
            _link(history, story.regression, link)
    return Delivery(channel=channel.name, stories=len(stories))


def _unsent(night: Night, claimed: Callable[[str], bool]) -> Night:
    def mine(stories: tuple[Story, ...]) -> tuple[Story, ...]:
        return tuple(s for s in stories if claimed(f"{s.regression.key}:{s.told}"))

    return replace(
        night, worse=mine(night.worse), suspicious=mine(night.suspicious), better=mine(night.better),
        fixed=mine(night.fixed), refuted=tuple(c for c in night.refuted if claimed(f"refuted:{c.key}")),
        missing=tuple(m for m in night.missing if claimed(f"missing:{night.until:%Y-%m-%d}:{m}")),
    )  # fmt: skip


def _sent(channel: Notifier, night: Night, sleep: Callable[[float], None]) -> dict[str, str]:
    for number in range(TRIES):
        try:
            return dict(channel.tell(night))
        except NotifyError as error:
            if not error.again or number == TRIES - 1:
                raise
            sleep(min(error.after_s or PAUSES_S[number], LONGEST_PAUSE_S))
    raise AssertionError("unreachable")


def _release(history: History, claims: Iterable[str]) -> None:
    for key in claims:
        history.release_notice(key)


def _link(history: History, regression: Regression, link: str) -> None:
    from datetime import UTC, datetime

    for _ in range(TRIES):  # somebody may be writing to it at this moment
        now = history.regression(regression.key)
        if link in now.links:
            return
        event = Event(
            regression=now.key, number=now.events + 1, at=datetime.now(UTC), who="bench", action=Action.LINKED,
            text=link,
        )  # fmt: skip
        try:
            history.append(event)
        except StaleError:
            continue
        return
