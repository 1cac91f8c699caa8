"""`bench detect`: what changed in the history, why, and what should be run to prove it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from bench.commands._shared import config_of, database_option, opened, write

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.config import Config
    from bench.errors import Exit
    from bench.history import Series


@click.command("detect")
@click.option("--all", "everything", is_flag=True, help="Look at every series again, not only at what is new.")
@click.option("--sensitivity", type=click.Choice(["history", "suspect", "alarm"]), default="suspect",
              show_default=True, help="How much a change must gain: alarm where nobody runs the proofs.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Machine-readable output.")
@database_option
def command(everything: bool, sensitivity: str, as_json: bool, database: str | None) -> Exit:
    """Find changes in series with new points, group them by cause, open and close regressions.

    May be run after every night, or at any time: with nothing new it does nothing. A point that lies far
    off asks for a paired experiment (`bench prove`) before anybody is told. Ends with 3 when a
    regression was opened or grew.
    """
    import json
    from datetime import UTC, datetime

    from bench.detect import SENSITIVITIES
    from bench.errors import Exit
    from bench.history import Direction
    from bench.reports.sweep import sweep_document, sweep_text
    from bench.sweep import sweep

    config = config_of(database=database)
    chosen = next(s for s in SENSITIVITIES if s.name == sensitivity)
    with opened(config) as store:
        done = sweep(
            store.history, now=datetime.now(UTC), sensitivity=chosen, minimum=minimum_of(config), everything=everything
        )
    write(json.dumps(sweep_document(done), indent=2) if as_json else sweep_text(done), None)
    worse = [r for r in (*done.opened, *done.grown) if r.direction is not Direction.BETTER]
    return Exit.REGRESSION if worse else Exit.OK


def minimum_of(config: Config) -> Callable[[Series], float]:
    """The smallest change that counts in a series: the policy's floor for its metric."""
    from datetime import UTC, datetime

    from bench.metrics import Kind
    from bench.model import Policy
    from bench.policy import apply

    today = datetime.now(UTC).date()

    def minimum(series: Series) -> float:
        policy = apply(config.policy, series.variant, Policy(), today)
        return policy.memory_floor if series.metric.kind is Kind.MEMORY else policy.floor

    return minimum
