"""Made-up words of history: a change point, a regression, an event."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from bench.history import (
    Action,
    Answer,
    Cause,
    ChangePoint,
    Direction,
    Event,
    Point,
    Proof,
    Regression,
    Series,
    State,
)
from bench.metrics import TIME, Metric
from bench.model import Estimate

START = datetime(2027, 1, 1, tzinfo=UTC)


def make_change(
    effect: float = 1.1,
    *,
    variant: str = "demo.net[engine=e1]",
    metric: Metric = TIME,
    answer: Answer | None = None,
    proved_at: datetime | None = None,
    good: str | None = None,
    bad: str | None = None,
    regression: str | None = None,
) -> ChangePoint:
    """1 ms a call before, `effect` times that after, known to ± 1 %; proved where `answer` is given."""
    series = Series(
        fingerprint=hashlib.sha256(f"{variant} {metric.name}".encode()).hexdigest()[:32], suite="demo",
        benchmark=variant.partition("[")[0], benchmark_version="v1", variant=variant, target="cpu", metric=metric,
        machine_fingerprint="f" * 16, machine_label="Example CPU, 2 cores, 24 GiB",
    )  # fmt: skip
    before, after = (_near(1e6 * factor) for factor in (1.0, effect))
    points = [
        Point(
            run_key=str(k) * 32, at=START + timedelta(days=k), measured_at=START + timedelta(days=k), commit=commit,
            environment_fingerprint="e" * 16, estimate=value,
        )
        for k, (commit, value) in enumerate(((good, before), (bad, after)), 1)
    ]  # fmt: skip
    proof = None
    if answer is not None:
        proof = Proof(answer=answer, at=proved_at or START + timedelta(days=2), command="bench compare 1 2 demo.net")
    return ChangePoint(
        key=hashlib.sha256(f"{variant} {metric.name} {effect}".encode()).hexdigest()[:32], series=series,
        detector="kernel", parameters={"sensitivity": "suspect"}, last_good=points[0], first_changed=points[1],
        before=before, after=after, effect=_near(effect), regression=regression, proof=proof,
        direction=Direction.WORSE if effect > 1 else Direction.BETTER, detected_at=START + timedelta(days=2),
    )  # fmt: skip


def make_points(values: Sequence[float]) -> list[Point]:
    """A point a day, each of a commit of its own, known to ± 1 %."""
    return [
        Point(
            run_key=f"{i:032x}", at=START + timedelta(days=i), measured_at=START + timedelta(days=i),
            commit=f"{i:040x}", environment_fingerprint="e" * 16, estimate=_near(value),
        )
        for i, value in enumerate(values)
    ]  # fmt: skip


def make_regression(
    key: str = "ab12cd34",
    *,
    title: str = "demo.net[engine=e1] latency 1.1×",
    direction: Direction = Direction.WORSE,
    cause: Cause = Cause.CODE,
    changes: Sequence[ChangePoint] = (),
) -> Regression:
    """An open one, before its first event."""
    return Regression(
        key=key, title=title, direction=direction, cause=cause, machine_fingerprint="f" * 16, opened_at=START,
        state=State.OPEN, changes=tuple(change.key for change in changes), events=0,
    )  # fmt: skip


def make_event(key: str, number: int, action: Action, text: str = "", *, who: str = "bench") -> Event:
    """The event of that number, an hour after the one before it."""
    return Event(
        regression=key, number=number, at=START + timedelta(hours=number), who=who, action=action,
        text=text or ("something" if action in (Action.NOTED, Action.LINKED) else ""),
    )  # fmt: skip


def _near(value: float) -> Estimate:
    return Estimate(value=value, low=value * 0.99, high=value * 1.01, n=40)
