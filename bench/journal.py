"""Answers of a long question on disk, so that the same question goes on where it was stopped."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from bench.errors import HostError
from bench.spool import write_whole

T = TypeVar("T")


class Journal(Generic[T]):
    """Values of one type by name, in the order in which they were found: one file a question."""

    def __init__(self, folder: Path, question: Mapping[str, Any], kind: type[T]) -> None:
        """`question` is everything that an answer depends on: another one has another file."""
        text = json.dumps(question, sort_keys=True, default=str)
        self.file = folder / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"
        self._question = question
        self._kind = kind
        self._found: dict[str, T] = self._read()

    def __getitem__(self, name: str) -> T:
        return self._found[name]

    def __contains__(self, name: str) -> bool:
        return name in self._found

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def keep(self, name: str, value: T) -> None:
        """On disk when it returns. Raises HostError when it cannot be written."""
        self._found[name] = value
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            document = {"question": self._question, "answers": self._found}
            write_whole(self.file, msgspec.json.format(msgspec.json.encode(document), indent=1))
        except OSError as error:
            raise HostError(f"{self.file} cannot be written ({error.strerror}); choose another state folder.") from None

    def forget(self) -> None:
        """Start again."""
        self._found = {}
        self.file.unlink(missing_ok=True)

    def _read(self) -> dict[str, T]:
        """Nothing where the file is not there, or was written by another bench: then all is asked again."""
        try:
            document = msgspec.json.decode(self.file.read_bytes(), type=dict[str, msgspec.Raw])
            return msgspec.json.decode(document["answers"], type=dict[str, self._kind])  # type: ignore[name-defined]
        except (OSError, KeyError, msgspec.DecodeError):
            return {}
