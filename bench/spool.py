"""Results on disk before they are in the database: a kill -9 loses at most the launch in flight.

`<state>/spool/<run key>/` holds `manifest.json` (the run without experiments), `NNN.json` (one per
experiment, replaced whole after every launch) and `lock`, held while the run is alive. A folder
whose lock is free was left by a killed run: `recover` turns it into an INTERRUPTED run.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from bench.errors import BenchError, HostError
from bench.model import ExperimentResult, Failure, FailureKind, Run, RunStatus
from bench.wire import decode_part, decode_run, encode_part, encode_run


class Spool:
    """The folder of one living run."""

    def __init__(self, state: Path, run: Run) -> None:
        """`run` is the manifest: everything but experiments. Raises HostError when it cannot be written."""
        self.folder = state / "spool" / run.key
        new = state / "spool-new" / run.key  # nobody may recover it before it is locked
        try:
            new.mkdir(parents=True)
            self.folder.parent.mkdir(exist_ok=True)
            self._lock: IO[bytes] = (new / "lock").open("wb")
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            write_whole(new / "manifest.json", encode_run(run))
            new.rename(self.folder)
        except OSError as error:
            text = f"{self.folder} cannot be written: {error.strerror}; choose another state folder."
            raise HostError(text) from None

    def experiment(self, index: int, result: ExperimentResult) -> None:
        """Keep what is known of one experiment, replacing what was kept before."""
        write_whole(self.folder / f"{index:03d}.json", encode_part(result))

    def done(self) -> None:
        """The run is stored: forget it here."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self._lock.close()

    def release(self) -> None:
        """Leave the folder for a later `recover`."""
        self._lock.close()


def recover(state: Path) -> Iterator[tuple[Path, Run | None]]:
    """(folder, run) of every run that was killed; null where nothing was measured or it is damaged.

    The caller stores the run and then removes the folder.
    """
    for folder in sorted((state / "spool").glob("*/")):
        try:
            with (folder / "lock").open("rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            continue  # alive, or not ours
        yield folder, _read(folder)


def _read(folder: Path) -> Run | None:
    try:
        manifest = decode_run((folder / "manifest.json").read_bytes(), str(folder / "manifest.json"))
        files = sorted(folder.glob("[0-9]*.json"))
        parts = tuple(_mark(decode_part(file.read_bytes(), str(file))) for file in files)
        seen = max((file.stat().st_mtime for file in files), default=0.0)
    except (BenchError, OSError):
        return None
    if not any(part.launches for part in parts):
        return None
    ended = max(manifest.started_at, datetime.fromtimestamp(seen, UTC))
    return replace(manifest, experiments=parts, status=RunStatus.INTERRUPTED, finished_at=ended)


def _mark(part: ExperimentResult) -> ExperimentResult:
    lost = Failure(kind=FailureKind.UNMEASURED, phase="launch", message="the run was killed before its first launch")
    results = [r if r.failure or r.measurement("time") else replace(r, failure=lost) for r in part.results]
    return replace(part, results=tuple(results))


def write_whole(path: Path, data: bytes) -> None:
    """Whole or not at all, and on the disk when it returns."""
    temporary = path.with_suffix(".tmp")
    with temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
