"""`bench doctor`: is this machine fit to measure?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.model import Machine
    from runners.doctor import Finding


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """Say whether this machine is fit to measure, and what would make it fitter.

    Exits with 7 when something would make results mislead, else with 0.
    """
    from bench.config import load_config
    from bench.errors import Exit
    from runners.checkup import read_checkup
    from runners.doctor import Status, examine, overall
    from runners.machine import read_machine

    config = load_config()
    findings = examine(read_checkup(config.state))
    machine = read_machine(config.tags)
    if as_json:
        _print_json(findings, overall(findings), machine)
    else:
        _print_text(findings, overall(findings), machine)
    if any(finding.status is Status.BAD for finding in findings):
        ctx.exit(Exit.ENVIRONMENT)


def _print_json(findings: Sequence[Finding], verdict: str, machine: Machine) -> None:
    import json

    from bench.wire import plain

    document = {
        "overall": verdict,
        "findings": [plain(finding) for finding in findings],
        "machine": {**plain(machine), "fingerprint": machine.fingerprint},
    }
    click.echo(json.dumps(document, indent=2, ensure_ascii=False))


def _print_text(findings: Sequence[Finding], verdict: str, machine: Machine) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    colours = {"ok": "green", "warn": "yellow", "bad": "bold red", "unknown": "dim"}
    console = Console(highlight=False)
    console.print(Text(machine.label, style="bold"))
    console.print(Text(f"fingerprint {machine.fingerprint}", style="dim"))
    console.print()
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in findings:
        table.add_row(Text(finding.name), Text(finding.status, style=colours[finding.status.value]), Text(finding.seen))
    console.print(table)
    todo = sorted((f for f in findings if f.advice), key=lambda f: f.status != "bad")
    if todo:
        console.print()
        console.print(Text("What to do", style="bold"))
        steps = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
        steps.add_column(no_wrap=True)
        steps.add_column(overflow="fold")
        for finding in todo:
            steps.add_row(Text(finding.name, style=colours[finding.status.value]), Text(finding.advice))
        console.print(steps)
    console.print()
    style = {"fit": "bold green", "usable with care": "bold yellow", "not fit": "bold red"}[verdict]
    console.print(Text(f"This machine is {verdict}.", style=style))
