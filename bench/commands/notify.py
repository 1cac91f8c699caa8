"""`bench notify`: tell people what happened to regressions, once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from bench.commands._shared import config_of, database_option, note, opened, write

if TYPE_CHECKING:
    from datetime import datetime

    from bench.errors import Exit


@click.command("notify")
@click.option("--since", metavar="MOMENT", default="24h", show_default=True, help="Hours (24h), days (7d) or a date.")
@click.option("--dry-run", is_flag=True, help="Print what would be told; send nothing.")
@click.option("--json", "as_json", is_flag=True, help="With --dry-run: the document that a webhook gets.")
@database_option
def command(since: str, dry_run: bool, as_json: bool, database: str | None) -> Exit:
    """Tell the channels of [[tool.bench.notify]] what the detector found, ranked by effect × confidence.

    Every channel hears of everything once, whatever the period; silent when there is nothing. Ends
    with 7 when a channel could not be reached: it is told by the next call.
    """
    import json
    import os
    from datetime import UTC, datetime

    from bench.errors import Exit, UsageError
    from bench.notify import notifiers
    from bench.notify._deliver import deliver
    from bench.reports.night import night_document, night_text
    from bench.tonight import tonight

    until = datetime.now(UTC)
    config = config_of(database=database)
    if not dry_run and not config.notify:
        raise UsageError("nobody is to be told: pyproject.toml has no [[tool.bench.notify]]; --dry-run prints it.")
    channels = () if dry_run else notifiers(config.notify, os.environ)
    with opened(config) as store:
        found = tonight(store.history, since=moment(since, until), until=until)
        if dry_run:
            write(json.dumps(night_document(found), indent=2) if as_json else night_text(found), None)
            return Exit.OK
        deliveries = deliver(found, channels, store.history)
    for delivery in deliveries:
        if delivery.error:
            note(f"{delivery.channel}: {delivery.error}; `bench notify` tries again")
        elif delivery.stories:
            note(f"{delivery.channel}: told {delivery.stories}")
    return Exit.ENVIRONMENT if any(d.error for d in deliveries) else Exit.OK


def moment(text: str, now: datetime) -> datetime:
    """`24h`, `7d`, or an ISO date or moment (UTC unless it says otherwise). Raises UsageError."""
    import re
    from datetime import UTC, datetime, timedelta

    from bench.errors import UsageError

    if match := re.fullmatch(r"(\d{1,5})([hd])", text):
        return now - timedelta(hours=int(match[1]) * (24 if match[2] == "d" else 1))
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"--since {text!r} is no moment; give hours (24h), days (7d) or a date (2027-01-31)."
        ) from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
