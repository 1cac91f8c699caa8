"""Fill a database as nights would, and time what pages and detectors ask of it.

    python -m benchmarks.store_at_size sqlite:///big.db --rows 10000000 --series 20000

Prints a Markdown table. The database must be empty or missing, or filled by this program before
(then it is only asked). Runs come in batches, as from `bench import`; each has a quarter of all
series, and every other one the same quarter, so that its series have three times as many points.
Rows carry raw samples. Every question is asked many times, each time about another series or
commit. The best answer counts, and the CPU time, with that of a server on this machine, tells what
a machine does that has nothing else to do; how busy this one was stands above the table.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import sqlalchemy as sa

from bench.compare import estimate
from bench.history import Action, Cause, Direction, Event, Regression, State
from bench.metrics import CPU_TIME, FIRST_CALL, PEAK_MEMORY, SET_UP, TIME
from bench.model import (
    Arm,
    ArmResult,
    Benchmark,
    Estimate,
    Experiment,
    ExperimentResult,
    Measurement,
    Policy,
    Revision,
    Run,
)
from bench.testing import make_run
from bench.wire import canonical
from db import overview
from db.engine import writing
from db.ingest import no_collection, write_runs
from db.mapping import Measured, Rows, rows_of
from db.store import SqlStore, open_store

METRICS = (TIME, CPU_TIME, PEAK_MEMORY, FIRST_CALL, SET_UP)
GROUPS = 4
START = datetime(2020, 1, 1, tzinfo=UTC)
BATCH_ROWS = 100_000
REGRESSIONS = 3000
TRIES = 30


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table."""

    question: str
    best: str
    middle: str
    cpu: str
    bar: str


def estimates(result: ArmResult) -> dict[str, Estimate]:
    """What `bench` keeps beside samples."""
    return {m.metric.name: estimate(m) for m in result.measurements}


