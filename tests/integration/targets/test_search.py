"""Each side runs its own code, whatever a suite, its tool or a script puts in front of the search path."""

import pytest

from bench.loaders.paths import OverlaysFirst
from bench.measure.session import ArmFailed, Session
from bench.sources.pytest_benchmark import PytestSource

TEST = """
import shop

def test_work(benchmark):
    benchmark.extra_info["speed"] = shop.SPEED
    benchmark(shop.work)
"""

ROOT_FIRST = """
import pathlib, sys
sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
"""

HELPED = f"""
from tests.helper import SPEEDS
{TEST}
    assert shop.SPEED in SPEEDS
"""


@pytest.fixture
def flat(project, git, write, module):
    """The project with `shop.py` in its top folder and nothing that builds it; the slow `feature` is checked out."""
    for branch, speed in (("main", "fast"), ("feature", "slow")):
        git(project, "checkout", "-q", branch)
        git(project, "rm", "-rq", "pyproject.toml", "src")
        write(project, "shop.py", module(speed))
        git(project, "add", "-A")
        git(project, "commit", "-qm", "flat")
    return project


@pytest.mark.parametrize(
    ("place", "files"),
    [
        ("tests", {"tests/__init__.py": "", "tests/helper.py": "SPEEDS = ['fast']\n", "tests/test_speed.py": HELPED}),
        ("tests/test_speed.py", {"tests/__init__.py": ""}),
        (".", {"tests/__init__.py": ""}),
        ("tests", {"conftest.py": ""}),
        ("tests", {"tests/conftest.py": ROOT_FIRST}),
        ("tests", {"pytest.ini": "[pytest]\npythonpath = .\n"}),
    ],
    ids=[
        "package with a helper",
        "file in a package",
        "top folder",
        "conftest there",
        "conftest that meddles",
        "option",
    ],
)
def test_pytest_does_not_hide_a_side_behind_the_folder_of_the_suite(flat, side, notes_at, write, place, files):
    for name, text in {"tests/test_speed.py": TEST, **files}.items():
        write(flat, name, text)
    assert notes_at(side("main"), flat / place, PytestSource)["speed"] == "fast"


def test_nor_does_an_option_that_names_the_sources_of_a_project_that_is_built(project, side, notes_at, write):
    write(project, "tests/test_speed.py", TEST)
    write(project, "pytest.ini", "[pytest]\npythonpath = src\n")
    assert notes_at(side("main"), project / "tests", PytestSource)["speed"] == "fast"


def test_nor_does_the_folder_of_a_script_or_the_current_one(flat, side, write, monkeypatch):
    write(flat, "says.py", "import shop, sys\nsys.exit(shop.SPEED)\n")
    monkeypatch.chdir(flat)
    target = side("main")
    for command in ("python says.py", "python -c 'import shop, sys; sys.exit(shop.SPEED)'"):
        with Session() as session:
            worker = session.start(target, threads=1, hash_seed=0)
            worker.ask(
                "set_up", 30, path=[], device="runners.devices.cpu:Cpu", threads=1, requires=[], source="",
                loader="bench.loaders.command", params={"command": command},
            )  # fmt: skip
            with pytest.raises(ArmFailed, match="exit code 1: fast"):
                worker.ask("first_call", 30, core=None)


def test_a_side_without_a_revision_keeps_the_current_folder_on_its_path(side):
    assert "PYTHONSAFEPATH" not in side("env:A=1").variables
    assert side("main").variables["PYTHONSAFEPATH"] == "1"


def test_the_finder_leaves_parts_of_packages_namespaces_and_the_suites_own_modules_alone(tmp_path):
    for name in (
        "source/shop.py",
        "source/tests.py",
        "source/space/part.py",
        "site/built.py",
        "site/b-1.dist-info/RECORD",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    finder = OverlaysFirst([str(tmp_path / "site"), str(tmp_path / "source")])
    finder.suites |= {"tests", "built"}
    found = {name: finder.find_spec(name) for name in ("shop", "tests", "space", "built", "elsewhere")}
    assert {name for name, spec in found.items() if spec is not None} == {"shop", "built"}
    assert finder.find_spec("shop", [str(tmp_path / "source")]) is None
