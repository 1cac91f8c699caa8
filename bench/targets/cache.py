"""Built things, each in a folder of its own: made once, whole or not at all, and swept when unused."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench.errors import HostError

KEY_DIGITS = 16
"""Every folder's name has this length: the length of a path moves a benchmark's time."""

MANIFEST = "manifest.json"
USED = "used"

Say = Callable[[str], None]


def silent(text: str) -> None:
    """Tell nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One built thing. `facts` is what its builder returned, as it stands in the manifest."""

    key: str
    folder: Path
    what: dict[str, Any]
    made_at: datetime
    used_at: datetime
    facts: dict[str, Any]


class Cache:
    """The folder `targets` in bench's cache, shared by all projects and processes."""

    def __init__(self, folder: Path) -> None:
        self.root = folder.expanduser().absolute() / "targets"
        if os.pathsep in str(self.root):
            raise HostError(
                f"The cache {folder} has a {os.pathsep!r} in its path, which no search path can hold; set BENCH_CACHE."
            )

    def get(self, what: Mapping[str, Any], build: Callable[[Path], dict[str, Any]], *, say: Say = silent) -> Entry:
        """The entry that `what` describes; built by `build(folder)` if it is not there.

        `build` fills the empty folder and returns facts; the folder is renamed when it is whole. One
        process builds, others wait. Raises what `build` raises, and HostError when the disk refuses.
        """
        text = json.dumps(what, sort_keys=True)
        key = hashlib.sha256(text.encode()).hexdigest()[:KEY_DIGITS]
        folder = self.root / key
        try:
            with self._lock(key, say):
                found = read_entry(folder)
                if found is None or found.what != json.loads(text):
                    self._build(folder, dict(what), build)
                    found = read_entry(folder)
                (folder / USED).touch()
        except OSError as error:
            raise HostError(
                f"The cache {self.root} cannot be written ({error.strerror or error}); set BENCH_CACHE to a "
                "folder with room that you own."
            ) from None
        if found is None:
            raise HostError(f"The cache {self.root} lost {key} while it was made; is it on a shared disk?")
        return found

    @contextlib.contextmanager
    def workplace(self, *, say: Say = silent) -> Iterator[Path]:
        """An empty folder for one build at a time, always at the same path.

        Compilers write the path into what they make: only so are equal sources equal artifacts.
        """
        place = self.root / "build"
        with self._lock("build", say):
            _remove(place)
            place.mkdir(parents=True)
            try:
                yield place
            finally:
                _remove(place)

    def entries(self) -> list[Entry]:
        """All whole entries, the longest unused first."""
        found = [read_entry(f) for f in self.root.glob("*") if len(f.name) == KEY_DIGITS] if self.root.is_dir() else []
        return sorted((e for e in found if e is not None), key=lambda e: e.used_at)

    def prune(self, older_than: timedelta) -> list[Entry]:
        """Remove entries that nobody asked for in that time, and what a killed build left. Returns the entries."""
        removed = []
        limit = datetime.now(UTC) - older_than
        for entry in self.entries():
            with self._try_lock(entry.key) as held:
                now = read_entry(entry.folder) if held else None
                if now is not None and now.used_at <= limit:
                    _remove(entry.folder)
                    removed.append(entry)
        for rest in self.root.glob("?" * KEY_DIGITS + ".new"):
            with self._try_lock(rest.name.partition(".")[0]) as held:
                if held:
                    _remove(rest)
        return removed

    def _build(self, folder: Path, what: dict[str, Any], build: Callable[[Path], dict[str, Any]]) -> None:
        fresh = folder.with_name(f"{folder.name}.new")
        _remove(fresh)
        fresh.mkdir(parents=True)
        start = time.monotonic()
        try:
            facts = build(fresh)
            manifest = {
                "what": what,
                "made_at": datetime.now(UTC).isoformat(),
                "seconds": round(time.monotonic() - start, 2),
                "facts": facts,
            }
            (fresh / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
            (fresh / USED).touch()
            _remove(folder)
            fresh.rename(folder)
        finally:
            _remove(fresh)

    @contextlib.contextmanager
    def _lock(self, key: str, say: Say) -> Iterator[None]:
        handle = self._open(key)
        try:
            if sys.platform != "win32":
                import fcntl

                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    say("another bench is building; waiting")
                    fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    @contextlib.contextmanager
    def _try_lock(self, key: str) -> Iterator[bool]:
        handle = self._open(key)
        try:
            held = True
            if sys.platform != "win32":
                import fcntl

                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    held = False
            yield held
        finally:
            os.close(handle)

    def _open(self, key: str) -> int:
        # Lock files are empty and stay: removing one while another process waits on it would give two owners.
        locks = self.root / "locks"
        locks.mkdir(parents=True, exist_ok=True)
        return os.open(locks / key, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)


def read_entry(folder: Path) -> Entry | None:
    """The entry of a folder; null when it is not whole."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        used = (folder / USED).stat().st_mtime
        return Entry(
            key=folder.name, folder=folder, what=manifest["what"], facts=manifest["facts"],
            made_at=datetime.fromisoformat(manifest["made_at"]), used_at=datetime.fromtimestamp(used, UTC),
        )  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
