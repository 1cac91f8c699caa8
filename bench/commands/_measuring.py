"""What every verb that measures shares: the machine's lock, the spool, conditions, one stored run."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from bench.commands._shared import note

if TYPE_CHECKING:
    from bench.config import Config
    from bench.model import Environment, ExperimentResult, Failure, Revision, Run, Target
    from bench.ports import Progress, Store


class Recorder:
    """One run while it is measured."""

    def __init__(self, config: Config, store: Store, stack: ExitStack, run: Run, progress: Progress) -> None:
        from bench.spool import Spool
        from runners.conditions import ConditionsMeter

        self.progress = progress
        self._store = store
        self._run = run
        self._spool = Spool(config.state, run)
        stack.callback(self._spool.release)
        self._meter = ConditionsMeter()
        self._meter.start()

    def keep(self, index: int, result: ExperimentResult) -> None:
        """What is known of one experiment: on disk when this returns."""
        self._spool.experiment(index, result)

    def store(self, results: Sequence[ExperimentResult], *, interrupted: bool) -> Run:
        """End the run and store it."""
        from dataclasses import replace
        from datetime import UTC, datetime

        from bench.model import RunStatus

        conditions = self._meter.stop()
        run = replace(
            self._run, experiments=tuple(results), finished_at=datetime.now(UTC), conditions=conditions,
            status=RunStatus.INTERRUPTED if interrupted else RunStatus.COMPLETE,
        )  # fmt: skip
        self._store.add(run)
        self._spool.done()
        return run


@contextmanager
def recording(
    config: Config,
    store: Store,
    *,
    profile: str,
    source: str,
    revision: Revision | None,
    problems: Sequence[Failure] = (),
    target: Target | None = None,
) -> Iterator[Recorder]:
    """Take the machine for one run. SIGTERM interrupts like Ctrl-C.

    `target`: where the run's environment is read; by default the interpreter that runs bench.
    """
    import os
    import uuid
    from datetime import UTC, datetime

    from bench import __version__
    from bench.model import Run, RunStatus
    from runners.lock import machine_lock
    from runners.machine import read_machine

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    os.environ["BENCH_CACHE"] = str(config.cache)  # workers build artifacts there
    with ExitStack() as stack:
        progress = progress_of(stack)
        stack.enter_context(machine_lock(on_wait=progress.message))
        now = datetime.now(UTC)
        run = Run(
            key=uuid.uuid4().hex, started_at=now, finished_at=now, status=RunStatus.INTERRUPTED, profile=profile,
            machine=read_machine(config.tags), environment=_environment(target), experiments=(), revision=revision,
            problems=tuple(problems), source=source, bench_version=__version__,
        )  # fmt: skip
        yield Recorder(config, store, stack, run, progress)


def _environment(target: Target | None) -> Environment:
    from runners.environment import read_environment

    if target is None or target.python is None:
        return read_environment()
    from bench.targets import installed_packages

    python, packages = installed_packages(target)
    return read_environment(python=python, installed=packages)


def progress_of(stack: ExitStack) -> Progress:
    """A bar on a terminal, a line now and then elsewhere."""
    from bench.reports.progress import BarProgress, LineProgress

    if sys.stderr.isatty():
        bar = BarProgress()
        stack.callback(bar.close)
        return bar
    return LineProgress()


def say_problems(problems: Sequence[Failure]) -> None:
    """Suites that could not be read."""
    for problem in problems:
        note(problem.message)
