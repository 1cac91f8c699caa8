"""Old samples are reduced, and everything that was said with them stays."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bench.cli import run as bench
from bench.commands._shared import estimates, quartiles
from bench.errors import Exit, RunConflictError
from bench.gate import verdicts
from bench.history import ChangePoint, Direction
from bench.model import ArmResult, Estimate, Revision, Run
from bench.ports import Added
from bench.tails import tail_estimates
from bench.testing import make_pair, make_run
from bench.tradeoffs import tradeoffs
from db import queries
from db.retention import NEIGHBOURS, Pruned
from db.store import SqlStore, open_store

EVER = datetime(2100, 1, 1, tzinfo=UTC)


@pytest.fixture
def store(database_url: str) -> Iterator[SqlStore]:
    with open_store(database_url, summarise=estimates) as opened:
        yield opened


def made(seed: int = 0, **options: object) -> Run:
    """A run whose samples of time are batches of three calls, as those of short calls are."""
    run = make_run(seed=seed, **options)  # type: ignore[arg-type]
    (part,) = run.experiments
    results = tuple(
        replace(result, measurements=tuple(
            replace(m, loops=3) if m.metric.name == "time" else m for m in result.measurements))
        for result in part.results
    )  # fmt: skip
    return replace(run, experiments=(replace(part, results=results),))


def look(store: SqlStore) -> object:
    """Everything that pages and detectors see."""
    history = store.history
    with store.read() as connection:
        rows = queries.series(connection)
        arms = [queries.arms(connection, info.key) for info in store.runs()]
    return rows, arms, history.points([s.fingerprint for s in history.series()]), store.runs()


def test_a_pruned_run_keeps_its_numbers_and_says_that_it_was_pruned(store: SqlStore) -> None:
    run = made(launches=5)
    store.add(run)
    before = look(store)
    done = store.prune(EVER, quartiles)
    assert (done.runs, done.reduced) == (1, 6)  # wall and CPU time of three variants
    assert done.bytes_after < done.bytes_before / 3
    pruned = store.get(run.key)
    assert {(r.arm, r.metric, r.samples) for r in pruned.reduced} == {
        (arm, metric, (40,) * 5) for arm in range(3) for metric in ("time", "cpu_time")
    }
    for (_, old), (_, new) in zip(run.arms(), pruned.arms(), strict=True):
        for was, now in zip(old.measurements, new.measurements, strict=True):
            reduced = was.metric.name in ("time", "cpu_time")
            assert now == (replace(was, launches=quartiles(old, was)) if reduced else was)
        assert estimates(new) == estimates(old)
    assert [tradeoffs(part) for part in pruned.experiments] == [
        tuple(summary for summary in tradeoffs(part)) for part in run.experiments
    ]
    assert look(store) == before


def test_pruning_twice_is_pruning_once(store: SqlStore) -> None:
    run = made(launches=3)
    store.add(run)
    store.prune(EVER, quartiles)
    once = store.get(run.key)
    assert store.prune(EVER, quartiles) == Pruned(runs=0, reduced=0, bytes_before=0, bytes_after=0)
    assert store.get(run.key) == once


def test_a_pruned_run_replays_as_it_came_and_as_it_is(store: SqlStore) -> None:
    run = made(launches=3)
    store.add(run)
    store.prune(EVER, quartiles)
    pruned = store.get(run.key)
    assert store.add(run) is Added.REPLAY
    assert store.add(pruned) is Added.REPLAY
    with pytest.raises(RunConflictError):
        store.add(replace(run, profile="full"))


def test_a_pruned_run_moves_to_another_database_as_it_is(store: SqlStore, tmp_path: Path) -> None:
    run = made(launches=3)
    store.add(run)
    store.prune(EVER, quartiles)
    pruned = store.get(run.key)
    with open_store(str(tmp_path / "other.db"), summarise=estimates) as other:
        assert other.add(pruned) is Added.NEW
        assert other.get(run.key) == pruned
        assert other.prune(EVER, quartiles).runs == 0


def test_a_rebuild_leaves_estimates_of_pruned_samples_alone(database_url: str) -> None:
    """A later statistic might need what is gone."""
    run = made(launches=3)
    with open_store(database_url, summarise=estimates) as store:
        store.add(run)
        store.prune(EVER, quartiles)
        before = look(store)

    def other_statistic(result: ArmResult) -> dict[str, Estimate]:
        return {m.metric.name: Estimate(value=1.0, note="other") for m in result.measurements}

    with open_store(database_url, summarise=other_statistic) as store:
        store.rebuild()
        with store.read() as connection:
            found = {m.name: e for m, e in queries.arms(connection, run.key)[0].metrics}
    with open_store(database_url, summarise=estimates) as store:
        store.rebuild()
        assert look(store) == before
    first = estimates(run.experiments[0].results[0])
    assert found["time"] == first["time"]
    assert found["peak_memory"] == Estimate(value=1.0, note="other")


def test_calls_that_were_timed_alone_keep_their_samples(store: SqlStore) -> None:
    """Tails are derived from them."""
    run = make_run(launches=5)
    store.add(run)
    assert store.prune(EVER, quartiles).reduced == 3
    pruned = store.get(run.key)
    assert {r.metric for r in pruned.reduced} == {"cpu_time"}
    assert [tail_estimates(result) for _, result in pruned.arms()] == [tail_estimates(r) for _, r in run.arms()]


def test_comparisons_keep_their_samples(store: SqlStore) -> None:
    """Verdicts of a gate are derived from them."""
    pair = make_pair(1.2, noise=0.01)
    run = replace(made(), experiments=(pair,))
    store.add(run)
    assert store.prune(EVER, quartiles).reduced == 0
    assert store.get(run.key) == run
    assert verdicts(store.get(run.key).experiments) == verdicts([pair])


def at_day(day: int) -> Run:
    run = made(seed=day, launches=3, speedups=(1.0,))
    revision = Revision(commit=f"{day:040x}", committed_at=datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=day))
    return replace(run, revision=revision)


def test_points_at_a_change_and_their_neighbours_keep_their_samples(store: SqlStore) -> None:
    days = 40
    store.add_many([at_day(day) for day in range(days)])
    history = store.history
    (series,) = [s for s in history.series() if s.metric.name == "time"]
    points = history.points([series.fingerprint])[series.fingerprint]
    good, bad = points[19:21]
    history.record([ChangePoint(
        key="c", series=series, detector="kernel", parameters={}, last_good=good, first_changed=bad,
        before=good.estimate, after=bad.estimate, effect=Estimate(value=1.1), direction=Direction.WORSE,
        detected_at=datetime(2026, 3, 1, tzinfo=UTC),
    )], seen={})  # fmt: skip
    store.prune(EVER, quartiles)
    whole = [day for day in range(days) if "time" not in {r.metric for r in store.get(at_day(day).key).reduced}]
    assert whole == list(range(20 - NEIGHBOURS, 20 + NEIGHBOURS))
    assert all("cpu_time" in {r.metric for r in store.get(at_day(day).key).reduced} for day in range(days))


def test_what_has_no_estimate_yet_is_left_alone(database_url: str) -> None:
    with open_store(database_url) as bare:
        bare.add(made())
        assert bare.prune(EVER, quartiles).reduced == 0
        assert bare.get(made().key) == made()


def test_the_verb_reduces_what_is_older_than_the_setting(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[tool.bench]\nkeep_samples_days = 30\n")
    now = datetime.now(UTC)
    ages = {0: 29, 1: 31}
    with open_store(database_url, summarise=estimates) as store:
        for seed, age in ages.items():
            store.add(made(seed=seed, launches=3, started_at=now - timedelta(days=age)))

    def prune(*words: str) -> dict[str, int]:
        assert bench(["db", "prune", "--database", database_url, "--json", *words]) == Exit.OK
        found: dict[str, int] = json.loads(capsys.readouterr().out)
        return found

    dry = prune("--dry-run")
    assert (dry["runs"], dry["reduced"]) == (1, 6)
    done = prune()
    assert {**done, "dry_run": True, "before": 0} == {**dry, "before": 0}
    assert (prune()["runs"], prune("--days", "20")["runs"]) == (0, 1)
    assert bench(["show", "latest", "--database", database_url]) == Exit.OK
    assert "pruned: of 6 measurements one value a launch is left" in capsys.readouterr().out
