"""`bench show`: a stored run, or the list of them."""

from __future__ import annotations

import sys

import click

from bench.commands._shared import config_of, database_option, load_run, opened, trust, width, write


@click.command("show")
@click.argument("run", default="latest")
@click.option("--list", "as_list", is_flag=True, help="List stored runs, newest first.")
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="Runs in the list.")
@database_option
@click.option("--tail", is_flag=True, help="Also p50, p90, p95 and p99 of single calls.")
@click.option("--json", "as_json", is_flag=True, help="Machine-readable output.")
def command(run: str, as_list: bool, limit: int, database: str | None, tail: bool, as_json: bool) -> None:
    """Show RUN: a key or its beginning, latest, latest~1, or an exported file."""
    import json
    from dataclasses import replace

    from bench.reports.json import JsonReport
    from bench.reports.text import TextReport, runs_table
    from bench.rereading import comparison_of
    from bench.selftest import SOURCE
    from bench.wire import plain

    with opened(config_of(database=database)) as store:
        if as_list:
            infos = store.runs(limit=limit)
            write(json.dumps(plain(infos), indent=2) if as_json else runs_table(infos), None)
            return
        found = load_run(store, run)
        comparison = None if as_json or found.source == SOURCE else comparison_of(found)
        if comparison is not None:
            comparison = replace(comparison, notes=(*comparison.notes, trust(store, found.machine.fingerprint)))
    if as_json:
        write(JsonReport().run(found), None)
        return
    report = TextReport(width(), sys.stdout.isatty(), tail=tail)
    write(report.run(found), None)
    if comparison is not None:
        write("\n" + report.comparison(comparison), None)
