"""Versioned JSON of a Run: worker pipe, spool, export, HTTP.

The document is `{"schema": "bench-run", "version": 1, "run": {…}}`. Mappings keep their order, since
a variant's name is spelled in the order of its axes; `payload_sha` alone is independent of it.
"""

from __future__ import annotations

import hashlib
from dataclasses import fields, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from bench.errors import WireError
from bench.model import ArmResult, ExperimentResult, Run

SCHEMA = "bench-run"
VERSION = 1

T = TypeVar("T")


def encode_run(run: Run) -> bytes:
    """The document of a run."""
    return msgspec.json.encode({"schema": SCHEMA, "version": VERSION, "run": run})


def decode_run(data: bytes, origin: str = "input") -> Run:
    """Read a document; `origin` names it in the error.

    Raises WireError when it is no JSON, no run, or from a newer bench.
    """
    try:
        document = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise WireError(f"{origin} is not JSON ({error}); export the run again.") from None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise WireError(f'{origin} is not a bench run (no "schema": "{SCHEMA}").')
    version = document.get("version")
    if version != VERSION:
        raise WireError(f"{origin} has wire version {version!r} and this bench reads {VERSION}; upgrade bench.")
    return convert(document.get("run"), Run, origin)


def convert(value: Any, kind: type[T], origin: str) -> T:
    """Plain JSON values to a model type, checked field by field. Raises WireError with the path."""
    try:
        return msgspec.convert(value, kind)
    except (msgspec.ValidationError, RecursionError) as error:
        raise WireError(f"{origin} is not a valid {kind.__name__}: {error}.") from None


def encode_part(part: ExperimentResult) -> bytes:
    """One experiment, for the spool."""
    return msgspec.json.encode(part)


def decode_part(data: bytes, origin: str) -> ExperimentResult:
    """Read what `encode_part` wrote. Raises WireError."""
    try:
        return msgspec.json.decode(data, type=ExperimentResult)
    except (msgspec.DecodeError, RecursionError) as error:
        raise WireError(f"{origin} is damaged: {error}.") from None


def plain(value: Any) -> Any:
    """A model value as plain JSON values (dicts, lists, numbers, text)."""
    return msgspec.to_builtins(value)


def canonical(run: Run) -> Run:
    """The run as a reader of its document sees it: declared types (8 becomes 8.0), moments in UTC.

    Raises WireError for a value that the document cannot hold, or a moment without a time zone.
    """
    try:
        values = plain(run)
    except (TypeError, RecursionError) as error:
        raise WireError(f"run {run.key} cannot be written: {error}.") from None
    checked = convert(values, Run, f"run {run.key}")
    revision = checked.revision
    if revision is not None and revision.committed_at is not None:
        revision = replace(revision, committed_at=_utc(revision.committed_at, run.key))
    return replace(
        checked, revision=revision, started_at=_utc(checked.started_at, run.key),
        finished_at=_utc(checked.finished_at, run.key),
    )  # fmt: skip


def _utc(moment: datetime, key: str) -> datetime:
    if moment.tzinfo is None:
        raise WireError(f"run {key} holds the moment {moment} without a time zone; moments are aware UTC.")
    return moment.astimezone(UTC)


def _shallow(value: Run | ArmResult) -> dict[str, Any]:
    return {f.name: getattr(value, f.name) for f in fields(value)}


def _drop_silent(values: dict[str, Any], *names: str) -> None:
    for name in names:
        if not values[name]:
            del values[name]


def payload_sha(run: Run) -> str:
    """SHA-256 over the canonical run with sorted keys: what makes two runs the same run."""
    return canonical_sha(canonical(run))


def canonical_sha(run: Run) -> str:
    """The `payload_sha` of a run that is canonical already.

    Fields that version 1 gained later are left out while they say nothing, so that a run that was
    stored before them stays the same run.
    """
    # Measurements, which hold the samples, are encoded as they are: to make them plain first would take as long again.
    values = _shallow(run)
    values["machine"] = plain(run.machine)
    values["experiments"] = [
        {
            "experiment": plain(part.experiment),
            "results": [_shallow(result) for result in part.results],
            "launches": plain(part.launches),
        }
        for part in run.experiments
    ]
    _drop_silent(values, "quarantine", "reduced")
    _drop_silent(values["machine"], "named")
    for experiment in values["experiments"]:
        _drop_silent(experiment["experiment"]["benchmark"], "launches")
        _drop_silent(experiment["experiment"]["policy"], "always_valid", "borrowed", "loops", "family")
        _drop_silent(experiment["experiment"]["policy"], "instructions", "allocations", "tail_ns", "thresholds")
        for result in experiment["results"]:
            _drop_silent(result, "absent")
        for launch in experiment["launches"]:
            _drop_silent(launch, "load", "forked")
            for seen in launch["rounds"]:
                _drop_silent(seen, "voluntary_switches", "io_pressure_ns", "memory_pressure_ns", "clock_mhz")
                _drop_silent(seen, "temperature_c", "device")
    document = {"schema": SCHEMA, "version": VERSION, "run": values}
    try:
        return hashlib.sha256(msgspec.json.encode(document, order="sorted")).hexdigest()
    except UnicodeEncodeError as error:
        raise WireError(f"run {run.key} holds text that is no Unicode ({error.reason}).") from None
