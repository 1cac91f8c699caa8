"""`bench run`: plan, measure, store, show."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from bench.commands._measuring import recording, say_problems
from bench.commands._metrics import asked, metric_options
from bench.commands._shared import (
    config_of,
    database_option,
    note,
    opened,
    profile_option,
    python_option,
    suites_option,
    width,
    write,
)
from bench.commands._sources import discover, source_of, source_options, target_of

if TYPE_CHECKING:
    from bench.errors import Exit
    from bench.model import Run


@click.command("run")
@click.argument("selectors", nargs=-1, metavar="[SELECTOR]...")
@profile_option
@suites_option
@source_options
@python_option
@database_option
@metric_options
@click.option("--json", "json_file", metavar="FILE", help="Also write the report as JSON (- for standard output).")
@click.option("--launches", type=click.IntRange(1, 1000), help="Fresh processes per variant (default: the profile's).")
@click.option("--seed", type=click.IntRange(0), help="Repeat the order and the hash seeds of an earlier run.")
@click.option(
    "--canary/--no-canary", default=None, help="Fixed work that tells whether the machine moved (default: on)."
)
@click.option("--device", metavar="NAME", help="What to compute on (default: cpu, or what a benchmark requires).")
@click.option("--tag", "tags", multiple=True, help="What people call this machine; may be repeated.")
def command(
    selectors: tuple[str, ...],
    profile: str | None,
    suites: tuple[str, ...],
    python: str | None,
    database: str | None,
    json_file: str | None,
    launches: int | None,
    seed: int | None,
    canary: bool | None,
    device: str | None,
    tags: tuple[str, ...],
    **options: Any,
) -> Exit:
    """Measure benchmarks and store the run.

    The variants of a benchmark are launched side by side in fresh processes and measured in
    interleaved rounds. Without SELECTOR, everything in the profile runs.
    """
    import secrets

    from bench.commands._canary import canary as with_canary
    from bench.commands._devices import known_device
    from bench.errors import MissingError
    from bench.experiment import run_experiments
    from bench.plan import POLICIES, plan
    from bench.targets import revision_of

    show_tail = options["tail"]
    device = known_device(device)
    config = config_of(suites=suites, database=database, profile=profile, tags=tags, canary=canary)
    policy = asked(POLICIES[config.profile], options)
    with opened(config) as store:  # an unusable database is found out before anything is measured
        source, target = source_of(config, options), target_of(config, python, options, device)
        found = discover(source, target, selectors)
        say_problems(found.problems)
        seed = secrets.randbelow(2**31) if seed is None else seed
        experiments = plan(
            found.benchmarks, selectors, profile=config.profile, target=target, launches=launches, seed=seed,
            policy=policy,
        )  # fmt: skip
        if not experiments:
            raise MissingError(f"nothing to measure in {', '.join(config.suites)}; check --suites and --profile.")
        path = source.path
        if config.canary:
            extra, places = with_canary(config.profile, launches=launches, seed=seed + len(experiments))
            experiments, path = experiments + extra, (*path, *places)
        revision = revision_of(config.root)
        with recording(
            config,
            store,
            profile=config.profile,
            source=source.name,
            revision=revision,
            problems=found.problems,
            target=target,
        ) as recorder:
            results, interrupted = run_experiments(
                experiments, path=path, progress=recorder.progress, finished=recorder.keep
            )
            run = recorder.store(results, interrupted=interrupted)
        _show(run, json_file, tail=show_tail)
    return _exit_code(run)


def _show(run: Run, json_file: str | None, *, tail: bool) -> None:
    from bench.reports.json import JsonReport
    from bench.reports.text import TextReport

    if json_file != "-":
        write(TextReport(width(), sys.stdout.isatty(), tail=tail).run(run), None)
        note(f"stored as {run.key[:8]}; `bench show` prints it again, `bench dashboard` shows the tradeoffs")
    if json_file is not None:
        write(JsonReport().run(run), json_file)


def _exit_code(run: Run) -> Exit:
    from bench.commands._canary import SUITE as CANARY
    from bench.errors import Exit
    from bench.model import FailureKind, RunStatus

    asked = [(e, result) for e, result in run.arms() if e.experiment.benchmark.suite != CANARY]
    outcomes: list[Any] = [result.failure for _, result in asked]
    failed = any(f is not None and f.kind is not FailureKind.SKIPPED for f in outcomes)
    nothing = all(f is not None for f in outcomes)
    whole = run.status is RunStatus.COMPLETE
    return Exit.FAILED if failed or nothing or run.problems or not whole else Exit.OK
