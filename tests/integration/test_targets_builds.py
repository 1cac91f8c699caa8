"""From a text to two workers that import different code: real repositories, builds and processes, no network."""

import os
import shutil
import subprocess
import sys
import textwrap
import threading
import venv
import zipfile
from datetime import timedelta
from pathlib import Path

import pytest

from bench.errors import HostError, UsageError
from bench.measure.session import Session
from bench.model import Target
from bench.sources.native import NativeSource
from bench.targets import Cache, default_base, identical, installed_version, parse_side, resolve
from bench.targets.proof import check_origins

BACKEND = """
import pathlib, tomllib, zipfile

HEAD = "Metadata-Version: 2.1\\n"

def build_wheel(folder, config_settings=None, metadata_directory=None):
    if pathlib.Path("broken.txt").exists():
        raise SystemExit("the compiler says no")
    project = tomllib.loads(pathlib.Path("pyproject.toml").read_text())["project"]
    name, version = project["name"], project["version"]
    info = f"{name}-{version}.dist-info"
    needs = "".join(f"Requires-Dist: {need}\\n" for need in project.get("dependencies", []))
    about = pathlib.Path("README.md").read_text() if pathlib.Path("README.md").exists() else ""
    files = {str(p.relative_to("src")): p.read_bytes() for p in sorted(pathlib.Path("src").rglob("*.py"))}
    files[f"{info}/METADATA"] = f"{HEAD}Name: {name}\\nVersion: {version}\\n{needs}\\n{about}".encode()
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"
    files[f"{info}/RECORD"] = "".join(f"{path},,\\n" for path in [*files, f"{info}/RECORD"]).encode()
    wheel = f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(folder) / wheel, "w") as archive:
        for path, data in files.items():
            archive.writestr(path, data)
    return wheel
"""
"""A build backend without dependencies, so that a build needs no network."""

SUITE = """
from bench.api import Work, benchmark

@benchmark()
def work(device):
    '''Says which code it runs.'''
    import shop
    return Work(run=shop.work, notes={"speed": shop.SPEED, "from": shop.__file__})
"""


def git(folder, *arguments):
    variables = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    for who in ("AUTHOR", "COMMITTER"):
        variables |= {f"GIT_{who}_NAME": "A", f"GIT_{who}_EMAIL": "a@example.org"}
    done = subprocess.run(
        ["git", "-c", "init.defaultBranch=main", *arguments], cwd=folder, env=variables, check=True,
        capture_output=True, text=True,
    )  # fmt: skip
    return done.stdout.strip()


def write(folder, name, text):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text))


def module(speed):
    return f"SPEED = {speed!r}\n\ndef work():\n    return sum(range(100 if SPEED == 'fast' else 100_000))\n"


def pyproject(dependencies=(), version="1.0"):
    return f"""\
[project]
name = "shop"
version = "{version}"
dependencies = {list(dependencies)!r}
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""


@pytest.fixture
def project(tmp_path):
    """A package `shop`: fast on main, slow on the branch `feature`, which is checked out."""
    root = tmp_path / "a project"
    root.mkdir()
    write(root, "backend.py", BACKEND)
    write(root, "pyproject.toml", pyproject())
    write(root, "src/shop/__init__.py", module("fast"))
    write(root, "suites/shopping.py", SUITE)
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "fast")
    git(root, "checkout", "-qb", "feature")
    write(root, "src/shop/__init__.py", module("slow"))
    git(root, "commit", "-qam", "slow")
    return root


@pytest.fixture(scope="module")
def harness(tmp_path_factory):
    """A cache with nothing but our own code in it, which is the same for every test."""
    folder = tmp_path_factory.mktemp("harness")
    resolve(parse_side("env:A=1", project=folder), project=folder, cache=folder)
    return folder


@pytest.fixture
def cache(tmp_path, harness):
    return Path(shutil.copytree(harness, tmp_path / "the cache"))


@pytest.fixture
def side(project, cache):
    """text → Target, in the project."""

    def make(text, **options):
        return resolve(parse_side(text, project=project), project=project, cache=cache, **options)

    return make


def notes_at(target, suites):
    """What the suite's set-up says of itself in a worker at `target`."""
    source = NativeSource([str(suites)])
    (benchmark,) = source.discover(target).benchmarks
    with Session() as session:
        worker = session.start(target, threads=1, hash_seed=0)
        answer = worker.ask(
            "set_up", 30, path=list(source.path), device="runners.devices.cpu:Cpu", threads=1, requires=[],
            loader=benchmark.loader, source=benchmark.source, params={},
        )  # fmt: skip
        worker.close()
    return answer["notes"]


