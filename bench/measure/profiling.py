"""Profilers of a worker: where a call spends its time. Nothing of it is a measurement.

Standard library only, and the profiler itself where it is a package's. One is started before the set-up, since
ONNX Runtime must be told when a session is made; then it runs blocks of calls; `end` gives what it saw, as sums
over all blocks in nanoseconds.
"""

from __future__ import annotations

import cProfile
import importlib
import importlib.util
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any, Protocol

from bench.api import Skip, Work
from bench.measure.channel import Message
from bench.ports import Device

Calls = Callable[[int], None]
Clock = Callable[[], int]

CLOCKS: tuple[Clock, ...] = (time.monotonic_ns, time.time_ns)
"""Whose zero ONNX Runtime's files may have: it depends on the library that it was built with."""


class Profiler(Protocol):
    """One profiler in one process."""

    def run(self, calls: Calls, count: int) -> None:
        """Make so many calls under the profiler."""
        ...

    def end(self) -> Message:
        """`self`: ns by name, `counts`: calls by name, and `stacks` (ns by `outer;inner`) or `edges`."""
        ...


def start(engine: str, folder: str) -> Profiler:
    """Raises Skip, with what to do, when the engine is not here. `folder` is for its files."""
    if engine == "onnxruntime":
        return OnnxRuntimeProfiler(Path(folder))
    if engine == "torch":
        return TorchProfiler()
    return CProfiler() if engine == "cprofile" else Watched()


def profile(profiler: Profiler, work: Work, device: Device, count: int) -> None:
    """So many calls under the profiler; what must be prepared before each is not in the profile. Raises Skip."""
    if work.once:
        raise Skip("a call that is made once in a process cannot be profiled: it is over before its profile begins")
    calls = partial(repeatedly, work.run, device.synchronize)
    if work.prepare is None:
        profiler.run(calls, count)
        return
    for _ in repeat(None, count):
        work.prepare()
        profiler.run(calls, 1)


def repeatedly(run: Callable[[], Any], synchronize: Callable[[], None], count: int) -> None:
    """That many calls, and the device's end of them."""
    for _ in repeat(None, count):
        run()
    synchronize()


class Watched:
    """Somebody else looks at this process from outside."""

    def run(self, calls: Calls, count: int) -> None:
        """See Profiler. What is above this frame is the harness."""
        calls(count)

    def end(self) -> Message:
        """Nothing was seen from here."""
        return {"self": {}, "counts": {}, "stacks": {}}


class CProfiler:
    """Python's own: every call of every function, and who called it. It inflates what makes many calls."""

    def __init__(self) -> None:
        self._profile = cProfile.Profile()  # with its own clock: one given from Python costs ten times as much

    def run(self, calls: Calls, count: int) -> None:
        """See Profiler."""
        self._profile.enable()
        try:
            calls(count)
        finally:
            self._profile.disable()

    def end(self) -> Message:
        """See Profiler. `edges`: [caller, callee, ns in the callee and below]."""
        own: Counter[str] = Counter()
        counts: Counter[str] = Counter()
        totals: Counter[tuple[str, str]] = Counter()
        for entry in self._profile.getstats():
            name = _name(entry.code)
            if name in HARNESS:
                continue
            own[name] += round(entry.inlinetime * 1e9)
            counts[name] += entry.callcount
            for called in entry.calls or ():
                callee = _name(called.code)
                if callee not in HARNESS and callee != name:
                    totals[name, callee] += round(called.totaltime * 1e9)
        edges = [[caller, callee, ns] for (caller, callee), ns in totals.items()]
        return {"self": own, "counts": counts, "edges": edges}


