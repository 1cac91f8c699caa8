"""`bench db`: look after the database."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from bench.commands._shared import config_of, database_option, estimates, note, quartiles

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group()
def command() -> None:
    """Look after the database."""


@command.command()
@database_option
@json_option
def upgrade(database: str | None, as_json: bool) -> None:
    """Bring the database to the schema of this bench, or make one.

    Whole or not at all. A SQLite file that holds runs is copied beside itself first.
    """
    from db.schema import upgrade as upgrade_database

    done = upgrade_database(config_of(database=database).database)
    backup = str(done.backup) if done.backup else None
    if as_json:
        click.echo(json.dumps({"before": done.before, "after": done.after, "backup": backup}))
        return
    if done.before == done.after:
        click.echo(f"the database has the newest schema, {done.after}")
        return
    if backup:
        note(f"a copy from before is at {backup}")
    click.echo(f"schema {done.before or 'none'} → {done.after}")


@command.command()
@database_option
@json_option
def status(database: str | None, as_json: bool) -> None:
    """Say where the database is, which schema it has, and how much it holds."""
    from db.status import database_status

    seen = database_status(config_of(database=database).database)
    if as_json:
        click.echo(json.dumps(seen.plain()))
        return
    click.echo(f"database  {seen.place}")
    click.echo(f"schema    {seen.state} (has {seen.revision or 'none'}, this bench needs {seen.head})")
    if seen.bytes is not None:
        click.echo(f"size      {seen.bytes / 2**20:.1f} MiB")
    if seen.totals is not None:
        t = seen.totals
        click.echo(
            f"holds     {t.runs} runs, {t.arms} arms, {t.measurements} measurements, {t.series} series, "
            f"{t.machines} machines"
        )
        if t.first_at and t.last_at:
            click.echo(f"from      {t.first_at:%Y-%m-%d %H:%M} to {t.last_at:%Y-%m-%d %H:%M} UTC")


@command.command()
@database_option
@json_option
def rebuild(database: str | None, as_json: bool) -> None:
    """Derive all estimates, places in history and latest states again from the raw samples.

    Needed after an upgrade that changed a statistic, and after a change of the setting `branches`; safe to repeat.
    """
    from db.store import open_store

    config = config_of(database=database)
    with open_store(config.database, create=False, summarise=estimates, branches=config.branches) as store:
        count = store.rebuild()
    click.echo(json.dumps({"runs": count}) if as_json else f"estimates of {count} runs derived again")


@command.command()
@click.option("--days", type=click.IntRange(min=1), help="Age from which samples are reduced.")
@click.option("--dry-run", is_flag=True, help="Say what would be reduced; change nothing.")
@database_option
@json_option
def prune(days: int | None, dry_run: bool, database: str | None, as_json: bool) -> None:
    """Reduce the raw samples of old runs to one value a launch.

    Estimates, verdicts and history stay as they are; a pruned run says that it was. Points at change
    points and comparisons keep their samples for ever.
    """
    from datetime import UTC, datetime, timedelta

    from db.store import open_store

    config = config_of(database=database)
    before = datetime.now(UTC) - timedelta(days=days or config.keep_samples_days)
    with open_store(config.database, create=False, summarise=estimates) as store:
        done = store.prune(before, quartiles, dry_run=dry_run)
    if as_json:
        values = {"before": before.isoformat(), "dry_run": dry_run, **asdict(done)}
        click.echo(json.dumps(values))
        return
    click.echo(
        f"{'would reduce' if dry_run else 'reduced'} the samples of {done.reduced} measurements in {done.runs} runs "
        f"measured before {before:%Y-%m-%d}: {done.bytes_before / 2**20:.1f} → {done.bytes_after / 2**20:.1f} MiB"
    )


@command.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@database_option
@json_option
def backup(file: Path, database: str | None, as_json: bool) -> None:
    """Write a compact copy of a SQLite database to FILE, while others use it.

    To restore, put the copy in the database's place. A server's database is copied with pg_dump.
    """
    from db.backup import backup as write_copy

    size = write_copy(config_of(database=database).database, file)
    click.echo(json.dumps({"file": str(file), "bytes": size}) if as_json else f"{file}: {size / 2**20:.1f} MiB")
