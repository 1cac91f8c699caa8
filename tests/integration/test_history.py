"""The contract of a History: the same tests on memory, SQLite and PostgreSQL."""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bench.compare import estimate
from bench.errors import MissingError, StaleError, UsageError
from bench.history import (
    Action,
    Answer,
    Cause,
    ChangePoint,
    Difference,
    Direction,
    Event,
    KeptProfile,
    Proof,
    ProofRequest,
    Regression,
    RequestState,
    Series,
    State,
)
from bench.model import (
    ArmResult,
    Estimate,
    Failure,
    FailureKind,
    Revision,
    Run,
    RunStatus,
    Target,
    Verdict,
)
from bench.ports import History, Store
from bench.testing import MemoryHistory, MemoryStore, make_pair, make_run, with_environment
from db.history import SqlHistory
from db.store import SqlStore, open_store

START = datetime(2026, 1, 1, tzinfo=UTC)
WRONG = Failure(kind=FailureKind.WRONG, phase="check", message="off by 2")


def estimates(result: ArmResult) -> dict[str, Estimate]:
    return {m.metric.name: estimate(m) for m in result.measurements}


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgresql", marks=pytest.mark.service("postgresql"))])
def store(request: pytest.FixtureRequest) -> Iterator[MemoryStore | SqlStore]:
    """An empty store of each kind."""
    if request.param == "memory":
        yield MemoryStore()
        return
    opened = open_store(request.getfixturevalue(f"{request.param}_url"), summarise=estimates)
    yield opened
    opened.close()


@pytest.fixture
def history(store: MemoryStore | SqlStore) -> MemoryHistory | SqlHistory:
    return store.history


def run_at(
    seed: int, *, commit: str | None = None, day: float | None = None, dirty: bool = False, **changes: object
) -> Run:
    """A run of one variant, measured at hour `seed`; its commit was made on `day`."""
    made = make_run(seed=seed, speedups=(1.0,), launches=3)
    committed_at = None if day is None else START + timedelta(days=day)
    revision = Revision(commit=commit or f"{seed:040x}", dirty=dirty, branch="main", committed_at=committed_at)
    return replace(made, revision=revision if commit or day is not None or dirty else None, **changes)  # type: ignore[arg-type]


def series_of(history: History, metric: str = "time") -> Series:
    (found,) = [s for s in history.series() if s.metric.name == metric]
    return found


def keys(history: History, **options: int) -> list[str]:
    """Runs of the points of the one series of time."""
    (points,) = history.points([series_of(history).fingerprint], **options).values()
    return [point.run_key for point in points]


def change_of(history: History, key: str = "c1", **changes: object) -> ChangePoint:
    """The last two points of the series of time as a change point."""
    series = series_of(history)
    good, bad = history.points([series.fingerprint])[series.fingerprint][-2:]
    change = ChangePoint(
        key=key, series=series, detector="kernel", parameters={"c": 1.3, "min_size": 5}, last_good=good,
        first_changed=bad, before=good.estimate, after=bad.estimate,
        effect=Estimate(value=1.25, low=1.1, high=1.4, n=40), direction=Direction.WORSE, detected_at=START,
        environment=(Difference(name="numpy", before="2.0", after=None),),
    )  # fmt: skip
    return replace(change, **changes)  # type: ignore[arg-type]


def regression(key: str = "ab12cd34", **changes: object) -> Regression:
    found = Regression(
        key=key, title="demo got slower", direction=Direction.WORSE, cause=Cause.CODE, machine_fingerprint=None,
        opened_at=START, state=State.OPEN, changes=(), events=0,
    )  # fmt: skip
    return replace(found, **changes)  # type: ignore[arg-type]


def event(number: int, action: Action, key: str = "ab12cd34", **changes: object) -> Event:
    found = Event(regression=key, number=number, at=START + timedelta(hours=number), who="ada", action=action)
    return replace(found, **changes)  # type: ignore[arg-type]


def open_one(history: History, key: str = "ab12cd34", *, at: datetime = START, changes: tuple[str, ...] = ()) -> None:
    history.open_regression(regression(key, opened_at=at), event(1, Action.OPENED, key, changes=changes))


PROOF = Proof(
    answer=Answer.CONFIRMED, at=START, command="bench compare a b demo.net", run_key="f" * 32,
    verdict=Verdict.REGRESSED, change=Estimate(value=1.3, low=1.2, high=1.4, n=18),
)  # fmt: skip


