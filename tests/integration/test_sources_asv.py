"""asv suites run unmodified: what asv does to a benchmark, so do we; what it does to a clock, we do not."""

import functools
import importlib
import json
import shutil
import sys
from pathlib import Path

import pytest

from bench.errors import ConfigError
from bench.experiment import run_experiments
from bench.loaders import asv as loader
from bench.loaders import paths
from bench.measure.meters.time import prepared_batch
from bench.model import FailureKind, Target
from bench.plan import plan
from bench.sources.asv import AsvSource, read_conf, requirements_of
from bench.testing import FakeClock, FakeDevice, SilentProgress

pytest.importorskip("asv_runner")

SUITE = Path(__file__).parents[1] / "suites_asv"


def measure(source, found, *selectors, launches=1):
    experiments = plan(found.benchmarks, selectors, profile="quick", target=Target(), seed=1, launches=launches)
    results, interrupted = run_experiments(
        experiments, device="bench.testing:FakeDevice", path=source.path, progress=SilentProgress(),
        finished=lambda index, result: None,
    )  # fmt: skip
    assert not interrupted
    return {arm.arm.variant.name: arm for result in results for arm in result.results}


@pytest.fixture(scope="module")
def suite():
    source = AsvSource(SUITE)
    return source, source.discover(Target())


@pytest.fixture(scope="module")
def arms(suite):
    return measure(*suite)


def test_identity_is_asvs_own(suite):
    found = {b.name: b for b in suite[1].benchmarks}
    sort = found["kinds.Sorting.time_sort"]
    assert sort.suite == "kinds"
    assert sort.axes == {"n": ["1000"], "order": ["'random'", "'reversed'"]}
    assert len(sort.version) == 64
    assert found["kinds.track_length"].version == "set by hand"
    assert found["deep.inner.Outer.time_deep"].suite == "deep.inner"
    assert found["kinds.PeakMemory.peakmem_bytes"].timeout_s == 33
    assert sort.timeout_s == 50  # default_benchmark_timeout
    assert "kinds.time_never" not in found  # @skip_benchmark
    assert not any(str(Path.cwd()) in b.source for b in found.values())


def test_what_cannot_be_imported_is_a_problem_and_the_rest_runs(suite, arms):
    problems = {p.message.split(":")[0]: p for p in suite[1].problems}
    assert set(problems) == {"suite benchmarks.broken", "suite benchmarks.dies", "suite benchmarks.deep.inner"}
    assert "No module named 'nothing_of_that_name'" in problems["suite benchmarks.broken"].message
    assert problems["suite benchmarks.dies"].kind is FailureKind.DIED
    assert "needs a display" in problems["suite benchmarks.deep.inner"].message
    assert arms["deep.inner.Outer.time_deep"].failure is None


def test_every_call_with_a_set_up_gets_a_fresh_one(arms):
    """The benchmark asserts that it never sorts a sorted list; its module's set-up counts too."""
    for order in ("'random'", "'reversed'"):
        assert arms[f"kinds.Sorting.time_sort[n=1000,order={order}]"].failure is None
    assert arms["kinds.Sorting.time_sort[n=1000,order='random']"].notes == {"setup": "fresh before every call"}
    assert arms["deep.inner.Outer.time_deep"].notes == {}


def test_a_function_that_can_run_once_runs_once(arms):
    arm = arms["kinds.Once.time_once"]
    assert arm.failure is None
    assert arm.measurement("time").launches == arm.measurement("first_call").launches


def test_tracked_values_and_object_sizes_are_metrics_with_a_unit(arms):
    value = arms["kinds.track_length"].measurement("value")
    assert (value.metric.unit, value.launches) == ("B", ((42,),))
    assert arms["kinds.TrackCalls.track_calls"].measurement("value").metric.unit == "calls"
    ((size,),) = arms["kinds.mem_list"].measurement("object_size").launches
    assert 80_000 <= size < 81_000


def test_a_tracked_value_is_taken_in_every_launch_from_its_first_call(suite):
    arms = measure(*suite, "kinds.TrackCalls.track_calls", launches=3)
    assert arms["kinds.TrackCalls.track_calls"].measurement("value").launches == ((1,), (1,), (1,))


def test_peak_memory_is_that_of_the_function(arms):
    growth = arms["kinds.PeakMemory.peakmem_bytes"].measurement("memory_growth").launches[0][0]
    assert 29_000_000 < growth < 60_000_000


def test_timeraw_measures_the_statement_and_not_the_interpreter(arms):
    """A statement of 2 ms, in an interpreter that takes tens."""
    samples = arms["kinds.timeraw_busy"].measurement("time").launches[0]
    assert all(sample >= 2_000_000 for sample in samples)
    assert min(samples) < 4_000_000
    assert "No module named 'nothing_of_that_name'" in arms["kinds.timeraw_broken"].failure.message


def test_a_timer_of_the_suites_own_is_the_clock(arms):
    time_ = arms["kinds.OwnTimer.time_told"].measurement("time")
    assert {sample / time_.loops for sample in time_.launches[0]} == {250e6}


def test_parameters_may_be_any_objects(arms):
    values = [a.measurement("value").launches[0][0] for n, a in arms.items() if n.startswith("kinds.Objects")]
    assert values == [1, 2, 3, 3]
    assert "kinds.Objects.track_type[thing=<object object> (1)]" in arms


