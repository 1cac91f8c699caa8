"""The contract of a Store: the same tests on memory, SQLite and PostgreSQL."""

import copy
import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench.compare import estimate
from bench.errors import MissingError, RunConflictError, StoreError, WireError
from bench.metrics import SIZE, Summary
from bench.model import (
    Accelerator,
    ArmResult,
    Conditions,
    Environment,
    Estimate,
    Failure,
    FailureKind,
    Machine,
    Measurement,
    Reduced,
    Revision,
    Run,
    RunStatus,
    Target,
)
from bench.ports import Added, Store
from bench.runs import run_info
from bench.testing import MemoryStore, as_confirmation, make_pair, make_run, with_environment
from bench.wire import decode_run, encode_run
from db import queries
from db.store import SqlStore, open_store


def estimates(result: ArmResult) -> dict[str, Estimate]:
    return {m.metric.name: estimate(m) for m in result.measurements}


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgresql", marks=pytest.mark.service("postgresql"))])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    """An empty store of each kind."""
    if request.param == "memory":
        yield MemoryStore()
        return
    opened = open_store(request.getfixturevalue(f"{request.param}_url"), summarise=estimates)
    yield opened
    opened.close()


def test_gates_of_a_variant_on_a_machine_come_whole_and_newest_first(store: Store) -> None:
    first = make_pair(1.1, seed=1, set_up_s=1.0)
    again = replace(as_confirmation(make_pair(1.1, seed=2)), results=make_pair(1.1, seed=2).results)
    other, tradeoffs = make_pair(name="demo.other", seed=3), make_run(seed=4).experiments[0]
    old = replace(make_run(seed=1), experiments=(other, first, tradeoffs, again))
    new = replace(make_run(seed=2), experiments=(make_pair(seed=5, launches=2),))
    elsewhere = replace(make_run(seed=3), machine=replace(old.machine, cpu="Another"), experiments=(make_pair(seed=6),))
    for run in (old, elsewhere, new):
        store.add(run)
    here = old.machine.fingerprint
    assert list(store.gates("demo.work", "v1", here, limit=9)) == [*new.experiments, again, first]
    assert list(store.gates("demo.work", "v1", here, limit=2)) == [*new.experiments, again]
    assert list(store.gates("demo.work", "v2", here, limit=9)) == []
    assert list(store.gates(tradeoffs.experiment.arms[0].variant.name, "v1", here, limit=9)) == []


@pytest.fixture
def sql(database_url: str) -> Iterator[SqlStore]:
    """An empty SQL store of each kind."""
    with open_store(database_url, summarise=estimates) as opened:
        yield opened


@pytest.fixture
def bare(database_url: str) -> Iterator[SqlStore]:
    """One that derives nothing."""
    with open_store(database_url) as opened:
        yield opened


def replace_result(run: Run, index: int, **changes: object) -> Run:
    """The run with fields of one result changed; arms of the experiment follow."""
    (part,) = run.experiments
    results = list(part.results)
    results[index] = replace(results[index], **changes)
    experiment = replace(part.experiment, arms=tuple(r.arm for r in results))
    return replace(run, experiments=(replace(part, results=tuple(results), experiment=experiment),))


def full_run() -> Run:
    """Every optional field filled, with the values that databases are known to spoil."""
    run = make_run(
        seed=3, failure=Failure(kind=FailureKind.DIED, phase="round", message="ö\0é 日本 🎉", detail="a\nb\0")
    )
    result = run.experiments[0].results[1]
    revision = Revision(commit="a" * 40, dirty=True, branch="head", committed_at=datetime(2026, 1, 2, 3, tzinfo=UTC))
    target = Target(label="head", python="/usr/bin/python3", revision=revision, requirements=("numpy==2.0",),
                    variables={"Z": "1", "A": "ü"}, device="cuda")  # fmt: skip
    variant = replace(result.arm.variant, params={"engine": "e1", "on": True, "size": 1, "rate": 1.0, "name": "Ω"})
    run = replace_result(
        run, 1, arm=replace(result.arm, variant=variant, target=target), items=0.5, notes={"z": "\0", "a": "ß"},
        absent={"energy": "ü\0"},
        measurements=(*result.measurements, Measurement(metric=replace(SIZE, name="empty"), launches=()),
                      Measurement(metric=replace(SIZE, name="mixed"), launches=((1, 2.5), (), (2**70,)), loops=2**40)),
    )  # fmt: skip
    (part,) = run.experiments
    part = replace(part, experiment=replace(part.experiment, seed=2**100))
    gpu = Accelerator(kind="gpu", model="G", memory_bytes=2**40)
    return replace(
        run, experiments=(part, part), status=RunStatus.INTERRUPTED, source="asv",
        revision=replace(revision, branch=None), machine=replace(run.machine, tags=("lab", "a"), accelerators=(gpu,)),
        conditions=Conditions(load_before=0.1, steal=1e-300, clock_mhz=3000.0),
        problems=(Failure(kind=FailureKind.RAISED, phase="discover", message="no 'x'"),), quarantine=("no commit",),
        reduced=(Reduced(arm=0, metric="peak_memory", samples=(1, 2, 3, 4, 5, 6, 7)),),
    )  # fmt: skip


def test_a_run_comes_back_as_it_was_to_the_last_bit_and_order(store: Store) -> None:
    """`repr` also compares types (1, True, 1.0) and the order of axes, which variant names depend on."""
    run = decode_run(encode_run(full_run()))
    assert store.add(run) is Added.NEW
    assert store.get(run.key) == run
    assert repr(store.get(run.key)) == repr(run)


TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
NAME = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=12)
SCALAR = st.one_of(
    NAME, st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False), st.booleans()
)
LAUNCHES = st.one_of(
    st.lists(st.lists(st.integers(0, 2**63 - 1), max_size=5).map(tuple), max_size=4),
    st.lists(st.lists(st.floats(allow_nan=False), max_size=5).map(tuple), max_size=4),
).map(tuple)
FAILURE = st.none() | st.builds(Failure, kind=st.sampled_from(FailureKind), phase=TEXT, message=TEXT, detail=TEXT)
MOMENT = st.datetimes(
    datetime(1990, 1, 1), datetime(2100, 1, 1), timezones=st.sampled_from([UTC, timezone(timedelta(hours=9))])
)


KEYS = itertools.count()


@st.composite
def runs(draw: st.DrawFn) -> Run:
    run = make_run(seed=0, launches=1, speedups=(1.0, 2.0), failure=draw(FAILURE))
    result = run.experiments[0].results[1]
    run = replace_result(
        run, 1,
        arm=replace(
            result.arm,
            variant=replace(result.arm.variant, params=draw(st.dictionaries(NAME, SCALAR, max_size=4))),
            target=draw(st.builds(Target, label=NAME, device=NAME, variables=st.dictionaries(NAME, NAME, max_size=2))),
        ),
        measurements=tuple(
            Measurement(metric=replace(SIZE, name=name, summary=draw(st.sampled_from(Summary)), help=draw(NAME)),
                        launches=draw(LAUNCHES), loops=draw(st.integers(1, 2**40)))
            for name in draw(st.lists(NAME, unique=True, max_size=3))
        ),
        items=draw(st.floats(min_value=0, allow_infinity=False)), notes=draw(st.dictionaries(TEXT, TEXT, max_size=3)),
    )  # fmt: skip
    return replace(
        run, key=f"{next(KEYS):032x}", started_at=draw(MOMENT), finished_at=draw(MOMENT),
        revision=draw(st.none() | st.builds(Revision, commit=NAME, dirty=st.booleans(), branch=st.none() | NAME,
                                            committed_at=st.none() | MOMENT)),
        environment=Environment(python=draw(TEXT), system="s", packages=draw(st.dictionaries(TEXT, TEXT, max_size=3))),
        machine=Machine(architecture=draw(TEXT), cpu=draw(NAME), physical_cores=None, logical_cores=1, memory_gib=1,
                        tags=tuple(draw(st.lists(TEXT, max_size=2)))),
        status=draw(st.sampled_from(RunStatus)), profile=draw(NAME), source=draw(NAME), bench_version=draw(NAME),
    )  # fmt: skip


@settings(
    derandomize=True, deadline=None, max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)  # fmt: skip
@given(run=runs())
def test_any_run_comes_back_equal_and_replays(bare: SqlStore, run: Run) -> None:
    """What was read and is pushed again, through a file or not, is the same run."""
    assert bare.add(run) is Added.NEW
    back = bare.get(run.key)
    assert back == run
    assert [v.arm.variant.name for _, v in back.arms()] == [v.arm.variant.name for _, v in run.arms()]
    assert bare.add(back) is Added.REPLAY
    assert run_info(back) == next(info for info in bare.runs() if info.key == run.key)


def test_the_same_run_is_a_replay_and_other_content_a_conflict(store: Store) -> None:
    run = make_run()
    assert store.add(run) is Added.NEW
    assert store.add(copy.deepcopy(run)) is Added.REPLAY
    assert store.add(decode_run(encode_run(run))) is Added.REPLAY
    with pytest.raises(RunConflictError, match=run.key):
        store.add(replace(run, profile="full"))
    assert store.get(run.key) == run
    assert len(store.runs()) == 1


def test_many_runs_are_stored_as_each_would_be_alone(store: Store) -> None:
    known = make_run(seed=1)
    store.add(known)
    many = [make_run(seed=0), known, full_run(), make_run(seed=2), make_run(seed=0)]
    assert list(store.add_many(many)) == [Added.NEW, Added.REPLAY, Added.NEW, Added.NEW, Added.REPLAY]
    for run in many:
        assert repr(store.get(run.key)) == repr(decode_run(encode_run(run)))
        assert store.add(run) is Added.REPLAY
    assert len(store.runs()) == 4
    assert list(store.add_many([])) == []


@pytest.mark.parametrize("among", ["stored", "each other"])
def test_of_many_runs_with_one_in_conflict_none_is_stored(store: Store, among: str) -> None:
    first = make_run(seed=1)
    other = replace(first, profile="full")
    if among == "stored":
        store.add(first)
    many = [make_run(seed=0), first, make_run(seed=2), other]
    with pytest.raises(RunConflictError, match=first.key):
        store.add_many(many)
    assert [info.key for info in store.runs()] == ([first.key] if among == "stored" else [])


def test_many_runs_at_once_derive_what_one_by_one_they_would(database_url: str, tmp_path: Path) -> None:
    """Several points of a series, latest not last, a failure, a quarantine: the same tables in both."""
    failure = Failure(kind=FailureKind.WRONG, phase="check", message="wrong")
    many = [make_run(seed=k, failure=failure if k == 3 else None) for k in (2, 3, 0, 1)]
    many.append(replace(make_run(seed=9), quarantine=("no commit",)))
    found = []
    for url, at_once in ((f"sqlite:///{tmp_path / 'one.db'}", False), (database_url, True)):
        with open_store(url, summarise=estimates) as opened:
            if at_once:
                opened.add_many(many)
            else:
                for run in many:
                    opened.add(run)
            with opened.read() as connection:
                rows = queries.series(connection)
                histories = [queries.history(connection, row.id) for row in rows]
            fingerprints = [s.fingerprint for s in opened.history.series()]
            found.append(([replace(row, id=0) for row in rows], histories, opened.history.points(fingerprints)))
    assert found[0] == found[1]


def test_runs_are_listed_newest_first_with_what_a_list_shows(store: Store) -> None:
    failure = Failure(kind=FailureKind.WRONG, phase="check", message="off by 2")
    added = [make_run(seed=k, failure=failure if k == 1 else None) for k in (2, 0, 3, 1)]
    for run in added:
        store.add(run)
    newest_first = sorted(added, key=lambda r: r.started_at, reverse=True)
    assert list(store.runs()) == [run_info(run) for run in newest_first]
    assert list(store.runs(limit=2)) == [run_info(run) for run in newest_first[:2]]
    assert list(store.runs(limit=0)) == []


def test_references(store: Store) -> None:
    added = [make_run(seed=k) for k in range(3)]
    for run in added:
        store.add(run)
    assert store.find("latest") == added[2].key
    assert store.find("latest~2") == added[0].key
    assert store.find(added[1].key[:6]) == added[1].key
    for ref in ("latest~3", "zzzz", added[0].key[:2], "%%%%"):
        with pytest.raises(MissingError):
            store.find(ref)
    with pytest.raises(MissingError, match="not stored"):
        store.get("0" * 32)


def test_runs_on_one_machine_keep_their_own_tags(store: Store) -> None:
    """Tags are no part of the machine's fingerprint, so the machine's row is shared."""
    one, two = make_run(seed=1), make_run(seed=2)
    two = replace(two, machine=replace(two.machine, tags=("lab",)))
    store.add(one)
    store.add(two)
    assert (store.get(one.key).machine.tags, store.get(two.key).machine.tags) == ((), ("lab",))


def test_estimates_are_kept_beside_the_samples(sql: SqlStore) -> None:
    run = make_run()
    sql.add(run)
    with sql.read() as connection:
        arms = queries.arms(connection, run.key)
    for row, (_, result) in zip(arms, run.arms(), strict=True):
        assert row.variant == result.arm.variant.name
        assert {m.name: e for m, e in row.metrics} == estimates(result)
        assert [m for m, _ in row.metrics] == [m.metric for m in result.measurements]


def test_the_latest_of_a_series_is_the_latest_measured_not_the_latest_stored(sql: SqlStore) -> None:
    runs_of = {k: make_run(seed=k) for k in (1, 3, 2)}
    for run in runs_of.values():
        sql.add(run)
    with sql.read() as connection:
        rows = queries.series(connection, metric="time", variant="demo.net[engine=e1]")
        points = queries.history(connection, rows[0].id)
    assert len(rows) == 1
    assert rows[0].run_key == runs_of[3].key
    assert rows[0].estimate == estimates(runs_of[3].experiments[0].results[1])["time"]
    assert [p.run_key for p in points] == [runs_of[k].key for k in (1, 2, 3)]
    assert [p.estimate.value for p in points if p.estimate] == [
        estimates(runs_of[k].experiments[0].results[1])["time"].value for k in (1, 2, 3)
    ]


def test_a_failed_arm_is_shown_but_is_never_the_latest(sql: SqlStore) -> None:
    good = make_run(seed=1)
    bad = make_run(seed=2, failure=Failure(kind=FailureKind.WRONG, phase="check", message="wrong"))
    sql.add(good)
    sql.add(bad)
    with sql.read() as connection:
        (row,) = queries.series(connection, metric="time", variant="demo.net[engine=e2]")
        points = queries.history(connection, row.id)
    assert row.run_key == good.key
    assert [p.failure for p in points] == [None, FailureKind.WRONG]


@pytest.mark.parametrize(
    "change",
    ["device", "version", "machine", "unit"],
)
def test_what_makes_another_series(sql: SqlStore, change: str) -> None:
    base, other = make_run(seed=1, speedups=(1.0,)), make_run(seed=2, speedups=(1.0,))
    (part,) = other.experiments
    (result,) = part.results
    if change == "device":
        other = replace_result(other, 0, arm=replace(result.arm, target=Target(device="cuda")))
    elif change == "unit":
        other = replace_result(other, 0, measurements=tuple(
            replace(m, metric=replace(m.metric, unit="other")) for m in result.measurements))  # fmt: skip
    elif change == "machine":
        other = replace(other, machine=replace(other.machine, cpu="Other"))
    else:
        benchmark = replace(part.experiment.benchmark, version="v2")
        other = replace(other, experiments=(replace(part, experiment=replace(part.experiment, benchmark=benchmark)),))
    sql.add(base)
    sql.add(other)
    with sql.read() as connection:
        assert len(queries.series(connection)) == 2 * len(result.measurements)


def test_the_environment_and_the_commit_are_no_part_of_a_series(sql: SqlStore) -> None:
    base = make_run(seed=1)
    other = with_environment(replace(make_run(seed=2), revision=Revision(commit="c" * 40, branch="main")), numpy="3.0")
    sql.add(base)
    sql.add(other)
    with sql.read() as connection:
        rows = queries.series(connection)
        points = queries.history(connection, rows[0].id)
        found = queries.environment(connection, points[1].environment_fingerprint)
    assert len(rows) == 15
    assert [(p.commit, p.branch) for p in points] == [(None, None), ("c" * 40, "main")]
    assert found == other.environment


def test_samples_of_one_point(sql: SqlStore) -> None:
    run = make_run()
    sql.add(run)
    with sql.read() as connection:
        assert queries.samples(connection, run.key, 2, "time") == run.experiments[0].results[2].measurement("time")
        with pytest.raises(MissingError, match="no speed of arm 2"):
            queries.samples(connection, run.key, 2, "speed")


def test_derived_values_can_be_rebuilt(database_url: str) -> None:
    """A database filled without estimates equals, after a rebuild, one that had them from the start."""
    stored = [make_run(seed=k, failure=f) for k, f in ((2, None), (1, None), (3, Failure(
        kind=FailureKind.DIED, phase="round", message="gone")))]  # fmt: skip

    def look(opened: SqlStore) -> object:
        with opened.read() as connection:
            rows = queries.series(connection)
            return rows, [queries.history(connection, row.id) for row in rows], queries.arms(connection, stored[0].key)

    with open_store(database_url) as plain:
        for run in stored:
            plain.add(run)
        bare = look(plain)
    with open_store(database_url, summarise=estimates) as opened:
        assert opened.rebuild() == 3
        once = look(opened)
        assert once != bare
        assert opened.rebuild() == 3
        assert look(opened) == once
        # What ingest itself derives: the same values.
        for (metric, found), m in zip(
            queries_arms(opened, stored[0].key)[0].metrics,
            stored[0].experiments[0].results[0].measurements,
            strict=True,
        ):
            assert (metric, found) == (m.metric, estimate(m))


def queries_arms(opened: SqlStore, key: str) -> list[queries.ArmRow]:
    with opened.read() as connection:
        return queries.arms(connection, key)


def test_a_statistic_that_cannot_be_had_does_not_lose_the_run(database_url: str) -> None:
    def broken(_: ArmResult) -> dict[str, Estimate]:
        raise ValueError("min() of an empty sequence")

    run = make_run()
    with open_store(database_url, summarise=broken) as opened:
        assert opened.add(run) is Added.NEW
        assert opened.get(run.key) == run
        assert {e for row in queries_arms(opened, run.key) for _, e in row.metrics} == {None}


def broken_runs() -> dict[str, Callable[[], Run]]:
    run = make_run()
    (part,) = run.experiments
    return {
        "without a time zone": lambda: replace(run, started_at=datetime(2026, 1, 1)),
        "do not match": lambda: replace(run, experiments=(replace(part, results=part.results[:1]),)),
        "cannot be|is not a valid": lambda: replace(run, profile=object()),  # type: ignore[arg-type]
        "no Unicode": lambda: replace(run, profile="\ud800"),
    }


@pytest.mark.parametrize("match", broken_runs())
def test_a_run_that_is_none_is_refused_whole_with_one_sentence(sql: SqlStore, match: str) -> None:
    with pytest.raises((StoreError, WireError), match=match) as caught:
        sql.add(broken_runs()[match]())
    assert "\n" not in str(caught.value)
    assert sql.runs() == []


def test_nothing_of_a_run_stays_when_its_last_row_fails(sql: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    import sqlalchemy as sa

    from db import ingest
    from db.tables import metadata

    def fail(*_: object) -> None:
        raise sa.exc.OperationalError("insert", {}, Exception("disk full"))

    with monkeypatch.context() as patch:
        patch.setattr(ingest, "_advance_states", fail)
        with pytest.raises(StoreError, match="disk full"):
            sql.add(make_run())
    with sql.read() as connection:
        assert {
            t.name: connection.scalar(sa.select(sa.func.count()).select_from(t)) for t in metadata.tables.values()
        } == (dict.fromkeys(metadata.tables, 0))
    assert sql.add(make_run()) is Added.NEW
