"""`bench list`: what can be measured."""

from __future__ import annotations

from typing import Any

import click

from bench.commands._shared import config_of, note, profile_option, python_option, suites_option, write
from bench.commands._sources import source_of, source_options, target_of


@click.command("list")
@click.argument("selectors", nargs=-1, metavar="[SELECTOR]...")
@suites_option
@source_options
@python_option
@profile_option
@click.option("--json", "as_json", is_flag=True, help="Machine-readable output.")
def command(
    selectors: tuple[str, ...],
    suites: tuple[str, ...],
    python: str | None,
    profile: str | None,
    as_json: bool,
    **sources: Any,
) -> int:
    """List suites, benchmarks and variants.

    A SELECTOR is a suite, a suite.benchmark (with * and ?), or a suite.benchmark[axis=value].
    """
    import json

    from bench.errors import Exit
    from bench.plan import select
    from bench.wire import plain

    config = config_of(suites=suites)
    found = source_of(config, sources).discover(target_of(config, python, sources))
    chosen = select(found.benchmarks, selectors, profile)
    names = {variants[0].benchmark: variants for variants in chosen}
    rows = [(b, names[b.name]) for b in found.benchmarks if b.name in names]
    if as_json:
        document: dict[str, Any] = {
            "benchmarks": [{**plain(b), "variants": [v.name for v in variants]} for b, variants in rows],
            "problems": plain(found.problems),
        }
        write(json.dumps(document, indent=2, ensure_ascii=False), None)
    else:
        for benchmark, variants in rows:
            click.echo(f"{benchmark.name}  ({', '.join(benchmark.profiles)})  {benchmark.title}")
            for variant in variants:
                click.echo(f"    {variant.name}{'  (baseline)' if variant.baseline else ''}")
        click.echo(f"{len(rows)} benchmarks, {sum(len(v) for _, v in rows)} variants")
    for problem in found.problems:
        note(problem.message)
    return Exit.FAILED if found.problems else Exit.OK
