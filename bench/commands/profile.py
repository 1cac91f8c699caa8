"""`bench profile`: what became slower, function by function or operator by operator."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from bench.commands._measuring import progress_of, say_problems
from bench.commands._shared import config_of, database_option, note, opened, suites_option, width, write
from bench.commands._sources import requirements_for, revision_named, source_of, source_options

if TYPE_CHECKING:
    from bench.config import Config
    from bench.history import ChangePoint
    from bench.model import Target
    from bench.ports import History
    from bench.profiles import ProfileDifference

ENGINES = ("cprofile", "py-spy", "onnxruntime", "torch")


@click.command("profile")
@click.argument("base", required=False)
@click.argument("head", required=False)
@click.argument("selector", metavar="BENCHMARK", required=False)
@click.option("--regression", metavar="KEY",
              help="Keep the profile with this regression; without sides, those of its weightiest change.")  # fmt: skip
@click.option("--stored", is_flag=True, help="Show what is kept with --regression, measure nothing.")
@click.option("--engine", type=click.Choice(ENGINES), default="cprofile", show_default=True,
              help="Who looks: Python's own, py-spy (native frames too), or the runtime's own profiler.")  # fmt: skip
@click.option("--repetitions", type=click.IntRange(2, 50), default=7, show_default=True, help="Processes of each side.")
@click.option("--seconds", type=click.FloatRange(0.01), default=0.3, show_default=True,
              help="Of calls in each process, the profiler's price left out.")  # fmt: skip
@suites_option
@source_options
@click.option("--suite-from", metavar="REV", default="head", show_default=True,
              help="Where the benchmark comes from: head, base or a revision.")  # fmt: skip
@click.option("--python", metavar="PATH", help="Interpreter of both sides (default: the one that runs bench).")
@click.option("--seed", type=click.IntRange(0), help="Repeat the order and the hash seeds of an earlier profile.")
@click.option("--format", "form", type=click.Choice(("text", "json")), default="text", show_default=True,
              help="Of the report.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@database_option
@click.option("--output", metavar="FILE", help="Also write a flame graph of the difference: .svg, or .html to zoom in.")
def command(
    base: str | None,
    head: str | None,
    selector: str | None,
    regression: str | None,
    stored: bool,
    form: str,
    as_json: bool,
    output: str | None,
    suites: tuple[str, ...],
    database: str | None,
    **options: Any,
) -> None:
    """Show where BENCHMARK spends more or less time at HEAD than at BASE.

    Sides are those of `compare`: revisions, requirements, settings. Both run side by side in turns, in
    fresh processes; only what differs by more than the repetitions do is listed.
    """
    from bench.errors import UsageError

    if output is not None and not output.endswith((".svg", ".html")):
        raise UsageError(f"--output {output}: a flame graph is an .svg or an .html; name the file so.")
    if selector is None and (regression is None or base is not None):
        raise UsageError("a profile is of two sides and a benchmark, BASE HEAD BENCHMARK, or of a --regression.")
    if stored and (regression is None or base is not None):
        raise UsageError("--stored shows the profile of a --regression; sides are not given with it.")
    config = config_of(suites=suites, database=database)
    if regression is None:
        assert base is not None
        assert head is not None
        assert selector is not None
        found = _measure(config, base, head, selector, **options)
    else:
        with opened(config) as store:
            change = _change_of(store.history, regression)
            if stored:
                found = _kept(store.history, change, regression)
            else:
                found = _measure(config, *_sides(change, base, head, selector), **options)
                _keep(store.history, change, found)
    if output is not None:
        from bench.reports.flame import flame_page, flame_svg

        write(flame_svg(found) if output.endswith(".svg") else flame_page(found), output)
        note(f"flame graph in {output}")
    write(_report(found, "json" if as_json else form), None)


def _change_of(history: History, ref: str) -> ChangePoint:
    """The weightiest change point of a regression."""
    from bench.errors import MissingError
    from bench.night import story

    found = history.regression(ref)
    worst = story(found, (), history.changes(regression=found.key)).worst
    if worst is None:
        raise MissingError(f"regression {found.key[:8]} has no change point that still stands; nothing to profile.")
    return worst


def _sides(change: ChangePoint, base: str | None, head: str | None, selector: str | None) -> tuple[str, str, str]:
    """What was said, else the last good state, the first changed one and the variant."""
    from datetime import UTC, datetime

    from bench.errors import UsageError
    from bench.proving import question

    if base is not None and head is not None and selector is not None:
        return base, head, selector
    wanted = question(change, datetime.now(UTC))
    if wanted is None:
        raise UsageError(
            "the two sides of this change differ neither in commit nor in packages that can be installed; "
            "name them: bench profile BASE HEAD BENCHMARK --regression KEY."
        )
    return wanted.base, wanted.head, wanted.selector


def _keep(history: History, change: ChangePoint, found: ProfileDifference) -> None:
    from datetime import UTC, datetime

    from bench.history import KeptProfile
    from bench.reports.profile import document_of

    history.keep_profile(
        KeptProfile(change=change.key, engine=found.engine, made_at=datetime.now(UTC), document=document_of(found))
    )
    note(f"kept with the change point {change.key[:8]}")


def _kept(history: History, change: ChangePoint, ref: str) -> ProfileDifference:
    from bench.errors import MissingError
    from bench.reports.profile import profile_from

    kept = history.profiles([change.key])
    if not kept:
        raise MissingError(f"no profile is kept with regression {ref}; `bench profile --regression {ref}` makes it.")
    return profile_from(kept[0].document)


def _measure(
    config: Config,
    base: str,
    head: str,
    selector: str,
    *,
    engine: str,
    repetitions: int,
    seconds: float,
    suite_from: str,
    python: str | None,
    seed: int | None,
    **sources: Any,
) -> ProfileDifference:
    import secrets

    from bench.commands._selecting import one_variant
    from bench.model import Arm
    from bench.plan import sides
    from bench.profiling import profile_pair
    from runners.lock import machine_lock

    left, right = (_target(config, text, python, requirements_for(sources)) for text in (base, head))
    revision = (left if suite_from == "base" else right).revision
    if suite_from not in ("base", "head"):
        revision = revision_named(config, suite_from, "head, base")
    source = source_of(config, sources, revision)
    found = source.discover(left if suite_from == "base" else right)
    say_problems(found.problems)
    benchmark, variant = one_variant(found, selector, "a profile is of one")
    with ExitStack() as stack:
        progress = progress_of(stack)
        stack.enter_context(machine_lock(on_wait=progress.message))
        base_target, head_target = sides(left, right, benchmark)
        return profile_pair(
            benchmark, (Arm(variant=variant, target=base_target), Arm(variant=variant, target=head_target)),
            engine=engine, repetitions=repetitions, seconds=seconds, path=source.path, progress=progress,
            seed=secrets.randbelow(2**31) if seed is None else seed,
        )  # fmt: skip


def _target(config: Config, text: str, python: str | None, requirements: list[str]) -> Target:
    from bench.commands._devices import known_device
    from bench.targets import parse_side, resolve

    side = parse_side(text, project=config.root)
    known_device(side.device)
    return resolve(
        side, project=config.root, cache=config.cache, python=python, requirements=requirements, say=note
    )  # fmt: skip


def _report(found: ProfileDifference, form: str) -> str:
    from bench.reports.profile import profile_json, profile_text

    if form == "json":
        return profile_json(found)
    return profile_text(found, width(), colour=sys.stdout.isatty())
