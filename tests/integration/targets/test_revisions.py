"""Revisions and working trees become workers that import exactly them: real repositories and builds, no network."""

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from bench.errors import HostError, UsageError
from bench.targets import Cache, default_base, identical, installed_version, parse_side, resolve


def test_a_branch_and_main_import_different_code_under_the_same_suite(project, side, git, notes_at):
    base, head = side("main"), side("feature")
    suites = project / "suites"
    one, two = notes_at(base, suites), notes_at(head, suites)
    assert (one["speed"], two["speed"]) == ("fast", "slow")
    assert len(one["from"]) == len(two["from"])  # a path's length moves a benchmark's time
    assert base.revision.commit == git(project, "rev-parse", "main")
    assert base.label == f"main ({base.revision.commit[:7]})"
    assert not identical(base, head)
    assert identical(base, side(base.revision.commit))


def test_building_leaves_the_repository_as_it_was(project, side, git, write):
    before = git(project, "status", "--porcelain"), git(project, "worktree", "list"), git(project, "for-each-ref")
    write(project, "new.py", "")
    side("main")
    side(".")
    (project / "new.py").unlink()
    after = git(project, "status", "--porcelain"), git(project, "worktree", "list"), git(project, "for-each-ref")
    assert after == before
    assert git(project, "fsck", "--lost-found") == ""


def test_the_working_tree_is_measured_as_it_is_now_and_marked_dirty(project, side, write, module, notes_at):
    clean = side(".")
    assert not clean.revision.dirty
    assert identical(clean, side("HEAD"))
    write(project, "src/shop/__init__.py", module("edited"))
    write(project, "src/shop/extra.py", "MORE = 1\n")  # not added to git
    dirty = side(".")
    assert dirty.revision.dirty
    assert dirty.revision.commit == clean.revision.commit
    assert dirty.label.startswith(f". ({clean.revision.commit[:7]}+")
    notes = notes_at(dirty, project / "suites")
    assert notes["speed"] == "edited"
    assert (Path(notes["from"]).parent / "extra.py").is_file()
    write(project, "src/shop/__init__.py", module("edited again"))
    assert side(".").label != dirty.label


def test_a_change_of_documentation_or_version_alone_is_identical(project, side, git, write, pyproject):
    git(project, "checkout", "-qb", "docs", "main")
    write(project, "README.md", "What shop is.")
    write(project, "pyproject.toml", pyproject(version="1.0.1"))
    git(project, "add", ".")
    git(project, "commit", "-qm", "docs")
    assert identical(side("main"), side("docs"))
    assert not identical(side("main"), side("docs env:A=1"))
    assert not identical(side("main"), side("docs device:cuda"))


def test_a_broken_build_says_the_command_and_its_last_lines_and_leaves_nothing(project, cache, side, write):
    write(project, "broken.txt", "")
    for _ in range(2):  # a failure is not cached as a success
        with pytest.raises(HostError) as caught:
            side(".")
        message = str(caught.value)
        assert message.startswith("building . (")
        assert "pip wheel" in message
        assert "the compiler says no" in message
        assert "\n" not in message
        log = cache / "targets" / "failed.log"
        assert f"(all of it in {log})" in message
        assert "the compiler says no" in log.read_text()
        assert caught.value.exit_code == 7
    assert [e for e in Cache(cache).entries() if e.what["kind"] != "harness"] == []
    assert list((cache / "targets").glob("*.new")) == []
    (project / "broken.txt").unlink()
    side(".")


def test_a_build_that_hangs_is_ended_at_its_deadline(project, side, write):
    write(project, "backend.py", "import time\ntime.sleep(600)\n")
    with pytest.raises(HostError, match="did not end within 3 s"):
        side(".", timeout_s=3)


def test_a_second_time_nothing_is_built(side):
    said = []
    side("main", say=said.append)
    assert any(text.startswith("building main") for text in said)
    said.clear()
    side("main", say=said.append)
    assert said == []


