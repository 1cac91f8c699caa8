"""Verdicts on four or five launches, with the spread borrowed from a series' history.

Source: Smyth (2004), "Linear models and empirical Bayes methods for assessing differential
expression in microarray experiments", SAGMB 3 (limma: fitFDist, squeezeVar). A night's variance is
σ²·χ²(d)/d with 1/σ² ~ χ²(d₀) / (d₀·s₀²): the prior (d₀, s₀²) is fitted from past variances and the
posterior variance (d₀·s₀² + d·s²) / (d₀ + d) gives a t with d₀ + d degrees of freedom.

Two departures keep a disturbed launch from deciding. At least one launch is trimmed from each end
(of four: the mean of the middle two). And d₀ is at most MAX_FREEDOM: with a stronger prior, two
disturbed launches of four are outvoted when the spread is judged, but not when the mean is.

Chance that a 99 % interval misses the truth and its half-width in launch SDs, prior from 20 nights of
10 launches (benchmarks/moderated_coverage.py, 40,000 runs a cell, ±0.1; σ fixed, or by night with
1/σ² ~ χ²(8)/8 or χ²(3)/3):

                                 4 launches               5 launches          without history
                            fixed  χ²(8)  χ²(3)     fixed  χ²(8)  χ²(3)
    normal                  0.4 %  1.1 %  1.5 %     0.4 %  1.1 %  1.5 %
    Student t, 3 freedoms   0.9 %  1.1 %  1.3 %     0.8 %  1.0 %  1.2 %
    a tenth disturbed       0.7 %  1.1 %  1.2 %     0.5 %  0.9 %  1.2 %
    half-width, normal      1.6    1.8    2.4       1.4    1.5    1.8         2.6 (4), 3.8 (5)

So where the machine's mood changes the spread by a factor of two from night to night, expect up to
1.5 % instead of 1 %; a confirmation with fresh launches takes that back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, isfinite, log, log1p, nan, sqrt

import numpy as np
from scipy.special import digamma, polygamma, stdtr, stdtrit

from bench.errors import ConfigError
from bench.stats.location import TRIM, Interval, trimmed_error, trimmed_mean
from bench.stats.multiplicity import p_value
from bench.stats.sequential import (
    ALPHA,
    CONFIRMATION_LEVEL,
    Confirmation,
    Decision,
    State,
    check_policy,
    confirm,
    judge,
    next_look,
    student_interval,
)

MAX_FREEDOM = 10.0
"""Most degrees of freedom that a history may add; costs 20 % of width against a certain prior."""

MIN_HISTORY = 5
"""Fewest past variances that make a prior."""

FEWEST = 4
"""Fewest launches that keep two values when each end loses one."""

MODERATED_LOOKS = (4, 5, 7, 10, 14, 20)
"""Looks of expensive launches; each is held to alpha / 6 (Bonferroni).

As far as a minute buys launches of 3 s. Four looks up to 10 decide no sooner and leave a third of the
3 % slowdowns undecided where a launch spreads by 2 %; with six it is one in seventy.
"""

MODERATED_CONFIRMATION = 9
"""Fresh launches of a confirmation with borrowed variance: half of CONFIRMATION_LAUNCHES."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """What a history knows of one launch: `variance` (log scale, squared) and the freedoms it is worth."""

    variance: float
    freedom: float


def launch_variance(values: Sequence[float]) -> tuple[float, int]:
    """Launches times (standard error)² of a past run's launch values, and its freedom; what `fit_prior` takes.

    Per launch, and of the trimmed mean, so that runs of 4 and of 50 launches nearly agree.
    Freedom 0 (leave that run out) under four values.
    """
    _, error, freedom = _trimmed(values)
    return (len(values) * error**2, freedom) if freedom > 0 else (0.0, 0)


def fit_prior(variances: Sequence[float], freedoms: Sequence[int]) -> Prior | None:
    """Prior by the moments of log variances (Smyth 2004, section 6.2); null without a usable history.

    Pairs with freedom 0 or a variance that is not finite are left out; fewer than MIN_HISTORY others,
    or none over 0, make no prior. As in limma a variance counts as at least 1e-5 of the median. The
    freedom is at most MAX_FREEDOM and at most that of the whole history.
    """
    if len(variances) != len(freedoms):
        raise ValueError(f"every variance has its freedom, got {len(variances)} and {len(freedoms)}")
    usable = [(v, d) for v, d in zip(variances, freedoms, strict=True) if d > 0 and isfinite(v) and v >= 0]
    if len(usable) < MIN_HISTORY:
        return None
    variance = np.array([v for v, _ in usable], dtype=np.float64)
    half = np.array([d for _, d in usable], dtype=np.float64) / 2
    median = float(np.median(variance))
    if median == 0.0:
        return None
    # log s² has mean log σ² + ψ(d/2) − log(d/2) and variance ψ′(d/2), to which the prior adds ψ′(d₀/2).
    logs = np.log(np.maximum(variance, 1e-5 * median)) - digamma(half) + np.log(half)
    surplus = float(logs.var(ddof=1) - polygamma(1, half).mean())
    total = float(2 * half.sum())
    if surplus <= 0.0:
        return Prior(variance=exp(float(logs.mean())), freedom=min(MAX_FREEDOM, total))
    half_prior = trigamma_inverse(surplus)
    scale = exp(float(logs.mean() + digamma(half_prior)) - log(half_prior))
    return Prior(variance=scale, freedom=min(2 * half_prior, MAX_FREEDOM, total))


def trigamma_inverse(value: float) -> float:
    """The y with ψ′(y) = value > 0: Newton's steps on 1/ψ′, which is convex, so they cannot overshoot (Smyth 2004)."""
    y = 0.5 + 1.0 / value
    for _ in range(60):
        trigamma = float(polygamma(1, y))
        step = trigamma * (1.0 - trigamma / value) / float(polygamma(2, y))
        y += step
        if abs(step) < 1e-12 * y:
            break
    return y


