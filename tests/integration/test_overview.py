"""What pages ask of thousands of series at once says what the narrow questions say."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bench.compare import estimate
from bench.history import Action, Cause, Direction, Event, Regression, State
from bench.model import ArmResult, Estimate, Failure, FailureKind, Revision, Run
from bench.testing import make_run
from db import overview
from db.store import SqlStore, open_store

START = datetime(2026, 1, 1, tzinfo=UTC)


def estimates(result: ArmResult) -> dict[str, Estimate]:
    return {m.metric.name: estimate(m) for m in result.measurements}


@pytest.fixture
def store(database_url: str) -> Iterator[SqlStore]:
    failure = Failure(kind=FailureKind.WRONG, phase="check", message="wrong")
    with open_store(database_url, summarise=estimates) as opened:
        opened.add_many([
            at_commit("a", seed=1), at_commit("b", seed=2), at_commit("b", seed=3, failure=failure),
            replace(at_commit("b", seed=4), quarantine=("no machine",)), at_commit("c", seed=5, speedups=(1.0,)),
        ])  # fmt: skip
        yield opened


def at_commit(commit: str, **made: object) -> Run:
    return replace(make_run(launches=3, **made), revision=Revision(commit=commit * 40))  # type: ignore[arg-type]


def values(run: Run, metric: str = "time") -> dict[str, float]:
    """By variant."""
    return {r.arm.variant.name: estimates(r)[metric].value for _, r in run.arms()}


def test_two_commits_are_compared_by_their_latest_points(store: SqlStore) -> None:
    """Of b two runs count: the later one, but for the variant that failed in it."""
    one, two, three = (make_run(seed=k, launches=3) for k in (1, 2, 3))
    with store.read() as connection:
        labels = overview.labels(connection)
        pairs = overview.compare_commits(connection, "a" * 40, "b" * 40)
        assert overview.compare_commits(connection, "a" * 40, "d" * 40) == []
        assert len(overview.compare_commits(connection, "b" * 40, "c" * 40)) == 5
    found = {labels[p.series_id].variant: p for p in pairs if labels[p.series_id].metric.name == "time"}
    failed = "demo.net[engine=e2]"
    assert {variant: pair.base for variant, pair in found.items()} == values(one)
    assert {variant: pair.head for variant, pair in found.items()} == {**values(three), failed: values(two)[failed]}
    assert len(pairs) == 15
    pair = found[failed]
    expected = estimates(one.experiments[0].results[2])["time"]
    assert (pair.base, pair.base_low, pair.base_high) == (expected.value, expected.low, expected.high)


def test_the_latest_of_all_series_with_their_points(store: SqlStore) -> None:
    with store.read() as connection:
        rows = {row.series_id: row for row in overview.latest(connection)}
        labels = overview.labels(connection)
    assert rows.keys() == labels.keys()
    for id_, series in labels.items():
        points = store.history.points([series.fingerprint])[series.fingerprint]
        assert rows[id_].points == len(points)
        assert rows[id_].value == points[-1].estimate.value


def test_regressions_since_a_moment(store: SqlStore) -> None:
    for day in range(4):
        regression = Regression(
            key=f"key{day}", title="slower", direction=Direction.WORSE, cause=Cause.CODE, machine_fingerprint=None,
            opened_at=START + timedelta(days=day), state=State.OPEN, changes=(), events=0,
        )  # fmt: skip
        event = Event(regression=regression.key, number=1, at=START, who="bench", action=Action.OPENED)
        store.history.open_regression(regression, event)
    with store.read() as connection:
        found = overview.regressions_since(connection, START + timedelta(days=2))
    assert [r.key for r in found] == ["key3", "key2"]
