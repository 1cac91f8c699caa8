"""Our suites in another tool's process: what a suite declares keeps its meaning, and nothing but the call is timed."""

import math
import os
import sys
import textwrap
import time

import pytest

from bench.api import Wrong
from bench.bridges import asv

SUITE = '''
from bench.api import HIGHER, LOWER, Items, Metric, Skip, Work, benchmark

LOG = []


@benchmark(
    axes={"n": (100, 200), "how": ("sum", "loop")}, baseline={"how": "sum"}, exclude=({"n": 200, "how": "loop"},),
    metrics=(Metric("right", unit="1", better=HIGHER), Metric("wait-time", unit="ns", better=LOWER)),
)
def add(device, n, how):
    """Does a loop add?"""
    LOG.append("set_up")

    def run():
        LOG.append("run")
        return sum(range(n))

    return Work(run=run, size_bytes=8 * n, check=lambda total: total == n * (n - 1) // 2,
                report=lambda total: {"right": Items([1, 1, 1, 0]), "wait-time": 2_000})


@benchmark(axes={"how": ("wrong", "skips", "late", "closes", "once")})
def odd(device, how):
    """Everything that is not plain."""
    if how == "skips":
        raise Skip("no such thing; get it")

    def run():
        LOG.append("run")
        if how == "late":
            raise LookupError("found out late")

    return Work(run=run, check=lambda _: how != "wrong", skips=(LookupError,), once=how == "once",
                close=(lambda: LOG.append("close")) if how == "closes" else None)


@benchmark()
def prepared(device):
    """Needs a preparation before every call."""
    return Work(run=lambda: LOG.append("run"), prepare=lambda: LOG.append("prepare"))


@benchmark(requires=("json", "no_such_package.part"))
def needs(device):
    """Cannot run anywhere."""
    raise AssertionError


@benchmark(profiles=("full",))
def long(device):
    """For the full profile."""
    raise AssertionError
'''


@pytest.fixture
def exposed(tmp_path, monkeypatch):
    """The globals of a module that exposes the suite, in a process that is left as it was."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "mine" / "bridged.py").write_text(textwrap.dedent(SUITE))
    (tmp_path / "mine" / "bridged_broken.py").write_text("import nothing_of_that_name\n")
    before = dict(os.environ)
    monkeypatch.setattr(sys, "path", list(sys.path))
    into = {"__name__": "benchmarks.ours", "__file__": str(tmp_path / "benchmarks" / "ours.py")}
    asv.expose("../mine", into=into, profile="quick")
    yield into
    sys.modules.pop("bridged", None)
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def log(exposed):
    return sys.modules["bridged"].LOG


def started(exposed, name, *params):
    benchmark = exposed[name]()
    benchmark.setup(*params)
    return benchmark


def test_axes_are_parameters_and_excluded_points_are_skipped(exposed):
    add = exposed["bridged_add"]
    assert (add.params, add.param_names) == ([[100, 200], ["sum", "loop"]], ["n", "how"])
    assert add.skip_params == [(200, "loop")]
    assert add.version == sys.modules["bridged"].add.__bench_benchmark__.version
    assert add.time_call.benchmark_name == "bridged.add.time_call"
    assert "def add(device, n, how)" in add.time_call.pretty_source
    assert "bridged_long" not in exposed


def test_metrics_keep_their_value_and_unit(exposed):
    add = started(exposed, "bridged_add", 200, "sum")
    assert (add.track_right(200, "sum"), add.track_right.unit) == (0.75, "unit")
    assert (add.track_wait_time(200, "sum"), add.track_wait_time.unit) == (pytest.approx(2e-6), "seconds")
    assert (add.track_size(200, "sum"), add.track_size.unit) == (1600, "bytes")
    assert math.isnan(started(exposed, "bridged_prepared").track_size())


def test_a_sample_is_a_batch_and_the_timer_advances_by_one_call(exposed, log):
    add = started(exposed, "bridged_add", 100, "sum")
    add.time_call(100, "sum")
    del log[:]
    before, start = add.timer(), time.perf_counter()
    add.time_call(100, "sum")
    elapsed, told = time.perf_counter() - start, add.timer() - before
    assert set(log) == {"run"}
    assert len(log) > 10
    assert 0 < told * len(log) <= elapsed


def test_the_set_up_is_made_once_in_a_process_however_often_asv_asks(exposed, log):
    add = started(exposed, "bridged_add", 100, "sum")
    for _ in range(3):
        add.teardown(100, "sum")
        add.setup(100, "sum")
    assert log == ["set_up"]
    add.setup(200, "sum")
    assert log == ["set_up"] * 2


def test_work_that_must_be_closed_is_closed_and_set_up_again(exposed, log):
    odd = started(exposed, "bridged_odd", "closes")
    odd.teardown("closes")
    odd.teardown("closes")
    assert log == ["close"]
    odd.setup("closes")
    odd.time_call("closes")


def test_a_preparation_comes_before_every_call_and_is_not_timed(exposed, log):
    prepared = started(exposed, "bridged_prepared")
    prepared.time_call()
    assert log == ["prepare", "run"] * (len(log) // 2)


def test_work_that_runs_once_runs_once_and_tells_asv(exposed, log):
    odd = started(exposed, "bridged_odd", "once")
    assert (odd.number, odd.repeat, odd.warmup_time) == (1, 1, 0)
    odd.time_call("once")
    assert log == ["run"]
    assert odd.timer() > 0


def test_peak_memory_is_that_of_one_call_without_its_check(exposed, log):
    odd = started(exposed, "bridged_odd", "wrong")
    odd.peakmem_call("wrong")
    assert log == ["run"]


def test_a_wrong_answer_fails(exposed):
    odd = started(exposed, "bridged_odd", "wrong")
    with pytest.raises(Wrong, match="the answer is wrong"):
        odd.time_call("wrong")


@pytest.mark.parametrize(
    ("name", "params", "says"),
    [
        ("bridged_odd", ("skips",), "no such thing; get it"),
        ("bridged_needs", (), "needs the package no_such_package"),
    ],
)
def test_what_is_not_here_is_asvs_skip_with_our_reason(exposed, name, params, says):
    with pytest.raises(NotImplementedError, match=says):
        started(exposed, name, *params)


def test_a_skip_that_a_call_finds_out_is_one_too(exposed):
    mark = pytest.importorskip("asv_runner.benchmarks.mark")
    odd = started(exposed, "bridged_odd", "late")
    with pytest.raises(mark.SkipNotImplemented, match="found out late"):
        odd.time_call("late")


def test_a_suite_that_cannot_be_read_fails_and_hides_no_other(exposed):
    unreadable = exposed["unreadable"]()
    assert unreadable.params == [["bridged_broken"]]
    with pytest.raises(ImportError, match="nothing_of_that_name"):
        unreadable.track_suite("bridged_broken")


def test_libraries_get_the_threads_that_a_benchmark_declares_unless_a_person_set_them(exposed, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setenv("MKL_NUM_THREADS", "7")
    started(exposed, "bridged_add", 100, "sum")
    assert (os.environ["OMP_NUM_THREADS"], os.environ["MKL_NUM_THREADS"]) == ("1", "7")
