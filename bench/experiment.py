"""Run experiments: rehearse once, then launch after launch, all arms side by side.

A rehearsal is one process per arm that builds artifacts, checks the answer, reports accuracy and
calibrates; nothing it times is kept, so caches and reports never colour a measured launch. Where
processes come from is the business of bench.measure.parents.
"""

from __future__ import annotations

import os
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import Any

from bench.decision import first_look
from bench.measure.callgrind import SLOWER, CountError, calls_for, instructions, prefix, randomised
from bench.measure.meters.sensors import own_cpus
from bench.measure.meters.servers import SERVED
from bench.measure.parents import START_S, Parents
from bench.measure.session import ArmFailed, Session, WorkerProcess
from bench.metrics import (
    ALLOCATION_PEAK,
    CPU_TIME,
    ENERGY,
    FIRST_CALL,
    INSTRUCTIONS,
    MEMORY_GROWTH,
    PEAK_MEMORY,
    SET_UP,
    SINGLE_CALL,
    TIME,
    Summary,
)
from bench.model import (
    FEWEST_LAUNCHES,
    ArmResult,
    Experiment,
    ExperimentResult,
    Failure,
    FailureKind,
    Launch,
    Number,
    RoundConditions,
    Target,
)
from bench.modules import ModuleRunner, modules
from bench.ports import Progress
from bench.sampler import Sampler

MINUTE_S = 60.0

FIFO_LIMIT_NS = 200_000_000
"""Longest sample measured in the real-time class: the kernel throttles what takes over 0.95 s in a second."""

TRACED = 10
"""How many times as long as usual a call may take while its allocations are traced."""

Finished = Callable[[int, ExperimentResult], None]

Enough = Callable[[ExperimentResult], bool]
"""Whether an experiment needs no more launches; asked after each."""


