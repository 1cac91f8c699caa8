"""Ends what a killed session leaves behind: one small process that outlives its parent on purpose.

The session writes `+PGID` when a worker starts and `-PGID` when it ended. When the pipe closes, for
whatever reason, the process groups still named are killed: workers, and what suites had forked.
Then the session's scratch folder is removed. Run as `python -m bench.measure.reaper SCRATCH` with the
pipe as standard input. Standard library only.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from contextlib import suppress


def main() -> None:
    """Entry point."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    alive: set[int] = set()
    for line in sys.stdin:
        group = int(line[1:])
        (alive.add if line[0] == "+" else alive.discard)(group)
    for group in alive:
        with suppress(OSError):
            os.killpg(group, signal.SIGKILL)
    shutil.rmtree(sys.argv[1], ignore_errors=True)


if __name__ == "__main__":
    main()
