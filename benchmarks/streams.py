"""Many streams of launches at once: the statistics of bench.stats.sequential, vectorised over rows.

The unit tests hold each row of these arrays to the scalar functions that the product uses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import floor

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from bench.stats.location import TRIM

Array = NDArray[np.float64]
Noise = Callable[[np.random.Generator, tuple[int, int]], Array]


def normal(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    """Standard normal launches."""
    return rng.standard_normal(shape)


def student3(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    """Student t with 3 degrees of freedom: finite variance, infinite kurtosis."""
    return rng.standard_t(3, shape)


def contaminated(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    """Standard normal, but a tenth of the launches is disturbed by a further normal of seven times the spread."""
    return rng.standard_normal(shape) + np.where(rng.random(shape) < 0.1, 7.0, 0.0) * rng.standard_normal(shape)


def cauchy(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    """Cauchy launches: no mean, no variance; the worst that a symmetric law can do."""
    return rng.standard_cauchy(shape)


NOISES: dict[str, Noise] = {
    "normal": normal,
    "student3": student3,
    "contaminated": contaminated,
    "cauchy": cauchy,
}


def yuen(launches: Array, trim: float = TRIM) -> tuple[Array, Array, int]:
    """Trimmed mean and Yuen's standard error of each row, and their degrees of freedom."""
    ordered = np.sort(launches, axis=1)
    n = ordered.shape[1]
    cut = floor(trim * n)
    kept = ordered[:, cut : n - cut]
    centre = kept.mean(axis=1)
    low, high = kept[:, 0], kept[:, -1]
    # Winsorised moments out of the kept values: each end counts `cut` times more.
    mean = (kept.sum(axis=1) + cut * (low + high)) / n
    squares = ((kept - mean[:, None]) ** 2).sum(axis=1) + cut * ((low - mean) ** 2 + (high - mean) ** 2)
    h = n - 2 * cut
    error = np.sqrt(squares / (h * (h - 1)))
    # As in `studentized`: ties of all kept values (a small pool drawn with replacement) are not certainty.
    tied = low == high
    if tied.any():
        error[tied] = ordered[tied].std(axis=1, ddof=1) / np.sqrt(n)
        error[ordered[:, 0] == ordered[:, -1]] = 0.0
    return centre, error, h - 1


def at_looks(launches: Array, looks: Sequence[int]) -> tuple[Array, Array, list[int]]:
    """Estimates and errors, one column a look, and the degrees of freedom of each look."""
    found = [yuen(launches[:, :n]) for n in looks]
    return np.stack([f[0] for f in found], axis=1), np.stack([f[1] for f in found], axis=1), [f[2] for f in found]


def nominal_p_values(launches: Array, looks: Sequence[int]) -> Array:
    """Two-sided p of the trimmed t test of zero, one column a look."""
    estimates, errors, freedoms = at_looks(launches, looks)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = -np.abs(estimates) / errors
    return np.stack([2.0 * stdtr(f, ratios[:, i]) for i, f in enumerate(freedoms)], axis=1)
