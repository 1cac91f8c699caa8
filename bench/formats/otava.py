"""Apache Otava's CSV: a row is a point in time with the values of all metrics, by convention with its commit.

    time,commit,branch,throughput,p99
    2024.01.01 3:00:00 +0100,aaa0,main,154023,10.43

Which columns are metrics, and which way they improve, is written in Otava's own configuration and not
in the file; so a file is claimed only where `time` and `commit` lead and all other columns are numbers. The
file's name stands for the test. Every row is a run.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from io import StringIO
from pathlib import PurePath

from bench.errors import FormatError
from bench.formats._record import Imported, Outcome
from bench.formats._upload import Upload
from bench.formats._values import moment, once, quantity, spelled, text
from bench.model import Revision

DELIMITERS = (",", ";", "\t")
COMMIT, BRANCH = "commit", "branch"
TIME = "time"
OF_RUN = (TIME, COMMIT, BRANCH)
UNTOLD = "the file tells neither its unit nor its direction"


class Otava:
    """A table that holds all points of one test."""

    name = "otava"
    title = "Otava CSV"

    def sniff(self, upload: Upload) -> bool:
        """`time` and `commit`, and nothing but numbers in all other columns of the first row."""
        head, first = _split(upload, 0), _split(upload, 1)
        if head[:2] != [TIME, COMMIT] or len(head) != len(first) or set(head) <= set(OF_RUN):
            return False
        try:
            _when(first[0])
            return all(_is_number(cell) for name, cell in zip(head, first, strict=True) if name not in OF_RUN)
        except FormatError:
            return False

    def read(self, upload: Upload) -> Iterator[Imported]:
        """A run for every row."""
        reader = csv.reader(StringIO(upload.text, newline=""), delimiter=_delimiter(upload), strict=True)
        test = PurePath(upload.file).stem
        try:
            head = [name.strip() for name in next(reader)]
            if TIME not in head or len(set(head)) != len(head):
                raise FormatError("has no column `time`, or a column twice")
            for cells in filter(None, reader):
                if len(cells) != len(head):
                    raise FormatError(f"has {len(cells)} cells for {len(head)} columns in line {reader.line_num}")
                yield _imported(test, dict(zip(head, (cell.strip() for cell in cells), strict=True)))
        except csv.Error as error:
            raise FormatError(f"is no CSV ({error} in line {reader.line_num})") from None


def _delimiter(upload: Upload) -> str:
    head = upload.lines[0] if upload.lines else ""
    return max(DELIMITERS, key=head.count)


def _split(upload: Upload, line: int) -> list[str]:
    if len(upload.lines) <= line:
        return []
    try:
        found = next(csv.reader([upload.lines[line]], delimiter=_delimiter(upload), strict=True), [])
    except csv.Error:
        return []
    return [cell.strip() for cell in found]


def _is_number(cell: str) -> bool:
    try:
        return not cell or spelled(cell, "a value") is not None
    except FormatError:
        return False


def _when(cell: str) -> datetime:
    """Seconds since 1970, ISO 8601, or `2024.01.01 3:00:00 +0100` as in Otava's documentation."""
    if re.fullmatch(r"\d{9,11}(\.\d+)?", cell):
        return moment(float(cell), "time")
    found = re.fullmatch(r"(\d{4})[.-](\d\d)[.-](\d\d)[ T](\d?\d):(\d\d):(\d\d)\s*([+-]\d\d:?\d\d|Z)?", cell)
    if found is None:
        return moment(cell, "time")
    year, month, day, hour, minute, second, zone = found.groups()
    return moment(f"{year}-{month}-{day}T{hour:0>2}:{minute}:{second}{zone or ''}", "time")


def _imported(test: str, row: Mapping[str, str]) -> Imported:
    values = {name: cell for name, cell in row.items() if name not in OF_RUN and cell}
    measurements = tuple(
        once(quantity(text(name, "a column's name"), "")[0], spelled(cell, f"{name} at {row[TIME]}"))
        for name, cell in values.items()
    )
    if not measurements:
        raise FormatError(f"has no value at {row[TIME][:40]}")
    commit = row.get(COMMIT)
    return Imported(
        tool="otava",
        outcomes=(Outcome(benchmark=test, suite="otava", measurements=measurements,
                          notes=dict.fromkeys(values, UNTOLD)),),
        revision=Revision(commit=commit, branch=row.get(BRANCH) or None) if commit else None,
        started_at=_when(row[TIME]),
    )  # fmt: skip


FORMAT = Otava()