def request(key: str = "r1", machine: str = "m", **changes: object) -> ProofRequest:
    found = ProofRequest(
        key=key, change="c1", base="a", head="b", selector="demo.net", machine_fingerprint=machine, made_at=START,
        options={"suite_from": "head"},
    )  # fmt: skip
    return replace(found, **changes)  # type: ignore[arg-type]


# Series and points


def test_points_stand_in_the_order_of_their_commits_else_of_measuring(store: Store, history: History) -> None:
    """Hours of measuring 1, 2, 3, 4; days of commits 9, 3, none, 6: the one without stands at its hour."""
    runs = [run_at(1, day=9), run_at(2, day=3), run_at(3), run_at(4, day=6)]
    for run in runs:
        store.add(run)
    series = series_of(history)
    assert keys(history) == [runs[k].key for k in (2, 1, 3, 0)]
    assert keys(history, limit=2) == [runs[k].key for k in (3, 0)]
    assert keys(history, limit=9) == keys(history)
    assert keys(history, limit=0) == []
    (points,) = history.points([series.fingerprint]).values()
    last = runs[0]
    assert points[-1].at == START + timedelta(days=9)
    assert points[-1].measured_at == last.started_at
    assert points[-1].commit == last.revision.commit if last.revision else None
    assert points[-1].environment_fingerprint == last.environment.fingerprint
    assert points[-1].estimate == estimates(last.experiments[0].results[0])["time"]
    assert points[0].at == runs[2].started_at
    assert history.points(["no such series"]) == {"no such series": []}


def test_a_series_says_what_it_is_a_history_of(store: Store, history: History) -> None:
    run = run_at(1)
    store.add(run)
    _, result = next(run.arms())
    found = series_of(history)
    assert found == Series(
        fingerprint=found.fingerprint, suite="demo", benchmark="demo.net", benchmark_version="v1",
        variant="demo.net[engine=e0]", target="cpu", metric=result.measurements[0].metric,
        machine_fingerprint=run.machine.fingerprint, machine_label=run.machine.label,
    )  # fmt: skip
    assert [s.metric.name for s in history.series()] == sorted(m.metric.name for m in result.measurements)
    assert len({s.fingerprint for s in history.series()}) == len(result.measurements)
    assert list(history.series(machine="other")) == []
    assert list(history.series(machine=run.machine.fingerprint)) == list(history.series())


def _broken_tail() -> Run:
    run = run_at(9)
    (part,) = run.experiments
    (result,) = part.results
    lost = tuple(replace(m, launches=()) for m in result.measurements)
    return replace(run, experiments=(replace(part, results=(replace(result, measurements=lost),)),))


def _failed() -> Run:
    run = run_at(9)
    (part,) = run.experiments
    return replace(run, experiments=(replace(part, results=(replace(part.results[0], failure=WRONG),)),))


def _at_another_commit() -> Run:
    run = run_at(9, day=9)
    (part,) = run.experiments
    arm = replace(part.results[0].arm, target=Target(revision=Revision(commit="d" * 40)))
    result = replace(part.results[0], arm=arm)
    part = replace(part, experiment=replace(part.experiment, arms=(arm,)), results=(result,))
    return replace(run, experiments=(part,))


def _pair_without_a_gate() -> Run:
    """Two commits side by side under a plain policy: one series twice."""
    run = run_at(9)
    (part,) = run.experiments
    (result,) = part.results
    arms = tuple(
        replace(result.arm, target=Target(label=label, revision=Revision(commit=label * 40))) for label in "ab"
    )
    results = tuple(replace(result, arm=arm) for arm in arms)
    return replace(
        run, experiments=(replace(part, experiment=replace(part.experiment, arms=arms), results=results),)
    )  # fmt: skip


def _gate() -> Run:
    run = run_at(9)
    pair = make_pair(1.1, name="demo.net")
    (part,) = run.experiments
    arms = tuple(replace(arm, variant=part.results[0].arm.variant) for arm in pair.experiment.arms)
    benchmark = part.experiment.benchmark
    results = tuple(replace(result, arm=arm) for arm, result in zip(arms, pair.results, strict=True))
    experiment = replace(pair.experiment, arms=arms, benchmark=benchmark)
    return replace(run, experiments=(replace(pair, experiment=experiment, results=results),))