class TorchProfiler:
    """torch.profiler: operators on the CPU, nested as they call each other."""

    def __init__(self) -> None:
        if importlib.util.find_spec("torch") is None:
            raise Skip("the profiler of PyTorch needs PyTorch: pip install 'inference-bench[torch]'")
        self._own: Counter[str] = Counter()
        self._counts: Counter[str] = Counter()
        self._stacks: Counter[str] = Counter()

    def run(self, calls: Calls, count: int) -> None:
        """See Profiler."""
        profiler: Any = importlib.import_module("torch.profiler")
        with profiler.profile(activities=[profiler.ProfilerActivity.CPU]) as seen:
            calls(count)
        for event in seen.events():
            path, outer = [event.name], event.cpu_parent
            while outer is not None:
                path.append(outer.name)
                outer = outer.cpu_parent
            ns = round(event.self_cpu_time_total * 1000)
            self._own[event.name] += ns
            self._counts[event.name] += 1
            self._stacks[";".join(reversed(path))] += ns

    def end(self) -> Message:
        """See Profiler."""
        return {"self": self._own, "counts": self._counts, "stacks": self._stacks}


class OnnxRuntimeProfiler:
    """ONNX Runtime's own: every node of every session that is made from now on, in this process alone."""

    def __init__(self, folder: Path) -> None:
        try:
            self._runtime: Any = importlib.import_module("onnxruntime")
        except ImportError as error:
            raise Skip(f"the profiler of ONNX Runtime needs ONNX Runtime: {error}") from None
        folder.mkdir(parents=True, exist_ok=True)
        self._sessions: list[Any] = []
        self._blocks: dict[Clock, list[tuple[int, int]]] = {clock: [] for clock in CLOCKS}
        made = self._runtime.InferenceSession.__init__
        sessions = self._sessions
        options = self._runtime.SessionOptions

        def profiled(session: Any, model: Any, sess_options: Any = None, *more: Any, **named: Any) -> None:
            chosen = sess_options or options()
            chosen.enable_profiling = True
            chosen.profile_file_prefix = str(folder / f"session-{os.getpid()}-{len(sessions)}")
            made(session, model, chosen, *more, **named)
            sessions.append(session)

        self._runtime.InferenceSession.__init__ = profiled

    def run(self, calls: Calls, count: int) -> None:
        """See Profiler."""
        if not self._sessions:
            raise Skip("the benchmark makes no session of ONNX Runtime")
        begin = [clock() for clock in CLOCKS]
        calls(count)
        for clock, start in zip(CLOCKS, begin, strict=True):
            self._blocks[clock].append((start, clock()))

    def end(self) -> Message:
        """See Profiler. Warm-up is in the files too: only what lies in blocks counts."""
        own: Counter[str] = Counter()
        counts: Counter[str] = Counter()
        stacks: Counter[str] = Counter()
        for session in self._sessions:
            zero = session.get_profiling_start_time_ns()
            blocks = self._blocks[min(CLOCKS, key=lambda clock: abs(clock() - zero))]
            file = Path(session.end_profiling())
            for event in json.loads(file.read_text(encoding="utf-8")):
                begin = zero + event.get("ts", 0) * 1000
                if event.get("cat") != "Node" or not event["name"].endswith("_kernel_time"):
                    continue
                if not any(low <= begin <= high for low, high in blocks):
                    continue
                kind, node = event["args"]["op_name"], event["name"].removesuffix("_kernel_time")
                own[kind] += event["dur"] * 1000
                counts[kind] += 1
                stacks[f"{kind};{node.replace(';', ',')}"] += event["dur"] * 1000
            file.unlink()
        return {"self": own, "counts": counts, "stacks": stacks}


def _name(code: Any) -> str:
    """`package/module.py:Class.function`: without the line, which moves between commits."""
    if isinstance(code, str):
        return code.replace(";", ",")
    return f"{_inside(code.co_filename)}:{code.co_qualname}".replace(";", ",")


def _inside(file: str) -> str:
    """The path below what is searched for imports, so that two installations of one file have one name."""
    homes = [home for home in sys.path if home and file.startswith(home.rstrip(os.sep) + os.sep)]
    return file[len(max(homes, key=len).rstrip(os.sep)) + 1 :] if homes else str(Path(*Path(file).parts[-2:]))


HARNESS = {_name(repeatedly.__code__), "<method 'disable' of '_lsprof.Profiler' objects>"}
"""Frames of ours that a profile sees."""
