"""A store swept night by night: what moved is told once, by its cause, and closed when it is over."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bench.history import Action, Answer, Cause, Direction, Proof, State
from bench.model import Revision
from bench.sweep import settle, sweep
from bench.testing import MemoryStore, make_run, with_environment

START = datetime(2027, 1, 1, tzinfo=UTC)
NIGHTS = 22
PLANTED = 13


def commit(night):
    return f"{night:040x}"


def night_run(night, *, slow=1.0, canary=1.0, suites=("demo", "other", "third"), numpy="2.0", same_commit=False):
    """One night: three suites and the canary; the first suite takes `slow` times as long, the canary `canary` times."""
    at = START + timedelta(days=night)
    factors = {suite: 1 / slow if suite == suites[0] else 1.0 for suite in suites} | {"canary": 1 / canary}
    runs = [
        make_run(seed=1000 * night + k, suite=suite, speedups=(factor, factor), launches=3, noise=0.003, started_at=at)
        for k, (suite, factor) in enumerate(factors.items())
    ]
    revision = Revision(commit=commit(PLANTED if same_commit else night), branch="main", committed_at=at)
    whole = replace(
        runs[0], experiments=tuple(e for run in runs for e in run.experiments), revision=revision,
        key=f"{night:032x}",
    )  # fmt: skip
    return with_environment(whole, numpy=numpy)


class Nights:
    """A store that is swept after every night."""

    def __init__(self):
        self.store = MemoryStore()
        self.history = self.store.history
        self.swept = []

    def live(self, nights, **options):
        for night in nights:
            self.store.add(night_run(night, **{k: v(night) if callable(v) else v for k, v in options.items()}))
            self.swept.append(sweep(self.history, now=START + timedelta(days=night, hours=6)))
        return self

    @property
    def regressions(self):
        return [r for r in self.history.regressions() if r.direction is Direction.WORSE]


def slow_from(night, factor=1.2):
    return lambda n: factor if n >= night else 1.0


@pytest.fixture(scope="module")
def planted():
    return Nights().live(range(NIGHTS), slow=slow_from(PLANTED))


def test_a_quiet_history_opens_nothing():
    quiet = Nights().live(range(NIGHTS))
    assert quiet.history.regressions() == []
    assert quiet.history.changes() == [] or all(c.suspect for c in quiet.history.changes())


def test_one_commit_that_slowed_two_variants_is_one_regression_that_names_it(planted):
    (found,) = planted.regressions
    changes = [c for c in planted.history.changes(regression=found.key) if c.series.metric.name == "time"]
    assert (found.cause, found.state) == (Cause.CODE, State.OPEN)
    assert {c.series.variant for c in changes} == {"demo.net[engine=e0]", "demo.net[engine=e1]"}
    assert {(c.last_good.commit, c.first_changed.commit) for c in changes} == {(commit(PLANTED - 1), commit(PLANTED))}
    assert all(1.15 < c.effect.low < 1.2 < c.effect.high < 1.25 for c in changes)


def test_it_is_told_once_however_often_the_store_is_swept(planted):
    opened = [r.key for swept in planted.swept for r in swept.opened]
    assert len(opened) == len(set(opened)) == 1
    events = [e.action for e in planted.history.events(opened[0])]
    assert events.count(Action.OPENED) == 1
    before = planted.history.events(opened[0])
    again = sweep(planted.history, now=START + timedelta(days=99))
    assert (again.series, again.found, again.opened, again.grown, again.asked) == (0, (), (), (), ())
    assert planted.history.events(opened[0]) == before


def test_the_first_slow_night_asks_for_a_proof_of_the_two_commits(planted):
    assert (commit(PLANTED - 1), commit(PLANTED)) in {(r.base, r.head) for r in planted.history.requests()}
    first = planted.swept[PLANTED]
    assert {c.series.metric.name for c in first.suspects} >= {"time"}
    assert first.asked
    assert first.opened == ()


def test_a_confirmed_suspect_opens_its_regression_at_once():
    nights = Nights().live(range(PLANTED + 1), slow=slow_from(PLANTED))
    assert nights.regressions == []
    of_time = {c.key for c in nights.history.changes() if c.series.metric.name == "time"}
    request = next(r for r in nights.history.requests() if r.change in of_time)
    now = START + timedelta(days=PLANTED, hours=7)
    nights.history.finish(request.key, Proof(answer=Answer.CONFIRMED, at=now, command="bench compare"))
    settle(nights.history, now=now)
    (found,) = nights.regressions
    assert found.cause is Cause.CODE


def test_what_proofs_refute_is_noise_and_its_regression_is_withdrawn():
    nights = Nights().live(range(PLANTED + 8), slow=slow_from(PLANTED))
    (found,) = nights.regressions
    now = START + timedelta(days=60)
    for request in nights.history.requests():
        nights.history.finish(request.key, Proof(answer=Answer.REFUTED, at=now, command="bench compare"))
    done = settle(nights.history, now=now)
    assert [r.key for r in done.closed] == [found.key]
    assert nights.history.regression(found.key).state is State.INVALID


def test_a_new_package_at_the_same_night_is_the_environment_and_is_named():
    nights = Nights().live(range(NIGHTS), slow=slow_from(PLANTED), numpy=lambda n: "2.1" if n >= PLANTED else "2.0")
    (found,) = nights.regressions
    assert found.cause is Cause.ENVIRONMENT
    (change, *_) = nights.history.changes(regression=found.key)
    assert [(d.name, d.before, d.after) for d in change.environment] == [("numpy", "2.0", "2.1")]


def test_when_the_canary_moves_with_it_the_machine_moved():
    nights = Nights().live(range(NIGHTS), slow=slow_from(PLANTED), canary=slow_from(PLANTED))
    (found,) = nights.regressions
    assert found.cause is Cause.HARDWARE


def test_a_commit_that_mends_it_closes_it_as_fixed():
    nights = Nights().live(range(NIGHTS + 3), slow=lambda n: 1.2 if PLANTED <= n < PLANTED + 6 else 1.0)
    (found,) = nights.regressions
    assert found.state is State.FIXED
    events = nights.history.events(found.key)
    assert [e.action for e in events][-1] is Action.FIXED
    assert events[-1].who == "bench"


def test_what_people_said_is_expected_is_left_to_them(planted):
    nights = Nights().live(range(PLANTED + 10), slow=slow_from(PLANTED))
    (found,) = nights.regressions
    from bench.testing import make_event

    event = make_event(found.key, found.events + 1, Action.EXPECTED, "the price of accuracy", who="ada")
    nights.history.append(replace(event, expires_at=datetime(2999, 1, 1, tzinfo=UTC)))
    nights.live(range(PLANTED + 10, PLANTED + 14), slow=slow_from(PLANTED))
    assert nights.history.regression(found.key).state is State.EXPECTED
    assert len(nights.regressions) == 1