NO_POINTS: dict[str, Callable[[], Run]] = {
    "failed arm": _failed,
    "dirty tree": lambda: run_at(9, day=9, dirty=True),
    "arm at another commit": _at_another_commit,
    "interrupted run": lambda: run_at(9, status=RunStatus.INTERRUPTED),
    "quarantined run": lambda: run_at(9, quarantine=("no commit",)),
    "no estimate": _broken_tail,
    "gate": _gate,
    "two commits side by side": _pair_without_a_gate,
}


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgresql", marks=pytest.mark.service("postgresql"))])
def test_a_run_of_another_branch_is_no_point_until_that_branch_is_history(
    kind: str, request: pytest.FixtureRequest
) -> None:
    url = request.getfixturevalue(f"{kind}_url")
    runs = [run_at(k, day=k) for k in range(3)]
    for k, branch in ((1, "fix-cache"), (2, None)):
        assert runs[k].revision is not None
        runs[k] = replace(runs[k], revision=replace(runs[k].revision, branch=branch))

    def points(store: SqlStore) -> list[str]:
        series = series_of(store.history).fingerprint
        return [p.run_key for p in store.history.points([series])[series]]

    with open_store(url, summarise=estimates, branches=("main", "release")) as store:
        store.add_many(runs)
        assert points(store) == [runs[0].key, runs[2].key]
    with open_store(url, summarise=estimates) as store:
        store.rebuild()
        assert points(store) == [run.key for run in runs]


@pytest.mark.parametrize("why", NO_POINTS)
def test_what_is_no_point_of_history(store: Store, history: History, why: str) -> None:
    run = NO_POINTS[why]()
    store.add(run)
    assert list(history.series()) == []
    assert list(history.series(changed=True)) == []
    store.add(run_at(1))
    assert keys(history) == [run_at(1).key]
    store.add(run_at(2))
    assert keys(history) == [run_at(1).key, run_at(2).key]
    assert store.get(run.key) == run


def test_a_quarantined_run_comes_back_with_its_reasons(store: Store) -> None:
    run = run_at(1, quarantine=("no commit", "no machine"))
    store.add(run)
    assert store.get(run.key).quarantine == ("no commit", "no machine")
    assert [info.key for info in store.runs()] == [run.key]


def test_points_of_one_commit_are_all_there(store: Store, history: History) -> None:
    for seed in (3, 1, 2):
        store.add(run_at(seed, commit="a" * 40, day=5))
    assert keys(history) == [run_at(seed).key for seed in (1, 2, 3)]


def test_an_environment_by_its_fingerprint(store: Store, history: History) -> None:
    run = with_environment(run_at(1), numpy="3.0")
    store.add(run)
    (points,) = history.points([series_of(history).fingerprint]).values()
    assert history.environment(points[0].environment_fingerprint) == run.environment
    with pytest.raises(MissingError, match="no run was made"):
        history.environment("none")


# What the detector has seen


def test_a_series_has_changed_until_the_detector_saw_its_newest_point(store: Store, history: History) -> None:
    def changed() -> set[str]:
        return {s.metric.name for s in history.series(changed=True)}

    store.add(run_at(1, day=1))
    everything = changed()
    assert len(everything) == 5
    history.record([], seen={series_of(history).fingerprint: run_at(1).key})
    assert changed() == everything - {"time"}
    store.add(run_at(1, day=1))  # a replay brings nothing new
    assert changed() == everything - {"time"}
    store.add(run_at(2, day=2))
    history.record([], seen={series_of(history).fingerprint: run_at(1).key})  # it came while we looked
    assert changed() == everything
    history.record([], seen={s.fingerprint: run_at(2).key for s in history.series(changed=True)})
    assert changed() == set()
    store.add(run_at(3, day=0.5))  # an older commit, imported late
    assert changed() == everything
    history.record([], seen={s.fingerprint: run_at(2).key for s in history.series(changed=True)})
    assert changed() == set()
    store.add(run_at(4, day=9, dirty=True))
    store.add(_failed())
    assert changed() == set()


def test_a_rebuild_forgets_nothing_that_the_detector_saw(database_url: str) -> None:
    with open_store(database_url, summarise=estimates) as opened:
        for run in (
            run_at(1), _gate(), replace(_failed(), key="f" * 32), run_at(2), run_at(3, quarantine=("x",)),
        ):  # fmt: skip
            opened.add(run)
        history = opened.history
        change = change_of(history)
        history.record([change], seen={s.fingerprint: run_at(2).key for s in history.series()})
        before = (history.series(), history.points([s.fingerprint for s in history.series()]), history.changes())
        opened.rebuild()
        assert list(history.series(changed=True)) == []
        assert (
            history.series(), history.points([s.fingerprint for s in history.series()]), history.changes()
        ) == before  # fmt: skip


