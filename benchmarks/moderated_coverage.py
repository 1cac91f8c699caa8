"""Coverage and width of the moderated interval: the table in bench/stats/moderated.py.

    python -m benchmarks.moderated_coverage [--streams 40000] [--seed 3]

Each prior is fitted to 20 nights of 10 launches and judged on 100 new runs. Where σ differs by night
(and run), 1/σ² ~ χ²(k)/k.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import numpy as np

from bench.stats.moderated import fit_prior, launch_variance, moderated_interval
from bench.stats.proportions import wilson
from benchmarks.streams import NOISES, Array

NIGHTS, LAUNCHES, RUNS = 20, 10, 100
CALM: tuple[int | None, ...] = (None, 8, 3)
"""k of χ²(k)/k; null: the same σ every night."""


def nights(rng: np.random.Generator, noise: str, shape: tuple[int, int], calm: int | None) -> Array:
    """Rows of launches, each row under the spread of its own night."""
    spread = np.ones((shape[0], 1)) if calm is None else np.sqrt(calm / rng.chisquare(calm, (shape[0], 1)))
    return NOISES[noise](rng, shape) * spread


def coverage(noise: str, n: int, calm: int | None, streams: int, rng: np.random.Generator) -> tuple[int, list[float]]:
    """How many 99 % intervals on n launches miss zero, and all half-widths."""
    missed, halves = 0, []
    for _ in range(streams // RUNS):
        history = [launch_variance(list(row)) for row in nights(rng, noise, (NIGHTS, LAUNCHES), calm)]
        prior = fit_prior([v for v, _ in history], [d for _, d in history])
        for row in nights(rng, noise, (RUNS, n), calm):
            interval = moderated_interval(list(row), prior)
            missed += not interval.low <= 0 <= interval.high
            halves.append((interval.high - interval.low) / 2)
    return missed, halves


def main(arguments: Sequence[str] | None = None) -> int:
    """Print one line per noise, number of launches and law of σ."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--streams", type=int, default=40_000)
    parser.add_argument("--seed", type=int, default=3)
    options = parser.parse_args(arguments)
    rng = np.random.default_rng(options.seed)
    for noise in ("normal", "student3", "contaminated"):
        for n in (4, 5):
            for calm in CALM:
                missed, halves = coverage(noise, n, calm, options.streams, rng)
                rate = wilson(missed, len(halves))
                law = "fixed σ" if calm is None else f"χ²({calm})/{calm}"
                sys.stdout.write(
                    f"{noise:13} {n} launches  {law:8} missed {rate.value:.2%} [{rate.low:.2%}, {rate.high:.2%}]"
                    f"  half-width {np.median(halves):.2f}\n"
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
