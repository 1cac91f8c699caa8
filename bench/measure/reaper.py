"""Ends what a killed session leaves behind: one small process that outlives its parent on purpose.

The session writes `+PGID` when a worker starts and `-PGID` when it ended. When the pipe closes, for
whatever reason, the process groups still named are killed: workers, and what suites had forked.
Run as `python -m bench.measure.reaper` with the pipe as standard input. Standard library only.
"""

from __future__ import annotations

import os
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


if __name__ == "__main__":
    main()