def test_two_that_build_the_same_at_once_build_it_once(side):
    said, targets = [], []
    threads = [threading.Thread(target=lambda: targets.append(side("main", say=said.append))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert targets[0] == targets[1]
    assert sum(text.startswith("building") for text in said) == 1


def test_bare_repositories_and_linked_worktrees_give_the_same_code(project, cache, tmp_path, side, git):
    bare, linked = tmp_path / "bare.git", tmp_path / "linked"
    git(tmp_path, "clone", "-q", "--bare", str(project), str(bare))
    git(project, "worktree", "add", "-q", str(linked), "main")
    for place in (bare, linked):
        there = resolve(parse_side("feature", project=place), project=place, cache=cache)
        assert identical(there, side("feature"))
    assert identical(resolve(parse_side(".", project=linked), project=linked, cache=cache), side("main"))
    with pytest.raises(UsageError, match=r"bare repository .* name a revision"):
        resolve(parse_side(".", project=bare), project=bare, cache=cache)


def test_a_project_in_a_folder_of_its_repository_is_built_from_there(project, cache, tmp_path, git, notes_at):
    mono = tmp_path / "mono"
    mono.mkdir()
    git(mono, "init", "-q")
    git(mono, "commit", "-qm", "empty", "--allow-empty")
    git(project, "archive", "--prefix=parts/shop/", "-o", str(tmp_path / "shop.tar"), "main")
    subprocess.run(["tar", "-xf", str(tmp_path / "shop.tar")], cwd=mono, check=True)
    git(mono, "add", ".")
    git(mono, "commit", "-qm", "shop")
    inside = mono / "parts" / "shop"
    target = resolve(parse_side("HEAD", project=inside), project=inside, cache=cache)
    assert notes_at(target, project / "suites")["speed"] == "fast"
    with pytest.raises(UsageError, match="has no folder parts/shop"):
        resolve(parse_side("HEAD~1", project=inside), project=inside, cache=cache)


def test_a_project_without_a_build_is_imported_as_it_lies(project, side, git, notes_at):
    git(project, "rm", "-q", "pyproject.toml", "backend.py")
    git(project, "commit", "-qm", "scripts only")
    assert notes_at(side("HEAD"), project / "suites")["speed"] == "slow"


def test_a_build_sees_commit_and_tags_so_that_versions_may_come_from_git(project, side, git, write, backend):
    text = backend.replace(
        'project["version"]', '__import__("subprocess").check_output(["git", "describe", "--tags"], text=True).strip()'
    )
    write(project, "backend.py", text)
    git(project, "commit", "-qam", "version from git")
    git(project, "tag", "3.2")
    assert installed_version(side("HEAD"), "shop") == "3.2"


def test_the_default_base_is_where_the_branch_left_main(project, tmp_path, git):
    fork = git(project, "rev-parse", "main")
    git(project, "checkout", "-q", "main")
    git(project, "commit", "-qm", "later", "--allow-empty")
    git(project, "checkout", "-q", "feature")
    base = default_base(project)
    assert (base.commit, base.branch) == (fork, "main")
    git(tmp_path, "clone", "-q", str(project), "clone")
    clone = tmp_path / "clone"  # the branch that origin has checked out is its default
    assert default_base(clone).branch == "feature"
    git(clone, "remote", "set-head", "origin", "--delete")
    assert (default_base(clone).commit, default_base(clone).branch) == (fork, "main")


def test_without_a_default_branch_or_a_common_commit_the_base_must_be_named(project, git):
    git(project, "checkout", "-q", "--orphan", "other")
    git(project, "commit", "-qm", "unrelated")
    with pytest.raises(UsageError, match="no common commit"):
        default_base(project)
    git(project, "branch", "-qD", "main")
    with pytest.raises(UsageError, match="name the base"):
        default_base(project)


def test_other_compiler_flags_are_another_build(side, monkeypatch):
    said = []
    side("main")
    monkeypatch.setenv("CFLAGS", "-O1")
    side("main", say=said.append)
    assert any(text.startswith("building main") for text in said)


def test_variables_that_git_sets_inside_its_hooks_do_not_lead_elsewhere(project, side, tmp_path, monkeypatch, git):
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git" / "index"))
    assert installed_version(side("."), "shop") == "1.0"


def test_a_large_pile_of_untracked_files_is_refused_by_name(project, side):
    with (project / "weights.bin").open("wb") as file:
        file.truncate(300_000_000)
    with pytest.raises(UsageError, match=r"300 MB of untracked files \(weights.bin is the largest\)"):
        side(".")
    (project / ".gitignore").write_text("*.bin\n")
    side(".")


def test_a_shallow_clone_gives_what_it_has_and_says_what_is_missing(project, cache, tmp_path, git, notes_at):
    git(tmp_path, "clone", "-q", "--depth=1", project.as_uri(), "shallow")
    shallow = tmp_path / "shallow"
    target = resolve(parse_side("HEAD", project=shallow), project=shallow, cache=cache)
    assert notes_at(target, project / "suites")["speed"] == "slow"
    with pytest.raises(UsageError, match="nothing that can be measured"):
        parse_side("main", project=shallow)
    git(shallow, "fetch", "-q", "--depth=1", "origin", "main:refs/remotes/origin/main")
    git(shallow, "remote", "set-head", "origin", "--delete")
    assert parse_side("main", project=shallow).revision == "main"
    with pytest.raises(UsageError, match="fetch more history"):
        default_base(shallow)


def test_all_revisions_are_built_at_one_path_so_that_equal_sources_are_equal_artifacts(project, side, write, backend):
    text = backend.replace("def build_wheel", "import os\ndef build_wheel", 1).replace(
        'if pathlib.Path("broken.txt")', 'pathlib.Path("src/shop/built.py").write_text(repr(os.getcwd()))\n'
        '    if pathlib.Path("broken.txt")',
    )  # fmt: skip
    write(project, "backend.py", text)
    first = side(".")
    write(project, "README.md", "More words.")
    second = side(".")
    assert first.label != second.label
    assert identical(first, second)


def test_a_build_ends_with_a_bench_that_is_killed_and_the_next_one_is_whole(project, cache, side, tmp_path, write):
    pid_file = tmp_path / "pid"
    good = (project / "backend.py").read_text()
    write(project, "backend.py", f"""\
        import os, pathlib, time
        pathlib.Path({str(pid_file)!r}).write_text(str(os.getpid()))
        time.sleep(600)
        """)  # fmt: skip
    code = (
        "import sys; from pathlib import Path; from bench.targets import parse_side, resolve; p = Path(sys.argv[1]);"
        "resolve(parse_side('.', project=p), project=p, cache=Path(sys.argv[2]))"
    )
    bench = subprocess.Popen([sys.executable, "-c", code, str(project), str(cache)], stderr=subprocess.DEVNULL)
    try:
        assert eventually(lambda: pid_file.is_file() and pid_file.read_text())
    finally:
        bench.kill()
        bench.wait()
    assert eventually(lambda: not alive(int(pid_file.read_text())))
    (project / "backend.py").write_text(good)
    assert installed_version(side("."), "shop") == "1.0"


def eventually(condition, seconds=30):
    end = time.monotonic() + seconds
    while not (met := condition()) and time.monotonic() < end:
        time.sleep(0.05)
    return met


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