class ExperimentRunner:
    """One experiment: its plan, what was seen so far, and whether it goes on."""

    def __init__(
        self,
        experiment: Experiment,
        *,
        device: str | None = None,
        enough: Enough | None = None,
    ) -> None:
        self.experiment = experiment
        self._enough = enough
        self._device = device
        self._random = random.Random(experiment.seed)
        self._launch_metrics = [m for m in experiment.benchmark.metrics if m.summary is Summary.LAUNCH]
        self._arms = [Sampler(arm) for arm in experiment.arms]
        self._launches: list[Launch] = []
        self._spent_s = 0.0
        self._settled = False
        self.seen = self.result()
        """What is known after the last launch."""

    @property
    def undecided(self) -> bool:
        """Whether another launch is wanted: not enough yet, within the policy's number and budget."""
        policy = self.experiment.policy
        if self._settled:
            return False
        # A budget that ends before the first look, or the first interval, would spend time and learn nothing.
        fewest = first_look(policy) if policy.gate else FEWEST_LAUNCHES
        if policy.budget_s is not None and self._spent_s >= policy.budget_s and len(self._launches) >= fewest:
            return False
        return len(self._launches) < policy.launches and any(s.launched for s in self._arms)

    @property
    def targets(self) -> list[Target]:
        """Where arms are that can be launched, or wait for their rehearsal."""
        return [s.arm.target for s in self._arms if s.launched]

    def draw_hash_seed(self) -> int:
        """For a launch of this experiment alone."""
        return self._random.randrange(2**32)

    def rehearse(self, parents: Parents) -> None:
        """Find failures, accuracy, loops. Baselines first: the others are judged against them."""
        for sampler in sorted(self._arms, key=lambda s: not s.arm.variant.baseline):
            try:
                self._rehearse(sampler, parents)
            except ArmFailed as failed:
                sampler.failure = failed.failure
        self._freeze()
        self._settle()

    def count_instructions(self, parents_under: Callable[[Sequence[str]], Parents]) -> None:
        """One more process per arm, under callgrind. An arm that cannot be counted says why; it goes on."""
        for sampler in self._arms:
            if sampler.launched:
                try:
                    sampler.instructions = self._count(sampler, parents_under)
                except ArmFailed as failed:
                    why = failed.failure
                    sampler.absent[INSTRUCTIONS.name] = f"{why.kind.value} in {why.phase} under valgrind: {why.message}"
                except CountError as error:
                    sampler.absent[INSTRUCTIONS.name] = str(error)

    def _count(self, sampler: Sampler, parents_under: Callable[[Sequence[str]], Parents]) -> int:
        warm_up, count = calls_for(sampler.call_ns)
        with tempfile.TemporaryDirectory(prefix="bench-callgrind-") as name:
            folder = Path(name)
            worker = parents_under(prefix(folder)).worker(sampler.arm.target)
            try:
                self._set_up(sampler, worker, None, patience=1.0, slower=SLOWER)
                timeout_s = SLOWER * self.experiment.benchmark.timeout_s
                answer = worker.ask("instructions", timeout_s, warm_up=warm_up, count=count)
            finally:
                worker.kill()
            if "absent" in answer:
                raise CountError(answer["absent"])
            if randomised():
                sampler.notes["instructions"] = "addresses could not be held fixed: counts vary a little"
            return instructions(folder, count)

    def _freeze(self) -> None:
        """One variant has one number of loops and samples, whichever target it runs at.

        A first call is a sample only where all arms say so: a slower first call alone is no slower call.
        """
        alike = all(sampler.first for sampler in self._arms if sampler.failure is None)
        for sampler in self._arms:
            sampler.first = alike
        first: dict[str, Sampler] = {}
        for sampler in self._arms:
            if sampler.failure is None:
                model = first.setdefault(sampler.arm.variant.name, sampler)
                sampler.plan_like(model, loops=self.experiment.policy.loops)

    def launch(self, parents: Parents, imported_s: float = 0.0) -> float:
        """One process per arm, ABBA rounds. Returns the seconds it took, with those that an import before took."""
        start = time.monotonic()
        index = len(self._launches)
        order = [i for i, s in enumerate(self._arms) if s.launched]
        self._random.shuffle(order)
        threads = self.experiment.benchmark.threads
        core = core_of(index) if threads == 1 else None
        started_at, load = datetime.now(UTC), _load()
        running: dict[int, WorkerProcess] = {}
        rows: dict[int, dict[str, list[Number]]] = {}
        priorities = set()
        rounds: list[RoundConditions] = []
        try:
            for i in order:
                try:
                    running[i] = worker = parents.worker(self._arms[i].arm.target)
                    rows[i], priority = self._prepare(self._arms[i], worker, core)
                    priorities.add(priority)
                except ArmFailed as failed:
                    self._drop(i, failed, running, rows)
            for number, arms in enumerate(self._rounds(order)):
                for i in arms:
                    if i in rows:
                        try:
                            rounds.append(self._round(self._arms[i], running[i], rows[i], i, number))
                        except ArmFailed as failed:
                            self._drop(i, failed, running, rows)
            for i in list(rows):
                try:
                    memory = running[i].ask("memory", MINUTE_S)
                except ArmFailed as failed:
                    self._drop(i, failed, running, rows)
                else:
                    rows[i][PEAK_MEMORY.name] = [memory["peak_bytes"]]
                    rows[i][MEMORY_GROWTH.name] = [memory["growth_bytes"]]
                    self._trace(self._arms[i], running[i], rows[i])
        except BaseException:
            for worker in running.values():
                worker.kill()
            raise
        for worker in running.values():
            worker.close()
        for i, row in rows.items():
            self._arms[i].keep(row)
        self._launches.append(
            Launch(
                index=index, started_at=started_at, hash_seed=parents.hash_seed, core=core, order=tuple(order),
                priority="+".join(sorted(priorities)) or "normal", rounds=tuple(rounds), load=load,
                forked=parents.shared,
            )
        )  # fmt: skip
        seconds = imported_s + time.monotonic() - start
        self._spent_s += seconds
        self._settle()
        return seconds

    def _settle(self) -> None:
        self.seen = self.result()
        self._settled = self._enough is not None and self._enough(self.seen)

    def result(self, *, interrupted: bool = False) -> ExperimentResult:
        """All that is known now. Arms that got no launch are UNMEASURED."""
        results = []
        for sampler in self._arms:
            failure = sampler.failure
            if sampler.launched and not sampler.rows:
                why = "the run was interrupted before its first launch" if interrupted else "no launch was made"
                failure = Failure(kind=FailureKind.UNMEASURED, phase="launch", message=why)
            results.append(
                ArmResult(
                    arm=sampler.arm, failure=failure, items=sampler.items, notes=sampler.notes, absent=sampler.absent,
                    measurements=sampler.measurements(self.experiment.benchmark),
                )
            )  # fmt: skip
        return ExperimentResult(experiment=self.experiment, results=tuple(results), launches=tuple(self._launches))

    def _set_up(
        self, sampler: Sampler, worker: WorkerProcess, core: int | None, patience: float, slower: float = 1.0
    ) -> dict[str, Any]:
        """Set-up and first call. `slower`: how many times as long everything may take."""
        benchmark = self.experiment.benchmark
        answer = worker.ask(
            "set_up", slower * (START_S + benchmark.timeout_s * patience), loader=benchmark.loader,
            source=benchmark.source, device=self._device or sampler.arm.target.device, threads=benchmark.threads,
            requires=list(benchmark.requires), params=sampler.arm.variant.params,
        )  # fmt: skip
        SERVED.follow(answer.pop("servers", ()))
        return {**answer, **worker.ask("first_call", slower * benchmark.timeout_s, core=core, sample=sampler.first)}

    def _rehearse(self, sampler: Sampler, parents: Parents) -> None:
        benchmark, policy = self.experiment.benchmark, self.experiment.policy
        worker = parents.worker(sampler.arm.target)
        try:
            # Building artifacts for the first time may take far longer than loading them.
            answer = self._set_up(sampler, worker, None, patience=5.0)
            sampler.describe(answer)
            names = [m.name for m in benchmark.metrics]
            sampler.values = worker.ask("check", benchmark.timeout_s, metrics=names)["values"]
            if sampler.launched:
                chosen = worker.ask(
                    "calibrate", benchmark.timeout_s, policy=asdict(policy), first_call_ns=answer["first_call_ns"]
                )
                sampler.plan(chosen)
                sampler.absent = chosen["absent"]
            # What a driven suite asserts after the measured call is part of its answer.
            worker.finish(benchmark.timeout_s)
        except BaseException:
            worker.kill()
            raise

    def _prepare(
        self, sampler: Sampler, worker: WorkerProcess, core: int | None
    ) -> tuple[dict[str, list[Number]], str]:
        benchmark = self.experiment.benchmark
        answer = self._set_up(sampler, worker, core, patience=1.0)
        values: dict[str, Any] = {}
        if self._launch_metrics:
            names = [m.name for m in benchmark.metrics]
            values = worker.ask("check", benchmark.timeout_s, metrics=names)["values"]
        # One class for all arms: a preempted baseline beside a real-time variant would flatter the variant.
        slowest = max(s.call_ns * s.loops for s in self._arms)
        fifo = core is not None and len(own_cpus()) > 1 and slowest <= FIFO_LIMIT_NS
        warm = worker.ask(
            "warm_up", benchmark.timeout_s, loops=sampler.loops, call_ns=sampler.call_ns,
            policy=asdict(self.experiment.policy), elevate=True, fifo=fifo,
        )  # fmt: skip
        row: dict[str, list[Number]] = {
            TIME.name: [],
            CPU_TIME.name: [],
            ENERGY.name: [],
            FIRST_CALL.name: [answer["first_call_ns"]],
            SET_UP.name: [answer["set_up_ns"]],
        }
        row.update({m.name: [values[m.name]] for m in self._launch_metrics if not isinstance(values[m.name], dict)})
        return row, warm["priority"]

    def _rounds(self, order: Sequence[int]) -> list[list[int]]:
        """ABBA: every second round runs the order before it backwards, so that drift cancels.

        An arm whose calls are long takes part in the first rounds only.
        """
        rounds: list[list[int]] = []
        for number in range(self.experiment.policy.rounds):
            if number % 2:
                rounds.append(rounds[-1][::-1])
            else:
                shuffled = list(order)
                self._random.shuffle(shuffled)
                rounds.append(shuffled)
        return [[i for i in arms if number < self._arms[i].rounds] for number, arms in enumerate(rounds)]

    def _round(
        self, sampler: Sampler, worker: WorkerProcess, row: dict[str, list[Number]], arm: int, number: int
    ) -> RoundConditions:
        answer = worker.ask(
            "round", self.experiment.benchmark.timeout_s, loops=sampler.loops, samples=sampler.samples,
            singles=sampler.singles, untimed=sampler.untimed,
        )  # fmt: skip
        row[TIME.name] += answer["wall"]
        row[CPU_TIME.name] += answer["cpu"]
        if answer["singles"]:
            row.setdefault(SINGLE_CALL.name, []).extend(answer["singles"])
        if answer["energy_uj"] is not None:
            row[ENERGY.name].append(answer["energy_uj"])
        device = sampler.keep_device(row, answer["device"])
        return RoundConditions(arm=arm, round=number, **answer["conditions"], device=device)

    def _trace(self, sampler: Sampler, worker: WorkerProcess, row: dict[str, list[Number]]) -> None:
        """The peak of allocations, last, since tracing leaves its traces."""
        if not self.experiment.policy.allocations:
            return
        answer = worker.ask("allocations", TRACED * self.experiment.benchmark.timeout_s)
        if "absent" in answer:
            sampler.absent[ALLOCATION_PEAK.name] = answer["absent"]
        else:
            row[ALLOCATION_PEAK.name] = [answer["peak_bytes"]]

    def _drop(
        self, index: int, failed: ArmFailed, running: dict[int, WorkerProcess], rows: dict[int, dict[str, list[Number]]]
    ) -> None:
        self._arms[index].failure = failed.failure
        rows.pop(index, None)
        if index in running:
            running.pop(index).kill()


