"""Profile one variant at two targets: fresh processes side by side, in turns, several times over."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.errors import HostError, MissingError
from bench.experiment import core_of
from bench.measure.parents import START_S
from bench.measure.session import ArmFailed, Session, WorkerProcess
from bench.model import Arm, Benchmark, Policy
from bench.ports import Progress
from bench.profiles import Profile, ProfileDifference, compare_profiles, stacks_of_calls

ENGINES = ("cprofile", "py-spy", "onnxruntime", "torch")

TURNS = 4
"""Blocks of each side in one repetition, in ABBA order, so that drift cancels."""

SAMPLES_A_SECOND = 500
"""Of py-spy: a sample costs it about half a millisecond."""

START_PY_SPY_S = 20.0

MARKER = re.compile(r"(?:.*\.)?run \(.*measure[/.]profiling\.py.*\)")
"""The frame of ours under which py-spy sees the work."""


def profile_pair(
    benchmark: Benchmark,
    arms: tuple[Arm, Arm],
    *,
    engine: str,
    repetitions: int,
    seconds: float,
    seed: int,
    path: Sequence[str],
    progress: Progress,
) -> ProfileDifference:
    """Profile base and head, about `seconds` each a repetition.

    Raises MissingError when the benchmark fails on a side or the engine sees nothing, HostError when
    py-spy cannot look into our processes.
    """
    rng = random.Random(seed)
    name = arms[0].variant.name
    pairs: list[tuple[Profile, Profile]] = []
    bare: list[tuple[float, float]] = []
    progress.plan([name], [repetitions], [None])
    calls = 0
    with Session() as session, tempfile.TemporaryDirectory(prefix="bench-profile-") as scratch:
        for number in range(repetitions):
            core = core_of(number) if benchmark.threads == 1 else None
            start = _Repetition(session, benchmark, arms, engine, path, Path(scratch) / str(number), rng, core)
            if number == 0:
                progress.rehearsing(0)
            pair, calls = start.measure(seconds, calls)
            pairs.append(pair)
            bare.append(start.bare_ns)
            progress.launch_done(0, seconds * 2)
        progress.experiment_done(0)
    if not all(one.own and other.own for one, other in pairs):
        raise MissingError(f"{name}: {engine} saw nothing of its call; choose another engine.")
    return compare_profiles(
        pairs, bare, variant=name, engine=engine, base=arms[0].target.label, head=arms[1].target.label
    )  # fmt: skip


class _Repetition:
    """One process a side."""

    def __init__(
        self,
        session: Session,
        benchmark: Benchmark,
        arms: tuple[Arm, Arm],
        engine: str,
        path: Sequence[str],
        folder: Path,
        rng: random.Random,
        core: int | None,
    ) -> None:
        self._session = session
        self._benchmark = benchmark
        self._arms = arms
        self._engine = engine
        self._path = list(path)
        self._folder = folder
        self._rng = rng
        self._core = core
        self._spies: list[subprocess.Popen[bytes]] = []
        self.bare_ns = (0.0, 0.0)
        """CPU ns a call of base and head without the profiler, in the least disturbed block of each."""

    def measure(self, seconds: float, calls: int) -> tuple[tuple[Profile, Profile], int]:
        """Profiles of both sides, and the calls of a block: those given, else what fits at the first side."""
        order = [0, 1]
        self._rng.shuffle(order)
        hash_seed = self._rng.randrange(2**32)
        workers: dict[int, WorkerProcess] = {}
        try:
            for side in order:
                workers[side] = self._session.start(
                    self._arms[side].target, threads=self._benchmark.threads, hash_seed=hash_seed
                )
                call_ns = self._prepare(side, workers[side])
                if not calls:
                    calls = max(1, round(seconds / TURNS * 1e9 / call_ns))
            self._watch(workers)
            blocks: tuple[list[float], list[float]] = ([], [])
            for turn in range(TURNS):
                for side in order if turn % 2 == 0 else order[::-1]:
                    self._ask(side, workers[side], "profile", step="run", calls=calls)
                    (cpu,) = self._ask(side, workers[side], "round", loops=calls, samples=1, untimed=False)["cpu"]
                    blocks[side].append(max(1, cpu) / calls)
            self.bare_ns = (min(blocks[0]), min(blocks[1]))
            answers = [self._ask(side, workers[side], "profile", step="end") for side in (0, 1)]
            seen = self._seen()
        finally:
            for spy in self._spies:
                spy.kill()
                spy.wait()
            for worker in workers.values():
                worker.kill()
        first, second = (
            _profile(answer if not seen else seen[side], calls * TURNS) for side, answer in enumerate(answers)
        )
        return (first, second), calls

    def _prepare(self, side: int, worker: WorkerProcess) -> int:
        """Set up under the profiler, then warm up. Returns ns a call, the profiler's own price left out."""
        benchmark = self._benchmark
        self._ask(side, worker, "profile", step="start", engine=self._engine, folder=str(self._folder / str(side)))
        self._ask(
            side, worker, "import", loader=benchmark.loader, source=benchmark.source, suite=benchmark.suite,
            path=self._path,
        )  # fmt: skip
        self._ask(
            side, worker, "set_up", loader=benchmark.loader, source=benchmark.source,
            device=self._arms[side].target.device, threads=benchmark.threads, requires=list(benchmark.requires),
            params=self._arms[side].variant.params,
        )  # fmt: skip
        first = self._ask(side, worker, "first_call", core=self._core)
        policy = asdict(Policy())
        chosen = self._ask(side, worker, "calibrate", policy=policy, first_call_ns=first["first_call_ns"])
        self._ask(
            side, worker, "warm_up", loops=chosen["loops"], call_ns=chosen["call_ns"], policy=policy, elevate=True,
            fifo=False,
        )  # fmt: skip
        call_ns: int = chosen["call_ns"]
        return max(1, call_ns)

    def _ask(self, side: int, worker: WorkerProcess, do: str, **arguments: Any) -> dict[str, Any]:
        try:
            return worker.ask(do, START_S + self._benchmark.timeout_s * 5, **arguments)
        except ArmFailed as failed:
            where, failure = ("base", "head")[side], failed.failure
            raise MissingError(
                f"{self._arms[side].variant.name}: {failure.kind.value} in {where} ({failure.phase}): {failure.message}"
            ) from None

    # py-spy looks from outside

    def _watch(self, workers: dict[int, WorkerProcess]) -> None:
        if self._engine != "py-spy":
            return
        spy = shutil.which(
            "py-spy", path=os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
        )
        if spy is None:
            raise MissingError("py-spy is not installed: pip install 'inference-bench[profile]'.")
        for side in (0, 1):
            self._folder.mkdir(parents=True, exist_ok=True)
            command = [
                spy, "record", "--pid", str(workers[side].pid), "--format", "raw", "--rate", str(SAMPLES_A_SECOND),
                "--function", "--native", "--duration", "3600", "--output", str(self._folder / f"{side}.txt"),
            ]  # fmt: skip
            started = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT, start_new_session=True)  # fmt: skip
            self._spies.append(started)
            assert started.stdout is not None
            line = started.stdout.readline().decode(errors="replace").strip()  # it says so when it has begun
            if "Sampling process" not in line:
                rest = started.stdout.read().decode(errors="replace")
                reason = " ".join(f"{line} {rest}".split()) or "no reason given"
                raise HostError(f"py-spy cannot look into our processes: {reason[:200]}; it needs the right to trace.")

    def _seen(self) -> list[dict[str, Any]]:
        """What py-spy wrote, as a worker's answer."""
        found = []
        for side, spy in enumerate(self._spies):
            spy.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                spy.communicate(timeout=START_PY_SPY_S)
            file = self._folder / f"{side}.txt"
            found.append(samples_of(file.read_text(encoding="utf-8") if file.is_file() else ""))
        return found


