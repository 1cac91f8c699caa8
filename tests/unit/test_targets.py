"""What a side's text means."""

import subprocess
from datetime import UTC, datetime, timedelta

import pytest

from bench.errors import UsageError
from bench.model import Revision
from bench.targets import age, parse_side
from bench.targets.parse import requirement_name


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A repository with the branches main, numpy and latest, and the tag v1.0."""
    root = tmp_path_factory.mktemp("project")
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
    for line in ("init -q", "commit -q --allow-empty -m one", "branch numpy", "branch latest", "tag v1.0",
                 "commit -q --allow-empty -m two", "update-ref refs/remotes/origin/theirs HEAD"):  # fmt: skip
        subprocess.run(["git", *identity, *line.split()], cwd=root, check=True, capture_output=True)
    return root


def commit(project):
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=project, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.mark.parametrize("text", ["main", "HEAD~1", "v1.0", ".", "numpy", "HEAD^", "theirs", "origin/theirs"])
def test_what_git_resolves_is_a_revision(project, text):
    assert parse_side(text, project=project).revision == text


def test_a_beginning_of_a_commit_is_a_revision_before_it_is_a_run(project):
    short = commit(project)[:8]
    assert parse_side(short, project=project).revision == short
    assert parse_side(f"run:{short}", project=project).run == short


@pytest.mark.parametrize("text", ["latest", "latest~1", "latest@main", "latest@a/b~3", "run:beef", "run:latest~2"])
def test_stored_runs_are_named_by_key_or_age(project, text):
    assert parse_side(text, project=project).run == text.removeprefix("run:")


def test_a_key_is_a_run_where_no_commit_begins_so(project):
    key = "ffff" if not commit(project).startswith("ffff") else "eeee"
    assert parse_side(key, project=project).run == key
    with pytest.raises(UsageError):
        parse_side("fff", project=project)


def test_a_branch_called_latest_needs_its_prefix(project):
    assert parse_side("latest", project=project).run == "latest"
    assert parse_side("rev:latest", project=project).revision == "latest"


@pytest.mark.parametrize(
    ("text", "requirements"),
    [
        ("onnxruntime==1.31.1", ("onnxruntime==1.31.1",)),
        ("onnxruntime==1.31.1,numpy==2.0", ("onnxruntime==1.31.1", "numpy==2.0")),
        ("onnxruntime==1.31.1 numpy==2.0", ("onnxruntime==1.31.1", "numpy==2.0")),
        ("numpy>=1.26,<2", ("numpy>=1.26,<2",)),
        ("numpy>=1.26,<2,scipy~=1.13", ("numpy>=1.26,<2", "scipy~=1.13")),
        ("pkg[a,b]==1.*", ("pkg[a,b]==1.*",)),
        ("torch==2.9.0+cpu", ("torch==2.9.0+cpu",)),
        ("pkg!=1.0rc1", ("pkg!=1.0rc1",)),
    ],
)
def test_requirements_are_separated_by_commas_or_spaces(project, text, requirements):
    spec = parse_side(text, project=project)
    assert spec.requirements == requirements
    assert spec.revision is None


def test_words_of_different_forms_describe_one_side(project):
    spec = parse_side("main numpy==2.0 env:A=1 env:B='x y,z' device:cuda python:/usr/bin/python3", project=project)
    assert (spec.revision, spec.requirements) == ("main", ("numpy==2.0",))
    assert spec.variables == {"A": "1", "B": "x y,z"}
    assert (spec.device, spec.python) == ("cuda", "/usr/bin/python3")


def test_a_variable_may_be_empty_and_hold_equals_and_colons(project):
    assert parse_side("env:A= env:B=c=d:e", project=project).variables == {"A": "", "B": "c=d:e"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("nonsense", "a git revision .* a requirement .* a setting .* a stored run"),
        ("env:A", "env:NAME=VALUE"),
        ("env:1A=2", "env:NAME=VALUE"),
        ("env:PYTHONHASHSEED=1", "bench itself sets PYTHONHASHSEED"),
        ("env:A=1 env:A=2", "sets A twice"),
        ("device:", "ends after the colon"),
        ("device:a b", "nothing that can be measured"),
        ("run:xyz", "names no run"),
        ("rev:nonsense", "no revision"),
        ("rev:--help", "no revision"),
        ("--help", "nothing that can be measured"),
        ("main v1.0", "two revisions"),
        ("device:cpu device:cuda", "two devices"),
        ("latest main", "stands alone"),
        ("main 'open", "cannot be read"),
        ("gone.whl", "is not there"),
    ],
)
def test_what_means_nothing_is_said_in_one_sentence(project, text, says):
    with pytest.raises(UsageError, match=says) as caught:
        parse_side(text, project=project)
    assert "\n" not in str(caught.value)


def test_outside_git_a_word_is_no_revision_and_the_message_says_why(tmp_path):
    assert parse_side("numpy==2.0", project=tmp_path).requirements
    assert parse_side("beef", project=tmp_path).run == "beef"
    with pytest.raises(UsageError, match=r"no revision could be looked up: .*not a git repository"):
        parse_side("main", project=tmp_path)


@pytest.mark.parametrize(
    ("requirement", "name"),
    [("Foo_Bar[x]>=1", "foo-bar"), ("a.b==1", "a-b"), ("/x y/foo_bar-1.0-py3-none-any.whl", "foo-bar")],
)
def test_a_requirement_names_its_distribution_in_one_spelling(requirement, name):
    assert requirement_name(requirement) == name


def test_age_is_told_in_the_largest_unit_that_fits():
    now = datetime(2026, 1, 10, tzinfo=UTC)
    told = {
        text: age(Revision(commit="0", committed_at=now - back), now)
        for text, back in (
            ("days", timedelta(days=3, hours=5)), ("day", timedelta(days=1)), ("hours", timedelta(hours=5)),
            ("minute", timedelta(seconds=61)), ("now", timedelta(seconds=1)), ("later", timedelta(seconds=-9)),
        )
    }  # fmt: skip
    assert told == {
        "days": "3 days", "day": "1 day", "hours": "5 hours", "minute": "1 minute", "now": "under a minute",
        "later": "under a minute",
    }  # fmt: skip
    assert age(Revision(commit="0")) == ""
