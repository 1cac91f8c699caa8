"""Find the constant nominal p of the group-sequential design and write bench/stats/boundaries.py.

    python -m benchmarks.make_boundaries [--streams 10000000] [--seed 20] [--check]

For normal launches the smallest nominal p over the looks so far has a distribution that depends on
nothing else; its alpha-quantile is the nominal p whose overall error is alpha. `--check` writes
nothing and prints the overall error of the stored table under several laws of noise.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from bench.stats.location import Interval
from bench.stats.proportions import wilson
from benchmarks.streams import NOISES, Array, Noise, nominal_p_values, normal

LOOKS = (6, 9, 13, 18, 25, 35, 50)
ALPHAS = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
TARGET = Path(__file__).resolve().parent.parent / "bench" / "stats" / "boundaries.py"
CHUNK = 50_000


def smallest_p(noise: Noise, streams: int, seed: int, looks: Sequence[int] = LOOKS) -> Iterator[Array]:
    """Chunks of (streams, looks): the smallest nominal p up to each look."""
    rng = np.random.default_rng(seed)
    for start in range(0, streams, CHUNK):
        launches = noise(rng, (min(CHUNK, streams - start), looks[-1]))
        yield np.minimum.accumulate(nominal_p_values(launches, looks), axis=1)


def boundaries(streams: int, seed: int) -> dict[float, list[float]]:
    """Nominal p per overall alpha; entry i serves a schedule that ends with look i."""
    found = np.concatenate([chunk.astype(np.float32) for chunk in smallest_p(normal, streams, seed)])
    columns = [np.quantile(found[:, i], ALPHAS) for i in range(len(LOOKS))]
    return {alpha: [float(column[k]) for column in columns] for k, alpha in enumerate(ALPHAS)}


def overall_error(noise: Noise, nominal: float, looks: Sequence[int], streams: int, seed: int) -> Interval:
    """Share of streams in which some look's interval misses the truth, with its Wilson interval."""
    hits = sum(int((chunk[:, -1] < nominal).sum()) for chunk in smallest_p(noise, streams, seed, looks))
    return wilson(hits, streams)


def render(table: dict[float, list[float]], streams: int, seed: int) -> str:
    """The module that holds the table."""
    rows = "\n".join(f"    {alpha}: ({', '.join(f'{p:.4g}' for p in row)})," for alpha, row in table.items())

    def two_errors(alpha: float) -> str:
        return f"{2 / (alpha * streams) ** 0.5:.1%}"

    return f'''"""Nominal p of the group-sequential design. Written by benchmarks/make_boundaries.py; do not edit.

{streams:,} streams of normal launches, seed {seed}. The overall error of an entry is known to about
±{two_errors(0.01)} of itself (two standard errors) at 1 %, ±{two_errors(0.0001)} at 0.01 %.
"""

from __future__ import annotations

LOOKS: tuple[int, ...] = {LOOKS}
"""Launches after which a comparison is looked at."""

NOMINAL: dict[float, tuple[float, ...]] = {{
{rows}
}}
"""Overall two-sided error → nominal two-sided p at every look, entry i for a schedule that ends with look i."""
'''


def check(streams: int, seed: int) -> str:
    """Overall error of the stored table, per noise and design error."""
    from bench.stats import boundaries as stored

    lines = []
    for name, noise in NOISES.items():
        for alpha in (0.001, 0.01, 0.05):
            error = overall_error(noise, stored.NOMINAL[alpha][-1], stored.LOOKS, streams, seed)
            lines.append(f"{name:13} alpha {alpha:6.2%}: {error.value:.3%} [{error.low:.3%}, {error.high:.3%}]")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the table, or check the stored one."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--streams", type=int, default=10_000_000)
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--check", action="store_true", help="check the stored table against other noise")
    options = parser.parse_args(arguments)
    if options.check:
        sys.stdout.write(check(options.streams, options.seed + 1))
        return 0
    TARGET.write_text(render(boundaries(options.streams, options.seed), options.streams, options.seed), "utf-8")
    sys.stdout.write(f"wrote {TARGET}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
