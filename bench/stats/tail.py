"""Quantiles of single calls, with intervals that respect that calls of one launch are alike. Pure.

**Interval.** For n independent calls the order statistics x(r) and x(s) hold the q quantile with the
probability P(r ≤ B < s), B ~ Bin(n, q): no assumption on the distribution (David & Nagaraja 2003,
"Order Statistics", 3rd ed., section 7.1). It exists only where n is large enough for x(n) to be above
the quantile: 368 calls for p99 at 95 %, 36 for p90.

**Launches.** Calls of one launch share its layout and its minute: n calls tell less than n independent
ones. The share of calls up to the quantile is a mean over clusters, so its variance is taken between
launches, and n is replaced by the number of independent calls of that variance, less what estimating it
from k launches costs (Woodruff 1952, JASA 47; Korn & Graubard 1998, Survey Methodology 24). It is never
taken to be more than the calls made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log

import numpy as np
from scipy.special import bdtr, stdtrit

from bench.stats.location import Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """A quantile of single calls. `interval` ends are nan where the calls are too few."""

    interval: Interval  # n: calls made
    effective: int  # independent calls that they amount to
    needed: int  # independent calls that an interval takes

    @property
    def enough(self) -> bool:
        """Whether there is an interval."""
        return self.effective >= self.needed


def calls_needed(q: float, confidence: float = 0.95) -> int:
    """Fewest independent calls whose smallest and largest hold the q quantile (0 < q < 1) from both sides."""
    return ceil(log((1 - confidence) / 2) / log(max(q, 1 - q)))


def calls_in_launch(q: float) -> int:
    """Fewest calls of one launch in which its own q quantile is seen, not extrapolated: one beyond it expected."""
    return ceil(round(1 / (1 - q), 9))


def quantile(values: Sequence[float], q: float) -> float:
    """The smallest value that a share q of the values does not exceed (Hyndman & Fan type 1)."""
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    return float(ordered[_rank(len(ordered), q) - 1])


def tail(launches: Sequence[Sequence[float]], q: float, confidence: float = 0.95) -> Tail:
    """The q quantile of all calls with its interval; `launches[k]` holds the single calls of launch k.

    Raises ValueError where there is no call at all.
    """
    rows = [np.asarray(row, dtype=np.float64) for row in launches if len(row)]
    if not rows:
        raise ValueError("a quantile of no calls was asked for")
    ordered = np.sort(np.concatenate(rows))
    n, needed = len(ordered), calls_needed(q, confidence)
    value = float(ordered[_rank(n, q) - 1])
    independent = effective_calls([row.tolist() for row in rows], value, q, confidence)
    if independent < needed:
        return Tail(interval=Interval(value, np.nan, np.nan, n), effective=independent, needed=needed)
    low, high = order_ranks(independent, q, confidence)
    lower = ordered[max(1, floor(low / independent * n)) - 1]
    upper = ordered[min(n, ceil(high / independent * n)) - 1]
    return Tail(interval=Interval(value, float(lower), float(upper), n), effective=independent, needed=needed)


def order_ranks(n: int, q: float, confidence: float = 0.95) -> tuple[int, int]:
    """Ranks r < s (from 1) of n independent values whose order statistics hold the q quantile.

    The largest r with P(B < r) and the smallest s with P(B ≥ s) of at most half the error, B ~ Bin(n, q).
    Raises ValueError under `calls_needed` values.
    """
    if n < calls_needed(q, confidence):
        raise ValueError(f"{n} values hold no interval of the {q} quantile: {calls_needed(q, confidence)} are needed")
    half = (1 - confidence) / 2
    below = bdtr(np.arange(n + 1, dtype=np.float64), n, q)  # below[b] = P(B ≤ b)
    low = int(np.searchsorted(below, half, side="right"))
    high = int(np.searchsorted(below, 1 - half, side="left")) + 1
    return low, high


def effective_calls(rows: Sequence[Sequence[float]], value: float, q: float, confidence: float = 0.95) -> int:
    """Independent calls that tell as much about the share of calls up to `value` as these launches do.

    Of the shares below and up to `value`, which ties tell apart, the one that varies more counts.
    """
    counts = np.array([len(row) for row in rows], dtype=np.float64)
    k, n = len(rows), int(counts.sum())
    if k < 2:
        return 0
    weights = counts / n
    variance = 0.0
    for below in (np.less, np.less_equal):
        shares = np.array([np.mean(below(row, value)) for row in rows])
        variance = max(variance, k / (k - 1) * float((weights**2 * (shares - weights @ shares) ** 2).sum()))
    quantiles = stdtrit(np.array([n - 1.0, k - 1.0]), 0.5 + confidence / 2)
    cost = float(quantiles[0] / quantiles[1]) ** 2
    independent = n if variance == 0.0 else q * (1 - q) / variance
    return int(min(n, independent * cost))


def _rank(n: int, q: float) -> int:
    return min(n, max(1, ceil(round(n * q, 9))))
