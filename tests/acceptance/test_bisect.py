"""`bench bisect` on a real repository: twelve commits, one of them slow, some that cannot be tested."""

import json
import signal

import pytest

from bench.errors import Exit

SLOW = 4500
"""Three times the units of the others: no machine is so busy that it could hide."""

BROKEN = """
[tool.bench]
suites = ["suites"]
[project]
name = "shop"
version = "1"
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""


@pytest.fixture
def history(project):
    """The project with the tags c1 to c12: slow from c8 on, c5 does not build, c7 does not run."""
    project.write("backend.py", "def build_wheel(*a, **k):\n    raise SystemExit('the compiler says no')\n")
    settings = (project.folder / "pyproject.toml").read_text()
    for number in range(1, 13):
        code = f"    RELEASE = {number}\n" + project.code(units=SLOW if number >= 8 else 1500)
        project.write("src/shop.py", "def work(:\n" if number == 7 else code)
        project.write("pyproject.toml", BROKEN if number == 5 else settings)
        project.commit(f"change {number}")
        project.git("tag", f"c{number}")
    return project


def search(project, *arguments, code):
    """A whole search takes about fifty pairs of launches, which is long on a busy machine."""
    process = project.start("bisect", *arguments, "shopping.work", "--format", "json")
    out, err = process.communicate(timeout=600)
    assert process.returncode == code, err
    document = json.loads(out)
    assert document["exit_code"] == code
    return document, err


def test_the_slow_commit_is_found_among_untestable_ones_and_not_measured_twice(history):
    """c7 does not run, so that c7 and c8 cannot be told apart; the proof is against c6."""
    document, err = search(history, "c3", "c9", code=Exit.REGRESSION)
    assert [c["subject"] for c in document["suspects"]] == ["change 7", "change 8"]
    assert (document["verdict"], document["ended"]) == ("regressed", "narrowed")
    assert document["effect"]["base"]["subject"] == "change 6"
    assert document["effect"]["confirmed"]
    assert document["effect"]["change"]["low"] > 1.3
    places = {s["change"]["subject"]: s["place"] for s in document["steps"]}
    assert places["change 7"] == "untestable"
    assert "stored as" in err
    again, err = search(history, "c3", "c9", code=Exit.REGRESSION)
    assert again == document
    assert "going on from" in err
    assert "stored as" not in err
    assert len(json.loads(history("show", "--list", "--json")[0])) == 1


def test_an_exact_metric_is_searched_with_one_launch_a_change(project):
    """The artifact shrinks in the fifth of eight commits."""
    project.write(
        "suites/shopping.py",
        """
        from bench.api import Work, benchmark

        @benchmark()
        def work(device):
            import shop
            return Work(run=shop.work, size_bytes=shop.BYTES)
        """,
    )
    for number in range(1, 9):
        project.write("src/shop.py", f"BYTES = {2000 if number < 5 else 1500}\n\n\ndef work():\n    return {number}\n")
        project.commit(f"change {number}")
    document, _ = search(project, "HEAD~7", "HEAD", "--metric", "size", code=Exit.OK)
    (found,) = document["suspects"]
    assert (found["subject"], found["author"], document["verdict"]) == ("change 5", "A", "improved")
    assert (document["ended"], document["kind"]) == ("found", "difference")
    assert document["effect"]["change"]["value"] == -500
    assert {s["launches"] for s in document["steps"]} == {1}


def test_ends_without_a_difference_end_well(history):
    history.git("commit", "-q", "--allow-empty", "-m", "nothing")
    out, _ = history("bisect", "c12", "HEAD", "shopping.work")
    assert "does not differ" in out
    assert "the same bytes" in out


def test_an_interrupted_search_keeps_its_answers(history, until_spooled):
    process = history.start("bisect", "c2", "c12", "shopping.work")
    until_spooled(history)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == Exit.FAILED, err
    assert "interrupted" in out
    assert "Traceback" not in err


def test_what_cannot_be_searched_is_one_sentence(history):
    assert "is older than" in history.sentence("bisect", "c9", "c2", "shopping.work", code=Exit.USAGE)
    out, err = history("bisect", "c11", "c12", "shopping.*", code=Exit.USAGE)
    assert (out, "'shopping.*' is 2 variants and a bisection follows one" in err.splitlines()[-1]) == ("", True)
    out, err = history("bisect", "c5", "c12", "shopping.work", code=Exit.ENVIRONMENT)
    assert "the compiler says no" in err.splitlines()[-1]