def moderated_interval(values: Sequence[float], prior: Prior | None, alpha: float = ALPHA, looks: int = 1) -> Interval:
    """Trimmed mean with the interval of the moderated t, two-sided error alpha over `looks` looks.

    Without a prior, or on fewer than four launches: the trimmed interval of these launches alone
    (ends nan under two values).
    """
    if not 0.0 < alpha < 1.0 or looks < 1:
        raise ConfigError(
            f"alpha is {alpha} over {looks} looks: choose an error rate between 0 and 1, at least one look"
        )
    alone = student_interval(values, 1 - alpha / looks / 2)
    n = len(values)
    if prior is None or n < FEWEST:
        return alone
    centre, error, total = _moderated(values, prior)
    half = float(stdtrit(total, 1 - alpha / looks / 2)) * error
    return Interval(centre, centre - half, centre + half, n)


def moderated_p_value(values: Sequence[float], prior: Prior | None, looks: Sequence[int] = MODERATED_LOOKS) -> float:
    """Two-sided p that may be used after any stopping of `decide_moderated`; values in the order of the launches.

    The smallest of the looks so far (or the last count, when it is no look) times the number of looks; 1 on
    fewer than four launches.
    """
    n = len(values)
    seen = [look for look in looks if look < n] + [n]
    nominal = [_moderated_p(values[:look], prior) for look in seen if look >= FEWEST]
    return min([1.0, *(len(looks) * p for p in nominal)])


def confirm_moderated(
    values: Sequence[float],
    prior: Prior | None,
    *,
    better_sign: int,
    floor: float = 0.01,
    level: float = CONFIRMATION_LEVEL,
) -> Confirmation:
    """As bench.stats.sequential.confirm for a suspected regression, with borrowed variance."""
    plain = confirm(values, better_sign=better_sign, floor=floor, level=level)
    if prior is None or len(values) < FEWEST:
        return plain
    interval = moderated_interval(values, prior, 2 * level)
    centre, error, total = _moderated(values, prior)
    toward = -better_sign * centre
    p = float(stdtr(total, -toward / error))
    return Confirmation(confirmed=p < level and toward > log1p(floor / 2), interval=interval, p_value=p)


def decide_moderated(
    values: Sequence[float],
    prior: Prior | None,
    *,
    better_sign: int,
    floor: float = 0.01,
    margin: float = 0.02,
    alpha: float = ALPHA,
    looks: Sequence[int] = MODERATED_LOOKS,
    final: bool = False,
) -> Decision:
    """As bench.stats.sequential.decide, on `looks` (at least 4 launches each) and with borrowed variance.

    Bonferroni over the looks. Without a prior the rules are the same and the intervals wider.
    """
    check_policy(better_sign, floor, margin)
    if not looks or looks[0] < FEWEST or any(a >= b for a, b in pairwise(looks)):
        raise ConfigError(f"the looks are after {list(looks)} launches: they must grow, from {FEWEST} on")
    interval = moderated_interval(values, prior, alpha, len(looks))
    n = len(values)
    following = None if final else next_look(n, looks)
    if n in looks or (following is None and n >= FEWEST):
        state = judge(interval, better_sign, floor, margin)
        if state is not None:
            return Decision(state=state, interval=interval)
    if following is None:
        return Decision(state=State.EXHAUSTED, interval=interval)
    return Decision(state=State.CONTINUE, interval=interval, next_look=following)


def _moderated(values: Sequence[float], prior: Prior) -> tuple[float, float, float]:
    """Trimmed mean, its standard error by the posterior variance, and the freedom of both together."""
    n = len(values)
    centre, error, freedom = _trimmed(values)
    total = prior.freedom + freedom
    return centre, sqrt((prior.freedom * prior.variance + freedom * n * error**2) / total / n), total


def _moderated_p(values: Sequence[float], prior: Prior | None) -> float:
    if prior is None:
        return p_value(values)
    centre, error, total = _moderated(values, prior)
    return 2.0 * float(stdtr(total, -abs(centre) / error))


def _trimmed(values: Sequence[float]) -> tuple[float, float, int]:
    """Mean without at least one value at each end, Yuen's error, freedom (0 and nan under four values)."""
    n = len(values)
    share = TRIM if n >= 5 else 1.5 / max(n, 4)  # 1.5: floor(1.5) is 1 whatever the rounding
    error, freedom = trimmed_error(values, share)
    return (trimmed_mean(values, share) if freedom > 0 else nan), error, freedom
