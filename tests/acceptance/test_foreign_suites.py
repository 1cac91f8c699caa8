"""Suites of other tools as they are: `bench run` and `bench compare` with --asv, --pytest and --command."""

import json
import sys

import pytest

from bench.errors import Exit

SLOW = 6000

ASV = """
    import shop

    class Work:
        params = ([1, 2],)
        param_names = ("times",)

        def time_work(self, times):
            for _ in range(times):
                shop.work()

        def track_units(self, times):
            return shop.UNITS * times
"""

PYTEST = """
    import pytest
    import shop

    @pytest.mark.parametrize("times", [1, 2])
    def test_work(benchmark, times):
        assert benchmark(shop.work) > 0

    def test_nothing_to_measure():
        raise AssertionError
"""

COMMAND = f"{sys.executable} -c 'import shop; [shop.work() for _ in range(100)]'"


@pytest.fixture
def foreign(project):
    """The project with suites of other tools instead of ours; the branch `slow` is checked out."""
    project.git("rm", "-q", "-r", "suites")
    project.write("asv.conf.json", '{"version": 1, "project": "shop", "repo": ".", "benchmark_dir": "asv"} // ours\n')
    project.write("asv/__init__.py", "")
    project.write("asv/shopping.py", ASV)
    project.write("checks/test_shopping.py", PYTEST)
    project.commit("suites of other tools")
    project.branch("slow", src__shop=project.code(units=SLOW))
    return project


ASV_OPTION = ("--asv", "asv.conf.json")
PYTEST_OPTION = ("--pytest", "checks/test_shopping.py")


@pytest.mark.parametrize(
    ("option", "names"),
    [
        (ASV_OPTION, {"shopping.Work.time_work[times=1]", "shopping.Work.time_work[times=2]",
                      "shopping.Work.track_units[times=1]", "shopping.Work.track_units[times=2]"}),
        (PYTEST_OPTION, {"test_shopping.test_work[case=1]", "test_shopping.test_work[case=2]"}),
        (("--command", COMMAND), None),
    ],
    ids=["asv", "pytest", "command"],
)  # fmt: skip
def test_a_foreign_suite_is_measured_unmodified(foreign, option, names):
    out, err = foreign("run", *option, "--launches", "1", "--json", "-", PYTHONPATH="src")
    variants = [v for e in json.loads(out)["experiments"] for v in e["variants"]]
    assert all(v["failure"] is None for v in variants)
    assert all(v["metrics"]["time"]["value"] > 0 for v in variants if "track_" not in v["name"])
    assert "Traceback" not in err
    if names is None:
        (variant,) = variants
        assert COMMAND in variant["name"]
    else:
        assert {v["name"] for v in variants} == names


def test_an_asv_suite_finds_a_slower_commit_and_a_changed_count(foreign):
    names = ("shopping.Work.time_work[times=2]", "shopping.Work.track_units[times=2]")
    document, _ = foreign.compare("main", "slow", *names, *ASV_OPTION, code=Exit.REGRESSION)
    time_, track = document["variants"]
    assert (time_["name"], track["name"]) == names
    assert time_["verdict"] == "regressed"
    ratios = [m["change"]["value"] for m in track["metrics"].values() if m["unit"] not in ("ns", "B", "1/s")]
    assert ratios == [pytest.approx(4.0)]


def test_a_pytest_benchmark_suite_finds_a_slower_commit(foreign):
    name = "test_shopping.test_work[case=1]"
    document, _ = foreign.compare("main", "slow", name, *PYTEST_OPTION, code=Exit.REGRESSION)
    assert [(v["name"], v["verdict"]) for v in document["variants"]] == [(name, "regressed")]


def test_a_command_finds_a_slower_commit(foreign):
    """A whole process that imports the project as it was at each commit."""
    document, _ = foreign.compare("main", "slow", "--command", COMMAND, code=Exit.REGRESSION)
    (variant,) = document["variants"]
    assert variant["verdict"] == "regressed"
    assert variant["metrics"]["time"]["change"]["low"] > 1.1


def test_two_sources_at_once_are_one_sentence(foreign):
    for verb in (("run",), ("compare", "main", "slow")):
        text = foreign.sentence(*verb, *ASV_OPTION, *PYTEST_OPTION, code=Exit.USAGE)
        assert "give only one of them" in text


@pytest.mark.parametrize(
    ("option", "says"),
    [
        (("--asv", "nowhere/asv.conf.json"), "nowhere/asv.conf.json"),
        (("--pytest", "nowhere/test_x.py"), "nowhere/test_x.py"),
        (("--command", ""), "command"),
    ],
    ids=["asv", "pytest", "command"],
)
def test_a_foreign_suite_that_is_not_there_is_said(foreign, option, says):
    process = foreign.start("run", *option)
    out, err = process.communicate(timeout=60)
    assert process.returncode in (Exit.USAGE, Exit.FAILED, Exit.ENVIRONMENT)
    assert says in err
    assert "Traceback" not in out + err


def test_a_timeout_that_a_person_gives_replaces_the_declared_ones(foreign):
    for options in (ASV_OPTION, PYTEST_OPTION, ("--command", "sleep 60")):
        out, _ = foreign("list", *options, "--timeout", "1.5", "--json", PYTHONPATH="src")
        assert {b["timeout_s"] for b in json.loads(out)["benchmarks"]} == {1.5}
    out, _ = foreign(
        "run", "--command", "sleep 60", "--timeout", "1.5", "--launches", "1", "--json", "-", code=Exit.FAILED
    )
    (failure,) = [v["failure"] for e in json.loads(out)["experiments"] for v in e["variants"] if v["failure"]]
    assert (failure["kind"], failure["message"]) == ("timed_out", "no answer within 1.5 s; it was killed")


def test_a_project_may_have_a_folder_that_is_called_like_the_harness(foreign):
    foreign.write("bench/__init__.py", "raise ImportError('not ours')\n")
    foreign("run", *PYTEST_OPTION, "--launches", "1", "--no-canary", PYTHONPATH="src")
