"""A suite that behaves in every way a suite can; used by tests, never by people."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from bench.api import HIGHER, LOWER, Items, Metric, Skip, Work, Wrong, benchmark


@benchmark(
    axes={"n": (2000, 4000)},
    baseline={"n": 2000},
    metrics=(Metric("right", unit="1", better=HIGHER), Metric("error", unit="1", better=LOWER)),
)
def good(device, n):
    """Twice the work takes twice as long."""
    return Work(
        run=lambda: sum(range(n)), items=n, size_bytes=n * 8, check=lambda total: total == n * (n - 1) // 2,
        report=lambda total: {"right": Items([1] * 90 + [0] * 10), "error": 0.25}, notes={"device": device.name},
    )  # fmt: skip


@benchmark(axes={"how": ("ok", "raises", "hangs", "exits", "ends", "forks", "killed", "wrong", "wrong_says_why",
                         "memory", "skips", "no_work", "bad_report")},
           baseline={"how": "ok"}, timeout=2.0)  # fmt: skip
def bad(device, how):
    """One variant for each way to go wrong."""
    if how == "skips":
        raise Skip("needs a thing that is not here; get it with `get thing`")
    if how == "no_work":
        return 3
    actions = {
        "raises": lambda: 1 / 0,
        "hangs": lambda: time.sleep(60),
        "exits": lambda: sys.exit(3),
        "ends": lambda: os._exit(9),
        "forks": os.fork,
        "killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
        "memory": lambda: bytearray(1 << 60),
    }

    def check(_):
        if how == "wrong_says_why":
            raise Wrong("cosine 0.31 is under 0.95")
        return how != "wrong"

    report = (lambda _: {"undeclared": 1}) if how == "bad_report" else None
    return Work(run=actions.get(how, lambda: sum(range(2000))), check=check, report=report)


@benchmark(axes={"stream": ("quiet", "stdout", "fd")}, baseline={"stream": "quiet"})
def prints(device, stream):
    """Prints from the timed code, also where the protocol of a naive harness would be."""
    say = {"quiet": bytes, "stdout": lambda: print('{"wall": [1]}'), "fd": lambda: os.write(1, b'{"wall": [1]}\n')}
    return Work(run=say[stream])


@benchmark(axes={"after": (0, 60)}, baseline={"after": 0})
def dies_later(device, after):
    """The second variant dies in the middle of measuring."""
    left = [after]

    def run():
        left[0] -= 1
        if left[0] == 0:
            os._exit(4)
        time.sleep(0.001)

    return Work(run=run)


@benchmark()
def lasts(device):
    """A call of two seconds. Counts its calls."""
    calls: list[None] = []

    def run():
        calls.append(None)
        time.sleep(2)

    return Work(run=run, close=lambda: Path(os.environ["TEST_MARKER"]).open("a").write(f"{len(calls)} calls\n"))


CHANCE = random.random()


@benchmark(axes={"arm": (1, 2)}, baseline={"arm": 1}, metrics=(Metric("drawn", unit="1", better=LOWER, exact=False),))
def draws(device, arm):
    """Draws random data at import and in its call, and seeds nothing."""
    return Work(run=random.random, report=lambda drawn: {"drawn": CHANCE + drawn})


@benchmark()
def leaves_children(device):
    """Starts a process in the background and never ends it."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    if marker := os.environ.get("TEST_MARKER"):
        with Path(marker).open("a") as file:
            file.write(f"{os.getpid()} {child.pid}\n")
    return Work(run=lambda: time.sleep(0.01))
