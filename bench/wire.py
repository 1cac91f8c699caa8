"""Versioned JSON of a Run: worker pipe, spool, export, HTTP.

The document is `{"schema": "bench-run", "version": 1, "run": {…}}`. Encoding is canonical (sorted
keys, no white space), so equal runs have equal bytes and one SHA-256.
"""

from __future__ import annotations

import hashlib
from typing import Any, TypeVar

import msgspec

from bench.errors import WireError
from bench.model import ExperimentResult, Run

SCHEMA = "bench-run"
VERSION = 1

T = TypeVar("T")


def encode_run(run: Run) -> bytes:
    """The canonical document of a run."""
    return msgspec.json.encode({"schema": SCHEMA, "version": VERSION, "run": run}, order="sorted")


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
    return msgspec.json.encode(part, order="sorted")


def decode_part(data: bytes, origin: str) -> ExperimentResult:
    """Read what `encode_part` wrote. Raises WireError."""
    try:
        return msgspec.json.decode(data, type=ExperimentResult)
    except (msgspec.DecodeError, RecursionError) as error:
        raise WireError(f"{origin} is damaged: {error}.") from None


def plain(value: Any) -> Any:
    """A model value as plain JSON values (dicts, lists, numbers, text)."""
    return msgspec.to_builtins(value)


def payload_sha(run: Run) -> str:
    """SHA-256 of the canonical document: what makes two runs the same run."""
    return hashlib.sha256(encode_run(run)).hexdigest()