def wheel(folder, name, version, body, dependencies=()):
    """A pure-Python wheel of one module."""
    info = f"{name}-{version}.dist-info"
    needs = "".join(f"Requires-Dist: {need}\n" for need in dependencies)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}.py", body)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", f"{name}.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    return path


@pytest.fixture
def index(tmp_path, monkeypatch):
    """A folder of wheels that pip installs from, and from nowhere else."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", folder.as_uri())
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    return folder


def test_a_branch_and_main_import_different_code_under_the_same_suite(project, side):
    base, head = side("main"), side("feature")
    suites = project / "suites"
    one, two = notes_at(base, suites), notes_at(head, suites)
    assert (one["speed"], two["speed"]) == ("fast", "slow")
    assert len(one["from"]) == len(two["from"])  # a path's length moves a benchmark's time
    assert base.revision.commit == git(project, "rev-parse", "main")
    assert base.label == f"main ({base.revision.commit[:7]})"
    assert not identical(base, head)
    assert identical(base, side(base.revision.commit))


def test_building_leaves_the_repository_as_it_was(project, side):
    before = git(project, "status", "--porcelain"), git(project, "worktree", "list"), git(project, "for-each-ref")
    write(project, "new.py", "")
    side("main")
    side(".")
    (project / "new.py").unlink()
    after = git(project, "status", "--porcelain"), git(project, "worktree", "list"), git(project, "for-each-ref")
    assert after == before
    assert git(project, "fsck", "--lost-found") == ""


def test_the_working_tree_is_measured_as_it_is_now_and_marked_dirty(project, side):
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


def test_a_change_of_documentation_or_version_alone_is_identical(project, side):
    git(project, "checkout", "-qb", "docs", "main")
    write(project, "README.md", "What shop is.")
    write(project, "pyproject.toml", pyproject(version="1.0.1"))
    git(project, "add", ".")
    git(project, "commit", "-qm", "docs")
    assert identical(side("main"), side("docs"))
    assert not identical(side("main"), side("docs env:A=1"))
    assert not identical(side("main"), side("docs device:cuda"))


def test_a_broken_build_says_the_command_and_its_last_lines_and_leaves_nothing(project, cache, side):
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


def test_a_build_that_hangs_is_ended_at_its_deadline(project, side):
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


def test_bare_repositories_and_linked_worktrees_give_the_same_code(project, cache, tmp_path, side):
    bare, linked = tmp_path / "bare.git", tmp_path / "linked"
    git(tmp_path, "clone", "-q", "--bare", str(project), str(bare))
    git(project, "worktree", "add", "-q", str(linked), "main")
    for place in (bare, linked):
        there = resolve(parse_side("feature", project=place), project=place, cache=cache)
        assert identical(there, side("feature"))
    assert identical(resolve(parse_side(".", project=linked), project=linked, cache=cache), side("main"))
    with pytest.raises(UsageError, match=r"bare repository .* name a revision"):
        resolve(parse_side(".", project=bare), project=bare, cache=cache)


def test_a_project_in_a_folder_of_its_repository_is_built_from_there(project, cache, tmp_path):
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


def test_a_project_without_a_build_is_imported_as_it_lies(project, side):
    git(project, "rm", "-q", "pyproject.toml", "backend.py")
    git(project, "commit", "-qm", "scripts only")
    assert notes_at(side("HEAD"), project / "suites")["speed"] == "slow"


def test_a_build_sees_commit_and_tags_so_that_versions_may_come_from_git(project, side):
    text = BACKEND.replace(
        'project["version"]', '__import__("subprocess").check_output(["git", "describe", "--tags"], text=True).strip()'
    )
    write(project, "backend.py", text)
    git(project, "commit", "-qam", "version from git")
    git(project, "tag", "3.2")
    assert installed_version(side("HEAD"), "shop") == "3.2"


def test_requirement_sides_import_two_versions_with_what_they_depend_on(index, side):
    for version in ("1.0", "2.0"):
        wheel(index, "tinylib", version, f"VERSION = {version!r}\nimport helperlib\n", ["helperlib"])
    wheel(index, "helperlib", "5.0", "")
    one, two = side("tinylib==1.0"), side("tinylib==2.0")
    assert installed_version(one, "tinylib") == "1.0"
    assert installed_version(two, "tinylib") == "2.0"
    assert installed_version(one, "helperlib") == "5.0"
    assert installed_version(one, "not-there-at-all") is None
    assert one.requirements == ("helperlib==5.0", "tinylib==1.0")
    assert one.label == "tinylib==1.0"
    assert not identical(one, two)
    assert identical(one, side("tinylib==1.0"))


def test_a_requirement_that_the_interpreter_meets_installs_nothing(index, side):
    target = side("numpy>=1")
    assert len(target.requirements) == 1
    assert target.requirements[0].startswith("numpy==")
    assert installed_version(target, "numpy") == target.requirements[0].removeprefix("numpy==")


def test_two_wheels_of_one_version_are_two_sides(index, side, tmp_path):
    one = wheel(tmp_path / "one", "tinylib", "1.0", "A = 1\n")
    two = wheel(tmp_path / "two", "tinylib", "1.0", "A = 2\n")
    assert not identical(side(f"'{one}'"), side(f"'{two}'"))
    assert side(f"'{one}'").label == one.name


def test_a_requirement_that_nobody_has_fails_as_an_environment(index, side):
    with pytest.raises(HostError, match=r"resolving absentlib==9\.9 failed: .*No matching distribution"):
        side("absentlib==9.9")


def test_a_revision_brings_the_dependencies_of_its_own_commit(project, index, side):
    """The version of the project stays the same: only the commit's own metadata tells what it needs."""
    wheel(index, "tinylib", "1.0", "")
    wheel(index, "tinylib", "2.0", "")
    write(project, "pyproject.toml", pyproject(["tinylib<2"]))
    git(project, "commit", "-qam", "needs the old one")
    write(project, "pyproject.toml", pyproject(["tinylib>=2", "absentlib; extra == 'more'"]))
    git(project, "commit", "-qam", "needs the new one")
    assert installed_version(side("HEAD~1"), "tinylib") == "1.0"
    assert installed_version(side("HEAD"), "tinylib") == "2.0"
    forced = side("HEAD tinylib==1.0")
    assert installed_version(forced, "tinylib") == "1.0"
    assert "tinylib==1.0" in forced.requirements


