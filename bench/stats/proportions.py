"""Shares of items with intervals, alone and in pairs.

Sources: Wilson (1927), JASA 22; Newcombe (1998), "Improved confidence intervals for the difference
between binomial proportions based on paired data", Statistics in Medicine 17, method 10.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from scipy.special import ndtri

from bench.stats.location import Interval


def wilson(hits: int, trials: int, confidence: float = 0.95) -> Interval:
    """Wilson's score interval for hits / trials; trials must be positive."""
    z = float(ndtri(0.5 + confidence / 2))
    share = hits / trials
    centre = (hits + z * z / 2) / (trials + z * z)
    half = z / (trials + z * z) * sqrt(hits * (trials - hits) / trials + z * z / 4)
    return Interval(share, max(0.0, centre - half), min(1.0, centre + half), trials)


def paired_difference(base: Sequence[int], head: Sequence[int], confidence: float = 0.95) -> Interval:
    """Interval for share(head) − share(base) on the same items (0/1 each, equal lengths).

    Newcombe's method 10: Wilson limits of both shares, joined with the correlation phi of the
    two-by-two table, continuity-corrected when positive as in the paper.
    """
    n = len(base)
    if n == 0 or n != len(head):
        raise ValueError(f"paired shares need the same items, got {n} and {len(head)}")
    both = sum(1 for b, h in zip(base, head, strict=True) if b and h)
    neither = sum(1 for b, h in zip(base, head, strict=True) if not b and not h)
    only_base, only_head = sum(base) - both, sum(head) - both
    first, second = wilson(sum(head), n, confidence), wilson(sum(base), n, confidence)
    margins = sum(head) * (n - sum(head)) * sum(base) * (n - sum(base))
    product = both * neither - only_base * only_head
    if product > n / 2:
        product_corrected = product - n / 2
    elif product >= 0:
        product_corrected = 0.0
    else:
        product_corrected = float(product)
    phi = product_corrected / sqrt(margins) if margins else 0.0
    difference = first.value - second.value
    dl1, du1 = first.value - first.low, first.high - first.value
    dl2, du2 = second.value - second.low, second.high - second.value
    below = sqrt(max(0.0, dl1 * dl1 - 2 * phi * dl1 * du2 + du2 * du2))
    above = sqrt(max(0.0, du1 * du1 - 2 * phi * du1 * dl2 + dl2 * dl2))
    return Interval(difference, max(-1.0, difference - below), min(1.0, difference + above), n)
