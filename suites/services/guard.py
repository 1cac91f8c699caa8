"""Keeps a private server no longer than its owner lives, and removes its folder.

Run as `python guard.py FOLDER COMMAND…`. The owner holds the other end of standard input; when that
closes, for whatever reason (also kill -9), the server is killed: nothing in it is worth a shutdown.
The first line of output is the server's process id; when the server ends by itself its last words
follow. Standard library only, and no module of ours: it must start in milliseconds.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

LAST_WORDS = 2000
"""Bytes of the server's output that are passed on."""


def main() -> None:
    """Entry point."""
    folder, command = Path(sys.argv[1]), sys.argv[2:]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    output = folder / "output"
    try:
        with output.open("wb") as log:
            server = subprocess.Popen(  # the thread that starts it is the one whose death ends it
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=folder,
                preexec_fn=_fresh_child,
            )  # fmt: skip
        print(server.pid, flush=True)  # noqa: T201 - the answer
        threading.Thread(target=_kill_without_owner, args=(server,), daemon=True).start()
        server.wait()
        print(output.read_bytes()[-LAST_WORDS:].decode(errors="replace"), flush=True)  # noqa: T201 - the answer
    except BrokenPipeError:
        pass  # the owner is gone, and nobody asks
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _fresh_child() -> None:
    """In the server: heed signals again, and die with this process, should that be killed."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def _kill_without_owner(server: subprocess.Popen[bytes]) -> None:
    os.read(0, 1)  # not through `sys.stdin`, whose lock this thread would hold when the interpreter ends
    server.kill()


if __name__ == "__main__":
    main()
