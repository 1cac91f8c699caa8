"""Marks regions for callgrind, which counts instructions. Runs in the worker, under valgrind.

Callgrind can set its counters to zero before a C function is entered, and write them out before another
one is (`--zero-before`, `--dump-before`). Two system calls that hardly anything else makes serve as these
functions: no compiler, no client request and no code of ours in machine language is needed.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from typing import Any

ZERO_BEFORE = ("getsid", "__getsid")
DUMP_BEFORE = ("getpgid", "__getpgid")
"""Names that C libraries give to what `os.getsid` and `os.getpgid` call."""

EMPTY = 3
"""Regions around nothing, which come first: their least count is what the marking itself costs."""


def mark_calls(
    run: Callable[[], Any],
    prepare: Callable[[], object] | None,
    synchronize: Callable[[], None],
    *,
    warm_up: int,
    count: int,
) -> None:
    """EMPTY regions around nothing, then `count` around a call each, after `warm_up` calls that are in none.

    Garbage is collected before each, so that every region begins with the same debt to the collector.
    """
    for _ in range(warm_up):
        if prepare is not None:
            prepare()
        run()
        synchronize()
    for _ in range(EMPTY):
        _region(_nothing, _nothing)
    for _ in range(count):
        if prepare is not None:
            prepare()
        _region(run, synchronize)


def _region(run: Callable[[], Any], synchronize: Callable[[], Any]) -> None:
    gc.collect()
    os.getsid(0)
    run()
    synchronize()
    os.getpgid(0)


def _nothing() -> None:
    pass
