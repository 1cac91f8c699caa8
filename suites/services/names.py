"""Names for what a process keeps in a server that others use too, and which of them nobody needs any more."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import uuid
from pathlib import Path

_NAME = re.compile(r"bench_(?P<here>[0-9a-f]{8})_(?P<pid>\d+)_[0-9a-f]{8}")


def own() -> str:
    """A new name that tells this process: letters, digits and underscores."""
    return f"bench_{_here()}_{os.getpid()}_{uuid.uuid4().hex[:8]}"


def is_left(name: str) -> bool:
    """Whether a process made it that is gone: one of this machine, and of this process-id namespace."""
    match = _NAME.fullmatch(name)
    if match is None or match["here"] != _here():
        return False
    try:
        os.kill(int(match["pid"]), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False  # somebody else's, and alive
    return False


def _here() -> str:
    """Where process ids mean what they mean to us. A digest: names stay in logs of servers."""
    try:
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        namespace = ""
    return hashlib.sha256(f"{platform.node()} {namespace}".encode()).hexdigest()[:8]
