"""Fakes and builders for everyone's tests; shipped with the package."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from bench.metrics import CPU_TIME, PEAK_MEMORY, SET_UP, SIZE, TIME, Better, Kind, Metric, Summary
from bench.model import (
    Arm,
    ArmResult,
    Benchmark,
    Environment,
    Experiment,
    ExperimentResult,
    Failure,
    FailureKind,
    Launch,
    Machine,
    Measurement,
    Policy,
    RoundConditions,
    Run,
    RunStatus,
    Target,
    Variant,
)
from bench.stats.sequential import CONFIRMATION_LAUNCHES
from bench.testing.history import make_change, make_event, make_regression
from bench.testing.memory import MemoryHistory, MemoryStore

__all__ = [
    "AGREEMENT",
    "FakeClock",
    "FakeDevice",
    "MemoryHistory",
    "MemoryStore",
    "SilentProgress",
    "as_confirmation",
    "make_change",
    "make_event",
    "make_pair",
    "make_regression",
    "make_run",
    "with_environment",
]


@dataclass
class FakeClock:
    """A clock that moves only when told: every reading adds `step`, `sleep` adds more."""

    now: int = 0
    step: int = 0

    def wall(self) -> int:
        """Current time in ns, then one step on."""
        self.now += self.step
        return self.now

    def cpu(self) -> int:
        """The same time; a fake process never waits."""
        return self.now

    def sleep(self, ns: int) -> None:
        """Let time pass."""
        self.now += ns


class FakeDevice:
    """A device that does nothing at once."""

    name = "fake"
    kind = "real"

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads
        self.synchronized = 0

    def synchronize(self) -> None:
        """Count the calls."""
        self.synchronized += 1


class SilentProgress:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.launches = 0

    def plan(self, experiments: Sequence[str], launches: Sequence[int], budgets: Sequence[float | None]) -> None:
        """See bench.ports.Progress."""

    def rehearsing(self, experiment: int) -> None:
        """See bench.ports.Progress."""

    def launch_done(self, experiment: int, seconds: float) -> None:
        """Count."""
        self.launches += 1

    def experiment_done(self, experiment: int) -> None:
        """See bench.ports.Progress."""

    def message(self, text: str) -> None:
        """Keep."""
        self.messages.append(text)


AGREEMENT = Metric(
    name="agreement", unit="1", better=Better.HIGHER, kind=Kind.ACCURACY, summary=Summary.ITEMS,
    help="share of answers equal to the reference's",
)  # fmt: skip


def make_run(
    *,
    seed: int = 0,
    speedups: Sequence[float] = (1.0, 2.0, 0.8),
    launches: int = 7,
    suite: str = "demo",
    failure: Failure | None = None,
    started_at: datetime | None = None,
    machine: Machine | None = None,
    noise: float = 0.01,
) -> Run:
    """A whole run of one benchmark `<suite>.net[engine=…]`: made up, plausible and reproducible.

    Variant k runs `speedups[k]` times as fast as the baseline (k = 0), which takes 2 ms a call;
    `failure`, if given, befalls the last variant.
    """
    rng = random.Random(seed)
    start = started_at or datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=seed)
    engines = [f"e{k}" for k in range(len(speedups))]
    benchmark = Benchmark(
        name=f"{suite}.net", version="v1", suite=suite, source=f"suites.{suite}:net", title="A made-up network.",
        axes={"engine": list(engines)}, baseline={"engine": "e0"}, metrics=(AGREEMENT,),
    )  # fmt: skip
    arms = tuple(Arm(variant=variant) for variant in benchmark.variants())
    results = []
    for index, (arm, factor) in enumerate(zip(arms, speedups, strict=True)):
        rows = tuple(
            tuple(round(2e6 / factor * rng.lognormvariate(0, noise)) for _ in range(40)) for _ in range(launches)
        )
        memory = tuple((300_000_000 - 40_000_000 * index + rng.randrange(100_000),) for _ in range(launches))
        right = tuple(1 if index == 0 or rng.random() > 0.02 * index else 0 for _ in range(400))
        results.append(
            ArmResult(
                arm=arm,
                items=8.0,
                notes={"provider": "CPUExecutionProvider"},
                failure=failure if index == len(arms) - 1 else None,
                measurements=(
                    Measurement(metric=TIME, launches=rows),
                    Measurement(metric=CPU_TIME, launches=rows),
                    Measurement(metric=PEAK_MEMORY, launches=memory),
                    Measurement(metric=SIZE, launches=((90_000_000 // (1 + index),),)),
                    Measurement(metric=AGREEMENT, launches=(right,)),
                ),
            )
        )
    seen = tuple(
        Launch(
            index=k, started_at=start + timedelta(seconds=k), hash_seed=rng.randrange(2**32), core=k % 2,
            priority="normal", order=tuple(rng.sample(range(len(arms)), len(arms))),
            rounds=tuple(RoundConditions(arm=a, round=0, wall_ns=80_000_000, involuntary_switches=2)
                         for a in range(len(arms))),
        )
        for k in range(launches)
    )  # fmt: skip
    experiment = Experiment(benchmark=benchmark, arms=arms, policy=Policy(launches=launches), seed=seed)
    return Run(
        key=f"{rng.getrandbits(128):032x}",
        started_at=start,
        finished_at=start + timedelta(minutes=1),
        status=RunStatus.COMPLETE,
        profile="quick",
        machine=machine
        or Machine(architecture="x86_64", cpu="Example CPU", physical_cores=2, logical_cores=2, memory_gib=24),
        environment=Environment(python="3.11.7", system="Linux 6.1", packages={"numpy": "2.4.0"}),
        experiments=(ExperimentResult(experiment=experiment, results=tuple(results), launches=seen),),
        bench_version="0.1.0",
    )


def make_pair(
    effect: float = 1.0,
    *,
    launches: int = 18,
    name: str = "demo.work",
    base: Target | None = None,
    head: Target | None = None,
    failure: Failure | None = None,
    noise: float = 0.003,
    seed: int = 0,
    set_up_s: float | None = None,
) -> ExperimentResult:
    """A gate's experiment of a 1 ms call, made up and reproducible: head takes `effect` times as long as base.

    `failure`, if given, befalls head before its first launch, so that base is not launched either.
    `set_up_s`: what the set-up of each arm took; not measured without it.
    """
    rng = random.Random(seed)
    launches = 0 if failure is not None else launches
    benchmark = Benchmark(name=name, version="v1", suite=name.partition(".")[0], source="demo:work")
    variant = Variant(benchmark=name, params={})
    arms = tuple(Arm(variant=variant, target=t) for t in (base or Target(label="base"), head or Target(label="head")))
    results = []
    for arm, factor in zip(arms, (1.0, effect), strict=True):
        rows = tuple(tuple([round(1e6 * factor * rng.lognormvariate(0, noise))] * 10) for _ in range(launches))
        measurements = tuple(Measurement(metric=m, launches=rows) for m in (TIME, CPU_TIME)) if launches else ()
        if set_up_s is not None:
            measurements += (Measurement(metric=SET_UP, launches=((round(set_up_s * 1e9),),) * launches),)
        reason = failure
        if failure is not None and arm is arms[0]:
            reason = Failure(kind=FailureKind.UNMEASURED, phase="launch", message="no launch was made")
        results.append(ArmResult(arm=arm, measurements=measurements, failure=reason))
    seen = tuple(
        Launch(index=k, started_at=datetime(2026, 1, 1, tzinfo=UTC), hash_seed=rng.randrange(2**32), core=0,
               priority="normal", order=(0, 1))
        for k in range(launches)
    )  # fmt: skip
    policy = Policy(launches=50, gate=True, budget_s=60.0)
    experiment = Experiment(benchmark=benchmark, arms=arms, policy=policy, seed=seed)
    return ExperimentResult(experiment=experiment, results=tuple(results), launches=seen)


def as_confirmation(result: ExperimentResult, planned: int = CONFIRMATION_LAUNCHES) -> ExperimentResult:
    """The same launches as a confirmation of `planned` ones, complete or cut short."""
    policy = replace(result.experiment.policy, launches=planned, budget_s=None)
    return replace(result, experiment=replace(result.experiment, policy=policy))


def with_environment(run: Run, **packages: str) -> Run:
    """The same run under other package versions and another key."""
    environment = replace(run.environment, packages={**run.environment.packages, **packages})
    return replace(run, key=run.key[::-1], environment=environment)