def night(group: int, series: int, *, launches: int, samples: int, seed: int) -> Run:
    """A run of every series of a group: benchmarks of four variants, five metrics each."""
    rng = random.Random(seed)
    parts = []
    for number in range(series // (4 * len(METRICS))):
        name = f"suite{group}.work{number}"
        benchmark = Benchmark(
            name=name, version="v1", suite=f"suite{group}", source="made:up", axes={"engine": ["a", "b", "c", "d"]},
            baseline={"engine": "a"},
        )  # fmt: skip
        arms = tuple(Arm(variant=variant) for variant in benchmark.variants())
        results = []
        for arm in arms:
            level = rng.lognormvariate(14, 1)
            measured = tuple(
                Measurement(
                    metric=metric,
                    launches=tuple(
                        tuple(round(level * rng.lognormvariate(0, 0.02)) for _ in range(samples if k < 2 else 1))
                        for _ in range(launches)
                    ),
                )
                for k, metric in enumerate(METRICS)
            )
            results.append(ArmResult(arm=arm, measurements=measured))
        experiment = Experiment(benchmark=benchmark, arms=arms, policy=Policy(launches=launches), seed=seed)
        parts.append(ExperimentResult(experiment=experiment, results=tuple(results), launches=()))
    return replace(make_run(seed=seed, launches=1), experiments=tuple(parts))


def commit_of(number: int) -> str:
    """Commit of the run of that number."""
    return f"{number:040x}"


def moment_of(number: int) -> datetime:
    """When the run of that number was measured: four a day."""
    return START + timedelta(hours=6 * number)


def group_of(number: int) -> int:
    """Every other run measures the first group."""
    return 0 if number % 2 == 0 else 1 + (number // 2) % (GROUPS - 1)


def prepared(template: Rows, number: int, rng: random.Random) -> Rows:
    """The rows of another night like `template`, with other values and the same samples."""
    at = moment_of(number)
    factor = rng.lognormvariate(0, 0.02)
    measurements = []
    for m in template.measurements:
        value, low, high, n, note = m.estimate
        assert value is not None
        moved = (value * factor, low and low * factor, high and high * factor, n, note)
        measurements.append(Measured(m.arm, m.position, m.series_fp, m.metric_fp, m.loops, at, moved))
    run = template.run | {
        "run_key": f"{number:032x}", "payload_sha": f"{number:064x}", "started_at": at, "finished_at": at,
        "commit_id": commit_of(number), "dirty": False, "branch": "main", "committed_at": at,
    }  # fmt: skip
    return replace(template, run=run, measurements=measurements)


class Cpu:
    """CPU seconds of this process, and of the server's where it runs on this machine."""

    def __init__(self, engine: sa.Engine) -> None:
        self._server: Path | None = None
        if engine.dialect.name == "postgresql":
            with engine.connect() as connection:  # the pool hands out the same one again
                self._server = Path(f"/proc/{connection.scalar(sa.func.pg_backend_pid())}/stat")

    def __call__(self) -> float:
        """Until now."""
        if self._server is None or not self._server.is_file():
            return time.process_time()
        user, system = self._server.read_text().rsplit(")", 1)[1].split()[11:13]
        return time.process_time() + (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def fill(store: SqlStore, engine: sa.Engine, rows: int, series: int, launches: int, samples: int) -> Iterator[Figure]:
    """Store nights until there are so many rows; speed of the first and the last tenth."""
    templates = [
        rows_of(canonical(night(g, series // GROUPS, launches=launches, samples=samples, seed=g)), estimates)
        for g in range(GROUPS)
    ]
    each = len(templates[0].measurements)
    rng, cpu = random.Random(0), Cpu(engine)
    nights, batch = rows // each, max(1, BATCH_ROWS // each)
    speeds, costs = [], []
    for first in range(0, nights, batch):
        with no_collection():
            found = [prepared(templates[group_of(k)], k, rng) for k in range(first, min(first + batch, nights))]
            start, used = time.perf_counter(), cpu()
            with writing(engine) as connection:
                write_runs(connection, found)
        speeds.append(len(found) * each / (time.perf_counter() - start))
        costs.append(len(found) * each / (cpu() - used))
        click.echo(f"{(first + len(found)) * each:>12,} rows, {speeds[-1]:>9,.0f} a second", err=True)
    tenth = max(1, len(speeds) // 10)
    yield Figure("bulk import of prepared rows: rows a second", f"{max(speeds):,.0f}", f"{middle(speeds):,.0f}",
                 f"{middle(costs):,.0f}", "≥ 100,000")  # fmt: skip
    yield Figure("the same, last tenth", f"{max(speeds[-tenth:]):,.0f}", f"{middle(speeds[-tenth:]):,.0f}",
                 f"{middle(costs[-tenth:]):,.0f}", "")  # fmt: skip


def middle(values: Sequence[float]) -> float:
    """The median."""
    return sorted(values)[len(values) // 2]


def regress(store: SqlStore, nights: int) -> None:
    """Regressions spread over the years."""
    last = moment_of(nights)
    for number in range(REGRESSIONS):
        key = f"{number:032x}"
        at = last - timedelta(hours=6 * number)
        regression = Regression(
            key=key, title=f"suite.work{number} is 12 % slower", direction=Direction.WORSE, cause=Cause.CODE,
            machine_fingerprint=None, opened_at=at, state=State.OPEN, changes=(), events=0,
        )  # fmt: skip
        event = Event(regression=key, number=1, at=at, who="bench", action=Action.OPENED)
        store.history.open_regression(regression, event)


def timed(question: str, answer: Callable[[int], object], bar: str, cpu: Cpu, tries: int = TRIES) -> Figure:
    """Milliseconds of an answer: the quickest, the middle, and the CPU time on average; it gets the try's number."""
    taken, used = [], cpu()
    for number in range(tries):
        start = time.perf_counter()
        answer(number)
        taken.append((time.perf_counter() - start) * 1e3)
    mean = (cpu() - used) * 1e3 / tries
    return Figure(question, f"{min(taken):.1f}", f"{middle(taken):.1f}", f"{mean:.1f}", bar)


def ask(store: SqlStore, nights: int, sqlite: bool, cpu: Cpu) -> Iterator[Figure]:
    """Time the questions."""
    rng = random.Random(1)
    history = store.history
    with store.read() as connection:
        names = [s.fingerprint for s in overview.labels(connection).values() if s.suite == "suite0"]
    chosen = [rng.choice(names) for _ in range(TRIES)]
    points = len(history.points([chosen[0]])[chosen[0]])
    what = f"history of one series of {points:,} points"
    yield timed(what, lambda k: history.points([chosen[k]]), "≤ 10 ms", cpu)
    pairs = [2 * rng.randrange(1, nights // 2) for _ in range(TRIES)]

    def compare(k: int) -> int:
        with store.read() as connection:
            return len(overview.compare_commits(connection, commit_of(pairs[k] - 2), commit_of(pairs[k])))

    yield timed(f"two commits over {compare(0):,} series", compare, f"≤ {40 if sqlite else 20} ms", cpu)

    def latest(_: int) -> int:
        with store.read() as connection:
            return len(overview.latest(connection))

    yield timed(f"latest of {latest(0):,} series", latest, f"≤ {100 if sqlite else 50} ms", cpu)

    def recent(_: int) -> int:
        with store.read() as connection:
            return len(overview.regressions_since(connection, moment_of(nights) - timedelta(days=30)))

    yield timed(f"{recent(0):,} regressions of 30 days, of {REGRESSIONS:,}", recent, "≤ 5 ms", cpu)


def nightly(store: SqlStore, nights: int, series: int, cpu: Cpu) -> Iterator[Figure]:
    """Whole runs through `add`: digest, estimates, samples, one transaction each."""
    for launches, samples in ((1, 2), (7, 40)):
        group = night(1, series // GROUPS, launches=launches, samples=samples, seed=9)
        runs = [
            replace(group, key=f"{launches:016x}{os.getpid():08x}{k:08x}", started_at=moment_of(nights + k + 1),
                    revision=Revision(commit=commit_of(nights + k + 1)))
            for k in range(5)
        ]  # fmt: skip
        rows = len(list(group.arms())) * len(METRICS)
        what = f"one night of {rows:,} rows, {launches} × {samples} samples of each time, whole"
        yield timed(what, lambda k, runs=runs: store.add(runs[k]), "< 500 ms", cpu, len(runs))  # type: ignore[misc]


def main(arguments: Sequence[str]) -> None:
    """Fill, ask, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--series", type=int, default=20_000)
    parser.add_argument("--launches", type=int, default=3, help="of the raw samples stored with every row")
    parser.add_argument("--samples", type=int, default=5, help="in a launch, of the two times")
    chosen = parser.parse_args(arguments)
    figures = []
    nights = chosen.rows // (chosen.series // GROUPS)
    with open_store(chosen.url, summarise=estimates) as store:
        engine = store._engine
        if not store.runs(limit=1):
            figures += fill(store, engine, chosen.rows, chosen.series, chosen.launches, chosen.samples)
            regress(store, nights)
        if not chosen.url.startswith("sqlite"):
            with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                connection.exec_driver_sql("VACUUM ANALYZE")
        cpu = Cpu(engine)
        figures += ask(store, nights, chosen.url.startswith("sqlite"), cpu)
        figures += nightly(store, nights, chosen.series, cpu)
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    click.echo(f"{store.place}: {chosen.rows:,} measurements; load of {os.cpu_count()} cores {load}; times in ms\n")
    click.echo("| question | best | middle | CPU | bar |\n| --- | --- | --- | --- | --- |")
    for figure in figures:
        click.echo(f"| {figure.question} | {figure.best} | {figure.middle} | {figure.cpu} | {figure.bar} |")


if __name__ == "__main__":
    main(sys.argv[1:])
