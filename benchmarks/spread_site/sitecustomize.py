"""Put on the path of workers by benchmarks.spread: settings that no variable of a library has."""

import contextlib
import ctypes
import gc
import os
import sys

ADDR_NO_RANDOMIZE = 0x0040000


def _refused(*_: object) -> None:
    raise OSError("benchmarks.spread measures without priority")


wanted = set(os.environ.get("SPREAD", "").split())
if "ordinary" in wanted:
    os.sched_setscheduler = os.setpriority = _refused
if "no-collector" in wanted:
    gc.disable()
if "fixed-layout" in wanted and "-m" in sys.orig_argv:
    libc = ctypes.CDLL(None)
    if not libc.personality(0xFFFFFFFF) & ADDR_NO_RANDOMIZE:
        libc.personality(ADDR_NO_RANDOMIZE)
        os.execv(sys.executable, sys.orig_argv)
if "flush-denormals" in wanted:
    with contextlib.suppress(ImportError):
        import torch

        torch.set_flush_denormal(True)
