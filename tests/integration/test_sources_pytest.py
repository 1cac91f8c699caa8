"""pytest-benchmark suites run unmodified: pytest keeps fixtures and asserts, the harness keeps the clock."""

from pathlib import Path

import pytest

from bench.experiment import run_experiments
from bench.model import FailureKind, Target
from bench.plan import plan
from bench.sources.pytest_benchmark import PytestSource
from bench.testing import SilentProgress

pytest.importorskip("pytest_benchmark")  # the suite's own pytest.ini and conftest.py use its options and hooks

SUITE = Path(__file__).parents[1] / "suites_pytest"


def measure(found, *selectors, launches=1):
    experiments = plan(found.benchmarks, selectors, profile="quick", target=Target(), seed=1, launches=launches)
    results, _ = run_experiments(
        experiments, device="bench.testing:FakeDevice", path=(), progress=SilentProgress(),
        finished=lambda index, result: None,
    )  # fmt: skip
    return {arm.arm.variant.name: arm for result in results for arm in result.results}


@pytest.fixture(scope="module")
def found():
    return PytestSource([str(SUITE)]).discover(Target())


@pytest.fixture(scope="module")
def arms(found):
    return measure(found)


def test_a_test_is_a_benchmark_and_its_cases_are_an_axis(found):
    benchmarks = {b.name: b for b in found.benchmarks}
    assert benchmarks["bench_forms.test_cases"].axes == {"case": ["10-up", "10-down", "100-up", "100-down"]}
    assert benchmarks["bench_forms.test_call"].title == "Sum a hundred numbers."
    assert benchmarks["sub.bench_inner.test_inner"].suite == "sub.bench_inner"
    assert "bench_forms.TestClass.test_method" in benchmarks
    assert "bench_forms.test_not_a_benchmark" not in benchmarks
    assert not any(str(SUITE) in b.source for b in found.benchmarks if not b.source.startswith(".."))


def test_a_module_that_cannot_be_collected_is_a_problem_and_the_rest_runs(found, arms):
    broken = next(p for p in found.problems if "bench_broken" in p.message)
    dead = next(p for p in found.problems if "bench_dies" in p.message)
    assert len(found.problems) == 2
    assert "No module named 'nothing_of_that_name'" in broken.message
    assert dead.kind is FailureKind.DIED
    assert arms["sub.bench_inner.test_inner"].failure is None


@pytest.mark.parametrize(
    "name",
    [
        "test_call", "test_cases[case=10-up]", "test_cases[case=100-down]", "test_main_thread", "test_pedantic_setup",
        "test_pedantic_once", "test_around", "test_whole", "test_codspeed_name", "TestClass.test_method",
        "TestCase.test_unit", "TestMarkedCase.test_marked",
    ],
)  # fmt: skip
def test_every_form_is_measured_and_its_own_asserts_hold(arms, name):
    arm = arms[f"bench_forms.{name}"]
    assert arm.failure is None
    assert all(sample > 0 for sample in arm.measurement("time").launches[0])


def test_a_single_pedantic_round_is_one_call(arms):
    arm = arms["bench_forms.test_pedantic_once"]
    assert arm.measurement("time").launches == arm.measurement("first_call").launches


def test_notes_are_group_and_extra_info(arms):
    assert arms["bench_forms.test_call"].notes == {"numbers": "100"}
    assert arms["bench_forms.test_cases[case=10-up]"].notes == {"group": "sorting"}


