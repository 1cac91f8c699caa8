"""Time and memory of the processes that this one started and waited for."""

from __future__ import annotations

import resource
import sys
import time


class ChildrenClock:
    """Elapsed time here, CPU time of ended children and of what they waited for, in ns."""

    wall = staticmethod(time.perf_counter_ns)

    @staticmethod
    def cpu() -> int:
        """User and system time, which the kernel tells in microseconds."""
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return round((usage.ru_utime + usage.ru_stime) * 1e6) * 1000


def peak_children_bytes() -> int:
    """Largest resident set of any ended child.

    On Linux it is never below this process's own size, which a child has until its program starts.
    """
    scale = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * scale