@pytest.mark.parametrize(
    ("name", "kind", "says"),
    [
        ("kinds.Skipping.time_it[how='not implemented']", FailureKind.SKIPPED, "no such thing here"),
        ("kinds.Skipping.time_it[how='by decorator']", FailureKind.SKIPPED, "skips these parameters"),
        ("kinds.Skipping.time_it[how='late']", FailureKind.SKIPPED, "found out late"),
        ("kinds.track_nothing", FailureKind.SKIPPED, "NaN"),
        ("kinds.time_raises", FailureKind.RAISED, "ZeroDivisionError: division by zero"),
        ("kinds.BadCache.time_it[param1=1]", FailureKind.RAISED, "ValueError: cannot build"),
        ("kinds.BadCache.time_it[param1=2]", FailureKind.RAISED, "an earlier process: ValueError: cannot build"),
    ],
)
def test_skips_and_errors_are_failures_of_their_variant(arms, name, kind, says):
    assert arms[name].failure.kind is kind
    assert says in arms[name].failure.message
    assert arms["kinds.Skipping.time_it[how='ok']"].failure is None


def test_the_set_up_cache_is_built_once_for_all_variants_and_launches(arms):
    for n in (1, 2):
        assert arms[f"kinds.Cached.track_builds[param1={n}]"].measurement("value").launches == ((1,),)


def test_nothing_of_asv_is_between_the_clock_and_the_function(tmp_path, monkeypatch):
    """Without parameters the function itself is timed, with them one C-level partial of it."""
    shutil.copytree(SUITE / "benchmarks", tmp_path / "suite_copy")
    monkeypatch.setenv("BENCH_SCRATCH", str(tmp_path / "scratch"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    with monkeypatch.context() as patch:
        paths.add([f"suite_copy={tmp_path / 'suite_copy'}"])
        inner = importlib.import_module("suite_copy.deep.inner")
        kinds = importlib.import_module("suite_copy.kinds")
        plain = loader.load("suite_copy:deep.inner.Outer.time_deep", FakeDevice(), {})
        given = loader.load("suite_copy:kinds.Sorting.time_sort", FakeDevice(), {"n": "1000", "order": "'random'"})
        for name in [name for name in sys.modules if name.startswith("suite_copy")]:
            patch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if name.startswith("suite_copy")]:
        del sys.modules[name]
    assert plain.run.__func__ is inner.Outer.time_deep
    assert plain.prepare is None
    assert isinstance(given.run, functools.partial)
    assert given.run.func.__func__ is kinds.Sorting.time_sort
    assert given.run.args == (1000, "random")


def test_preparing_is_outside_the_time_of_a_call():
    clock = FakeClock()
    calls = []

    def prepare():
        clock.sleep(1000)
        calls.append("prepare")

    def run():
        clock.sleep(7)
        calls.append("run")

    assert prepared_batch(run, prepare, 3, lambda: clock.sleep(1), clock.wall, clock.cpu) == (24, 24)
    assert calls == ["prepare", "run"] * 3


def test_requirements_are_pips_whatever_the_environment_type():
    assert requirements_of(SUITE) == ["numpy==2.1.*", "torch", "rich>=13", "scipy"]


@pytest.mark.parametrize(
    ("kind", "matrix", "expected"),
    [
        ("virtualenv", {"numpy": ["1.26"], "six": []}, ["numpy==1.26", "six"]),
        ("conda", {"numpy": ["1.26"], "pip+six": ["1.16"]}, ["numpy==1.26.*", "six==1.16"]),
        ("rattler", {"req": {"pytables": [""]}, "env_nobuild": {"A": ["1"]}}, ["tables"]),
        ("mamba", {"numpy": ["1", None]}, []),
        ("conda", {"numpy": [], "cudatoolkit": [], "compilers": ["1"]}, ["numpy"]),
        ("virtualenv", {"env": {"A": ["1"]}}, []),
    ],
)
def test_requirements_of_old_and_new_matrices(tmp_path, kind, matrix, expected):
    conf = tmp_path / "asv.conf.json"
    conf.write_text(json.dumps({"environment_type": kind, "matrix": matrix}))
    assert requirements_of(conf) == expected


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"a" 1}', "line 1 is not JSON"),
        ('{\n/* a\ncomment */\n"a": }', "line 4 is not JSON"),
        ("[]", "must hold an object"),
        ('{"benchmark_dir": "nowhere"}', "nowhere is not there"),
        ('{"benchmark_dir": 3}', "benchmark_dir must be a text, not 3"),
        ('{"benchmark_dir": ".", "default_benchmark_timeout": "1"}', "must be seconds, not '1'"),
    ],
)
def test_a_bad_configuration_is_one_clear_sentence(tmp_path, text, says):
    (tmp_path / "asv.conf.json").write_text(text)
    with pytest.raises(ConfigError, match=says) as caught:
        AsvSource(tmp_path)
    assert "\n" not in str(caught.value)


def test_comments_inside_texts_are_texts(tmp_path):
    conf = tmp_path / "asv.conf.json"
    conf.write_text('{"url": "https://example.org/*no*/", // a comment, }\n "list": [1, 2, /* x */ ], "s": ",}",}')
    assert read_conf(conf) == {"url": "https://example.org/*no*/", "list": [1, 2], "s": ",}"}


def test_no_configuration_is_a_usage_error(tmp_path):
    with pytest.raises(ConfigError, match="no asv configuration"):
        AsvSource(tmp_path / "none")


@pytest.mark.parametrize(("name", "says"), [("plain", "no package of asv benchmarks"), ("bench", "rename the folder")])
def test_a_folder_that_cannot_be_a_suite_is_a_problem(tmp_path, name, says):
    (tmp_path / name).mkdir()
    if name == "bench":
        (tmp_path / name / "__init__.py").touch()
    (tmp_path / "asv.conf.json").write_text(json.dumps({"benchmark_dir": name}))
    (problem,) = AsvSource(tmp_path).discover(Target()).problems
    assert says in problem.message
