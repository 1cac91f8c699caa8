"""`bench regressions`: what the detector opened, and what people make of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bench.commands._shared import config_of, database_option, opened, width, write

if TYPE_CHECKING:
    from datetime import date

    from bench.errors import Exit
    from bench.history import Action
    from bench.ports import History

F = TypeVar("F", bound=Callable[..., Any])

REF = click.argument("ref", metavar="REGRESSION")
JSON = click.option("--json", "as_json", is_flag=True, help="Machine-readable output.")
WHO = click.option("--who", metavar="NAME", help="Who decides (default: the name you are logged in with).")


@click.group("regressions")
def command() -> None:
    """Regressions: list and show them, and say what is to become of each.

    REGRESSION is the beginning of a key, at least four digits. What people say is appended with who
    and when; nothing is ever changed or removed.
    """


@command.command("list")
@click.option("--all", "everything", is_flag=True, help="Closed ones and improvements too.")
@JSON
@database_option
def list_(everything: bool, as_json: bool, database: str | None) -> Exit:
    """Open and acknowledged regressions, the weightiest first."""
    import json

    from bench.errors import Exit
    from bench.history import Direction, State
    from bench.night import story
    from bench.reports.regressions import regressions_text
    from bench.wire import plain

    with opened(config_of(database=database)) as store:
        history = store.history
        stories = [story(r, (), history.changes(regression=r.key)) for r in history.regressions()]
    living = [s for s in stories if s.regression.state in (State.OPEN, State.ACKNOWLEDGED)]
    wrong = [s for s in living if s.regression.direction is not Direction.BETTER]
    shown = sorted(stories if everything else wrong, key=lambda s: s.weight, reverse=True)
    if as_json:
        document = [{**plain(s.regression), "weight": s.weight} for s in shown]
        write(json.dumps({"schema": "bench-regressions", "version": 1, "regressions": document}, indent=2), None)
    else:
        write(regressions_text(shown, hidden=len(stories) - len(shown), width=width()), None)
    return Exit.OK


@command.command("show")
@REF
@JSON
@database_option
def show(ref: str, as_json: bool, database: str | None) -> Exit:
    """One regression: its change points, the evidence, and everything that happened to it."""
    import json

    from bench.errors import Exit
    from bench.reports.regressions import regression_text
    from bench.wire import plain

    with opened(config_of(database=database)) as store:
        found = store.history.regression(ref)
        events = store.history.events(found.key)
        changes = store.history.changes(regression=found.key, superseded=True)
        profiles = store.history.profiles([change.key for change in changes])
    if as_json:
        document = {
            "schema": "bench-regression", "version": 1, "regression": plain(found),
            "changes": [plain(change) for change in changes], "events": [plain(event) for event in events],
            "profiles": [plain(profile) for profile in profiles],
        }  # fmt: skip
        write(json.dumps(document, indent=2), None)
    else:
        write(regression_text(found, events, changes, profiles, width=width()), None)
    return Exit.OK


def _verb(name: str, action: str, help: str, *, text: str, needed: bool) -> None:
    """One verb that appends an event with a text."""

    @command.command(name, help=help)
    @REF
    @click.argument("text", metavar=text, required=needed, default=None if needed else "")
    @WHO
    @JSON
    @database_option
    def verb(ref: str, text: str, who: str | None, as_json: bool, database: str | None) -> Exit:
        return _append(ref, action, text, who=who, as_json=as_json, database=database)


_verb("ack", "ACKNOWLEDGED", "Somebody looks into it: no more of it is told.", text="[NOTE]", needed=False)
_verb("invalidate", "INVALIDATED", "It is none: a broken run, a wrong benchmark. Say why.", text="REASON", needed=True)
_verb("fix", "FIXED", "It is fixed; the detector says so too once it sees it.", text="[NOTE]", needed=False)
_verb("reopen", "REOPENED", "It is not over after all.", text="[NOTE]", needed=False)
_verb("assign", "ASSIGNED", "Whose it is; an empty name for nobody's.", text="OWNER", needed=True)
_verb("note", "NOTED", "Something worth knowing.", text="TEXT", needed=True)
_verb("link", "LINKED", "Where it is talked about.", text="URL", needed=True)


@command.command("expect")
@REF
@click.argument("reason")
@click.option("--until", required=True, metavar="DATE", help="After this day (UTC) it counts as open again.")
@WHO
@JSON
@database_option
def expect(ref: str, reason: str, until: str, who: str | None, as_json: bool, database: str | None) -> Exit:
    """It is meant to be so: a price paid for something else. Needs a reason and a date."""
    from datetime import UTC, datetime

    from bench.errors import UsageError

    try:
        day = datetime.strptime(until, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        raise UsageError(f"--until {until!r} is no date like 2027-01-31.") from None
    return _append(ref, "EXPECTED", reason, who=who, as_json=as_json, database=database, until=day.date())


def _append(
    ref: str,
    action: str,
    text: str,
    *,
    who: str | None,
    as_json: bool,
    database: str | None,
    until: date | None = None,
) -> Exit:
    import getpass
    import json

    from bench.errors import Exit
    from bench.history import Action
    from bench.reports.regressions import state_line
    from bench.wire import plain

    with opened(config_of(database=database), create=False) as store:
        found = append(store.history, ref, Action[action], text, who=who or getpass.getuser(), until=until)
    write(json.dumps(plain(found), indent=2) if as_json else state_line(found), None)
    return Exit.OK


def append(
    history: History, ref: str, action: Action, text: str = "", *, who: str, until: date | None = None,
    changes: Sequence[str] = (),
) -> Any:  # fmt: skip
    """Append one event to the regression as it is now. Raises StaleError where somebody was faster."""
    from datetime import UTC, datetime

    from bench.triage import decision

    now = history.regression(ref)
    return history.append(decision(now, action, text, who=who, at=datetime.now(UTC), until=until, changes=changes))