def run_experiments(
    experiments: Sequence[Experiment],
    *,
    device: str | None = None,
    path: Sequence[str],
    progress: Progress,
    finished: Finished,
    enough: Enough | None = None,
) -> tuple[tuple[ExperimentResult, ...], bool]:
    """Measure all, launches taken round-robin so that one bad minute cannot spoil one experiment.

    Experiments of one module rehearse and launch together. `finished(index, result)` is called after
    every launch with all that is known of that experiment. Returns the results and whether it was
    interrupted (Ctrl-C, SIGTERM): then with what was known. `device`: that of all arms, in place of
    those of their targets.
    """
    runners: list[ExperimentRunner] = []
    interrupted = False
    with Session() as session:
        runners = [ExperimentRunner(e, device=device, enough=enough) for e in experiments]
        groups = [ModuleRunner({i: runners[i] for i in group}, session, path) for group in modules(experiments)]
        progress.plan(
            [e.name for e in experiments],
            [e.policy.launches for e in experiments],
            [inf if e.policy.always_valid and e.policy.budget_s is None else e.policy.budget_s for e in experiments],
        )

        def launch(group: ModuleRunner) -> None:
            for index, seconds in group.launch():
                finished(index, runners[index].seen)
                progress.launch_done(index, seconds)
                if not runners[index].undecided:
                    progress.experiment_done(index)

        try:
            for group in groups:
                group.rehearse(progress)
                for index in group.decided:
                    finished(index, runners[index].seen)
                    progress.experiment_done(index)
                if group.holds_parents:  # not for longer than they must: they may be large
                    launch(group)
            while waiting := [group for group in groups if group.undecided]:
                for group in waiting:
                    launch(group)
        except KeyboardInterrupt:
            interrupted = True
            progress.message("interrupted; keeping what was measured")
    return tuple(r.result(interrupted=interrupted) for r in runners), interrupted


def core_of(launch: int) -> int | None:
    """The core to which all arms of a launch are pinned: each in its turn; null where the system has no say."""
    cores = sorted(own_cpus())
    return cores[launch % len(cores)] if cores else None


def _load() -> float | None:
    try:
        return os.getloadavg()[0]
    except (OSError, AttributeError):
        return None