def test_every_side_gets_the_requirements_asked_for_all_unless_it_names_its_own(index, side):
    for version in ("1.0", "2.0"):
        wheel(index, "tinylib", version, "")
    assert installed_version(side("env:A=1", requirements=["tinylib==1.0"]), "tinylib") == "1.0"
    assert installed_version(side("tinylib==2.0", requirements=["tinylib==1.0"]), "tinylib") == "2.0"


def test_an_interpreter_without_pip_is_used_and_left_as_it_is(index, side, tmp_path):
    wheel(index, "tinylib", "1.0", "")
    venv.create(tmp_path / "bare venv", with_pip=False)
    before = sorted(p.name for p in (tmp_path / "bare venv").rglob("*.dist-info"))
    target = side("main tinylib==1.0", python=str(tmp_path / "bare venv"))
    assert target.python == str(tmp_path / "bare venv" / "bin" / "python")
    assert installed_version(target, "tinylib") == "1.0"
    assert sorted(p.name for p in (tmp_path / "bare venv").rglob("*.dist-info")) == before == []


def test_an_installation_that_hides_the_build_is_refused(side, tmp_path):
    """Some editable installations put a finder before the search path; the wrong code must not be measured."""
    home = tmp_path / "hidden"
    venv.create(home, with_pip=False)
    (site,) = home.glob("lib/python*/site-packages")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "shop.py").write_text("SPEED = 'wrong'\n")
    write(site, "hider.py", f"""\
        import importlib.machinery, sys
        class Finder:
            def find_spec(self, name, path=None, target=None):
                if name == "shop":
                    return importlib.machinery.PathFinder.find_spec(name, [{str(tmp_path / "elsewhere")!r}])
        sys.meta_path.insert(0, Finder())
        """)  # fmt: skip
    (site / "hider.pth").write_text("import hider\n")
    with pytest.raises(HostError, match=r"shop would be imported from .*elsewhere"):
        side("main", python=str(home))


def test_an_editable_installation_of_the_working_tree_does_not_hide_a_revision(project, side, tmp_path):
    home = tmp_path / "editable"
    venv.create(home, with_pip=False)
    (site,) = home.glob("lib/python*/site-packages")
    (site / "shop.pth").write_text(f"{project / 'src'}\n")
    assert notes_at(side("main", python=str(home)), project / "suites")["speed"] == "fast"


def test_workers_take_our_code_from_the_harness_whatever_the_project_holds(project, side):
    write(project, "src/bench/__init__.py", "raise ImportError('not ours')\n")
    assert notes_at(side("."), project / "suites")["speed"] == "slow"


