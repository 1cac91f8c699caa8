"""Requirements, interpreters, settings and the cache behind them: local wheels, real processes, no network."""

import os
import shutil
import subprocess
import sys
import venv
from datetime import timedelta
from pathlib import Path

import pytest

from bench.errors import HostError, UsageError
from bench.model import Target
from bench.targets import Cache, identical, installed_version, parse_side, resolve
from bench.targets.proof import check_origins


def works(python):
    return subprocess.run([python, "-c", ""], check=False, capture_output=True).returncode == 0


def test_requirement_sides_import_two_versions_with_what_they_depend_on(index, side, wheel):
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


def test_two_wheels_of_one_version_are_two_sides(index, side, tmp_path, wheel):
    one = wheel(tmp_path / "one", "tinylib", "1.0", "A = 1\n")
    two = wheel(tmp_path / "two", "tinylib", "1.0", "A = 2\n")
    assert not identical(side(f"'{one}'"), side(f"'{two}'"))
    assert side(f"'{one}'").label == one.name


def test_a_requirement_that_nobody_has_fails_as_an_environment(index, side):
    with pytest.raises(HostError, match=r"resolving absentlib==9\.9 failed: .*No matching distribution"):
        side("absentlib==9.9")


def test_a_revision_brings_the_dependencies_of_its_own_commit(project, index, side, git, write, pyproject, wheel):
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


def test_every_side_gets_the_requirements_asked_for_all_unless_it_names_its_own(index, side, wheel):
    for version in ("1.0", "2.0"):
        wheel(index, "tinylib", version, "")
    assert installed_version(side("env:A=1", requirements=["tinylib==1.0"]), "tinylib") == "1.0"
    assert installed_version(side("tinylib==2.0", requirements=["tinylib==1.0"]), "tinylib") == "2.0"


def test_an_interpreter_without_pip_is_used_and_left_as_it_is(index, side, tmp_path, wheel):
    wheel(index, "tinylib", "1.0", "")
    venv.create(tmp_path / "bare venv", with_pip=False)
    before = sorted(p.name for p in (tmp_path / "bare venv").rglob("*.dist-info"))
    target = side("main tinylib==1.0", python=str(tmp_path / "bare venv"))
    assert target.python == str(tmp_path / "bare venv" / "bin" / "python")
    assert installed_version(target, "tinylib") == "1.0"
    assert sorted(p.name for p in (tmp_path / "bare venv").rglob("*.dist-info")) == before == []


def test_an_installation_that_hides_the_build_is_refused(side, tmp_path, write):
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


def test_an_editable_installation_of_the_working_tree_does_not_hide_a_revision(project, side, tmp_path, notes_at):
    home = tmp_path / "editable"
    venv.create(home, with_pip=False)
    (site,) = home.glob("lib/python*/site-packages")
    (site / "shop.pth").write_text(f"{project / 'src'}\n")
    assert notes_at(side("main", python=str(home)), project / "suites")["speed"] == "fast"


def test_workers_take_our_code_from_the_harness_whatever_the_project_holds(project, side, write, notes_at):
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


def test_the_callers_own_search_path_stays_behind_ours(side, monkeypatch, tmp_path, write):
    write(tmp_path, "mine/shop.py", "SPEED = 'mine'\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "mine"))
    target = side("main")
    assert str(tmp_path / "mine") in target.variables["PYTHONPATH"].split(os.pathsep)
    assert installed_version(target, "shop") == "1.0"


def test_a_stored_run_cannot_be_launched(side):
    with pytest.raises(UsageError, match="nothing to launch"):
        side("latest")


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


def test_another_interpreter_runs_the_same_suite_on_a_build_of_its_own(project, side, notes_at):
    others = [shutil.which(f"python3.{minor}") for minor in (12, 13, 14, 11) if minor != sys.version_info.minor]
    other = next((path for path in others if path and works(path)), None)
    if other is None:
        pytest.skip("no second Python from 3.11 on is on PATH")
    target = side(f"main python:{other}")
    assert notes_at(target, project / "suites")["speed"] == "fast"
    assert not identical(target, side("main"))


def test_a_target_is_a_plain_target(side):
    """Nothing of how it was made stays behind in the value that a run stores."""
    assert type(side("env:A=1")) is Target
