"""The parent's side of instruction counts: a worker under valgrind's callgrind, and what it wrote.

Everything that chance decides is held fixed: one hash seed, no address-space randomisation, and every
call begins after a collection of garbage. The same bytes then give the same count, to the instruction.
"""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from bench.measure.meters.instructions import DUMP_BEFORE, EMPTY, ZERO_BEFORE

HASH_SEED = 0

SLOWER = 15.0
"""How many times its usual patience a process gets under callgrind: PyTorch's import takes 40 times as long."""

_TOTALS = re.compile(r"^(?:totals|summary): (\d+)", re.MULTILINE)


class CountError(Exception):
    """No count came out of it; the message is the reason, for a person."""


def missing() -> str:
    """Why nothing can be counted here; empty where it can."""
    return "" if shutil.which("valgrind") else "valgrind is not installed (apt-get install valgrind)"


def prefix(folder: Path) -> list[str]:
    """The words before an interpreter's command; profiles go to `folder`, which must exist and be empty."""
    return [
        *_without_randomisation(), "valgrind", "-q", "--tool=callgrind", "--vgdb=no",
        f"--callgrind-out-file={folder / 'region'}",
        *(f"--zero-before={name}" for name in ZERO_BEFORE), *(f"--dump-before={name}" for name in DUMP_BEFORE),
    ]  # fmt: skip


def randomised() -> bool:
    """Whether addresses cannot be held fixed here (some containers forbid it): counts then vary a little."""
    return not _without_randomisation()


def calls_for(call_ns: int) -> tuple[int, int]:
    """(calls to warm up, calls to count) for calls of that length when nobody counts.

    Twenty calls warm Python's specialising interpreter; models are warm after four (study behind docs/measuring.md).
    """
    if call_ns < 1_000_000:
        return 20, 5
    return (4, 3) if call_ns < 100_000_000 else (1, 2)


def instructions(folder: Path, count: int) -> int:
    """Instructions of the cheapest of `count` calls, less what marking a region costs. Raises CountError."""
    regions = [_total(folder / f"region.{number}") for number in range(1, EMPTY + count + 1)]
    if (folder / f"region.{len(regions) + 1}").exists():
        raise CountError("the work itself asks for its process group, which ends the counted region")
    return min(regions[EMPTY:]) - min(regions[:EMPTY])


def _total(file: Path) -> int:
    try:
        found = _TOTALS.search(file.read_text(errors="replace"))
    except FileNotFoundError:
        found = None
    if found is None:
        raise CountError(
            "callgrind did not see the marks around the call (is the interpreter's C library a usual one?)"
        )
    return int(found[1])


@cache
def _without_randomisation() -> tuple[str, ...]:
    """`setarch -R`, where it is there and allowed."""
    command = ("setarch", platform.machine(), "-R")
    try:
        done = subprocess.run([*command, "true"], check=False, capture_output=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return command if done.returncode == 0 else ()
