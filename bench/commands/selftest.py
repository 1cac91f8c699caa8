"""`bench selftest`: is the gate to be believed on this machine?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from bench.commands._measuring import recording
from bench.commands._shared import config_of, database_option, note, opened, write

if TYPE_CHECKING:
    from bench.errors import Exit
    from bench.model import Estimate, Experiment
    from bench.selftest import Rates, Trial
    from bench.sources.native import NativeSource


@click.command("selftest")
@click.argument("workloads", nargs=-1, metavar="[WORKLOAD]...")
@click.option("--quick", is_flag=True, help="About a minute: the same code, and 10 % slower.")
@click.option("--repeat", type=click.IntRange(1, 100), default=1, show_default=True, help="Trials of each kind.")
@database_option
@click.option("--json", "as_json", is_flag=True, help="Machine-readable output.")
def command(workloads: tuple[str, ...], quick: bool, repeat: int, database: str | None, as_json: bool) -> Exit:
    """Measure the gate itself: the same code twice, and with slowdowns of 1, 2, 3, 5 and 10 %.

    The run is stored; every comparison then shows the measured false-alarm rate. Ends with 7 when
    the same code was called changed, or a 10 % slowdown was missed.
    """
    import json

    from bench.errors import Exit
    from bench.paired import measure_pairs
    from bench.selftest import FULL_PERCENTS, PROFILE, QUICK_PERCENTS, QUICK_WORKLOADS, SOURCE, mistakes, rates, trials
    from bench.sources.native import NativeSource

    percents = (QUICK_PERCENTS if quick else FULL_PERCENTS) * repeat
    selectors = workloads or (QUICK_WORKLOADS if quick else ("selftest",))
    config = config_of(database=database)
    source = NativeSource([_place()])
    experiments = _plan(source, selectors, percents)
    with opened(config) as store, recording(config, store, profile=PROFILE, source=SOURCE, revision=None) as recorder:
        paired = measure_pairs(experiments, path=source.path, progress=recorder.progress, keep=recorder.keep)
        run = recorder.store(paired.results, interrupted=paired.interrupted)
    found = trials(run)
    wrong = mistakes(found)
    if as_json:
        write(json.dumps(_document(run.key, found, rates(found), wrong), indent=2), None)
    else:
        write(_text(found, rates(found), wrong), None)
        note(f"stored as {run.key[:8]}")
    if paired.interrupted:
        return Exit.FAILED
    return Exit.ENVIRONMENT if wrong else Exit.OK


def _place() -> str:
    """Our own suites, which lie beside this package: a project's folder of that name is another."""
    from pathlib import Path

    import bench

    return str(Path(bench.__file__).parents[1] / "suites")


def _plan(source: NativeSource, selectors: tuple[str, ...], percents: tuple[int, ...]) -> list[Experiment]:
    import secrets

    from bench.model import Target
    from bench.paired import GATE, plan_pairs
    from bench.plan import select
    from bench.selftest import PROFILE, target

    found = source.discover(Target())
    chosen = select(found.benchmarks, selectors, PROFILE)
    experiments: list[Experiment] = []
    seed = secrets.randbelow(2**30)
    for number, percent in enumerate(percents):
        base, head = target(0, f"base{number}"), target(percent, f"+{percent}%#{number}")
        experiments += plan_pairs(found.benchmarks, chosen, base, head, policy=GATE, seed=seed + 1000 * number)
    return experiments


def _text(found: list[Trial], measured: Rates, wrong: list[str]) -> str:
    from bench.reports.text import selftest_table

    lines = [selftest_table(found), ""]
    lines.append(f"the same code called slower:   {_share(measured.false_alarm)}")
    lines.append(f"the same code called faster:   {_share(measured.false_improvement)}")
    lines.append(f"the same code called unchanged: {_share(measured.unchanged)}")
    lines += [f"{percent} % slower found:  {_share(share)}" for percent, share in measured.found.items()]
    lines += [f"✗ {sentence}" for sentence in wrong]
    lines.append("the gate cannot be believed here: see `bench doctor`" if wrong else "the gate can be believed here")
    return "\n".join(lines)


def _share(share: Estimate | None) -> str:
    if share is None or share.low is None or share.high is None:
        return "no trial"
    return f"{round(share.value * share.n)} of {share.n} (95 %: {share.low:.1%}–{share.high:.1%})"


def _document(key: str, found: list[Trial], measured: Rates, wrong: list[str]) -> dict[str, Any]:
    from bench.wire import plain

    return {
        "schema": "bench-selftest",
        "version": 1,
        "run": key,
        "trials": [
            {
                "workload": t.workload, "percent": t.percent, "verdict": t.verdict.value, "launches": t.answer.launches,
                "basis": t.answer.basis, "confirmed": t.answer.confirmed, "reason": t.answer.reason,
            }
            for t in found
        ],
        "rates": plain(measured),
        "mistakes": wrong,
    }  # fmt: skip
