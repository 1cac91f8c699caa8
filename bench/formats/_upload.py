"""A file as a format sees it: name, bytes, what they hold, what lies beside. Foreign, so never trusted."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import PurePath
from typing import Any

from bench.errors import FormatError

MAX_BYTES = 64 * 2**20
"""Largest file that is read: parsed JSON takes about ten times as much memory."""

BINARY = {b"PK\x03\x04": "a zip archive", b"\x1f\x8b": "compressed with gzip", b"BZh": "compressed with bzip2",
          b"\xfd7zXZ\x00": "compressed with xz", b"\x28\xb5\x2f\xfd": "compressed with zstd"}  # fmt: skip
"""First bytes of what must be unpacked first."""


def alone(place: str) -> Upload | None:
    """Nothing lies beside a file that came by itself."""
    return None


class Upload:
    """One file.

    `name` is how a person finds it. `beside("machine.json")` and `beside("../benchmarks.json")` are
    the files there, null where there is none; they are looked up only when a format asks.
    """

    def __init__(self, name: str, data: bytes, beside: Callable[[str], Upload | None] = alone) -> None:
        self.name = name
        self.data = data
        self.beside = beside

    @property
    def file(self) -> str:
        """The last part of the name."""
        return PurePath(self.name).name

    @property
    def folder(self) -> str:
        """The name less its last part."""
        return str(PurePath(self.name).parent)

    @cached_property
    def problem(self) -> str:
        """Why the content cannot be read at all; empty where it can."""
        for beginning, what in BINARY.items():
            if self.data.startswith(beginning):
                return f"is {what}; unpack it first"
        if not self.data.strip():
            return "is empty"
        try:
            self.data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            return f"is no UTF-8 text (byte {error.start}); import what the tool wrote, not a binary file"
        if "\0" in self.text:
            return f"holds a NUL byte at {self.data.index(0)}; it is damaged, or no text"
        return "" if self.json is not None or not self.claims_json or self.documents else self._parsed[1]

    @property
    def claims_json(self) -> bool:
        """By its name and its first character."""
        return self.name.endswith(".json") and self.text.lstrip()[:1] in ("{", "[")

    @cached_property
    def text(self) -> str:
        """The content as text, less what ends a string in C where it ends a line; empty where it is none."""
        try:
            return self.data.decode("utf-8-sig").replace("\0\n", "\n")
        except UnicodeDecodeError:
            return ""

    @cached_property
    def lines(self) -> list[str]:
        """Lines of the text."""
        return self.text.splitlines()

    @cached_property
    def json(self) -> Any:
        """The whole content as one JSON value; null where it is none."""
        return self._parsed[0]

    @cached_property
    def documents(self) -> list[Any]:
        """One JSON object a line; empty unless there are two or more and every line is one."""
        if self.json is not None or not self.text.lstrip().startswith("{"):
            return []
        lines = [line for line in self.lines if line.strip()]
        try:
            found = [parse(line) for line in lines]
        except FormatError:
            return []
        return found if len(found) > 1 and all(isinstance(value, dict) for value in found) else []

    @cached_property
    def _parsed(self) -> tuple[Any, str]:
        if self.text.lstrip()[:1] not in ("{", "["):
            return None, ""
        try:
            return parse(self.text), ""
        except FormatError as error:
            return None, str(error)


def parse(text: str) -> Any:
    """JSON with NaN and infinities, which several tools write; the reader of a value checks it.

    Raises FormatError for what is no JSON, for a key that an object has twice, and for text that is no Unicode.
    """
    try:
        value = json.loads(text, object_pairs_hook=_object)
        if "\\ud" in text or "\\uD" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise FormatError("is nested too deeply to be a result file") from None
    except UnicodeEncodeError:
        raise FormatError("holds half a surrogate pair, which is no Unicode text") from None
    except json.JSONDecodeError as error:
        raise FormatError(f"is not JSON ({error.msg} in line {error.lineno}); it is damaged or cut short") from None
    except ValueError as error:  # a number of thousands of digits
        raise FormatError(f"holds a number that is too long to be one ({error})") from None
    return value


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise FormatError(f"has the key {twice[:60]!r} twice in one object; which of them counts is unknown")
    return found
