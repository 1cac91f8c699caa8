"""The child: obeys one session over a private pipe, times, and decides nothing.

Run as `python -m bench.measure.worker READ_FD WRITE_FD CONTROL_FD PARENT_PID`. Standard library only, so
that any interpreter with any installed versions can be measured.

Requests (`do`): discover; import, then set_up, first_call, check, calibrate, warm_up, round, profile, memory,
allocations, instructions, close.
After `import`, `fork` makes a worker of its own that goes on with set_up, and `reap` waits for its end.
Every answer is one object; a failure of the suite's code is the answer `{"failure": {kind, message, detail}}`.
"""

from __future__ import annotations

import gc
import importlib
import os
import random
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from bench.api import Items, Skip, Work, Wrong
from bench.loaders import paths
from bench.measure import forking
from bench.measure.channel import Channel, Message
from bench.measure.contract import Told, device_of, judge, kind_of, require
from bench.measure.meters.allocations import allocation_peak
from bench.measure.meters.device import DeviceMeter
from bench.measure.meters.disturbance import read_counters
from bench.measure.meters.energy import EnergyMeter
from bench.measure.meters.instructions import mark_calls
from bench.measure.meters.memory import peak_resident_bytes
from bench.measure.meters.sensors import Sensors, own_cpus
from bench.measure.meters.servers import ServedClock, strangers
from bench.measure.meters.time import SystemClock, cost_of_timing, prepared_batch, single_calls, timed_batch
from bench.measure.warmup import Call, Sampling, calibrate, calls_for_tail, is_sample, warm_up
from bench.model import FailureKind, Policy

if TYPE_CHECKING:
    from bench.ports import Clock

DETAIL_LINES = 12
"""Lines of a traceback that a failure keeps."""

FIFO_PRIORITY = 1
"""The lowest real-time priority: enough to win over every ordinary process."""


