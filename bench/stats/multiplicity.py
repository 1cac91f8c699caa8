"""Many comparisons at once: p values and the false discovery rate.

Sources: Benjamini & Hochberg (1995), "Controlling the false discovery rate", JRSS B 57; it holds for
independent and for positively dependent tests (Benjamini & Yekutieli 2001, Annals of Statistics 29).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, inf, isnan

import numpy as np
from scipy.special import stdtr

from bench.errors import ConfigError
from bench.stats.sequential import FIRST_ALWAYS_VALID, LOOKS, log_bayes_factor, overall_p, studentized


def p_value(values: Sequence[float]) -> float:
    """Two-sided p of the trimmed t test of zero, for a number of launches fixed beforehand.

    1 for fewer than two values. After a stream that stopped when it had seen enough this p is too
    small: take `sequential_p_value`.
    """
    centre, error, freedom = studentized(values)
    if freedom < 1:
        return 1.0
    if error == 0.0:
        return 1.0 if centre == 0.0 else 0.0
    return min(1.0, 2.0 * float(stdtr(freedom, -abs(centre) / error)))


def sequential_p_value(values: Sequence[float], looks: Sequence[int] = LOOKS) -> float:
    """Two-sided p that may be used after any stopping of the group-sequential design.

    The smallest overall alpha at which a look so far (or the last count, when it is no look) would
    have excluded zero. `values` are in the order of the launches, `looks` those that were planned.
    """
    n = len(values)
    seen = [look for look in looks if look < n] + [n]
    return overall_p(min(p_value(values[:look]) for look in seen), looks)


def always_valid_p_value(values: Sequence[float]) -> float:
    """The p that may be read after any launch and after any stopping: 1 / the largest Bayes factor so far.

    The smallest alpha at which `always_valid_interval` excluded zero after some launch (Ville's
    inequality); 1 before FIRST_ALWAYS_VALID.
    """
    largest = 0.0
    for n in range(FIRST_ALWAYS_VALID, len(values) + 1):
        centre, error, freedom = studentized(values[:n])
        if error == 0.0:
            largest = inf if centre != 0.0 else largest
            continue
        largest = max(largest, log_bayes_factor(centre / error, freedom))
    return exp(-largest)


def benjamini_hochberg(p_values: Sequence[float], q: float) -> list[bool]:
    """Which hypotheses are rejected so that at most a share q of the rejections is false, on average.

    Rejects the k smallest p, k being the largest number with p₍k₎ ≤ q·k/m. A nan (no test was
    possible) counts as a test and is never rejected. Raises ConfigError for a q outside (0, 1).
    """
    if not 0.0 < q < 1.0:
        raise ConfigError(f"the false discovery rate is {q}: choose one between 0 and 1")
    p = np.asarray([1.0 if isnan(value) else value for value in p_values], dtype=np.float64)
    if p.size == 0:
        return []
    if p.min() < 0.0 or p.max() > 1.0:
        raise ValueError(f"p values lie between 0 and 1, got {p.min()} to {p.max()}")
    ordered = np.sort(p)
    passing = np.flatnonzero(ordered <= q * np.arange(1, p.size + 1) / p.size)
    if passing.size == 0:
        return [False] * p.size
    return [bool(value <= ordered[passing[-1]]) for value in p]
