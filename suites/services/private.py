"""Start a server of our own for one process, on a free port and in a temporary folder."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.api import Skip

GUARD = Path(__file__).with_name("guard.py")

PATIENCE_S = 20.0
"""How long a server may take until it answers; Redis needs 0.02 s, MariaDB about 0.5 s."""

POLL_S = 0.005

LOCAL = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, slots=True)
class Private:
    """A running server. pid: of the server itself; folder: its own, gone with it."""

    pid: int
    folder: Path
    guard: subprocess.Popen[str]

    def close(self) -> None:
        """End it and wait: its CPU time then counts as that of our children, and not as somebody else's."""
        _end(self.guard)


def start(name: str, command: Sequence[str], folder: Path, answers: Callable[[], bool]) -> Private:
    """Start `command` in `folder`, which is the server's from now on, and wait until `answers()`.

    It ends with this process, however that ends. Raises Skip with the server's last words where it
    does not come up.
    """
    guard = subprocess.Popen(
        # Outside our process group: whoever kills that must not kill the guard before the server.
        [sys.executable, "-I", "-S", str(GUARD), str(folder), *command],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert guard.stdout is not None
    first = guard.stdout.readline().strip()
    deadline = time.monotonic() + PATIENCE_S
    while first and guard.poll() is None:
        if answers():
            return Private(int(first), folder, guard)
        if time.monotonic() > deadline:
            break
        time.sleep(POLL_S)
    said = _end(guard).strip().splitlines()
    raise Skip(f"a private {name} did not start: {said[-1] if said else 'it said nothing'}")


def _end(guard: subprocess.Popen[str]) -> str:
    """Close the guard's lifeline and wait; what it still said.

    Not by `communicate`, which would miss what lies in the buffer that the first line was read through.
    """
    assert guard.stdin is not None
    assert guard.stdout is not None
    guard.stdin.close()
    said = guard.stdout.read()
    guard.stdout.close()
    guard.wait()
    return said


def new_folder() -> Path:
    """A folder for a server; inside the session's scratch folder, which goes with the session, where there is one."""
    scratch = os.environ.get("BENCH_SCRATCH")
    if scratch is not None:
        Path(scratch).mkdir(parents=True, exist_ok=True)  # the session makes none before it is used
    return Path(tempfile.mkdtemp(prefix="server-", dir=scratch))


def free_port() -> int:
    """A TCP port that nobody listens on. Somebody may take it before the server does, which then does not start."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def listens(host: str, port: int, patience_s: float = 1.0) -> bool:
    """Whether somebody takes connections there."""
    try:
        socket.create_connection((host, port), patience_s).close()
    except OSError:
        return False
    return True


def process_called(pid: int, beginnings: tuple[str, ...]) -> int | None:
    """`pid` where the process of that number on this machine has such a name, else null."""
    try:
        name = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8")
    except OSError:
        return None
    return pid if name.startswith(beginnings) else None
