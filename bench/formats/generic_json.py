"""Our own format for whoever writes results by hand or from a script: docs/reference.md describes it.

It is strict: an unknown key is an error, since a misspelt `comit` would put a run into quarantine.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

from bench.errors import FormatError, WireError
from bench.formats._record import UNKNOWN_ENVIRONMENT, UNKNOWN_MACHINE, Imported, Outcome
from bench.formats._upload import Upload
from bench.formats._values import keys, moment, quantity, rows, scaled, table, text
from bench.metrics import TIME, Better, Kind, Metric, Summary
from bench.model import Environment, Failure, FailureKind, Machine, Measurement, Revision, Scalar
from bench.wire import convert

SCHEMA = "bench-results"
VERSION = 1

TOP = ("schema", "version", "tool", "tool_version", "commit", "branch", "committed_at", "dirty", "started_at",
       "finished_at", "machine", "environment", "requirements", "variables", "results")  # fmt: skip
RESULT = ("benchmark", "suite", "version", "title", "params", "metrics", "failure", "notes", "items")
METRIC = ("name", "unit", "better", "kind", "help", "value", "samples", "launches")


class GenericJson:
    """One run a document; several documents are one a line."""

    name = "json"
    title = "bench-results JSON"

    def sniff(self, upload: Upload) -> bool:
        """It says so itself."""
        return all(keys(d) and d.get("schema") == SCHEMA for d in _documents(upload))

    def read(self, upload: Upload) -> Iterator[Imported]:
        """A run for every document."""
        for document in _documents(upload):
            yield imported(document)


def _documents(upload: Upload) -> list[Any]:
    return upload.documents or [upload.json]


def imported(document: Mapping[str, Any]) -> Imported:
    """The record of one document. Raises FormatError."""
    _only(document, TOP, "the document")
    if document.get("version") != VERSION:
        raise FormatError(f"has version {document.get('version')!r} of {SCHEMA}; this bench reads {VERSION}")
    tool = text(document.get("tool", "unknown"), "tool")
    dates = {name: document.get(name) for name in ("committed_at", "started_at", "finished_at")}
    when = {name: None if value is None else moment(value, name) for name, value in dates.items()}
    revision = None
    if document.get("commit") is not None:
        revision = Revision(
            commit=text(document["commit"], "commit"), dirty=document.get("dirty") is True,
            branch=document.get("branch"), committed_at=when["committed_at"],
        )  # fmt: skip
    version = document.get("tool_version")
    return Imported(
        tool=tool,
        tool_version=None if version is None else text(version, "tool_version"),
        outcomes=tuple(_outcome(table(entry, "a result")) for entry in rows(document.get("results"), "results")),
        machine=_described(UNKNOWN_MACHINE, document.get("machine"), Machine),
        environment=_described(UNKNOWN_ENVIRONMENT, document.get("environment"), Environment),
        revision=revision,
        requirements=tuple(text(item, "a requirement") for item in document.get("requirements", ())),
        variables={name: str(value) for name, value in document.get("variables", {}).items()},
        started_at=when["started_at"],
        finished_at=when["finished_at"],
    )


def _described(unknown: Any, told: Any, kind: type) -> Any:
    """The model's own fields, all of which may be left out."""
    if told is None:
        return unknown
    known = {f.name: getattr(unknown, f.name) for f in fields(unknown)}
    what = kind.__name__.lower()
    _only(table(told, what), known, what)
    try:
        return convert({**known, **told}, kind, what)
    except WireError as error:
        raise FormatError(f"is wrong about its {what}: {str(error).rstrip('.')}") from None


def _outcome(entry: Mapping[str, Any]) -> Outcome:
    _only(entry, RESULT, "a result")
    name = text(entry.get("benchmark"), "benchmark")
    failure = None
    if entry.get("failure") is not None:
        failure = Failure(kind=FailureKind.RAISED, phase="round", message=text(entry["failure"], "failure"))
    metrics = rows(entry.get("metrics", []), f"metrics of {name}")
    params: dict[str, Scalar] = table(entry.get("params", {}), f"params of {name}")
    if not all(isinstance(value, str | int | float) for value in params.values()):
        raise FormatError(f"has a parameter of {name[:100]} that is neither text, a number nor a switch")
    if not metrics and failure is None:
        raise FormatError(f"has neither metrics nor a failure of {name[:100]}")
    return Outcome(
        benchmark=name, suite=str(entry.get("suite", "")), version=str(entry.get("version", "")),
        title=str(entry.get("title", "")), params=params, failure=failure, items=float(entry.get("items", 1.0)),
        measurements=tuple(_measurement(table(metric, "a metric"), name) for metric in metrics),
        notes={key: str(value) for key, value in entry.get("notes", {}).items()},
    )  # fmt: skip


def _measurement(entry: Mapping[str, Any], benchmark: str) -> Measurement:
    _only(entry, METRIC, f"a metric of {benchmark}")
    name = text(entry.get("name"), f"name of a metric of {benchmark}")
    given = [key for key in ("value", "samples", "launches") if key in entry]
    if len(given) != 1:
        raise FormatError(f"has {' and '.join(given) or 'no value'} of {name}; give value, samples or launches")
    metric, factor = metric_of(name, entry.get("unit"), entry.get("better"), entry.get("kind"), raw=given != ["value"])
    values = {"value": [[entry.get("value")]], "samples": [entry.get("samples")], "launches": entry.get("launches")}
    launches = tuple(
        tuple(scaled(value, factor, f"{name} of {benchmark}") for value in rows(launch, f"{given[0]} of {name}"))
        for launch in rows(values[given[0]], f"launches of {name}")
    )
    return Measurement(metric=replace(metric, help=str(entry.get("help", metric.help))), launches=launches)


def metric_of(name: str, unit: Any, better: Any, kind: Any = None, *, raw: bool) -> tuple[Metric, float]:
    """A metric from its words; `raw`: it has samples. `time` in a unit of time is the harness's own."""
    if better not in ("lower", "higher"):
        raise FormatError(f"says that {name[:100]} is better {better!r}; it is lower or higher")
    metric, factor = quantity(name, text(unit, f"unit of {name}"), Better(better))
    if kind is not None:
        if kind not in set(Kind):
            raise FormatError(f"has {name[:100]} of the kind {kind!r}; there are {', '.join(Kind)}")
        metric = replace(metric, kind=Kind(kind))
    if name == TIME.name and metric.kind is Kind.TIME and raw:
        return TIME, factor
    return replace(metric, summary=Summary.QUARTILE) if raw else metric, factor


def _only(value: Mapping[str, Any], known: Collection[str], what: str) -> None:
    if unknown := sorted(value.keys() - set(known)):
        raise FormatError(f"has the unknown key {unknown[0][:60]!r} in {what}; there are {', '.join(known)}")


FORMAT = GenericJson()
