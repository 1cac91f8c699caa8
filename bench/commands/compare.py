"""`bench compare`: any two arms and a verdict."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from bench.commands._measuring import recording, say_problems
from bench.commands._metrics import asked, metric_options
from bench.commands._shared import (
    config_of,
    database_option,
    load_run,
    note,
    opened,
    profile_option,
    suites_option,
    trust,
    width,
    write,
)
from bench.commands._sources import discover, requirements_for, revision_named, source_of, source_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.compare import RunComparison
    from bench.config import Config
    from bench.model import Failure, Policy, Revision, Target
    from bench.ports import Store
    from bench.targets.parse import SideSpec

FORMATS = ("text", "json", "markdown", "junit", "github")


@click.command("compare")
@click.argument("base", required=False)
@click.argument("head", required=False)
@click.argument("selectors", nargs=-1, metavar="[SELECTOR]...")
@suites_option
@source_options
@click.option("--suite-from", metavar="REV", default="head", show_default=True,
              help="Where the benchmarks come from: head, base or a revision.")  # fmt: skip
@click.option("--python", metavar="PATH", help="Interpreter of both sides (default: the one that runs bench).")
@profile_option
@database_option
@metric_options
@click.option("--budget", type=click.FloatRange(1), default=60.0, show_default=True, help="Seconds per variant.")
@click.option("--launches", type=click.IntRange(6, 50), default=50, show_default=True, help="Most pairs per variant.")
@click.option("--until-decided", is_flag=True,
              help="Judge after every launch and go on until decided, Ctrl-C or a --budget that is given.")  # fmt: skip
@click.option("--continue", "continued", metavar="RUN", help="Add launches to a stored --until-decided comparison.")
@click.option("--confirm/--no-confirm", default=True, show_default=True, help="Measure regressions again.")
@click.option("--borrow/--no-borrow", default=True, show_default=True,
              help="Let earlier runs' spread decide expensive launches.")  # fmt: skip
@click.option("--measure-identical", is_flag=True, help="Measure even where both sides run the same bytes.")
@click.option("--seed", type=click.IntRange(0), help="Repeat the order and the hash seeds of an earlier run.")
@click.option("--strict", is_flag=True, help="Exit with 4 when anything is inconclusive.")
@click.option("--trades", type=click.Choice(["report", "fail"]), default="report", show_default=True,
              help="Whether a trade (one metric better, another worse) exits with 8.")  # fmt: skip
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", show_default=True, help="Of the report.")
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("--output", metavar="FILE", help="Write the report there instead of to standard output.")
def command(
    base: str | None,
    head: str | None,
    selectors: tuple[str, ...],
    strict: bool,
    trades: str,
    form: str,
    as_json: bool,
    output: str | None,
    database: str | None,
    suites: tuple[str, ...],
    profile: str | None,
    **options: Any,
) -> int:
    """Compare BASE with HEAD: commits, requirements, settings, or two stored runs.

    \b
    A side is   a git revision       main, HEAD~3, . (the working tree)
                a requirement        onnxruntime==1.31.1
                a setting            env:OMP_NUM_THREADS=2
                a stored run         latest~1, a key, run:KEY, an exported file

    HEAD defaults to the working tree, BASE to where it left the default branch. Two targets are
    measured together in interleaved pairs until each benchmark is decided. Two stored runs cannot
    be paired: their times are never decided; sizes and answers are.
    """  # noqa: D301 - click reads the backspace
    from bench.errors import UsageError
    from bench.targets.parse import parse_side

    config = config_of(suites=suites, database=database, profile=profile)
    files = [side is not None and _is_exported(side) for side in (base, head)]
    left, right = (
        parse_side(text, project=config.root) if text is not None and not file else None
        for text, file in zip((base, head or "."), files, strict=True)
    )
    stored = [f or (spec is not None and spec.run is not None) for f, spec in zip(files, (left, right), strict=True)]
    if stored[0] != stored[1]:
        raise UsageError(
            "a stored run can only be compared with a stored run; give the other side as a run too, or both as commits."
        )
    tail = options["tail"]
    with opened(config) as store:
        if all(stored):
            assert base is not None
            assert head is not None
            comparison = _stored(store, base, head)
        else:
            assert right is not None
            comparison = measured(config, store, left, right, selectors, **options)
    code = comparison.exit_code(strict=strict, trades_fail=trades == "fail")
    write(_report(comparison, "json" if as_json else form, code, to_terminal=output is None, tail=tail), output)
    return code


def _is_exported(side: str) -> bool:
    """Whether a side is a file that `bench export` may have written: a wheel is a requirement."""
    from pathlib import Path

    return side.endswith(".json") or (Path(side).is_file() and not side.endswith(".whl"))


def _stored(store: Store, base: str, head: str) -> RunComparison:
    from bench.compare import compare_runs

    left, right = (load_run(store, side.removeprefix("run:")) for side in (base, head))
    return compare_runs(left, right)


def measured(
    config: Config,
    store: Store,
    left: SideSpec | None,
    right: SideSpec,
    selectors: tuple[str, ...],
    *,
    suite_from: str = "head",
    python: str | None = None,
    budget: float = 60.0,
    launches: int = 50,
    until_decided: bool = False,
    continued: str | None = None,
    confirm: bool = True,
    borrow: bool = True,
    measure_identical: bool = False,
    seed: int | None = None,
    **options: Any,
) -> RunComparison:
    """Measure two targets together, store the run and judge; the options are those of the verb."""
    import secrets

    from bench.borrowing import borrow as borrowed
    from bench.compare import ArmComparison, RunComparison
    from bench.continuing import Begun
    from bench.continuing import begun as continuation
    from bench.errors import MissingError
    from bench.model import Verdict
    from bench.paired import measure_pairs, plan_pairs
    from bench.plan import select
    from bench.targets import identical
    from runners.machine import read_machine

    policy = asked(_policy(budget, launches, until_decided or continued is not None), options)
    base, head = _targets(config, left, right, python, requirements_for(options))
    source = source_of(config, options, _suite_revision(config, suite_from, base, head))
    found = discover(source, base if suite_from == "base" else head, selectors)
    say_problems(found.problems)
    chosen = select(found.benchmarks, selectors, None if selectors else config.profile)
    experiments = plan_pairs(
        found.benchmarks, chosen, base, head, policy=policy,
        seed=secrets.randbelow(2**31) if seed is None else seed, rules=config.policy, confirm=confirm,
    )  # fmt: skip
    if not experiments:
        raise MissingError(f"nothing to measure: {'; '.join(p.message for p in found.problems) or 'no benchmark'}.")
    machine = read_machine(config.tags)
    if borrow:
        experiments = borrowed(experiments, store, machine.fingerprint)
    earlier = None if continued is None else load_run(store, continued)
    begun = Begun() if earlier is None else continuation(earlier, experiments, machine.fingerprint)
    notes = [*_suite_notes(found.problems), *_rule_notes(config), trust(store, machine.fingerprint)]
    if earlier is not None:
        notes.insert(0, f"continues run {earlier.key[:8]}, whose launches count")
    if not measure_identical and identical(base, head):
        same = "both sides run the same bytes: nothing to measure"
        names = [e.arms[0].variant.name for e in experiments]
        arms = tuple(ArmComparison(name=name, verdict=Verdict.UNCHANGED, reason=same) for name in names)
        return RunComparison(base=base.label, head=head.label, arms=arms, machine=machine.label, notes=(same, *notes))
    with recording(
        config,
        store,
        profile=config.profile,
        source=source.name,
        revision=head.revision,
        problems=found.problems,
        target=head,
    ) as recorder:
        paired = measure_pairs(
            experiments, path=source.path, progress=recorder.progress, keep=recorder.keep, begun=begun
        )
        run = recorder.store(paired.results, interrupted=paired.interrupted)
    note(f"stored as {run.key[:8]}")
    if paired.interrupted:
        notes.insert(0, "interrupted: this is what was known then")
    if experiments[0].policy.always_valid:
        note(f"to add launches: bench compare with the same sides, and --continue {run.key[:8]}")
    return RunComparison(
        base=base.label, head=head.label, arms=paired.comparisons, machine=machine.label, notes=tuple(notes)
    )


def _policy(budget: float, launches: int, until_decided: bool) -> Policy:
    """Of all variants, before the rules of the configuration."""
    from dataclasses import replace

    from click.core import ParameterSource

    from bench.errors import UsageError
    from bench.paired import GATE, UNTIL_DECIDED

    if not until_decided:
        return replace(GATE, budget_s=budget, launches=launches)
    source = click.get_current_context().get_parameter_source
    if source("launches") is not ParameterSource.DEFAULT:
        raise UsageError("--launches plans looks beforehand; leave it out with --until-decided, or give a --budget.")
    return replace(UNTIL_DECIDED, budget_s=None if source("budget") is ParameterSource.DEFAULT else budget)


def _targets(
    config: Config, left: SideSpec | None, right: SideSpec, python: str | None, requirements: Sequence[str]
) -> tuple[Target, Target]:
    from dataclasses import replace

    from bench.commands._devices import known_device
    from bench.targets import SideSpec, age, default_base, resolve

    for spec in (left, right):
        if spec is not None:
            known_device(spec.device)
    if left is None:
        revision = default_base(config.root)
        left = SideSpec(text=revision.commit, revision=revision.commit)
        note(f"base: {revision.commit[:12]}, where HEAD left {revision.branch}, {age(revision)} old")
    base, head = (
        resolve(s, project=config.root, cache=config.cache, python=python, requirements=requirements, say=note)
        for s in (left, right)
    )
    if base.label == head.label:
        head = replace(head, label=f"{head.label} again")
    return base, head


def _suite_revision(config: Config, suite_from: str, base: Target, head: Target) -> Revision | None:
    if suite_from in ("head", "base"):
        return (head if suite_from == "head" else base).revision
    return revision_named(config, suite_from, "head, base")


def _suite_notes(problems: Sequence[Failure]) -> list[str]:
    noun = "suite" if len(problems) == 1 else "suites"
    return [f"{len(problems)} {noun} could not be read; the first: {problems[0].message}"] if problems else []


def _rule_notes(config: Config) -> list[str]:
    from datetime import UTC, datetime

    from bench.policy import expired

    gone = expired(config.policy, datetime.now(UTC).date())
    return [f"the policy for {r.match} expired on {r.expires} and is ignored: {r.reason}" for r in gone]


def _report(comparison: RunComparison, form: str, code: int, *, to_terminal: bool, tail: bool) -> str:
    from bench.reports.github import comparison_github
    from bench.reports.json import JsonReport
    from bench.reports.junit import comparison_junit
    from bench.reports.markdown import comparison_markdown
    from bench.reports.text import TextReport

    if form == "json":
        return JsonReport().comparison(comparison, exit_code=int(code))
    if form == "text":
        colour = to_terminal and sys.stdout.isatty()
        return TextReport(width() if to_terminal else None, colour, tail=tail).comparison(comparison)
    plain = {"markdown": comparison_markdown, "junit": comparison_junit, "github": comparison_github}
    return plain[form](comparison)
