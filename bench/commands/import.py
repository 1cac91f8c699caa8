"""`bench import`: results that other tools wrote become runs."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import datetime
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.commands._shared import config_of, database_option, opened, write
from bench.errors import Exit

if TYPE_CHECKING:
    from bench.formats._build import Supplied
    from bench.formats._read import Reading, Refusal
    from bench.model import Revision
    from bench.ports import Store
    from bench.reports.imports import ImportTally

BATCH = 100
"""Runs that are stored together."""


@click.command("import")
@click.argument("places", metavar="FILE…", nargs=-1, required=True, type=click.Path(exists=True))
@click.option("--format", "form", metavar="NAME", help="Read every file as this format instead of recognising it.")
@click.option("--commit", metavar="HASH", help="Commit of the files that name none.")
@click.option("--branch", metavar="NAME", help="Branch of the files that name none.")
@click.option("--committed-at", metavar="TIME", help="When the commit was made (ISO 8601), where nothing else tells.")
@click.option("--machine", metavar="LABEL", help="Machine of the files that do not name its processor.")
@click.option("--tool-version", metavar="TEXT", help="Version of the tool that wrote the files that do not say it.")
@click.option("--repository", metavar="PATH", help="A git checkout that knows the commits: full hashes and dates.")
@click.option("--dry-run", is_flag=True, help="Read and check everything; store nothing.")
@database_option
@click.option("--json", "as_json", is_flag=True, help="Machine-readable output.")
def command(places: tuple[str, ...], database: str | None, dry_run: bool, as_json: bool, **chosen: Any) -> int:
    """Import results that other tools wrote, each FILE or all files below a folder.

    The format is recognised by content; a file that none or several formats claim is refused. Files
    that are named are imported together or not at all. In a folder the good files are imported and
    the others are listed.

    What lacks commit, machine or tool version is stored, but kept out of history.
    """
    from bench.errors import UsageError
    from bench.formats import all_formats, format_named
    from bench.formats._read import Reader, files_in
    from bench.reports.imports import ImportTally

    form = chosen.pop("form")
    formats = (format_named(form),) if form else all_formats()
    repository = _Commits(chosen.pop("repository"))
    reader = Reader(formats, _supplied(repository, **chosen), forced=form is not None)
    named = [Path(place) for place in places if not Path(place).is_dir()]
    folders = [Path(place) for place in places if Path(place).is_dir()]
    tally = ImportTally(dry_run=dry_run)
    stream = chain(
        _all_or_nothing(reader.read(named)),
        _good(reader.read(file for folder in folders for file in files_in(folder)), tally),
    )
    with _no_collector():
        first = list(islice(stream, BATCH))
        if not first:
            reasons = [f"{r.file} {r.reason}" for r in tally.broken[:1]] or ["nothing there holds any"]
            raise UsageError(f"no results were found in {', '.join(places)}: {reasons[0]}.")
        with nullcontext() if dry_run else opened(config_of(database=database)) as store:
            _keep(first, stream, store, tally)
    tally.stray = len(repository.stray)
    write(json.dumps(tally.document(), indent=2) if as_json else tally.text(), None)
    return Exit.FAILED if tally.broken else Exit.OK


@contextmanager
def _no_collector() -> Iterator[None]:
    """Records and runs hold no cycles, and looking for some takes a quarter of a large import's time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _supplied(repository: _Commits, **chosen: Any) -> Supplied:
    from bench.errors import FormatError, UsageError
    from bench.formats._build import Supplied
    from bench.formats._values import moment

    for name, value in chosen.items():
        if value is not None and not value.strip():
            raise UsageError(f"--{name.replace('_', '-')} is empty; leave it out, or say what it is.")
    if chosen["committed_at"] is not None:
        try:
            chosen["committed_at"] = moment(chosen["committed_at"], "--committed-at")
        except FormatError as error:
            raise UsageError(f"{error}; write it like 2026-03-31T12:00:00Z.") from None
    return Supplied(**chosen, resolve=repository.resolve if repository.known else None)


def _all_or_nothing(found: Iterable[Reading | Refusal]) -> list[Reading]:
    """Every run of the files that were named. Raises UsageError when one of the files is refused."""
    from bench.errors import UsageError
    from bench.formats._read import Refusal

    results = list(found)
    refused = [result for result in results if isinstance(result, Refusal)]
    if refused:
        more = f" ({len(refused) - 1} more files cannot be imported)" if len(refused) > 1 else ""
        raise UsageError(f"{refused[0].file} {refused[0].reason}; nothing was imported{more}.")
    return [result for result in results if not isinstance(result, Refusal)]


def _good(found: Iterable[Reading | Refusal], tally: ImportTally) -> Iterator[Reading]:
    """Every run of the files in folders; what is refused is only counted."""
    from bench.formats._read import Refusal

    for result in found:
        if isinstance(result, Refusal):
            tally.refused.append(result)
        else:
            yield result


def _keep(batch: list[Reading], rest: Iterator[Reading], store: Store | None, tally: ImportTally) -> None:
    """Store what is new, batch after batch, and count everything."""
    known = {info.key for info in store.runs()} if store is not None else set()
    while batch:
        new = []
        for reading in batch:
            tally.add(reading, known=reading.run.key in known)
            if reading.run.key not in known:
                known.add(reading.run.key)
                new.append(reading.run)
        if store is not None:
            store.add_many(new)
        batch = list(islice(rest, BATCH))


class _Commits:
    """The commits of a checkout, found by any beginning of their hash that is long enough to be one."""

    SHORTEST = 7

    def __init__(self, place: str | None) -> None:
        self.known: dict[str, datetime] = {}
        self.stray: set[str] = set()
        if place is not None:
            from bench.targets.revision import Repository

            self.known = Repository.open(Path(place)).commits()
        self._short: dict[str, list[str]] = {}
        for commit in self.known:
            self._short.setdefault(commit[: self.SHORTEST], []).append(commit)

    def resolve(self, text: str) -> Revision | None:
        """The full hash and its date; null where there is no such commit, or more than one."""
        from bench.model import Revision

        found = [commit for commit in self._short.get(text[: self.SHORTEST], ()) if commit.startswith(text)]
        if len(found) != 1:
            self.stray.add(text)
            return None
        return Revision(commit=found[0], committed_at=self.known[found[0]])
