"""When enough launches have been seen: group-sequential looks, always-valid looks, confirmation.

The data are launch values, log(head / base) of one metric, one value a launch. The statistic is the
20 % trimmed mean over Yuen's standard error, held to Student's t with h − 1 degrees of freedom.

**Group-sequential** (Pocock 1977, Biometrika 64): after each of LOOKS launches the interval has the
same nominal confidence, chosen so that the chance that *any* of them misses the truth is alpha. As
the trimmed t is neither normal nor exactly a t, the boundary is not Pocock's: it was found by
simulating this statistic (benchmarks/make_boundaries.py; nominal p = 0.00137 for alpha = 1 % and all
seven looks). Overall error, 1,000,000 streams each, at alpha 0.1 / 1 / 5 %:

    normal launches                            0.098 / 0.99 / 5.0 %
    Student t with 3 degrees of freedom        0.059 / 0.70 / 4.0 %
    a tenth disturbed (sevenfold spread)       0.084 / 0.83 / 4.4 %
    Cauchy                                     0.017 / 0.27 / 2.1 %

Not covered: launches that depend on one another (a drift that paired rounds do not cancel).

**Always-valid**: an interval that may be read after every launch, for as long as one likes. For n
normal values, mixing the t likelihood ratio over effect sizes δ ~ N(0, 1/g) with the right Haar
prior on the scale gives a nonnegative martingale, the Bayes factor

    B(t, n) = √(g / (g + n)) · ((1 + t²/ν) / (1 + r·t²/ν))^((ν + 1) / 2),   ν = n − 1,  r = g / (g + n);

by Ville's inequality P(any n: B ≥ 1/alpha) ≤ alpha (Lai 1976, Annals of Statistics 4; Gönen et al.
2005, The American Statistician 59; Wang & Ramdas 2025, "Anytime-valid t-tests and confidence
sequences for Gaussian means with unknown variance", Sequential Analysis 44). We put the trimmed
mean, Yuen's error and the kept count h in the place of mean, s/√n and n, which is no theorem; read
after every launch from 6 on (thinned beyond 50), any interval missed the truth, at alpha 0.1 / 1 / 5 %,

    up to 300, normal (200,000 streams)        0.092 / 0.88 / 4.3 %
    up to 300, a tenth disturbed (100,000)     0.090 / 0.77 / 3.8 %
    up to 3000, normal (20,000)                0.10  / 0.91 / 4.6 %
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import exp, inf, isfinite, isnan, log, log1p, nan, sqrt
from typing import Literal

import numpy as np
from scipy.special import stdtr, stdtrit

from bench.errors import ConfigError, MeasureError
from bench.stats.boundaries import LOOKS, NOMINAL
from bench.stats.location import Interval, trimmed_error, trimmed_mean

__all__ = [
    "ALPHA", "CONFIRMATION_LAUNCHES", "CONFIRMATION_LEVEL", "EARLY_CONFIRMATIONS", "EARLY_LEVEL",
    "FIRST_ALWAYS_VALID", "LOOKS", "MOST_ALWAYS_VALID", "Confirmation", "Decision", "State", "always_valid_interval",
    "always_valid_quantile", "check_policy", "confirm", "decide", "decide_always_valid", "interval_at_look", "judge",
    "log_bayes_factor", "next_look", "nominal_p", "overall_p", "schedule", "student_interval", "studentized",
]  # fmt: skip

ALPHA = 0.01
"""Chance that any look's interval misses the truth (both sides together)."""

CONFIRMATION_LAUNCHES = 18
CONFIRMATION_LEVEL = 0.05
"""One-sided. 18 launches at 5 % keep a suite of 100 benchmarks under 1 % false alarms (design, section 6)."""

EARLY_CONFIRMATIONS = LOOKS[:3]
EARLY_LEVEL = 0.0005
"""Launches after which a confirmation may end as confirmed, and the one-sided level that this takes.

Haybittle and Peto's design (Haybittle 1971, British Journal of Radiology 44; Peto et al. 1976, British Journal
of Cancer 34): early looks so strict that the last one keeps nearly all of its level. It is what the
early ones leave of CONFIRMATION_LEVEL, so that all together err no more often (Bonferroni).
"""