# Change points


def test_change_points_come_back_as_they_were_recorded(store: Store, history: History) -> None:
    for seed in (1, 2, 3):
        store.add(run_at(seed))
    first = change_of(history, "late", suspect=True, cause=Cause.ENVIRONMENT, proof=PROOF, regression="r")
    early = replace(first, key="early", first_changed=replace(first.first_changed, at=START - timedelta(days=1)))
    gone = replace(first, key="gone", superseded_by="")
    history.record([first, early, gone], seen={})
    assert list(history.changes()) == [early, first]
    assert list(history.changes(superseded=True)) == [early, gone, first]
    assert list(history.changes(series=[first.series.fingerprint])) == [early, first]
    assert list(history.changes(series=["other"])) == list(history.changes(series=[])) == []
    assert list(history.changes(regression="r")) == [early, first]
    assert list(history.changes(regression="other")) == []


def test_a_new_value_of_a_change_point_keeps_its_proof_and_its_regression(store: Store, history: History) -> None:
    """A detector that finds it again each night knows neither."""
    for seed in (1, 2):
        store.add(run_at(seed))
    history.record([change_of(history, suspect=True, proof=PROOF, regression="r")], seen={})
    again = change_of(history, detector="other")
    history.record([again], seen={})
    assert list(history.changes()) == [replace(again, proof=PROOF, regression="r")]
    history.record([replace(again, superseded_by="c2")], seen={})
    assert list(history.changes()) == []
    history.record([again], seen={})
    assert len(history.changes()) == 1


def test_nothing_is_recorded_of_a_series_that_is_not_there(store: Store, history: History) -> None:
    for seed in (1, 2):
        store.add(run_at(seed))
    good = change_of(history)
    bad = replace(good, key="c2", series=replace(good.series, fingerprint="nowhere"))
    with pytest.raises(MissingError, match="nowhere"):
        history.record([good, bad], seen={series_of(history).fingerprint: run_at(2).key})
    assert list(history.changes()) == []
    assert len(history.series(changed=True)) == 5


# Regressions


def test_a_regression_is_what_its_events_make_of_it(store: Store, history: History) -> None:
    for seed in (1, 2):
        store.add(run_at(seed))
    history.record([change_of(history), change_of(history, "c2")], seen={})
    open_one(history, changes=("c1",))
    assert [c.key for c in history.changes(regression="ab12cd34")] == ["c1"]
    history.append(event(2, Action.GREW, changes=("c2", "unknown")))
    assert [c.key for c in history.changes(regression="ab12cd34")] == ["c1", "c2"]
    now = history.append(event(3, Action.ASSIGNED, text="bob"))
    assert now == regression(changes=("c1", "c2", "unknown"), owner="bob", events=3)
    assert history.regression("ab12cd34") == history.regression("ab12") == now
    assert list(history.regressions()) == [now]
    assert [(e.number, e.action) for e in history.events("ab12cd34")] == [
        (1, Action.OPENED), (2, Action.GREW), (3, Action.ASSIGNED),
    ]  # fmt: skip
    assert history.events("ab12cd34")[2] == event(3, Action.ASSIGNED, text="bob")


def test_who_appends_must_have_seen_the_last_event(history: History) -> None:
    open_one(history)
    history.append(event(2, Action.ACKNOWLEDGED))
    for number in (1, 2, 4):
        with pytest.raises(StaleError, match="read it again"):
            history.append(event(number, Action.FIXED))
    with pytest.raises(StaleError, match="is open already"):
        open_one(history)
    with pytest.raises(UsageError, match="cannot be marked acknowledged"):
        history.append(event(3, Action.ACKNOWLEDGED))
    with pytest.raises(MissingError):
        history.append(event(1, Action.OPENED, "other"))
    assert history.regression("ab12").state is State.ACKNOWLEDGED
    assert len(history.events("ab12cd34")) == 2


def test_of_eight_who_decide_at_once_one_is_heard(history: History) -> None:
    open_one(history)

    def decide(_: int) -> bool:
        try:
            history.append(event(2, Action.FIXED))
        except StaleError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(decide, range(8))) == [False] * 7 + [True]
    assert len(history.events("ab12cd34")) == 2


