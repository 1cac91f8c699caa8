"""`bench run`: plan, measure, store, show."""

from __future__ import annotations

import signal
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from bench.commands._shared import (
    config_of,
    database_option,
    note,
    opened,
    profile_option,
    suites_option,
    width,
    write,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.config import Config
    from bench.errors import Exit
    from bench.model import Experiment, Run
    from bench.ports import Discovery, Progress, Store

DEVICE = "runners.devices.cpu:Cpu"


@click.command("run")
@click.argument("selectors", nargs=-1, metavar="[SELECTOR]...")
@profile_option
@suites_option
@database_option
@click.option("--json", "json_file", metavar="FILE", help="Also write the report as JSON (- for standard output).")
@click.option("--launches", type=click.IntRange(1, 1000), help="Fresh processes per variant (default: the profile's).")
@click.option("--seed", type=click.IntRange(0), help="Repeat the order and the hash seeds of an earlier run.")
@click.option("--tag", "tags", multiple=True, help="What people call this machine; may be repeated.")
def command(
    selectors: tuple[str, ...],
    profile: str | None,
    suites: tuple[str, ...],
    database: str | None,
    json_file: str | None,
    launches: int | None,
    seed: int | None,
    tags: tuple[str, ...],
) -> Exit:
    """Measure benchmarks and store the run.

    The variants of a benchmark are launched side by side in fresh processes and measured in
    interleaved rounds. Without SELECTOR, everything in the profile runs.
    """
    import secrets

    from bench.errors import MissingError
    from bench.model import Target
    from bench.plan import plan
    from bench.sources.native import NativeSource

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    config = config_of(suites=suites, database=database, profile=profile, tags=tags)
    with opened(config) as store:  # an unusable database is found out before anything is measured
        source = NativeSource(config.suites)
        found = source.discover(Target())
        for problem in found.problems:
            note(problem.message)
        experiments = plan(
            found.benchmarks, selectors, profile=config.profile, target=Target(), launches=launches,
            seed=secrets.randbelow(2**31) if seed is None else seed,
        )  # fmt: skip
        if not experiments:
            raise MissingError(f"nothing to measure in {', '.join(config.suites)}; check --suites and --profile.")
        run = _measure(config, store, experiments, found, source.path)
        _show(run, json_file)
    return _exit_code(run)


def _measure(
    config: Config, store: Store, experiments: Sequence[Experiment], found: Discovery, path: Sequence[str]
) -> Run:
    import os
    import uuid
    from dataclasses import replace
    from datetime import UTC, datetime

    from bench import __version__
    from bench.experiment import run_experiments
    from bench.model import Run, RunStatus
    from bench.spool import Spool
    from bench.targets import revision_of
    from runners.conditions import ConditionsMeter
    from runners.environment import read_environment
    from runners.lock import machine_lock
    from runners.machine import read_machine

    os.environ["BENCH_CACHE"] = str(config.cache)  # workers build artifacts there
    with ExitStack() as stack:
        progress = _progress(stack)
        stack.enter_context(machine_lock(on_wait=progress.message))
        started_at = datetime.now(UTC)
        run = Run(
            key=uuid.uuid4().hex, started_at=started_at, finished_at=started_at, status=RunStatus.INTERRUPTED,
            profile=config.profile, machine=read_machine(config.tags), environment=read_environment(),
            experiments=(), revision=revision_of(config.root), problems=found.problems, bench_version=__version__,
        )  # fmt: skip
        spool = Spool(config.state, run)
        stack.callback(spool.release)
        with ConditionsMeter() as meter:
            results, interrupted = run_experiments(
                experiments, device=DEVICE, path=path, progress=progress, finished=spool.experiment
            )
        run = replace(
            run, experiments=results, finished_at=datetime.now(UTC), conditions=meter.conditions,
            status=RunStatus.INTERRUPTED if interrupted else RunStatus.COMPLETE,
        )  # fmt: skip
        store.add(run)
        spool.done()
    return run


def _progress(stack: ExitStack) -> Progress:
    from bench.reports.progress import BarProgress, LineProgress

    if sys.stderr.isatty():
        bar = BarProgress()
        stack.callback(bar.close)
        return bar
    return LineProgress()


def _show(run: Run, json_file: str | None) -> None:
    from bench.reports.json import JsonReport
    from bench.reports.text import TextReport

    if json_file != "-":
        write(TextReport(width(), sys.stdout.isatty()).run(run), None)
        note(f"stored as {run.key[:8]}; `bench show` prints it again, `bench dashboard` shows the tradeoffs")
    if json_file is not None:
        write(JsonReport().run(run), json_file)


def _exit_code(run: Run) -> Exit:
    from bench.errors import Exit
    from bench.model import FailureKind, RunStatus

    outcomes: list[Any] = [result.failure for _, result in run.arms()]
    failed = any(f is not None and f.kind is not FailureKind.SKIPPED for f in outcomes)
    nothing = all(f is not None for f in outcomes)
    whole = run.status is RunStatus.COMPLETE
    return Exit.FAILED if failed or nothing or run.problems or not whole else Exit.OK
