"""`bench claims`: figures of the literature, and what this machine's runs say of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from bench.commands._shared import config_of, database_option, load_run, opened, suites_option, write

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.claims.words import Claim

FORMATS = ("text", "markdown", "json")


@click.command("claims")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", show_default=True, help="Of the report.")
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("--lang", "language", type=click.Choice(["both", "en", "zh"]), default="both", show_default=True,
              help="Language of statements and verdicts.")  # fmt: skip
@click.option("--run", "ref", metavar="RUN", help="Only this run, of whatever machine (default: the newest of each).")
@click.option("--machine", metavar="FINGERPRINT", help="Another machine's runs: the beginning of its fingerprint.")
@click.option("--output", metavar="FILE", help="Write the report there instead of to standard output.")
@suites_option
@database_option
def command(
    ids: tuple[str, ...],
    form: str,
    as_json: bool,
    language: str,
    ref: str | None,
    machine: str | None,
    output: str | None,
    suites: tuple[str, ...],
    database: str | None,
) -> int:
    """Answer every claim, or those of ID (B13, or B21c), with what stored runs measured.

    Each experiment is read from the newest run of this machine that holds its variants. Nothing is measured
    now; what no run holds is NOT MEASURED YET.
    """
    from bench.claims.document import claims_of
    from bench.claims.evidence import answers, answers_from
    from bench.errors import Exit
    from bench.reports.claims import claims_json, claims_markdown, claims_text

    config = config_of(suites=suites, database=database)
    claims = _chosen(claims_of(config.suites, config.root), ids)
    with opened(config) as store:
        if ref is not None:
            run = load_run(store, ref)
            place, found = run.machine.fingerprint, answers(claims, [run])
        else:
            place = machine or _here(config.tags)
            found = answers_from(store, place, claims)
    if as_json or form == "json":
        write(claims_json(found, place), output)
    else:
        write((claims_text if form == "text" else claims_markdown)(found, language), output)
    return Exit.OK


def _here(tags: Sequence[str]) -> str:
    from runners.machine import read_machine

    return read_machine(tags).fingerprint


def _chosen(claims: Sequence[Claim], ids: Sequence[str]) -> Sequence[Claim]:
    """Claims by id or by row. Raises UsageError for one that is not there."""
    from bench.errors import UsageError

    wanted = {text.upper(): text for text in ids}
    known = {name.upper() for claim in claims for name in (claim.id, claim.row)}
    if strange := [text for upper, text in wanted.items() if upper not in known]:
        raise UsageError(f"there is no claim {', '.join(strange)}; `bench claims` lists all.")
    return [c for c in claims if not wanted or {c.id.upper(), c.row.upper()} & wanted.keys()]
