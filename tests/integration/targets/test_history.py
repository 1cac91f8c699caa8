"""Commits of a range and releases of a package, oldest first; what is no range is one sentence."""

import pytest

from bench.errors import BuildError, UsageError
from bench.targets.history import commits, listed_versions, releases
from bench.targets.installer import Installer
from bench.targets.interpreter import read_interpreter
from bench.targets.revision import Repository


@pytest.fixture
def repository(project, git):
    """main: fast, one, two, merge of `side` (aside, beside) into two, three."""

    def commit(*names):
        for name in names:
            git(project, "commit", "-q", "--allow-empty", "-m", name)
            git(project, "tag", name)

    git(project, "checkout", "-q", "main")
    commit("one", "two")
    git(project, "checkout", "-q", "-b", "side", "one")
    commit("aside", "beside")
    git(project, "checkout", "-q", "main")
    git(project, "merge", "-q", "--no-ff", "-m", "joined", "side")
    commit("three")
    return Repository.open(project)


def subjects(changes):
    return [change.subject for change in changes]


def test_commits_come_after_their_parents_from_the_good_one_to_the_bad_one(repository):
    found = commits(repository, "one", "main")
    assert subjects(found)[0] == "one"
    assert subjects(found)[-2:] == ["joined", "three"]
    assert set(subjects(found)[1:-2]) == {"two", "aside", "beside"}
    place = {change.name: i for i, change in enumerate(found)}
    assert all(place[p] < i for i, change in enumerate(found) if i for p in change.parents)
    joined = found[-2]
    assert len(joined.parents) == 2
    assert (found[1].author, found[1].authored_at.utcoffset() is not None, len(found[1].short)) == ("A", True, 9)


def test_with_first_parents_a_merge_is_one_change(repository):
    assert subjects(commits(repository, "one", "main", first_parent=True)) == ["one", "two", "joined", "three"]


@pytest.mark.parametrize(
    ("good", "bad", "says"),
    [
        ("main", "one", "one is older than main; give the older one first"),
        ("main", "main", "the same commit"),
        ("two", "beside", "does not descend from two; compare with where they parted: [0-9a-f]{9}"),
        ("nowhere", "main", "nowhere is no revision"),
    ],
)
def test_what_is_no_range_is_said(repository, good, bad, says):
    with pytest.raises(UsageError, match=says):
        commits(repository, good, bad)


class Index:
    """An installer that knows one package."""

    def versions(self, package):
        return f"{package} (1.10.0)\nAvailable versions: 1.10.0, 1.9.1, 1.9.0, 1.2.0\n  INSTALLED: 1.9.0\n"


def test_releases_come_in_the_order_of_versions():
    found = releases(Index(), "shop", "1.9", "v1.10.0")
    assert [c.name for c in found] == ["1.9.0", "1.9.1", "1.10.0"]
    assert found[1].parents == ("1.9.0",)
    assert (found[1].subject, found[1].short) == ("shop 1.9.1", "1.9.1")
    for good, bad, says in (
        ("1.9.1", "1.2", "is older"),
        ("1.2", "1.2.0", "the same release"),
        ("1.3", "1.9", "newest"),
    ):
        with pytest.raises(UsageError, match=says):
            releases(Index(), "shop", good, bad)


def test_a_package_that_nobody_has_is_no_history():
    with pytest.raises(BuildError, match="lists no release of shop"):
        listed_versions("shop", "ERROR: No matching distribution found for shop\n")


def test_pip_lists_the_releases_and_tells_which_have_a_wheel(index, wheel, tmp_path):
    for version in ("1.0", "1.1", "2.0rc1"):
        wheel(index, "tinylib", version, "")
    (index / "tinylib-1.0.1.tar.gz").write_bytes(b"")  # a release that would have to be compiled
    installer = Installer(interpreter=read_interpreter(None), isolation=True, timeout_s=60, log=tmp_path / "log")
    assert listed_versions("tinylib", installer.versions("tinylib")) == ["1.0", "1.0.1", "1.1"]
    assert [installer.has_wheel(f"tinylib=={version}") for version in ("1.0", "1.0.1", "1.1")] == [True, False, True]
    with pytest.raises(BuildError):
        installer.versions("absentlib")