class Worker:
    """One benchmark variant in this process."""

    def __init__(self, channel: Channel, control_fd: int) -> None:
        self._channel = channel
        self._control_fd = control_fd
        self._bare_bytes = self._import_bytes = 0
        self._import_ns = 0
        self._clock = SystemClock()
        self._timer: Clock = self._clock  # what times the calls
        self._sensors = Sensors()
        self._energy = EnergyMeter()
        self._work: Work | None = None
        self._profiler: Any = None
        self._first: Any = None
        self._device: Any = None
        self._device_meter = DeviceMeter(None)
        self._fifo = False
        self._closed = False
        self._only: list[tuple[int, int]] = []  # the first call, where it is the sample, until a round takes it
        self._first_cost = Call(0, 0, 0)
        self._opening: Any = None  # before that call: energy, counters, wall ns
        self._calls_s: list[float] = []  # seconds per call, for drivers that want to know

    def serve(self) -> None:
        """Answer until the session is gone."""
        while not self._closed and (request := self._channel.receive()) is not None:
            answer = self._answer(request)
            self._channel.guard()
            self._channel.send(answer)

    def hold(self, work: Work, start_ns: int) -> Sequence[float]:
        """Answer the set-up and go on serving, inside a suite's own driver, until the session closes.

        Returns seconds per call of what was measured. The answer to `close` is sent when the driver
        has come to its end: what it raises then is a failure in that phase.
        """
        if self._work is not None:
            raise RuntimeError("only one piece of work can be measured in a process")
        self._channel.send(self._accept(work, start_ns))
        while not self._closed:
            request = self._channel.receive()
            if request is None or request["do"] == "close":
                self._closed = True
                self.do_close(request or {})
                break
            answer = self._answer(request)
            self._channel.guard()
            self._channel.send(answer)
        return self._calls_s

    def _answer(self, request: Message) -> Message:
        handler: Callable[[Message], Message] = getattr(self, f"do_{request['do']}")
        try:
            return handler(request)
        except Skip as skip:
            return _failure(FailureKind.SKIPPED, str(skip) or "the suite skipped it without a reason")
        except Wrong as wrong:
            return _failure(FailureKind.WRONG, str(wrong) or "the answer is wrong")
        except Told as told:
            return _failure(FailureKind.RAISED, str(told), told.printed)
        except MemoryError:
            return _failure(FailureKind.RAISED, "ran out of memory (MemoryError)", traceback.format_exc())
        except SystemExit as error:
            return _failure(FailureKind.RAISED, f"called sys.exit({error.code!r})", traceback.format_exc())
        except BaseException as error:  # noqa: BLE001 - whatever a suite raises is its result
            text = str(error).strip().split("\n", 1)[0]
            if self._work is not None and isinstance(error, self._work.skips):
                return _failure(FailureKind.SKIPPED, text or f"the suite raised {type(error).__name__}")
            return _failure(
                FailureKind.RAISED, f"{type(error).__name__}: {text}" if text else type(error).__name__,
                traceback.format_exc(),
            )  # fmt: skip

    def do_discover(self, request: Message) -> Message:
        """Import every module of the places, telling the session which before each."""
        loader = importlib.import_module(request["loader"])
        found: Message = loader.discover(
            request["places"], request["skip"], lambda name: self._channel.send({"module": name}), request["patterns"]
        )
        return found

    def do_import(self, request: Message) -> Message:
        """Import the module of the suite, which is the same for all its variants."""
        paths.add(request["path"])
        _seed()
        loader = importlib.import_module(request["loader"])  # with its tool, which is no part of the suite
        self._bare_bytes = peak_resident_bytes()
        before = forking.descriptors()
        cpu, start = self._clock.cpu(), self._clock.wall()
        if hasattr(loader, "import_suite"):
            loader.import_suite(request["source"], request["suite"])
        self._import_ns = self._clock.wall() - start
        self._import_bytes = peak_resident_bytes()
        return {
            "import_ns": self._import_ns,
            "cpu_ns": self._clock.cpu() - cpu,
            "obstacle": forking.obstacle(before),
        }

    def do_fork(self, request: Message) -> Message:
        """Answered twice: by this worker, and by the child over its own pipes."""
        child = forking.fork(self._control_fd, self._channel)
        if child.channel is not None:
            self._channel, self._control_fd = child.channel, -1
        return {"pid": child.pid}

    def do_reap(self, request: Message) -> Message:
        """Exit code of a child that ends within `patience_s`, else null."""
        return {"code": forking.reap(request["pid"], request["patience_s"])}

    def do_set_up(self, request: Message) -> Message:
        """Make the callable."""
        self._device = device_of(request["device"], request["threads"])
        require(request["requires"], self._device.name)
        self._device_meter = DeviceMeter(self._device)
        loader = importlib.import_module(request["loader"])
        start = self._clock.wall() - self._import_ns
        if hasattr(loader, "drive"):
            loader.drive(request["source"], self._device, request["params"], lambda work: self.hold(work, start))
            return {}  # to the `close` that ended it
        return self._accept(loader.load(request["source"], self._device, request["params"]), start)

    def _accept(self, work: Work, start_ns: int) -> Message:
        set_up_ns = self._clock.wall() - start_ns
        self._work = work
        self._timer = work.clock or (ServedClock(work.servers) if work.servers else self._clock)
        return {
            "set_up_ns": set_up_ns,
            "items": work.items,
            "size_bytes": work.size_bytes,
            "notes": {str(k): str(v) for k, v in work.notes.items()},
            "kind": kind_of(work, self._device),
            "servers": strangers(work.servers),
        }

    def do_first_call(self, request: Message) -> Message:
        """Pin to the launch's core and time the first call. `sample`: it is all that will be measured."""
        if request["core"] is not None:
            with suppress(OSError, AttributeError):
                os.sched_setaffinity(0, {request["core"]})
        self._sensors.follow(own_cpus())
        work = self._ready()
        _seed()
        clock = self._timer
        if work.prepare is not None:
            work.prepare()
        if sample := work.once or request.get("sample", False):
            self._elevate(fifo=False)
        self._opening = (self._energy.read(), read_counters(), self._clock.wall())
        cpu_start, start = clock.cpu(), clock.wall()
        self._first = work.run()
        self._device.synchronize()
        first_ns = clock.wall() - start
        cpu_ns = clock.cpu() - cpu_start
        self._first_cost = Call(first_ns, cpu_ns, read_counters().since(self._opening[1])["voluntary_switches"])
        if sample:
            self._only = [(first_ns, cpu_ns)]
            self._calls_s.append(first_ns * 1e-9)
        # Objects of the set-up are garbage to nobody: collections caused by the call then cost
        # what the call causes, not what the set-up left (p99 of an allocating call: 11 ms to 0.4 ms).
        gc.collect()
        gc.freeze()
        return {"first_call_ns": first_ns}

    def do_check(self, request: Message) -> Message:
        """Judge the first call's result and collect the suite's own metrics."""
        work = self._ready()
        values = judge(work, self._first, request["metrics"])
        return {"values": {k: {"items": list(v)} if isinstance(v, Items) else v for k, v in values.items()}}

    def do_calibrate(self, request: Message) -> Message:
        """Choose loops and samples."""
        if self._only:
            sampling = Sampling(loops=1, samples=1, rounds=1, call_ns=max(1, self._only[0][0]))
            return {**asdict(sampling), "singles": 0, "absent": self._absent()}
        policy = Policy(**request["policy"])
        made: list[Call] = []

        def batch(loops: int) -> tuple[int, int]:
            before = read_counters()
            wall, cpu = self._pace(loops)
            made.append(Call(wall, cpu, read_counters().since(before)["voluntary_switches"]))
            return wall, cpu

        sampling = calibrate(batch, policy, request["first_call_ns"])
        sampling = replace(sampling, first=is_sample(self._first_cost, made[0]))
        self._calls_s.append(sampling.call_ns * 1e-9)
        cost = cost_of_timing(self._device.synchronize, self._timer.wall)
        singles, reason = calls_for_tail(sampling, policy, cost)
        return {**asdict(sampling), "singles": singles, "absent": self._absent(single_call=reason)}

    def do_warm_up(self, request: Message) -> Message:
        """Warm up to a steady state; find out which priority is permitted."""
        self._first = None
        calls, steady = 1, False
        if not self._only:
            calls, steady = warm_up(self._pace, request["loops"], request["call_ns"], Policy(**request["policy"]))
        priority = "normal"
        if request["elevate"]:
            priority = self._elevate(fifo=request["fifo"])
        return {"calls": calls, "steady": steady, "priority": priority}

    def do_round(self, request: Message) -> Message:
        """Take the samples of one round after one untimed call."""
        loops, count = request["loops"], request["samples"]
        energy, before, start = self._energy.read(), read_counters(), self._clock.wall()
        if self._only or self._ready().once:
            energy, before, start = self._opening
            samples, singles, self._only = self._only, [], []
            device = None
        else:
            self._enter_fifo(True)
            try:
                if request["untimed"]:
                    self._batch(1)
                self._device_meter.open()
                samples = [self._batch(loops) for _ in range(count)]
                device = self._device_meter.close()
                singles = self._singles(request.get("singles", 0))
            finally:
                self._enter_fifo(False)
            self._calls_s += [wall * 1e-9 / loops for wall, _ in samples]
        end = self._clock.wall()
        counted = read_counters().since(before)
        return {
            "energy_uj": self._energy.since(energy),
            "wall": [wall for wall, _ in samples],
            "cpu": [cpu for _, cpu in samples],
            "singles": singles,
            "device": device,
            "conditions": {"wall_ns": end - start, **counted, **self._sensors.read()},
        }

    def do_profile(self, request: Message) -> Message:
        """One step of a profile, which is started before the set-up (bench.measure.profiling)."""
        from bench.measure import profiling

        if request["step"] == "start":
            self._profiler = profiling.start(request["engine"], request["folder"])
        elif request["step"] == "run":
            profiling.profile(self._profiler, self._ready(), self._device, request["calls"])
        else:
            found: Message = self._profiler.end()
            return found
        return {}

    def do_memory(self, request: Message) -> Message:
        """Peak memory after all rounds."""
        elsewhere = self._ready().peak_bytes
        if elsewhere is not None:  # a process of its own held nothing before
            peak = elsewhere()
            return {"peak_bytes": peak, "growth_bytes": peak}
        peak = max(peak_resident_bytes(), self._import_bytes)  # a fork does not know the parent's peak
        return {"peak_bytes": peak, "growth_bytes": max(0, peak - self._bare_bytes)}

    def do_allocations(self, request: Message) -> Message:
        """Trace the allocations of one more call, which nothing times."""
        if reason := self._not_ours("traced"):
            return {"absent": reason}
        work = self._ready()
        if work.prepare is not None:
            work.prepare()
        peak = allocation_peak(work.run, self._device.synchronize)
        self._channel.guard()
        return {"peak_bytes": peak}

    def do_instructions(self, request: Message) -> Message:
        """Mark single calls for callgrind, under which this process runs."""
        if reason := self._not_ours("counted"):
            return {"absent": reason}
        work = self._ready()
        mark_calls(work.run, work.prepare, self._device.synchronize, warm_up=request["warm_up"], count=request["count"])
        self._channel.guard()
        return {}

    def _not_ours(self, done: str) -> str:
        """Why a further call cannot be looked into from here; empty where it can."""
        work = self._ready()
        if work.once:
            return f"the call is made once in a process, so no further one can be {done}"
        if work.clock is not None or work.servers:
            return f"the work happens in another process, which is not {done}"
        return ""

    def _absent(self, **reasons: str) -> dict[str, str]:
        return {name: why for name, why in {**reasons, "energy": self._energy.absent}.items() if why}

    def do_close(self, request: Message) -> Message:
        """Let the suite release what it holds."""
        self._closed = True
        if self._work is not None and self._work.close is not None:
            self._work.close()
        return {}

    def _ready(self) -> Work:
        assert self._work is not None, "set_up comes first"
        return self._work

    def _batch(self, loops: int) -> tuple[int, int]:
        work = self._ready()
        clock = self._timer
        if work.prepare is None:
            self._device_meter.begin()
            result = timed_batch(work.run, loops, self._device.synchronize, clock.wall, clock.cpu)
            self._device_meter.end()
        else:
            result = prepared_batch(work.run, work.prepare, loops, self._device.synchronize, clock.wall, clock.cpu)
        self._channel.guard()
        return result

    def _singles(self, count: int) -> list[int]:
        work = self._ready()
        spans = single_calls(work.run, work.prepare, count, self._device.synchronize, self._timer.wall)
        self._channel.guard()
        return spans

    def _pace(self, loops: int) -> tuple[int, int]:
        """A batch as it costs the session: what is prepared, or happens elsewhere, takes its time too."""
        work = self._ready()
        if work.prepare is None and work.clock is None:
            return self._batch(loops)
        start = self._clock.wall()
        _, cpu = self._batch(loops)
        return self._clock.wall() - start, cpu

    def _elevate(self, *, fifo: bool) -> str:
        if fifo:
            with suppress(OSError, AttributeError):
                os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(FIFO_PRIORITY))
                os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
                self._fifo = True
                return "fifo"
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, -20)
            return "nice"
        return "normal"

    def _enter_fifo(self, on: bool) -> None:
        if self._fifo:
            policy, priority = (os.SCHED_FIFO, FIFO_PRIORITY) if on else (os.SCHED_OTHER, 0)
            os.sched_setscheduler(0, policy, os.sched_param(priority))


def _seed() -> None:
    """Random data of a suite that seeds nothing itself: the same for all arms of a launch, others in the next."""
    seed = int(os.environ.get("PYTHONHASHSEED", "0"))
    random.seed(seed)
    if (numpy_random := sys.modules.get("numpy.random")) is not None:
        numpy_random.seed(seed)


def _failure(kind: FailureKind, message: str, detail: str = "") -> Message:
    lines = detail.strip().splitlines()[-DETAIL_LINES:]
    return {"failure": {"kind": kind.value, "message": message, "detail": "\n".join(lines)}}


def main() -> None:
    """Entry point of the child process."""
    read_fd, write_fd, control_fd, parent = (int(argument) for argument in sys.argv[1:5])
    forking.tie_to_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the session's business
    paths.prefer_overlays()
    os.set_inheritable(control_fd, False)
    worker = Worker(Channel(read_fd, write_fd), control_fd)
    worker.serve()
    sys.stdout.flush()
    os._exit(0)  # suites leave threads and atexit hooks behind; nobody waits for them


if __name__ == "__main__":
    main()