def test_regressions_by_state_newest_first_and_an_expected_one_opens_again_on_its_date(history: History) -> None:
    for k, key in enumerate(("open0000", "past0000", "come0000", "done0000")):
        open_one(history, key, at=START + timedelta(days=k))
    ahead = datetime.now(UTC) + timedelta(days=300)
    history.append(event(2, Action.EXPECTED, "past0000", text="known", expires_at=START + timedelta(days=1)))
    history.append(event(2, Action.EXPECTED, "come0000", text="known", expires_at=ahead))
    history.append(event(2, Action.FIXED, "done0000"))

    def found(*states: State) -> list[str]:
        return [r.key for r in history.regressions(states=states)]

    assert found() == ["done0000", "come0000", "past0000", "open0000"]
    assert found(State.OPEN) == ["past0000", "open0000"]
    assert found(State.EXPECTED) == ["come0000"]
    assert found(State.FIXED, State.EXPECTED) == ["done0000", "come0000"]
    assert history.regression("past").state is State.OPEN


def test_a_regression_is_named_by_a_unique_beginning(history: History) -> None:
    for key in ("abcd1", "abcd2", "abcd"):
        open_one(history, key)
    assert history.regression("abcd").key == "abcd"
    assert history.regression("abcd2").key == "abcd2"
    for ref in ("abc", "%bcd", "xyz9", ""):
        with pytest.raises(MissingError):
            history.regression(ref)
    open_one(history, "beef1")
    open_one(history, "beef2")
    with pytest.raises(MissingError, match="begin with it"):
        history.regression("beef")
    with pytest.raises(MissingError):
        history.events("beef")


# Proofs and notices


def test_a_proof_is_asked_for_taken_and_put_on_its_change_point(store: Store, history: History) -> None:
    for seed in (1, 2):
        store.add(run_at(seed))
    history.record([change_of(history, suspect=True)], seen={})
    assert history.request(request())
    assert not history.request(request(selector="other"))
    assert list(history.requests()) == [request()]
    assert history.take("other machine") is None
    taken = history.take("m")
    assert taken is not None
    assert taken == request(state=RequestState.TAKEN, taken_at=taken.taken_at)
    assert history.take("m") is None
    history.finish("r1", PROOF)
    done = request(state=RequestState.DONE, taken_at=taken.taken_at)
    assert list(history.requests(states=[RequestState.DONE])) == [done]
    assert list(history.requests(states=[RequestState.QUEUED, RequestState.TAKEN])) == []
    assert list(history.changes()) == [change_of(history, suspect=True, proof=PROOF)]
    with pytest.raises(MissingError):
        history.finish("r2", PROOF)


def test_the_oldest_request_is_taken_first_and_each_by_one(history: History) -> None:
    for k in (3, 1, 0, 2):
        history.request(request(f"r{k}", made_at=START + timedelta(hours=k)))
    assert [r.key for r in history.requests()] == ["r0", "r1", "r2", "r3"]
    with ThreadPoolExecutor(8) as pool:
        taken = [r.key for r in pool.map(lambda _: history.take("m"), range(8)) if r is not None]
    assert sorted(taken) == ["r0", "r1", "r2", "r3"]


def test_a_proof_that_was_taken_and_forgotten_is_taken_again(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    history.request(request())
    assert history.take("m") is not None
    monkeypatch.setattr(sys.modules[type(history).__module__], "LEASE", timedelta(seconds=-1))
    again = history.take("m")
    assert again is not None
    assert again.key == "r1"


def test_profiles_are_kept_one_a_change_and_engine_the_newest_first(history: History) -> None:
    def kept(change: str, engine: str, hours: int) -> KeptProfile:
        document = {"frames": [{"name": "été", "base": 0.25}], "hours": hours}
        return KeptProfile(change=change, engine=engine, made_at=START + timedelta(hours=hours), document=document)

    for change, engine, hours in (("a", "cprofile", 1), ("a", "torch", 3), ("b", "cprofile", 2), ("a", "cprofile", 4)):
        history.keep_profile(kept(change, engine, hours))
    assert list(history.profiles(["a"])) == [kept("a", "cprofile", 4), kept("a", "torch", 3)]
    assert len(history.profiles(["a", "b", "c"])) == 3
    assert list(history.profiles([])) == []


def test_a_notice_is_claimed_once_until_it_is_released(history: History) -> None:
    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(lambda _: history.claim_notice("slack:ab12"), range(8))) == [False] * 7 + [True]
    history.release_notice("slack:ab12")
    history.release_notice("never claimed")
    assert history.claim_notice("slack:ab12")
    assert history.claim_notice("slack:other")
