"""`bench run` and `bench list` with another interpreter: it is used as it is, and nothing is put into it."""

import json
import sys
import venv

import pytest

from bench.errors import Exit

SUITE = """
    import sys

    from bench.api import Work, benchmark

    import only_there

    @benchmark()
    def work(device):
        return Work(run=only_there.work, notes={"prefix": sys.prefix})
"""

ASV = """
    import only_there

    def time_work():
        only_there.work()
"""


@pytest.fixture
def other(tmp_path):
    """A virtual environment without bench and without pip, with a module that only it has."""
    home = tmp_path / "other"
    venv.create(home, with_pip=False)
    (site,) = home.glob("lib/python*/site-packages")
    (site / "only_there.py").write_text("def work():\n    return sum(range(2000))\n")
    return home


def contents(folder):
    return sorted(str(path) for path in folder.rglob("*") if "__pycache__" not in str(path))


def test_run_and_list_use_the_interpreter_that_is_named(project, other):
    project.write("suites/shopping.py", SUITE)
    before = contents(other)
    out, _ = project("list", "--python", str(other))
    assert "shopping.work" in out
    out, err = project("run", "--python", str(other / "bin" / "python"), "--launches", "1", "--json", "-")
    document = json.loads(out)
    (variant,) = document["experiments"][0]["variants"]
    assert (variant["name"], variant["notes"]) == ("shopping.work", {"prefix": str(other)})
    assert document["run"]["environment"]["packages"] == {}
    assert document["run"]["environment"]["python"].split()[1] == ".".join(map(str, sys.version_info[:3]))
    assert contents(other) == before
    assert "shopping.py" not in err
    project("list", code=Exit.FAILED)  # here there is no such module


def test_what_a_foreign_suite_needs_is_installed_beside_the_interpreter(project, other):
    """asv_runner is not in the environment of the project."""
    project.write("asv.conf.json", '{"version": 1, "project": "shop", "repo": ".", "benchmark_dir": "asv"}\n')
    project.write("asv/__init__.py", "")
    project.write("asv/shopping.py", ASV)
    before = contents(other)
    out, _ = project("run", "--asv", ".", "--python", str(other), "--launches", "1", "--json", "-")
    (variant,) = json.loads(out)["experiments"][0]["variants"]
    assert variant["failure"] is None
    assert variant["metrics"]["time"]["value"] > 0
    assert contents(other) == before


@pytest.mark.parametrize("verb", ["run", "list"])
def test_an_interpreter_that_cannot_measure_is_one_sentence(project, verb):
    def script(name, text):
        path = project.folder / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return str(path)

    old = script("old", "echo '{\"version\": [3, 8, 18]}'")
    text = project.sentence(verb, "--python", old, code=Exit.USAGE)
    assert "is Python 3.8.18 and bench measures 3.11 or newer" in text
    text = project.sentence(verb, "--python", "no/such/python", code=Exit.USAGE)
    assert "there is no interpreter no/such/python" in text
    text = project.sentence(verb, "--python", script("other", "echo hello"), code=Exit.ENVIRONMENT)
    assert "'hello'; is it a Python?" in text
