"""Any program: starting it and waiting for its end is what is timed. Runs in a worker.

`time` is the wall clock from start to end, `cpu_time` and `peak_memory` are the program's own, with
what it started and waited for. It gets no input, its output is thrown away, and its environment is
the session's; a `python` in it is the target's. A program that fails is a failure with its last lines.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING

from bench.api import Work
from bench.measure.contract import Told
from bench.measure.meters.children import ChildrenClock, peak_children_bytes
from bench.measure.meters.memory import peak_resident_bytes
from bench.model import Scalar

if TYPE_CHECKING:
    from bench.ports import Device

OURS = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")
"""Variables of a worker that would make a Python program slower than it is for its user."""

TAIL_BYTES = 2000


class Program:
    """A command line, found once and started again and again. Raises Told when there is no such program."""

    def __init__(self, command: str) -> None:
        folders = [str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
        self._environment = {k: v for k, v in os.environ.items() if k not in OURS}
        self._environment["PATH"] = os.pathsep.join(folders)
        self._words = shlex.split(command)
        found = shutil.which(self._words[0], path=self._environment["PATH"])
        if found is None:
            raise Told(f"there is no program {self._words[0]}")
        self._path = found
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the work
        null = os.open(os.devnull, os.O_RDWR)
        self._files = [
            (os.POSIX_SPAWN_DUP2, null, 0),
            (os.POSIX_SPAWN_DUP2, null, 1),
            (os.POSIX_SPAWN_DUP2, self._errors.fileno(), 2),
        ]

    def run(self) -> None:
        """Start it and wait. Raises Told for an exit code other than 0 and for a signal."""
        self._errors.seek(0)
        self._errors.truncate()
        pid = os.posix_spawn(self._path, self._words, self._environment, file_actions=self._files)
        _, status = os.waitpid(pid, 0)
        if status:
            raise self._failure(os.waitstatus_to_exitcode(status))

    def _failure(self, code: int) -> Told:
        self._errors.seek(max(0, self._errors.seek(0, os.SEEK_END) - TAIL_BYTES))
        printed = self._errors.read().decode(errors="replace").strip()
        how = f"exit code {code}" if code > 0 else f"killed by {signal.Signals(-code).name}"
        last = printed.rpartition("\n")[2].strip()
        return Told(f"{how}: {last}" if last else how, printed)


def load(source: str, device: Device, params: dict[str, Scalar]) -> Work:
    """The program of the variant's axis `command`. Raises Told when it is not there."""
    program = Program(str(params["command"]))
    floor = f"at least {peak_resident_bytes() / 2**20:.0f} MiB, with which every program starts"
    notes = {"peak memory": floor} if sys.platform == "linux" else {}
    return Work(run=program.run, clock=ChildrenClock(), peak_bytes=peak_children_bytes, notes=notes)
