"""`bench prove`: run the paired experiments that suspicions ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from bench.commands._shared import config_of, database_option, note, opened, suites_option, write
from bench.commands._sources import source_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.compare import RunComparison
    from bench.config import Config
    from bench.errors import Exit
    from bench.history import ChangePoint, Proof, ProofRequest
    from bench.ports import Store


@click.command("prove")
@suites_option
@source_options
@click.option("--python", metavar="PATH", help="Interpreter of both sides (default: the one that runs bench).")
@click.option("--limit", type=click.IntRange(1), default=10, show_default=True, help="Most experiments of this call.")
@click.option("--budget", type=click.FloatRange(1), default=60.0, show_default=True, help="Seconds per experiment.")
@click.option("--json", "as_json", is_flag=True, help="Machine-readable output.")
@database_option
def command(
    suites: tuple[str, ...], python: str | None, limit: int, budget: float, as_json: bool, database: str | None,
    **sources: Any,
) -> Exit:  # fmt: skip
    """Compare the last good with the first changed state of every suspicion of this machine.

    The answer (confirmed, refuted, inconclusive or failed) is stored on the change point; what is
    refuted is noise, and nobody is told of it as a regression. Benchmarks come from the changed
    side. Ends with 3 when a worsening was confirmed.
    """
    import json
    from dataclasses import replace
    from datetime import UTC, datetime

    from bench.commands.detect import minimum_of
    from bench.errors import Exit
    from bench.history import Answer, Direction
    from bench.reports.sweep import sweep_text
    from bench.sweep import settle
    from bench.wire import plain
    from runners.machine import read_machine

    config = config_of(database=database, suites=suites)
    answers: list[tuple[ChangePoint, Proof]] = []
    with opened(config) as store:
        history = store.history
        machine = read_machine(config.tags).fingerprint
        while len(answers) < limit and (request := history.take(machine)) is not None:
            change = next((c for c in history.changes(superseded=True) if c.key == request.change), None)
            if change is None or change.superseded_by is not None:
                history.finish(request.key, _nothing(request))
                continue
            note(f"proving {change.series.variant}: {request.base[:12]} against {request.head[:12]}")
            found = _measured(config, store, request, python=python, budget=budget, **sources)
            history.finish(request.key, _proof(request, change, found))
            for same in _answered(request, history.changes()):
                proof = _proof(request, same, found)
                history.record([replace(same, proof=proof)], seen={})
                answers.append((same, proof))
        done = settle(history, now=datetime.now(UTC), minimum=minimum_of(config))
    if as_json:
        rows = [
            {"change": c.key, "variant": c.series.variant, "metric": c.series.metric.name, **plain(p)}
            for c, p in answers
        ]
        write(json.dumps({"schema": "bench-prove", "version": 1, "proofs": rows}, indent=2), None)
    else:
        lines = [_line(change, proof) for change, proof in answers] or ["nothing to prove on this machine"]
        write("\n".join(lines) + "\n" + sweep_text(done).partition("\n")[2], None)
    sure = [c for c, p in answers if p.answer is Answer.CONFIRMED and c.direction is not Direction.BETTER]
    return Exit.REGRESSION if sure else Exit.OK


def _measured(
    config: Config, store: Store, request: ProofRequest, *, python: str | None, budget: float, **sources: Any
) -> RunComparison | str:
    """What the gate says; the reason where it could not be asked."""
    from bench.commands.compare import measured
    from bench.errors import BenchError
    from bench.targets.parse import parse_side

    try:
        left, right = (parse_side(side, project=config.root) for side in (request.base, request.head))
        return measured(
            config, store, left, right, (request.selector,), suite_from="head", python=python, budget=budget,
            **sources,
        )  # fmt: skip
    except BenchError as error:
        return str(error)


def _answered(request: ProofRequest, changes: Sequence[ChangePoint]) -> list[ChangePoint]:
    """All change points that ask the same: one experiment measures every metric of a variant."""
    from bench.proving import question

    found = []
    for change in changes:
        wanted = question(change, request.made_at)
        if (
            wanted is not None
            and (wanted.base, wanted.head, wanted.selector) == (request.base, request.head, request.selector)
            and wanted.machine_fingerprint == request.machine_fingerprint
        ):
            found.append(change)
    return found


def _proof(request: ProofRequest, change: ChangePoint, found: RunComparison | str) -> Proof:
    from datetime import UTC, datetime

    from bench.history import Answer, Proof
    from bench.proving import answer

    command = f"bench compare {_quoted(request.base)} {_quoted(request.head)} {_quoted(request.selector)}"
    if isinstance(found, str):
        return Proof(answer=Answer.FAILED, at=datetime.now(UTC), command=command, message=found)
    arm = next((arm for arm in found.arms if arm.name == change.series.variant), None)
    said, verdict, message = answer(change, arm)
    comparison = next((c for c in arm.comparisons if c.metric.name == change.series.metric.name), None) if arm else None
    return Proof(
        answer=said, at=datetime.now(UTC), command=command, run_key=found.run or None, verdict=verdict,
        change=comparison.change if comparison else None, message=message,
    )  # fmt: skip


def _nothing(request: ProofRequest) -> Proof:
    from datetime import UTC, datetime

    from bench.history import Answer, Proof

    return Proof(
        answer=Answer.FAILED, at=datetime.now(UTC), command=f"bench compare {request.base} {request.head}",
        message="the change was superseded before it could be proved",
    )  # fmt: skip


def _line(change: ChangePoint, proof: Proof) -> str:
    from bench.reports.format import ratio, title

    size = f" {ratio(proof.change, 3)}" if proof.change else ""
    more = f" ({proof.message})" if proof.message else ""
    return f"{proof.answer.value}  {change.series.variant}  {title(change.series.metric)}{size}{more}"


def _quoted(text: str) -> str:
    import shlex

    return shlex.quote(text)