FIRST_ALWAYS_VALID = 6
"""First launch count with an always-valid interval: as early as the first look."""

MOST_ALWAYS_VALID = 3000
"""Launches up to which the trimmed interval was tried (above)."""

MIXTURE = 1.0
"""g: effects of about one launch's spread are expected, where the interval is then narrowest."""


class State(StrEnum):
    """What a look says."""

    REGRESSED = "regressed"
    IMPROVED = "improved"
    UNCHANGED = "unchanged"
    CONTINUE = "continue"
    EXHAUSTED = "exhausted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A look's answer. `interval` is on the log scale; `next_look` is null where no more launches are wanted."""

    state: State
    interval: Interval
    next_look: int | None = None

    @property
    def decided(self) -> bool:
        """A verdict was reached; the rest is CONTINUE or EXHAUSTED."""
        return self.state not in (State.CONTINUE, State.EXHAUSTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """Answer of fresh launches. `interval` is two-sided at 1 − 2·level; its value is free of the first look's luck."""

    confirmed: bool
    interval: Interval
    p_value: float


def studentized(values: Sequence[float]) -> tuple[float, float, int]:
    """Trimmed mean, its standard error and degrees of freedom; (nan, nan, 0) for no values.

    Where all kept values tie but the others do not (memory in pages, a coarse clock) the winsorised
    spread is 0 and would make any difference certain; the plain s/√n then takes its place.
    Raises MeasureError for a value that is not finite.
    """
    for index, value in enumerate(values):
        if not isfinite(value):
            raise MeasureError(
                f"launch {index + 1} of {len(values)} has the ratio {value}: it takes two positive, finite values; "
                "record that launch as failed instead of comparing it"
            )
    if len(values) == 0:
        return nan, nan, 0
    centre = trimmed_mean(values)
    error, freedom = trimmed_error(values)
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    n = len(ordered)
    cut = (n - freedom - 1) // 2
    if freedom > 0 and ordered[cut] == ordered[n - cut - 1]:
        error = float(ordered.std(ddof=1)) / sqrt(n) if ordered[0] < ordered[-1] else 0.0
    return centre, error, freedom


def schedule(budget: int | None = None) -> tuple[int, ...]:
    """Looks that a budget of launches allows, all without one; empty for a budget under the first look.

    A budget known beforehand buys a sharper boundary; one of time does not: plan all looks, end with `final`.
    """
    return LOOKS if budget is None else tuple(n for n in LOOKS if n <= budget)


def next_look(n: int, looks: Sequence[int] = LOOKS) -> int | None:
    """First look after n launches; null after the last."""
    return next((look for look in looks if look > n), None)


def nominal_p(alpha: float = ALPHA, looks: Sequence[int] = LOOKS) -> float:
    """Two-sided nominal p at every look so that the overall error is alpha.

    `looks` must be the beginning of LOOKS. Between the tabulated alphas (0.01 % to 50 %) log p is
    linear in log alpha. Raises ConfigError for another alpha or schedule.
    """
    column = _column(looks)
    alphas = list(NOMINAL)
    if not alphas[0] <= alpha <= alphas[-1]:
        raise ConfigError(f"the error rate alpha is {alpha}: choose one from {alphas[0]} to {alphas[-1]}")
    return exp(float(np.interp(log(alpha), np.log(alphas), np.log(column))))


def overall_p(nominal: float, looks: Sequence[int] = LOOKS) -> float:
    """Overall alpha whose boundary is `nominal`: the p value of a stream whose smallest nominal p that was.

    Beyond the table the slope of its smallest decade goes on; the true one tends to 1, so the answer
    errs on the large side.
    """
    column, alphas = [*_column(looks), 1.0], [*NOMINAL, 1.0]
    if nominal <= 0.0:
        return 0.0
    if nominal < column[0]:
        decade = alphas.index(10 * alphas[0])
        slope = log(alphas[decade] / alphas[0]) / log(column[decade] / column[0])
        return float(alphas[0] * (nominal / column[0]) ** slope)
    return exp(float(np.interp(log(nominal), np.log(column), np.log(alphas))))


def _column(looks: Sequence[int]) -> list[float]:
    if not looks or tuple(looks) != LOOKS[: len(looks)]:
        raise ConfigError(f"no boundary is known for looks after {list(looks)} launches: use the first ones of {LOOKS}")
    return [row[len(looks) - 1] for row in NOMINAL.values()]


def interval_at_look(values: Sequence[float], alpha: float = ALPHA, looks: Sequence[int] = LOOKS) -> Interval:
    """Trimmed mean with the interval of one look of the schedule; under two values the ends are nan.

    All looks' intervals hold the truth together with probability 1 − alpha. At a count that is no
    look the interval counts only if it is the last one (the budget ran out): it takes the place of
    the next look.
    """
    quantile = 1 - nominal_p(alpha, looks) / 2
    return student_interval(values, quantile)


def student_interval(values: Sequence[float], quantile: float) -> Interval:
    """Estimate ± the t quantile (over 0.5) times `studentized`'s error; ends nan under two values."""
    centre, error, freedom = studentized(values)
    if freedom < 1:
        return Interval(centre, nan, nan, len(values))
    half = float(stdtrit(freedom, quantile)) * error
    return Interval(centre, centre - half, centre + half, len(values))


def decide(
    values: Sequence[float],
    *,
    better_sign: int,
    floor: float = 0.01,
    margin: float = 0.02,
    alpha: float = ALPHA,
    looks: Sequence[int] = LOOKS,
    final: bool = False,
) -> Decision:
    """What the launches so far say, in their order; stop at the first decision that is not CONTINUE.

    better_sign: −1 where lower is better (time), +1 where higher is. floor: smallest relative change
    that is called one. margin: UNCHANGED means that the whole interval lies within ±margin. final: no
    launch will follow (time is up), so this count is judged although it may be no look. Between looks,
    and on fewer launches than the first look, nothing is judged. Undecided at the end: EXHAUSTED.
    """
    check_policy(better_sign, floor, margin)
    interval = interval_at_look(values, alpha, looks)
    n = len(values)
    following = None if final else next_look(n, looks)
    if n in looks or (following is None and n >= LOOKS[0]):
        state = judge(interval, better_sign, floor, margin)
        if state is not None:
            return Decision(state=state, interval=interval)
    if following is None:
        return Decision(state=State.EXHAUSTED, interval=interval)
    return Decision(state=State.CONTINUE, interval=interval, next_look=following)


def always_valid_interval(values: Sequence[float], alpha: float = ALPHA) -> Interval:
    """Interval that may be read after every launch; ends nan before FIRST_ALWAYS_VALID.

    They are infinite where no t would be enough (6 launches at 1 %).

    Raises ConfigError for an alpha outside (0, 1).
    """
    if not 0.0 < alpha < 1.0:
        raise ConfigError(f"the error rate alpha is {alpha}: choose one between 0 and 1")
    centre, error, freedom = studentized(values)
    n = len(values)
    if n < FIRST_ALWAYS_VALID:
        return Interval(centre, nan, nan, n)
    half = 0.0 if error == 0.0 else always_valid_quantile(freedom, alpha) * error
    return Interval(centre, centre - half, centre + half, n)


def always_valid_quantile(freedom: int, alpha: float, mixture: float = MIXTURE) -> float:
    """|t| at which B(t, freedom + 1) = 1 / alpha; infinite where no t reaches it."""
    kept = freedom + 1
    root = (sqrt((mixture + kept) / mixture) / alpha) ** (2.0 / kept)
    shrink = mixture / (mixture + kept)
    if root * shrink >= 1.0:
        return inf
    return sqrt(freedom * (root - 1.0) / (1.0 - root * shrink))


def log_bayes_factor(t: float, freedom: int, mixture: float = MIXTURE) -> float:
    """The logarithm of B(t, freedom + 1)."""
    kept = freedom + 1
    shrink = mixture / (mixture + kept)
    return 0.5 * log(shrink) + kept / 2 * (log1p(t * t / freedom) - log1p(shrink * t * t / freedom))


def decide_always_valid(
    values: Sequence[float],
    *,
    better_sign: int,
    floor: float = 0.01,
    margin: float = 0.02,
    alpha: float = ALPHA,
    final: bool = False,
) -> Decision:
    """As `decide`, judged after every launch from FIRST_ALWAYS_VALID on, without an end but `final`."""
    check_policy(better_sign, floor, margin)
    interval = always_valid_interval(values, alpha)
    state = judge(interval, better_sign, floor, margin)
    if state is not None:
        return Decision(state=state, interval=interval)
    if final:
        return Decision(state=State.EXHAUSTED, interval=interval)
    return Decision(state=State.CONTINUE, interval=interval, next_look=max(FIRST_ALWAYS_VALID, len(values) + 1))


def confirm(
    values: Sequence[float],
    *,
    better_sign: int,
    suspect: Literal[State.REGRESSED, State.IMPROVED] = State.REGRESSED,
    floor: float = 0.01,
    level: float = CONFIRMATION_LEVEL,
) -> Confirmation:
    """Whether fresh launches, CONFIRMATION_LAUNCHES of them, repeat what was suspected.

    Confirmed: the one-sided trimmed t test rejects at its share of `level` and the estimate is over half the
    floor. A large change is so clear that EARLY_CONFIRMATIONS of them are enough, each with a level of
    EARLY_LEVEL. The launches must not be those that raised the suspicion. Too few of them confirm nothing.
    """
    check_policy(better_sign, floor, margin=1.0)
    least = (len(EARLY_CONFIRMATIONS) + 1) * EARLY_LEVEL
    if not least <= level < 0.5:
        raise ConfigError(f"the level of the confirmation is {level}: choose one from {least} to 0.5")
    level = EARLY_LEVEL if len(values) in EARLY_CONFIRMATIONS else level - len(EARLY_CONFIRMATIONS) * EARLY_LEVEL
    interval = student_interval(values, 1 - level)
    centre, error, freedom = studentized(values)
    sign = -better_sign if suspect is State.REGRESSED else better_sign
    if freedom < 1:
        return Confirmation(confirmed=False, interval=interval, p_value=1.0)
    toward = sign * centre
    certain = 0.0 if toward > 0 else 1.0
    p = float(stdtr(freedom, -toward / error)) if error > 0.0 else certain
    return Confirmation(confirmed=p < level and toward > log1p(floor / 2), interval=interval, p_value=p)


def check_policy(better_sign: int, floor: float, margin: float) -> None:
    """Raise for a direction or a threshold that makes no sense."""
    if better_sign not in (-1, 1):
        raise ValueError(f"better_sign is {better_sign}: -1 where lower is better, +1 where higher is")
    if not 0.0 <= floor < inf or not 0.0 < margin < inf:
        raise ConfigError(
            f"the floor is {floor} and the margin {margin}: give shares of the base, 0.01 for 1 %, the margin over 0"
        )


def judge(interval: Interval, better_sign: int, floor: float, margin: float) -> State | None:
    """REGRESSED, IMPROVED or UNCHANGED by the rules of `decide`; null where the interval allows none of them."""
    if isnan(interval.low):
        return None
    low, high = sorted((-better_sign * interval.low, -better_sign * interval.high))
    worse = -better_sign * interval.value
    if low > 0 and worse > log1p(floor):
        return State.REGRESSED
    if high < 0 and -worse > log1p(floor):
        return State.IMPROVED
    if -log1p(margin) < low and high < log1p(margin):
        return State.UNCHANGED
    return None
