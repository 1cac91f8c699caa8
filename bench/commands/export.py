"""`bench export`: a stored run as a file that any bench, or a spreadsheet, can read."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

import click

from bench.commands._shared import config_of, database_option, note, opened, write

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.model import Run

COLUMNS = (
    "run", "started_at", "commit", "machine", "environment", "benchmark", "version", "variant", "target", "metric",
    "unit", "better", "loops", "launch", "sample", "value",
)  # fmt: skip


@click.command()
@click.argument("runs", metavar="RUN…", nargs=-1, required=True)
@click.option(
    "--format", "form", type=click.Choice(["json", "csv"]), default="json", show_default=True,
    help="json: the whole run, readable by every verb that takes a run. csv: one row per raw sample.",
)  # fmt: skip
@click.option("--output", "-o", metavar="FILE", help="Where to write; standard output without it.")
@database_option
def command(runs: tuple[str, ...], form: str, output: str | None, database: str | None) -> None:
    """Write stored runs, raw samples included.

    RUN is `latest`, `latest~N`, a key or the beginning of one. Several runs in JSON are one
    document a line. In CSV a `value` is what was read for `loops` calls, in `unit`.
    """
    with opened(config_of(database=database), create=False) as store:
        found = [store.get(key) for key in dict.fromkeys(store.find(ref) for ref in runs)]
    write(_json(found) if form == "json" else _csv(found), output)


def _json(runs: Sequence[Run]) -> str:
    from bench.wire import encode_run

    return "".join(encode_run(run).decode() + "\n" for run in runs)


def _csv(runs: Sequence[Run]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    empty = 0
    for run in runs:
        for experiment, result in run.arms():
            empty += not result.measurements
            revision = result.arm.target.revision or run.revision
            benchmark = experiment.experiment.benchmark
            head = (
                run.key, run.started_at.isoformat(), revision.commit if revision else "", run.machine.fingerprint,
                run.environment.fingerprint, benchmark.name, benchmark.version, result.arm.variant.name,
                result.arm.target.label,
            )  # fmt: skip
            for measurement in result.measurements:
                metric = measurement.metric
                row = (*head, metric.name, metric.unit, metric.better.value, measurement.loops)
                for launch, samples in enumerate(measurement.launches):
                    for index, value in enumerate(samples):
                        writer.writerow((*row, launch, index, value))
    if empty:
        note(f"{empty} arms have no samples and so no rows; `bench show` says why")
    return text.getvalue()
