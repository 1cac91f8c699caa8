"""How a gate decides: which design its policy asks for, and what that says of launches. Pure.

Group-sequential looks (bench.stats.sequential) unless the policy borrows the spread of earlier runs
(bench.stats.moderated) or is to be looked at after every launch (always valid).
"""

from __future__ import annotations

from collections.abc import Sequence

from bench.model import Policy
from bench.stats.moderated import (
    MODERATED_CONFIRMATION,
    MODERATED_LOOKS,
    Prior,
    confirm_moderated,
    decide_moderated,
    moderated_p_value,
)
from bench.stats.multiplicity import always_valid_p_value, sequential_p_value
from bench.stats.sequential import (
    CONFIRMATION_LAUNCHES,
    EARLY_CONFIRMATIONS,
    FIRST_ALWAYS_VALID,
    LOOKS,
    Confirmation,
    Decision,
    confirm,
    decide,
    decide_always_valid,
)


def first_look(policy: Policy) -> int:
    """Fewest launches that can decide."""
    if policy.always_valid:
        return FIRST_ALWAYS_VALID
    return (MODERATED_LOOKS if policy.borrowed else LOOKS)[0]


def is_look(policy: Policy, launches: int) -> bool:
    """Whether that many launches are judged."""
    if policy.always_valid:
        return launches >= FIRST_ALWAYS_VALID
    return launches in (MODERATED_LOOKS if policy.borrowed else LOOKS)


def confirmation_launches(policy: Policy) -> int:
    """Fresh launches of a confirmation."""
    return MODERATED_CONFIRMATION if policy.borrowed else CONFIRMATION_LAUNCHES


def may_confirm_early(policy: Policy, launches: int) -> bool:
    """Whether a confirmation is judged after so few launches."""
    return not policy.borrowed and launches in EARLY_CONFIRMATIONS


def decision(
    values: Sequence[float],
    policy: Policy,
    metric: str,
    *,
    better_sign: int,
    floor: float,
    margin: float,
    alpha: float,
    final: bool,
) -> Decision:
    """What log ratios of launches say of one metric (see bench.stats.sequential.decide)."""
    if policy.always_valid:
        return decide_always_valid(
            values, better_sign=better_sign, floor=floor, margin=margin, alpha=alpha, final=final
        )
    if policy.borrowed:
        return decide_moderated(
            values, _prior(policy, metric), better_sign=better_sign, floor=floor, margin=margin, alpha=alpha,
            final=final,
        )  # fmt: skip
    return decide(values, better_sign=better_sign, floor=floor, margin=margin, alpha=alpha, final=final)


def p_value(values: Sequence[float], policy: Policy, metric: str) -> float:
    """Two-sided p of no change that may be used after the design's stopping."""
    if policy.always_valid:
        return always_valid_p_value(values)
    if policy.borrowed:
        return moderated_p_value(values, _prior(policy, metric))
    return sequential_p_value(values)


def confirmation(
    values: Sequence[float], policy: Policy, metric: str, *, better_sign: int, floor: float
) -> Confirmation:
    """Whether fresh launches repeat a regression."""
    if policy.borrowed:
        return confirm_moderated(values, _prior(policy, metric), better_sign=better_sign, floor=floor)
    return confirm(values, better_sign=better_sign, floor=floor)


def describe(policy: Policy) -> str:
    """The rule in words, for reports."""
    error = f"error rate {percent(policy.alpha)} over all of them"
    if policy.always_valid:
        words = f"judged after every launch, {error} (always valid)"
    elif policy.borrowed:
        runs = max(b.runs for b in policy.borrowed)
        words = f"judged after {_listed(MODERATED_LOOKS)} launches, {error}, with the variance of {runs} earlier runs"
    else:
        words = f"judged after {_listed(LOOKS)} launches, {error}"
    if policy.family > 1:
        words += f"; of {policy.family} variants together, at most {percent(policy.alpha)} of the changes are false"
        words += " (Benjamini-Hochberg)"
    return words


def percent(share: float) -> str:
    """`1 %`."""
    return f"{100 * share:g} %"


def _prior(policy: Policy, metric: str) -> Prior | None:
    return next((Prior(variance=b.variance, freedom=b.freedom) for b in policy.borrowed if b.metric == metric), None)


def _listed(looks: Sequence[int]) -> str:
    return f"{', '.join(map(str, looks[:-1]))} or {looks[-1]}"
