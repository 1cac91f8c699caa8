"""`bench compare`: two stored runs and a verdict."""

from __future__ import annotations

import sys

import click

from bench.commands._shared import config_of, database_option, load_run, opened, width, write


@click.command("compare")
@click.argument("base", metavar="BASE")
@click.argument("head", metavar="HEAD")
@database_option
@click.option("--strict", is_flag=True, help="Exit with 4 when anything is inconclusive.")
@click.option("--trades", type=click.Choice(["report", "fail"]), default="report", show_default=True,
              help="Whether a trade (one metric better, another worse) exits with 8.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Machine-readable output.")
def command(base: str, head: str, database: str | None, strict: bool, trades: str, as_json: bool) -> int:
    """Compare two stored runs: keys, latest~1 and latest, or exported files.

    Two stored runs cannot be paired, so their times are never called better or worse: they are
    INCONCLUSIVE, with the ratio and its interval. Sizes and answers are compared exactly.
    """
    from bench.compare import compare_runs
    from bench.reports.json import JsonReport
    from bench.reports.text import TextReport

    with opened(config_of(database=database)) as store:
        left, right = load_run(store, base), load_run(store, head)
    comparison = compare_runs(left, right)
    code = comparison.exit_code(strict=strict, trades_fail=trades == "fail")
    if as_json:
        write(JsonReport().comparison(comparison, exit_code=int(code)), None)
    else:
        write(TextReport(width(), sys.stdout.isatty()).comparison(comparison), None)
    return code
