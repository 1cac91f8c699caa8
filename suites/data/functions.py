"""Records of the functions and classes of Python's standard library, and retrieval pairs out of them."""

from __future__ import annotations

import gzip
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

from bench.errors import HostError

FILE = Path(__file__).with_name("functions.jsonl.gz")
SHA256 = "927b6d9ce3b3ddda1cbde2ad449d5b7b35e8ef54838e264090d9a1cde6513546"
"""Of the compressed file; collect.py made it from CPython 3.11.7."""


@cache
def records() -> tuple[dict[str, Any], ...]:
    """All records, in the order of the file. Raises HostError when the file is not the one we ship."""
    return read(FILE, SHA256)


def read(file: Path, sha256: str) -> tuple[dict[str, Any], ...]:
    """The records of a compressed JSON lines file whose digest must be `sha256`."""
    try:
        blob = file.read_bytes()
    except OSError as error:
        raise HostError(f"{file} cannot be read ({error.strerror}); restore it from the repository.") from None
    found = hashlib.sha256(blob).hexdigest()
    if found != sha256:
        raise HostError(
            f"{file} is damaged or was changed: its SHA-256 is {found[:12]}… instead of {sha256[:12]}…; "
            f"restore it from the repository."
        )
    return tuple(json.loads(line) for line in gzip.decompress(blob).splitlines())


@cache
def pairs(count: int) -> tuple[tuple[str, str], ...]:
    """(summary, body) of `count` public docstrings, all summaries different.

    Chosen by digest, so that they are spread over the library and the choice stays.
    """
    chosen: dict[str, dict[str, Any]] = {}
    for record in records():
        if record["public"] and 25 < len(record["summary"]) < 200 and len(record["body"]) > 120:
            chosen.setdefault(record["summary"], record)
    if len(chosen) < count:
        raise ValueError(f"{count} pairs were asked for; the data holds {len(chosen)}")
    ordered = sorted(chosen.values(), key=lambda r: hashlib.sha256(f"{r['module']}.{r['name']}".encode()).digest())
    return tuple((r["summary"], r["body"]) for r in ordered[:count])
