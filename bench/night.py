"""What a night has to say: causes ranked by effect × confidence, what was refuted, what is fixed. Pure.

Silent when there is nothing: an empty `Night` is sent to nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import log

from bench.history import Action, Answer, ChangePoint, Direction, Event, Regression
from bench.metrics import Kind
from bench.model import Estimate

CONFIDENCE = {Answer.CONFIRMED: 1.0, None: 0.8, Answer.FAILED: 0.6, Answer.INCONCLUSIVE: 0.5, Answer.REFUTED: 0.0}
"""Weight of a change point by what a paired experiment said of it (null: none was made).

Judgement, not measurement: a detector's change is right more often than not (studied precision .91–.97), one
that a re-run could not repeat within its budget is about as likely noise as not.
"""

TOLD = frozenset({Action.OPENED, Action.GREW, Action.REOPENED, Action.FIXED, Action.BISECTED, Action.CAUSE})
"""What the detector did to a regression that is worth telling; what people did, they know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """One cause: its regression, what happened to it, and its change points, the weightiest first."""

    regression: Regression
    happened: tuple[Action, ...]
    changes: tuple[ChangePoint, ...]
    weight: float
    told: int  # number of the last event worth telling: who heard of it has heard this story

    @property
    def worst(self) -> ChangePoint | None:
        """The weightiest change point."""
        return self.changes[0] if self.changes else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    """Everything of one period, each list ranked."""

    since: datetime
    until: datetime
    worse: tuple[Story, ...] = ()
    suspicious: tuple[Story, ...] = ()
    better: tuple[Story, ...] = ()
    fixed: tuple[Story, ...] = ()
    refuted: tuple[ChangePoint, ...] = ()
    missing: tuple[str, ...] = ()  # what was expected and did not arrive

    @property
    def silent(self) -> bool:
        """Nothing that anybody must hear. Improvements and refuted suspects alone wake no one."""
        return not (self.worse or self.suspicious or self.fixed or self.missing)


def least_effect(effect: Estimate, *, relative: bool) -> float:
    """Size of a change that its interval vouches for: the end nearer to no change, as |log ratio| or |difference|.

    An interval that holds no change at all vouches for nothing; without one the value stands.
    """
    ends = [effect.low, effect.high] if effect.low is not None and effect.high is not None else [effect.value]
    sizes = [log(end) if relative and end and end > 0 else 0.0 if relative else end or 0.0 for end in ends]
    if min(sizes) < 0 < max(sizes):
        return 0.0
    return min(abs(size) for size in sizes)


FOLLOWERS = frozenset({"cpu_time", "throughput"})
"""Metrics that mostly say again what the latency says: it speaks for them unless they moved clearly more."""


def weight(change: ChangePoint) -> float:
    """Effect × confidence; less by a tenth for FOLLOWERS."""
    confidence = CONFIDENCE[change.proof.answer if change.proof else None]
    confidence *= 0.9 if change.series.metric.name in FOLLOWERS else 1.0
    return confidence * least_effect(change.effect, relative=is_relative(change))


def is_relative(change: ChangePoint) -> bool:
    """Whether its effect is a ratio: accuracy changes by a difference, and so does what is not positive."""
    return bool(change.parameters.get("relative", change.series.metric.kind is not Kind.ACCURACY))


def story(regression: Regression, events: Iterable[Event], changes: Iterable[ChangePoint]) -> Story:
    """One cause with its weight: that of its weightiest change point."""
    ranked = sorted(changes, key=weight, reverse=True)
    news = [e for e in events if e.who == "bench" and e.action in TOLD]
    return Story(
        regression=regression, happened=tuple(dict.fromkeys(e.action for e in news)), changes=tuple(ranked),
        weight=weight(ranked[0]) if ranked else 0.0, told=max((e.number for e in news), default=0),
    )  # fmt: skip


def night(
    stories: Sequence[Story],
    refuted: Sequence[ChangePoint],
    *,
    since: datetime,
    until: datetime,
    missing: Sequence[str] = (),
) -> Night:
    """Sort the stories of a period; those in which nothing worth telling happened are left out."""
    ranked = sorted((s for s in stories if s.happened), key=lambda s: s.weight, reverse=True)
    fixed = [s for s in ranked if s.happened[-1] is Action.FIXED]
    news = [s for s in ranked if s not in fixed]

    def of(direction: Direction) -> tuple[Story, ...]:
        return tuple(s for s in news if s.regression.direction is direction)

    return Night(
        since=since, until=until, worse=of(Direction.WORSE), suspicious=of(Direction.SUSPICIOUS),
        better=of(Direction.BETTER), fixed=tuple(s for s in fixed if s.regression.direction is not Direction.BETTER),
        refuted=tuple(refuted), missing=tuple(missing),
    )  # fmt: skip


def refuted_in(changes: Iterable[ChangePoint], since: datetime, until: datetime) -> list[ChangePoint]:
    """Suspects that a paired experiment of the period refuted."""
    return [c for c in changes if c.proof and c.proof.answer is Answer.REFUTED and since < c.proof.at <= until]
