"""The rule of verdicts: an interval against a stated range. Pure; docs/claims.md prints the same in words.

One measurement, with its 95 % interval, against what was stated:

    EXCEEDED        the whole interval lies beyond the range, on the side that the claim calls better
    REPRODUCED      the value reaches the range and the interval rules out less than half of the effect
    PARTLY          at least half of the effect, and an effect for sure, but less than stated
    NOT REPRODUCED  the whole interval falls short of the range, and it is not PARTLY
    INCONCLUSIVE    anything else: the interval is too wide to say

Half of an effect is meant as people mean it: of 4× it is 2× (half of the logarithm), of −30 % it is −15 %.
A figure that has no better side (a load time, a size) is REPRODUCED with the value in the range, INCONCLUSIVE
where only the interval reaches into it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, inf, isinf, log

from bench.claims.words import JUDGED, NEUTRAL, REACHED, TOLERANCE, Beyond, Finding, Relation, Stated, Take
from bench.model import Estimate


def range_of(
    relation: Relation, value: float | None = None, low: float | None = None, high: float | None = None
) -> tuple[float, float]:
    """Ends of a stated range. Raises ValueError where the relation's numbers are missing or turned round."""
    if relation is Relation.BETWEEN:
        if low is None or high is None or low >= high or value is not None:
            raise ValueError("`between` takes `low` and `high`, low first")
        return low, high
    if value is None or low is not None or high is not None:
        raise ValueError(f"`{relation.value}` takes one `value`")
    if relation is Relation.AT_LEAST:
        return value, inf
    if relation is Relation.AT_MOST:
        return -inf, value
    slack = abs(value) * TOLERANCE
    return value - slack, value + slack


def judge(found: Estimate, stated: Stated) -> Finding:
    """The finding of one measurement, whose value and interval are in the unit of `stated`."""
    low = found.value if found.low is None else found.low
    high = found.value if found.high is None else found.high
    value, least, most = found.value, stated.low, stated.high
    if stated.beyond is Beyond.NEITHER:
        if least <= value <= most:
            return Finding.REPRODUCED
        return Finding.INCONCLUSIVE if low <= most and high >= least else Finding.NOT_REPRODUCED
    half, neutral = half_effect(stated), NEUTRAL.get(stated.take)
    if stated.beyond is Beyond.LESS:  # turned round, so that more is beyond
        value, low, high, least, most, half = -value, -high, -low, -most, -least, -half
        neutral = None if neutral is None else -neutral
    if low > most:
        return Finding.EXCEEDED
    if value >= least and low >= half:
        return Finding.REPRODUCED
    if neutral is not None and value >= half and low > neutral:
        return Finding.PARTLY
    return Finding.INCONCLUSIVE if high >= least else Finding.NOT_REPRODUCED


def half_effect(stated: Stated) -> float:
    """Half of the smallest effect that was stated; the range's own end where no effect is known or stated."""
    end = stated.high if stated.beyond is Beyond.LESS else stated.low
    neutral = NEUTRAL.get(stated.take)
    if neutral is None or isinf(end):
        return end
    if (end <= neutral) if stated.beyond is Beyond.MORE else (end >= neutral):
        return end
    if stated.take in (Take.SPEEDUP, Take.RATIO):
        return exp(log(end) / 2)
    return end / 2


def combine(findings: Sequence[Finding], *, some: bool) -> Finding:
    """One finding of several measurements.

    `some`: the best one answers. Else the claim holds where all reach the figure, and PARTLY where one does or is
    PARTLY. An answer that those which are missing or inconclusive could still turn is none; what cannot be
    measured here is left out, unless nothing can.
    """
    left = [f for f in findings if f is not Finding.NOT_MEASURABLE]
    if not left:
        return Finding.NOT_MEASURABLE if findings else Finding.NOT_MEASURED
    judged = sorted((f for f in left if f in JUDGED), key=JUDGED.index)
    if judged:
        best, worst = judged[0], judged[-1]
        if some:
            found, settled = best, best in REACHED
        elif worst in REACHED or best is Finding.NOT_REPRODUCED:
            found, settled = worst, False
        else:
            found, settled = Finding.PARTLY, True
        if settled or len(judged) == len(left):
            return found
    return Finding.INCONCLUSIVE if Finding.INCONCLUSIVE in left else Finding.NOT_MEASURED