def samples_of(text: str) -> dict[str, Any]:
    """What py-spy's raw format says of frames under ours, in ns: a line is `outer (file);inner (file) samples`."""
    own: Counter[str] = Counter()
    stacks: Counter[str] = Counter()
    for line in text.splitlines():
        stack, _, count = line.rpartition(" ")
        frames = stack.split(";")
        marks = [i for i, frame in enumerate(frames) if MARKER.fullmatch(frame)]
        inner = [_frame_name(frame) for frame in frames[marks[-1] + 1 :]] if marks else []
        inner = [name for name in inner if "measure/profiling.py" not in name]
        if inner and count.isdigit():
            ns = int(count) * 1_000_000_000 // SAMPLES_A_SECOND
            own[inner[-1]] += ns
            stacks[";".join(inner)] += ns
    return {"self": own, "counts": {}, "stacks": stacks}


def _frame_name(frame: str) -> str:
    """`work (shop/__init__.py:3)` as `shop/__init__.py:work`; native frames as `library:function`."""
    match = re.fullmatch(r"(.*) \((.*?)(?::\d+)?\)", frame)
    return f"{match[2]}:{match[1]}" if match else frame


def _profile(answer: dict[str, Any], calls: int) -> Profile:
    """What a worker answered, a call of the work."""
    if "edges" in answer:
        edges = [(caller, callee, ns) for caller, callee, ns in answer["edges"]]
        stacks = stacks_of_calls(answer["self"], edges)
    else:
        stacks = answer["stacks"]
    return Profile(
        own={name: ns / calls for name, ns in answer["self"].items()},
        counts={name: count / calls for name, count in answer["counts"].items()},
        stacks={stack: ns / calls for stack, ns in stacks.items()},
    )
