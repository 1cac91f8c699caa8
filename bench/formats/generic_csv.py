"""Our own table for whoever has a spreadsheet or a script: docs/reference.md describes it.

One row a value. Rows that agree in the columns of a run are one run; rows that agree in benchmark,
parameters and metric too are samples of it, of one process unless `launch` tells several.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from typing import Any

from bench.errors import FormatError
from bench.formats._record import UNKNOWN_MACHINE, Imported, Outcome
from bench.formats._upload import Upload
from bench.formats._values import optional_moment, scaled, text, whole
from bench.formats.generic_json import metric_of
from bench.model import Environment, Machine, Measurement, Revision, Scalar

REQUIRED = ("benchmark", "metric", "unit", "better", "value")
OF_RUN = ("commit", "branch", "committed_at", "started_at", "cpu", "architecture", "logical_cores", "memory_gib",
          "python", "system", "tool", "tool_version")  # fmt: skip
OPTIONAL = ("suite", "version", "launch")
PARAM = "param:"


class GenericCsv:
    """Columns by name, in any order; parameters are columns `param:NAME`."""

    name = "csv"
    title = "bench results CSV"

    def sniff(self, upload: Upload) -> bool:
        """The columns that must be there, and none that is unknown."""
        header = _header(upload)
        known = {*REQUIRED, *OF_RUN, *OPTIONAL}
        return set(REQUIRED) <= set(header) and all(c in known or c.startswith(PARAM) for c in header)

    def read(self, upload: Upload) -> Iterator[Imported]:
        """A run for every set of values in the columns of a run."""
        runs: dict[tuple[str, ...], list[dict[str, str]]] = {}
        reader = csv.reader(StringIO(upload.text, newline=""), strict=True)
        try:
            header = next(reader)
            if len(set(header)) != len(header):
                raise FormatError("has a column twice")
            for cells in filter(None, reader):
                if len(cells) != len(header):
                    raise FormatError(f"has {len(cells)} cells for {len(header)} columns in line {reader.line_num}")
                row = dict(zip(header, cells, strict=True))
                runs.setdefault(tuple(row.get(column, "") for column in OF_RUN), []).append(row)
        except csv.Error as error:
            raise FormatError(f"is no CSV ({error} in line {reader.line_num})") from None
        for rows in runs.values():
            yield _imported(rows)


def _header(upload: Upload) -> list[str]:
    first = upload.lines[0] if upload.lines else ""
    try:
        return next(csv.reader([first], strict=True), [])
    except csv.Error:
        return []


def _imported(rows: Sequence[Mapping[str, str]]) -> Imported:
    told = {name: value.strip() for name, value in rows[0].items() if value.strip()}
    commit = told.get("commit")
    return Imported(
        tool=told.get("tool", "unknown"),
        tool_version=told.get("tool_version"),
        outcomes=tuple(_outcomes(rows)),
        machine=Machine(
            architecture=told.get("architecture"), cpu=told.get("cpu"), physical_cores=None,
            logical_cores=whole(told.get("logical_cores")), memory_gib=whole(told.get("memory_gib")),
        ) if told else UNKNOWN_MACHINE,
        environment=Environment(python=told.get("python"), system=told.get("system")),
        revision=Revision(
            commit=commit, branch=told.get("branch"), committed_at=optional_moment(told.get("committed_at"))
        ) if commit else None,
        started_at=optional_moment(told.get("started_at")),
    )  # fmt: skip


def _outcomes(rows: Sequence[Mapping[str, str]]) -> Iterator[Outcome]:
    variants: dict[tuple[Any, ...], dict[tuple[str, ...], dict[str, list[Any]]]] = {}
    for row in rows:
        params = tuple((c.removeprefix(PARAM), v) for c, v in row.items() if c.startswith(PARAM) and v)
        variant = (text(row["benchmark"], "benchmark"), row.get("suite", ""), row.get("version", ""), params)
        metric = (row["metric"], row["unit"], row["better"])
        launches = variants.setdefault(variant, {}).setdefault(metric, {})
        launches.setdefault(row.get("launch", ""), []).append(_value(row))
    for (name, suite, version, params), metrics in variants.items():
        known: dict[str, Scalar] = dict(params)
        measurements = tuple(_measurement(metric, launches, name) for metric, launches in metrics.items())
        yield Outcome(benchmark=name, suite=suite, version=version, params=known, measurements=measurements)


def _measurement(words: tuple[str, ...], launches: Mapping[str, Sequence[Any]], benchmark: str) -> Measurement:
    name, unit, better = words
    raw = sum(map(len, launches.values())) > 1
    metric, factor = metric_of(text(name, "metric"), unit or "1", better, raw=raw)
    samples = tuple(tuple(scaled(v, factor, f"{name} of {benchmark}") for v in row) for row in launches.values())
    return Measurement(metric=metric, launches=samples)


def _value(row: Mapping[str, str]) -> int | float:
    try:
        found = float(row["value"])
    except ValueError:
        raise FormatError(f"has the value {row['value'][:40]!r} of {row['benchmark'][:100]}, no number") from None
    return int(found) if row["value"].strip().isdigit() and found < 2**53 else found


FORMAT = GenericCsv()
