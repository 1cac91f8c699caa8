"""Each page against a real SQLite database, run by Streamlit's own AppTest."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

import dashboard
from bench.commands._shared import estimates
from bench.history import Action, KeptProfile
from bench.model import Conditions, Failure, FailureKind, Revision
from bench.profiles import Profile, compare_profiles
from bench.reports.format import times
from bench.reports.profile import document_of
from bench.series import find_changes, fold
from bench.testing import make_event, make_regression, make_run
from bench.testing.history import START
from bench.tradeoffs import speedup, tradeoffs
from db.store import open_store

HERE = Path(dashboard.__file__).parent
WRONG = Failure(kind=FailureKind.WRONG, phase="check", message="37 of 64 images differ", detail="max 4.81")
EVIL = "<script>alert(1)</script>[x](javascript:alert(1))"


@pytest.fixture(autouse=True)
def _fresh_caches():
    """Nothing read in one test is seen by another; connections are closed."""
    yield
    st.cache_data.clear()
    st.cache_resource.clear()


@pytest.fixture
def database(tmp_path, monkeypatch):
    """Path of a database that does not exist yet, which the pages will read."""
    file = tmp_path / "bench.db"
    monkeypatch.setenv("BENCH_DATABASE", f"sqlite:///{file}")
    return file


def fill(file, *runs):
    with closing(open_store(f"sqlite:///{file}", create=True)) as store:
        for run in runs:
            store.add(run)


def show(page, **state):
    test = AppTest.from_file(str(HERE / page), default_timeout=60)
    for name, value in state.items():
        test.query_params[name] = value
    return test.run()


def html(test):
    assert not test.exception, test.exception
    return "\n".join(part.proto.body for part in test.get("html"))


def query(test, name):
    """A query parameter; AppTest gives a list unless the script wrote it."""
    value = test.query_params[name]
    return value[0] if isinstance(value, list) else value


def mixed(seed=0, **kwargs):
    """A run of two suites, one of them with a wrong answer."""
    one, two = make_run(seed=seed, failure=WRONG, **kwargs), make_run(seed=seed + 100, suite="other", launches=3)
    return replace(one, experiments=one.experiments + two.experiments)


@pytest.mark.parametrize("made", [False, True])
def test_no_run_yet_explains_the_first_steps(database, made):
    if made:
        fill(database)
    text = html(show("app.py"))
    assert "No run is stored yet" in text
    assert text.index("bench list") < text.index("bench run") < text.index("bench show")
    assert str(database) in text
    assert database.exists() is made
    for page in ("views/tradeoffs.py", "views/runs.py"):
        assert "No run is stored yet" in html(show(page))


@pytest.mark.parametrize("page", ["app.py", "views/runs.py", "views/tradeoffs.py"])
def test_a_database_that_cannot_be_opened_gives_a_sentence(database, page):
    database.write_bytes(b"this is no database at all" * 100)
    text = html(show(page))
    assert "cannot be shown" in text
    assert str(database) in text
    assert "Traceback" not in text


def test_runs_say_what_ran_and_why_something_failed(database):
    fill(database, mixed(seed=1), make_run(seed=0))
    test = show("views/runs.py")
    text = html(test)
    assert "5 variants measured, 1 wrong" in text
    assert "37 of 64 images differ" in text
    assert "max 4.81" in text
    assert "demo, other" in text
    assert test.expander[0].proto.expanded


def test_runs_show_the_failures_of_the_run_in_the_url(database):
    old = mixed(seed=0)
    fill(database, make_run(seed=1), old)
    assert "37 of 64 images differ" not in html(show("views/runs.py"))
    assert "37 of 64 images differ" in html(show("views/runs.py", run=old.key))


def test_tradeoffs_show_the_numbers_of_bench_tradeoffs(database):
    run = make_run(seed=3)
    fill(database, run)
    text = html(show("views/tradeoffs.py"))
    for variant in tradeoffs(run.experiments[0])[1:]:
        found = speedup(variant.comparisons["time"])
        assert f"{times(found.value)}×" in text
        assert f"{times(found.low)} – {times(found.high)}" in text


def test_a_deep_link_restores_run_suite_and_metric_and_the_url_is_completed(database):
    old = mixed(seed=0)
    fill(database, old, make_run(seed=5))
    test = show("views/tradeoffs.py", run=old.key, suite="other", y="size")
    assert [box.value for box in test.selectbox] == [old.key, "other", "other.net", "size"]
    assert query(test, "benchmark") == "other.net"
    assert "3 launches" in html(test)


def test_latest_and_the_beginning_of_a_key_become_the_whole_key(database):
    old, new = mixed(seed=0), mixed(seed=5)
    fill(database, old, new)
    assert query(show("views/tradeoffs.py", run="latest"), "run") == new.key
    assert query(show("views/tradeoffs.py", run=old.key[:6]), "run") == old.key


def test_an_unknown_run_says_so(database):
    fill(database, make_run())
    text = html(show("views/tradeoffs.py", run="ffffffff"))
    assert "no stored run has that key" in text
    assert 'href="tradeoffs?run=latest"' in text


def test_a_suite_that_is_not_in_the_run_falls_back_to_the_first(database):
    fill(database, mixed())
    test = show("views/tradeoffs.py", suite="nowhere", benchmark="nothing", y="beauty")
    assert [box.value for box in test.selectbox][1:] == ["demo", "demo.net", "agreement"]
    assert query(test, "suite") == "demo"


def test_choosing_writes_the_url(database):
    fill(database, mixed())
    test = show("views/tradeoffs.py")
    test.selectbox[1].select("other").run()
    assert query(test, "suite") == "other"
    assert query(test, "benchmark") == "other.net"
    test.query_params["suite"] = "demo"  # the back button
    test.run()
    assert test.selectbox[1].value == "demo"


def test_a_wrong_answer_is_listed_in_words_with_its_reason(database):
    fill(database, mixed())
    text = html(show("views/tradeoffs.py"))
    assert "WRONG answer" in text
    assert "37 of 64 images differ" in text


def test_conditions_are_said_above_the_chart(database):
    fill(database, replace(make_run(), conditions=Conditions(foreign_cpu=0.34, load_before=5.0, load_after=6.0)))
    assert "Busy machine: load 5.0" in html(show("views/tradeoffs.py"))


def test_a_run_that_measured_nothing_says_why(database):
    broken = Failure(kind=FailureKind.RAISED, phase="discover", message="suites/x.py line 3: SyntaxError")
    fill(database, replace(make_run(), experiments=(), problems=(broken,)))
    text = html(show("views/tradeoffs.py"))
    assert "measured nothing" in text
    assert "SyntaxError" in text


def test_hostile_names_and_messages_reach_no_page_unescaped(database):
    failure = Failure(kind=FailureKind.RAISED, phase="round", message=EVIL, detail=EVIL)
    fill(database, make_run(suite=EVIL, failure=failure))
    for page in ("views/runs.py", "views/tradeoffs.py"):
        test = show(page)
        assert "<script" not in html(test)
        assert "&lt;script" in html(test)
        shown = [*test.markdown, *test.caption, *test.subheader, *test.title, *test.header]
        assert all("javascript" not in part.value for part in shown)  # these would read Markdown
        assert all("javascript" not in part.label for part in (*test.expander, *test.selectbox))


@pytest.fixture
def slower(database):
    """A database of twelve runs, the second half 1.3 times as slow, with the regression that this opened."""
    runs = [
        replace(
            make_run(seed=k, speedups=(1.0, 2.0 if k < 6 else 2.0 / 1.3)),
            revision=Revision(commit=f"{k:040x}", branch="main"),
        )
        for k in range(12)
    ]  # fmt: skip
    with closing(open_store(f"sqlite:///{database}", create=True, summarise=estimates)) as store:
        store.add_many(runs)
        history = store.history
        series = next(s for s in history.series() if s.metric.name == "time" and "e1" in s.variant)
        points = fold(history.points([series.fingerprint])[series.fingerprint])
        changes = [replace(c, regression="ab12cd34" * 4) for c in find_changes(series, points, at=points[-1].at)]
        history.record(changes, seen={})
        found = replace(make_regression("ab12cd34" * 4, title=f"{EVIL} latency", changes=changes), events=1)
        history.open_regression(
            found, replace(make_event(found.key, 1, Action.OPENED, EVIL), changes=tuple(c.key for c in changes))
        )
    return series


def test_without_history_both_pages_say_what_to_do(database):
    assert "bench detect" in html(show("views/regressions.py"))
    assert "bench run" in html(show("views/trends.py"))
    assert not database.exists()


@pytest.mark.parametrize("page", ["views/regressions.py", "views/trends.py"])
def test_history_of_a_database_that_cannot_be_opened_gives_a_sentence(database, page):
    database.write_bytes(b"this is no database at all" * 100)
    text = html(show(page))
    assert "cannot be shown" in text
    assert "Traceback" not in text


def test_regressions_list_what_is_open_with_its_interval_and_lead_to_it(slower):
    test = show("views/regressions.py", state="nonsense")
    text = html(test)
    assert "1 cause of regressions is open" in text
    assert "regression=ab12cd34" in text
    assert "1.30×" in text
    assert query(test, "state") == "living"
    test.selectbox[1].select("better").run()
    assert "No regression matches" in html(test)
    assert query(test, "direction") == "better"


def test_one_regression_shows_its_evidence_and_how_to_repeat_it(slower):
    text = html(show("views/regressions.py", regression="ab12cd34", suite="demo"))
    assert f"bench compare {5:040x} {6:040x}" in text
    assert f"bench bisect {5:040x} {6:040x}" in text
    assert "suite=demo" in text  # the way back keeps what was chosen
    assert f"trends?series={slower.fingerprint}" in text
    assert "1. opened" in text
    assert "<script" not in text
    assert "&lt;script" in text


def test_a_kept_profile_names_its_frames_and_draws_them(slower, database):
    pair = [Profile(own={EVIL: ns, "b.py:same": 500.0}, counts={}, stacks={f"run;{EVIL}": ns}) for ns in (100.0, 400.0)]
    found = compare_profiles(
        [tuple(pair)] * 3, [(600.0, 900.0)] * 3, variant=EVIL, engine="cprofile", base="one", head="two"
    )
    with closing(open_store(f"sqlite:///{database}")) as store:
        (change,) = store.history.changes()
        store.history.keep_profile(
            KeptProfile(change=change.key, engine="cprofile", made_at=START, document=document_of(found))
        )
    test = show("views/regressions.py", regression="ab12cd34")
    text = html(test)
    assert "Where the time went" in [part.value for part in test.subheader]
    assert "▼ +50.0 pp" in text
    assert "<script" not in text


def test_an_unknown_regression_says_so(slower):
    text = html(show("views/regressions.py", regression="ffffffff"))
    assert "cannot be shown" in text
    assert 'href="regressions"' in text


def test_a_link_that_names_a_series_alone_completes_the_url(slower):
    test = show("views/trends.py", series=slower.fingerprint)
    assert [box.value for box in test.selectbox][:3] == ["demo", "demo.net", "time"]
    assert query(test, "metric") == "time"
    assert query(test, "series") == slower.fingerprint
    assert test.multiselect[0].value == [slower.fingerprint]
    text = html(test)
    assert "1 change in 12 points" in text
    assert "regressions?regression=ab12cd34" in text


def test_choosing_another_metric_leaves_the_old_series_behind(slower):
    test = show("views/trends.py", series=slower.fingerprint)
    test.selectbox[2].select("peak_memory").run()
    assert slower.fingerprint not in query(test, "series")
    assert query(test, "metric") == "peak_memory"
    assert "MiB" in html(test)


def test_no_series_chosen_says_so_and_stays_so(slower):
    test = show("views/trends.py", series=slower.fingerprint)
    test.multiselect[0].set_value([]).run()
    assert "No series is chosen" in html(test)
    test.run()
    assert "No series is chosen" in html(test)
