"""`bench export`: stored runs as files that any bench, a spreadsheet or another tool can read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench.commands._shared import config_of, database_option, note, opened, write

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.model import Run


@click.command()
@click.argument("runs", metavar="RUN…", nargs=-1, required=True)
@click.option(
    "--format", "form", type=click.Choice(["json", "csv", "parquet", "pyperf", "asv"]), default="json",
    show_default=True,
    help="json: the whole run, readable by every verb that takes a run. csv, parquet: one row per raw sample. "
         "pyperf: its JSON. asv: a folder of results.",
)  # fmt: skip
@click.option("--output", "-o", metavar="FILE", help="Where to write; standard output without it.")
@database_option
def command(runs: tuple[str, ...], form: str, output: str | None, database: str | None) -> None:
    """Write stored runs, raw samples included.

    RUN is `latest`, `latest~N`, a key or the beginning of one. Several runs in JSON are one
    document a line. In CSV and Parquet a `value` is what was read for `loops` calls, in `unit`.

    What another tool's format cannot hold is left out, and said.
    """
    from bench.errors import UsageError

    if form in ("parquet", "asv") and output in (None, "-"):
        what = "a folder that is new or empty" if form == "asv" else "a file"
        raise UsageError(f"{form} cannot go to standard output; name {what} with --output.")
    with opened(config_of(database=database), create=False) as store:
        found = [store.get(key) for key in dict.fromkeys(store.find(ref) for ref in runs)]
    for matter in _write(found, form, output):
        note(matter)


def _write(runs: Sequence[Run], form: str, output: str | None) -> Sequence[str]:
    """Sentences on what the format leaves out."""
    from bench.exports import table

    if form == "json":
        from bench.wire import encode_run

        write("".join(encode_run(run).decode() + "\n" for run in runs), output)
        return []
    if form == "csv":
        write(table.to_csv(runs), output)
        return table.left_out(runs)
    if form == "pyperf":
        from bench.exports.pyperf import to_pyperf

        text, left_out = to_pyperf(runs)
        write(text, output)
        return left_out
    assert output is not None
    if form == "parquet":
        _put(Path(output), table.to_parquet(runs))
        return table.left_out(runs)
    from bench.exports.asv import to_asv

    results = to_asv(runs)
    _put_all(Path(output), {place: json.dumps(document) for place, document in results.documents.items()})
    return list(results.left_out)


def _put(file: Path, data: bytes) -> None:
    from bench.errors import UsageError

    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror}.") from None


def _put_all(folder: Path, files: dict[str, str]) -> None:
    """Into a folder that holds nothing yet: results of others are neither overwritten nor mixed with these."""
    from bench.errors import UsageError

    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is there and not empty; name a folder that is new or empty.")
    for place, text in files.items():
        _put(folder / place, text.encode())
