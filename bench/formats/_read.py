"""From paths to runs: which format a file has, and what becomes of files that have none."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench.errors import FormatError, MissingError
from bench.formats._build import Supplied, build, together
from bench.formats._record import Imported
from bench.formats._upload import MAX_BYTES, Upload
from bench.model import Run
from bench.ports import Format

SKIPPED_FOLDERS = {".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv"}
"""Never walked into: no tool keeps results there."""

KEPT = 16
"""Neighbours that are kept in memory."""

MUDDLED = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError, AssertionError)
"""What reading a file raises whose parts are not what its format says; a format need not foresee each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A run and the files it came from."""

    files: tuple[str, ...]
    format: str
    run: Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A file that was not imported. `foreign`: it is none of ours; else it is damaged or contradicts itself."""

    file: str
    reason: str
    foreign: bool


def recognise(upload: Upload, formats: Sequence[Format]) -> Format | Refusal:
    """The one format that claims the content. None or several: no guess is made."""
    if upload.problem:
        return Refusal(file=upload.name, reason=upload.problem, foreign=not upload.claims_json)
    claiming = [form for form in formats if form.sniff(upload)]
    if len(claiming) == 1:
        return claiming[0]
    if not claiming:
        return Refusal(file=upload.name, reason="has a format that is unknown here", foreign=True)
    names = ", ".join(form.name for form in claiming)
    reason = f"could be {names}; say which with --format"
    return Refusal(file=upload.name, reason=reason, foreign=False)


def records(upload: Upload, form: Format) -> list[Imported | Run]:
    """All records of one file, or a FormatError and none."""
    try:
        return list(form.read(upload))
    except MUDDLED as error:
        what = f"{type(error).__name__}: {error}"
        raise FormatError(f"does not hold together as {form.title} ({what[:200]})") from None


class Reader:
    """Reads the files of one call. `forced` is the format of all of them; without it each is recognised."""

    def __init__(self, formats: Sequence[Format], supplied: Supplied, *, forced: bool = False) -> None:
        self._formats = formats
        self._supplied = supplied
        self._forced = forced
        self._neighbours: dict[Path, Upload] = {}

    def read(self, paths: Iterable[Path]) -> Iterator[Reading | Refusal]:
        """Every run of every file, in the order of the files; runs of several files come last."""
        shared: dict[tuple[str, str], list[tuple[str, Imported, datetime]]] = {}
        for path in paths:
            try:
                upload, written_at = open_upload(path, self._neighbours), _written_at(path)
                form = self._formats[0] if self._forced else recognise(upload, self._formats)
                if isinstance(form, Refusal):
                    yield form
                    continue
                found: list[Reading] = []
                for record in records(upload, form):
                    if isinstance(record, Run):
                        found.append(Reading(files=(str(path),), format=form.name, run=record))
                    elif record.part_of:
                        shared.setdefault((form.name, record.part_of), []).append((str(path), record, written_at))
                    else:
                        run = build(record, form.name, written_at, self._supplied)
                        found.append(Reading(files=(str(path),), format=form.name, run=run))
                yield from found
            except FormatError as error:
                yield Refusal(file=str(path), reason=str(error), foreign=False)
        for (name, _), parts in shared.items():
            files = tuple(file for file, _, _ in parts)
            try:
                record = together(part for _, part, _ in parts)
                run = build(record, name, max(at for _, _, at in parts), self._supplied)
                yield Reading(files=files, format=name, run=run)
            except FormatError as error:
                yield Refusal(file=files[0], reason=str(error), foreign=False)


def files_in(folder: Path) -> Iterator[Path]:
    """All regular files below a folder, sorted, links to folders not followed."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(set(folders) - SKIPPED_FOLDERS)
        for name in sorted(names):
            path = Path(place, name)
            if path.is_file():
                yield path


def open_upload(path: Path, neighbours: dict[Path, Upload]) -> Upload:
    """A file on disk with what lies beside it. Raises FormatError.

    `neighbours` keeps the last few files beside others, since a thousand results share one benchmarks.json.
    """

    def beside(place: str) -> Upload | None:
        other = Path(os.path.normpath(path.parent / place))
        if other not in neighbours and other.is_file():
            if len(neighbours) >= KEPT:
                del neighbours[next(iter(neighbours))]
            neighbours[other] = open_upload(other, neighbours)
        return neighbours.get(other)

    return Upload(str(path), _content(path), beside)


def _content(path: Path) -> bytes:
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise FormatError(f"has {size / 2**20:.0f} MiB; files over {MAX_BYTES // 2**20} MiB are not read")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise MissingError(f"{path} is not there; name a file or a folder of results.") from None
    except OSError as error:
        raise FormatError(f"cannot be read: {error.strerror}") from None
    if len(data) > MAX_BYTES:
        raise FormatError(f"is larger than {MAX_BYTES // 2**20} MiB; it is not read")
    return data


def _written_at(path: Path) -> datetime:
    return datetime.fromtimestamp(int(path.stat().st_mtime), UTC)