def test_settings_become_variables_and_devices(side, cache):
    target = side("env:OMP_NUM_THREADS=2 env:FLAGS='a b' device:cuda")
    assert target.variables["OMP_NUM_THREADS"] == "2"
    assert target.variables["FLAGS"] == "a b"
    assert target.device == "cuda"
    assert target.revision is None
    check_origins(target, ["numpy"], Path(sys.prefix))
    harness = Path(target.variables["PYTHONPATH"].split(os.pathsep)[0])
    assert [p.name for p in harness.iterdir()] == ["bench"]
    assert harness.is_relative_to(cache)


def test_the_callers_own_search_path_stays_behind_ours(side, monkeypatch, tmp_path):
    write(tmp_path, "mine/shop.py", "SPEED = 'mine'\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "mine"))
    target = side("main")
    assert str(tmp_path / "mine") in target.variables["PYTHONPATH"].split(os.pathsep)
    assert installed_version(target, "shop") == "1.0"


def test_a_stored_run_cannot_be_launched(side):
    with pytest.raises(UsageError, match="nothing to launch"):
        side("latest")


def test_the_default_base_is_where_the_branch_left_main(project, tmp_path):
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


def test_without_a_default_branch_or_a_common_commit_the_base_must_be_named(project):
    git(project, "checkout", "-q", "--orphan", "other")
    git(project, "commit", "-qm", "unrelated")
    with pytest.raises(UsageError, match="no common commit"):
        default_base(project)
    git(project, "branch", "-qD", "main")
    with pytest.raises(UsageError, match="name the base"):
        default_base(project)


def test_unused_targets_are_pruned_and_used_ones_are_kept(cache, side):
    side("main")
    side("feature")
    store = Cache(cache)
    assert store.prune(timedelta(hours=1)) == []
    (old,) = [e for e in store.entries() if e.what["kind"] == "project"][:1]
    os.utime(old.folder / "used", (0, 0))
    (cache / "targets" / "0123456789abcdef.new").mkdir()
    assert [e.key for e in store.prune(timedelta(hours=1))] == [old.key]
    assert not old.folder.exists()
    assert list((cache / "targets").glob("*.new")) == []
    side("main")  # built again
    assert any(e.key == old.key for e in store.entries())


def test_what_a_killed_build_left_is_not_taken_for_a_target(cache, side):
    side("main")
    for entry in Cache(cache).entries():
        entry.folder.rename(entry.folder.with_name(f"{entry.key}.new"))  # as if killed before the last step
        (cache / "targets" / f"{entry.key}.new" / "manifest.json").unlink()
    assert installed_version(side("main"), "shop") == "1.0"
    (cache / "targets" / entry.key / "manifest.json").write_text("{")  # a disk that filled up
    assert installed_version(side("main"), "shop") == "1.0"


def test_a_cache_that_cannot_be_written_is_the_environments_fault(project, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(HostError, match="set BENCH_CACHE"):
        resolve(parse_side("main", project=project), project=project, cache=tmp_path / "file")
    with pytest.raises(HostError, match="no search path can hold"):
        resolve(parse_side("main", project=project), project=project, cache=tmp_path / "a:b")


def test_other_compiler_flags_are_another_build(side, monkeypatch):
    said = []
    side("main")
    monkeypatch.setenv("CFLAGS", "-O1")
    side("main", say=said.append)
    assert any(text.startswith("building main") for text in said)


def test_variables_that_git_sets_inside_its_hooks_do_not_lead_elsewhere(project, side, tmp_path, monkeypatch):
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


def test_a_shallow_clone_gives_what_it_has_and_says_what_is_missing(project, cache, tmp_path):
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


def test_another_interpreter_runs_the_same_suite_on_a_build_of_its_own(project, side):
    others = [shutil.which(f"python3.{minor}") for minor in (12, 13, 14, 11) if minor != sys.version_info.minor]
    other = next((path for path in others if path and works(path)), None)
    if other is None:
        pytest.skip("no second Python from 3.11 on is on PATH")
    target = side(f"main python:{other}")
    assert notes_at(target, project / "suites")["speed"] == "fast"
    assert not identical(target, side("main"))


def works(python):
    return subprocess.run([python, "-c", ""], check=False, capture_output=True).returncode == 0


def test_a_target_is_a_plain_target(side):
    """Nothing of how it was made stays behind in the value that a run stores."""
    assert type(side("env:A=1")) is Target
