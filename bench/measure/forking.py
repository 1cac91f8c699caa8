"""The child's side of a fork: when it is safe, how a worker becomes two, how the first waits for the second.

Standard library only: the worker imports it.
"""

from __future__ import annotations

import ctypes
import gc
import os
import random
import signal
import socket
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bench.measure.channel import Channel

HARMLESS = frozenset(("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"))
"""Files without a position or a state that processes could disturb one another by."""

PARENT_BADNESS = "500"
"""Of a worker that has forks, of which the kernel takes the youngest first when memory runs out (1000)."""

POLL_S = 0.005


def tie_to_parent(parent: int) -> None:
    """Die with the parent, also with its kill -9 (Linux: PR_SET_PDEATHSIG; elsewhere the reaper does it)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    # The kernel should take us, not the session or a neighbour, when memory runs out.
    _volunteer("1000")


def descriptors() -> frozenset[str]:
    """What this process has open, as `number path`."""
    found = set()
    with suppress(OSError):
        for entry in Path("/proc/self/fd").iterdir():
            with suppress(OSError):  # the descriptor that lists
                found.add(f"{entry.name} {entry.readlink()}")
    return frozenset(found)


def obstacle(before: frozenset[str]) -> str:
    """Why this process must not be forked after an import; empty when it may. `before`: its descriptors then.

    A fork has one thread and would wait for the others for ever; it shares files, connections and
    processes with its siblings. Where the system does not tell its threads, nothing is safe.
    """
    try:
        threads = sum(1 for _ in Path("/proc/self/task").iterdir())
    except OSError:
        return "this system does not tell whether a process has threads"
    if threads > 1:
        return "its import starts threads"
    if any(entry.partition(" ")[2] not in HARMLESS for entry in descriptors() - before):
        return "its import leaves files or connections open"
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return ""
    return "its import starts processes"


@dataclass(frozen=True, slots=True)
class Forked:
    """The child; `channel` is its own and there only in itself."""

    pid: int
    channel: Channel | None


def fork(control_fd: int, channel: Channel) -> Forked:
    """Make a child that has its own session, pipes and output, and the state of `random` that we have.

    The descriptors (to read, to write, to print) come through the socket `control_fd`.
    """
    with socket.socket(fileno=os.dup(control_fd)) as control:
        _, fds, _, _ = socket.recv_fds(control, 1, 3)
    # What the import made is garbage to no child: a collection there would copy every page of it.
    gc.collect()
    gc.freeze()
    _volunteer(PARENT_BADNESS)
    chance = random.getstate()
    sys.stdout.flush()
    sys.stderr.flush()
    parent = os.getpid()
    pid = os.fork()
    if pid:
        for fd in fds:
            os.close(fd)
        return Forked(pid, None)
    os.setsid()
    tie_to_parent(parent)
    read_fd, write_fd, output_fd = fds
    os.dup2(output_fd, 1)
    os.dup2(output_fd, 2)
    os.close(output_fd)
    os.close(control_fd)
    channel.close()
    random.setstate(chance)  # Python seeds it anew in a child: then no two arms would draw the same data
    return Forked(os.getpid(), Channel(read_fd, write_fd))


def reap(pid: int, patience_s: float) -> int | None:
    """Exit code of a child, negative for a signal; null when it does not end in time."""
    deadline = time.monotonic() + patience_s
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= deadline:
            return None
        time.sleep(POLL_S)


def _volunteer(badness: str) -> None:
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(badness)