@pytest.mark.parametrize(
    ("name", "kind", "phase", "says"),
    [
        ("test_skipped", FailureKind.SKIPPED, "set_up", "no such machine"),
        ("TestClass.test_unused", FailureKind.SKIPPED, "set_up", "never calls its benchmark fixture"),
        ("TestMarkedCase.test_skipped_case", FailureKind.SKIPPED, "first_call", "no such case"),
        ("test_coroutine", FailureKind.RAISED, "set_up", "async def functions are not natively supported"),
        ("test_expected", FailureKind.SKIPPED, "close", "expected to fail: known"),
        ("test_skips_late", FailureKind.SKIPPED, "first_call", "found out late"),
        ("test_fails_before", FailureKind.RAISED, "set_up", "ValueError: no data"),
        ("test_fails_in_call", FailureKind.RAISED, "first_call", "ZeroDivisionError"),
        ("test_fails_after", FailureKind.RAISED, "close", "AssertionError: the answer is not one"),
        ("test_twice", FailureKind.RAISED, "close", "can only be used once"),
        ("test_fails_at_teardown", FailureKind.RAISED, "close", "OSError: cannot clean up"),
    ],
)
def test_skips_and_failures_keep_their_reason(arms, name, kind, phase, says):
    failure = arms[f"bench_forms.{name}"].failure
    assert (failure.kind, failure.phase) == (kind, phase)
    assert says in failure.message


def test_a_failing_assert_keeps_the_end_of_its_traceback(arms):
    assert "assert benchmark(int) == 1" in arms["bench_forms.test_fails_after"].failure.detail


def write(folder, **files):
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    return folder


def test_without_any_configuration_a_folder_and_a_file_are_enough(tmp_path):
    folder = write(tmp_path / "t", test_plain="def test_int(benchmark):\n    benchmark(int)\n")
    for place in (folder, folder / "test_plain.py"):
        found = PytestSource([str(place)]).discover(Target())
        assert [b.name for b in found.benchmarks] == ["test_plain.test_int"]
        assert found.problems == ()
    arms = measure(found, launches=2)
    assert len(arms["test_plain.test_int"].measurement("time").launches) == 2


@pytest.mark.parametrize(
    ("ini", "conftest", "says"),
    [
        ("[pytest]\naddopts = --no-such-option\n", "", "unrecognized arguments: --no-such-option"),
        ("", "import nothing_of_that_name\n", "No module named 'nothing_of_that_name'"),
        ("", "import os; os._exit(9)\n", "ended by itself with exit code 9"),
        ("", "def pytest_itemcollected(item):\n    raise KeyError('mark')\n", "a conftest.py failed: KeyError: 'mark'"),
    ],
)
def test_what_keeps_pytest_from_starting_is_a_problem_with_its_reason(tmp_path, ini, conftest, says):
    folder = write(tmp_path / "t", test_plain="def test_int(benchmark):\n    benchmark(int)\n", conftest=conftest)
    (folder / "pytest.ini").write_text(ini)
    found = PytestSource([str(folder)]).discover(Target())
    assert found.benchmarks == ()
    assert says in found.problems[0].message


def test_a_package_of_tests_may_be_called_like_the_harness_unless_a_module_is_too(tmp_path):
    test = "from .data import numbers\n\ndef test_sum(benchmark):\n    assert benchmark(sum, numbers) == 3\n"
    folder = write(tmp_path / "bench", __init__="", data="numbers = [1, 2]\n", test_speed=test)
    for place in (folder, folder / "test_speed.py"):
        found = PytestSource([str(place)]).discover(Target())
        assert found.problems == ()
        assert measure(found)["test_speed.test_sum"].failure is None
    write(folder, model="")
    (problem,) = PytestSource([str(folder)]).discover(Target()).problems
    assert "is named like a module of the harness, bench.model" in problem.message


def test_a_place_that_is_not_there_is_a_problem(tmp_path):
    (problem,) = PytestSource([str(tmp_path / "none")]).discover(Target()).problems
    assert "is not there" in problem.message


def test_an_edited_test_is_a_new_version_and_a_comment_is_not(tmp_path):
    def version(text):
        folder = write(tmp_path / "t", test_plain=text)
        return PytestSource([str(folder)]).discover(Target()).benchmarks[0].version

    plain = version("def test_int(benchmark):\n    benchmark(int)\n")
    assert version("def test_int(benchmark):\n    # why\n    benchmark(int)\n") == plain
    assert version("def test_int(benchmark):\n    benchmark(float)\n") != plain
