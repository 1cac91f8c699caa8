"""`bench bisect`: which commit, or which release of a package, made the difference."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from bench.commands._measuring import say_problems
from bench.commands._shared import config_of, database_option, note, opened, suites_option, width, write
from bench.commands._sources import discover, requirements_for, revision_named, source_of, source_options

if TYPE_CHECKING:
    from bench.commands._lab import TargetLab
    from bench.config import Config
    from bench.model import Revision
    from bench.ports import Discovery, Suites
    from bench.suspects import Outcome, Question
    from bench.targets.history import Change

FORMATS = ("text", "json", "markdown")


@click.command("bisect")
@click.argument("good")
@click.argument("bad")
@click.argument("selector", metavar="BENCHMARK")
@click.option("--package", metavar="NAME", help="Search the releases of this package; GOOD and BAD are versions.")
@click.option("--first-parent", is_flag=True, help="A merge is one change: do not look into what it brings.")
@click.option("--metric", metavar="NAME", help="What to search on (default: what the benchmark is measured for).")
@suites_option
@source_options
@click.option("--suite-from", metavar="REV", default="bad", show_default=True,
              help="Where the benchmark comes from: bad, good or a revision.")  # fmt: skip
@click.option("--python", metavar="PATH", help="Interpreter of all sides (default: the one that runs bench).")
@database_option
@click.option("--budget", type=click.FloatRange(1), default=3600.0, show_default=True,
              help="Seconds after which no further change is measured; the same command goes on.")  # fmt: skip
@click.option("--step-budget", type=click.FloatRange(1), default=120.0, show_default=True,
              help="Seconds for the launches of one change.")  # fmt: skip
@click.option("--launches", type=click.IntRange(6, 50), default=50, show_default=True, help="Most pairs of a change.")
@click.option("--regression", metavar="KEY", help="Note what was found on this regression.")
@click.option("--restart", is_flag=True, help="Forget what an earlier call of this command measured.")
@click.option("--strict", is_flag=True, help="Exit with 4 when nothing is proven, or the budget was too small.")
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", show_default=True, help="Of the report.")
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("--output", metavar="FILE", help="Write the report there instead of to standard output.")
def command(
    good: str,
    bad: str,
    selector: str,
    regression: str | None,
    restart: bool,
    strict: bool,
    form: str,
    as_json: bool,
    output: str | None,
    database: str | None,
    suites: tuple[str, ...],
    **options: Any,
) -> int:
    """Find the change between GOOD and BAD that made BENCHMARK slower, or faster.

    First the ends are shown to differ. Then each candidate is compared with GOOD until it is known
    whether it is nearer to GOOD or to BAD; what cannot be built or run is passed over. In the end the
    change that is left is measured against the one before it. Ctrl-C and the same command go on.
    """
    from bench.commands.regressions import append
    from bench.errors import UsageError
    from bench.history import Action

    if options["package"] and options["first_parent"]:
        raise UsageError("--first-parent is about commits; releases of a package have no parents.")
    config = config_of(suites=suites, database=database)
    with opened(config) as store, ExitStack() as stack:
        from bench.commands._lab import TargetLab

        known = store.history.regression(regression) if regression is not None else None
        lab = TargetLab(config, store, stack, profile="bisect", python=options["python"])
        outcome = _search(config, lab, good, bad, selector, restart=restart, **options)
        lab.store(interrupted=outcome.ended == "interrupted")
        if known is not None and outcome.ended == "found":
            append(store.history, known.key, Action.BISECTED, _culprit(outcome), who="bench")
    code = outcome.exit_code(strict=strict)
    write(_report(outcome, "json" if as_json else form, int(code), to_terminal=output is None), output)
    return code


def _culprit(outcome: Outcome) -> str:
    """`3f2a91c0d tells what it is about`, or `onnxruntime 1.32.0`."""
    change = outcome.suspects[-1]
    return f"{change.short} {change.subject}".strip()


def _search(
    config: Config,
    lab: TargetLab,
    good: str,
    bad: str,
    selector: str,
    *,
    package: str | None,
    first_parent: bool,
    metric: str | None,
    suite_from: str,
    budget: float,
    restart: bool,
    python: str | None,
    **rest: Any,
) -> Outcome:
    from bench.bisecting import Bisection
    from bench.journal import Journal
    from bench.suspects import Answer

    changes = _changes(config, lab, package, good, bad, first_parent)
    lab.requirements = tuple(requirements_for(rest))
    source, found = _discover(config, lab, suite_from, changes, selector, rest)
    question = _question(config, found, selector, metric, changes, step_budget=rest["step_budget"],
                         launches=rest["launches"])  # fmt: skip
    lab.ready(question.benchmark, question.variant_params, source, question.policy)
    asked = {
        "good": question.good.name, "bad": question.bad.name, "changes": len(changes), "package": package,
        "variant": question.variant, "version": question.benchmark.version, "metric": question.metric.name,
        "python": python, "suite": suite_from, "machine": lab.machine, "source": source.name,
    }  # fmt: skip
    journal = Journal(config.state / "bisect", asked, Answer)
    if restart:
        journal.forget()
    if len(journal):
        note(f"going on from {len(journal)} answers of an earlier call ({journal.file.name}); --restart forgets them")
    return Bisection(question, lab, journal, say=lab.say, budget_s=budget).run()


def _changes(
    config: Config, lab: TargetLab, package: str | None, good: str, bad: str, first_parent: bool
) -> tuple[Change, ...]:
    from bench.targets import SideSpec
    from bench.targets.history import commits, releases
    from bench.targets.revision import Repository

    if package is None:
        found = commits(Repository.open(config.root), good, bad, first_parent=first_parent)
        lab.sides = lambda name: SideSpec(text=name, revision=name)
    else:
        found = releases(lab.installer, package, good, bad)
        lab.sides = lambda name: SideSpec(text=f"{package}=={name}", requirements=(f"{package}=={name}",))
    count = len(found) - 1
    note(f"{count} {'release' if package else 'commit'}{'' if count == 1 else 's'} after {found[0].short}")
    return found


def _discover(
    config: Config,
    lab: TargetLab,
    suite_from: str,
    changes: tuple[Change, ...],
    selector: str,
    sources: dict[str, Any],
) -> tuple[Suites, Discovery]:
    good, bad = (lab.target(change.name) for change in (changes[0], changes[-1]))
    revision: Revision | None = (good if suite_from == "good" else bad).revision
    if suite_from not in ("good", "bad"):
        revision = revision_named(config, suite_from, "good, bad")
    source = source_of(config, sources, revision)
    found = discover(source, good if suite_from == "good" else bad, [selector])
    say_problems(found.problems)
    return source, found


def _question(
    config: Config,
    found: Discovery,
    selector: str,
    metric: str | None,
    changes: tuple[Change, ...],
    *,
    step_budget: float,
    launches: int,
) -> Question:
    from dataclasses import replace
    from datetime import UTC, datetime

    from bench.commands._selecting import one_variant
    from bench.errors import UsageError
    from bench.metrics import HARNESS_METRICS, THROUGHPUT
    from bench.paired import GATE
    from bench.policy import apply
    from bench.suspects import Question

    benchmark, variant = one_variant(found, selector, "a bisection follows one")
    known = {m.name: m for m in (*HARNESS_METRICS, *benchmark.metrics) if m is not THROUGHPUT}
    name = metric or benchmark.primary
    if name not in known:
        raise UsageError(f"--metric {name}: {benchmark.name} has the metrics {', '.join(known)}.")
    policy = replace(GATE, budget_s=step_budget, launches=launches)
    return Question(
        changes=changes, variant=variant.name, variant_params=variant.params, metric=known[name],
        benchmark=replace(benchmark, primary=name),
        policy=apply(config.policy, variant.name, policy, datetime.now(UTC).date()),
    )  # fmt: skip


def _report(outcome: Outcome, form: str, code: int, *, to_terminal: bool) -> str:
    from bench.reports.bisection import bisection_json, bisection_markdown, bisection_text

    if form == "json":
        return bisection_json(outcome, exit_code=code)
    if form == "markdown":
        return bisection_markdown(outcome)
    colour = to_terminal and sys.stdout.isatty()
    return bisection_text(outcome, width() if to_terminal else None, colour=colour)
