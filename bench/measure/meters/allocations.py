"""Most bytes that Python's allocators held at once during one call, by tracemalloc."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from typing import Any


def allocation_peak(run: Callable[[], Any], synchronize: Callable[[], None]) -> int:
    """Trace one call, which takes several times as long for it, and stop tracing.

    Counted is what goes through PyMem_*, PyObject_* and the memory of numpy's arrays, above what was
    held before the call. Not seen: what C libraries get from malloc themselves (PyTorch, ONNX
    Runtime, BLAS), what was allocated before, devices, other processes. What is freed during the call
    and had been allocated before it counts for nothing.
    """
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        result = run()
        synchronize()
        _, peak = tracemalloc.get_traced_memory()
        del result
    finally:
        tracemalloc.stop()
    return max(0, peak - before)
