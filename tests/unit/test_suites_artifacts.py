"""The artifact cache builds once, and never serves what is damaged."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from suites import artifacts
from suites.artifacts import MANIFEST, artifact, verified

ROOT = Path(__file__).parents[2]
HERE = Path(__file__)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("BENCH_CACHE", str(folder))
    return folder


class Builder:
    def __init__(self, content: bytes = b"weights") -> None:
        self.calls = 0
        self.content = content

    def __call__(self, folder: Path) -> None:
        self.calls += 1
        (folder / "model").write_bytes(self.content)


def make(build, **more):
    return artifact("thing", build, sources=[HERE], **more)


def test_second_use_builds_nothing_and_knows_the_build_time():
    build = Builder()
    first, second = make(build), make(build)
    assert build.calls == 1
    assert (first.built_now, second.built_now) == (True, False)
    assert second.build_seconds == first.build_seconds
    assert (second / "model").read_bytes() == b"weights"


@pytest.mark.parametrize("damage", ["truncated", "same size", "missing", "no manifest", "manifest cut", "manifest odd"])
def test_damaged_artifact_is_built_again(damage):
    build = Builder()
    model, manifest = make(build) / "model", make(build) / MANIFEST
    if damage == "truncated":
        model.write_bytes(b"weig")
    elif damage == "same size":
        model.write_bytes(b"WEIGHTS")
        os.utime(model, ns=(1, 1))
    elif damage == "missing":
        model.unlink()
    elif damage == "no manifest":
        manifest.unlink()
    elif damage == "manifest cut":
        manifest.write_bytes(manifest.read_bytes()[:40])
    else:
        manifest.write_text("[]")
    assert (make(build) / "model").read_bytes() == b"weights"
    assert build.calls == 2


def test_copied_cache_with_other_times_is_still_used():
    build = Builder()
    os.utime(make(build) / "model", ns=(1, 1))
    make(build)
    assert build.calls == 1


def test_failed_build_leaves_nothing_and_the_next_one_succeeds(cache):
    def fail(folder: Path) -> None:
        (folder / "model").write_bytes(b"half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        make(fail)
    assert [p for p in (cache / "artifacts").iterdir() if p.is_dir()] == []
    assert (make(Builder()) / "model").read_bytes() == b"weights"


def test_killed_builder_is_not_taken_for_an_artifact_and_its_rest_goes(cache):
    code = """
        import os, sys
        sys.path.insert(0, sys.argv[1])
        from pathlib import Path
        from suites.artifacts import artifact
        def build(folder):
            (folder / "model").write_bytes(b"half")
            os._exit(9)
        artifact("thing", build, sources=[Path(sys.argv[2])])
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code), str(ROOT), str(HERE)], check=False)
    assert done.returncode == 9
    assert len([p for p in (cache / "artifacts").iterdir() if p.is_dir()]) == 1
    made = make(Builder())
    assert (made / "model").read_bytes() == b"weights"
    assert [p for p in (cache / "artifacts").iterdir() if p.is_dir()] == [made.folder]


@pytest.mark.skipif(artifacts.fcntl is None, reason="without file locks two builders may build twice")
def test_processes_that_start_together_build_once(tmp_path):
    """Each builder would add a line to the log; all get the same content."""
    log = tmp_path / "log"
    code = """
        import sys, time
        sys.path.insert(0, sys.argv[1])
        from pathlib import Path
        from suites.artifacts import artifact
        def build(folder):
            with open(sys.argv[3], "a") as log:
                log.write("built\\n")
            (folder / "model").write_bytes(b"wei")
            time.sleep(0.5)
            (folder / "model").write_bytes(b"weights")
        made = artifact("thing", build, sources=[Path(sys.argv[2])])
        sys.stdout.write((made / "model").read_text())
    """
    command = [sys.executable, "-c", textwrap.dedent(code), str(ROOT), str(HERE), str(log)]
    children = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert [child.communicate()[0] for child in children] == ["weights"] * 4
    assert log.read_text() == "built\n"


def test_everything_that_changes_the_content_makes_another_artifact(tmp_path, monkeypatch):
    source = tmp_path / "builder.py"
    source.write_text("1")

    def folder(**more) -> Path:
        return artifact("thing", Builder(), sources=[source], **more).folder

    plain = folder()
    found = {plain, folder(inputs={"data": "a"}), folder(inputs={"data": "b"}), folder(packages=["pytest"])}
    found.add(folder(cpu=True))
    monkeypatch.setattr(artifacts, "cpu_flags", lambda: ["another"])
    found.add(folder(cpu=True))
    monkeypatch.setattr(artifacts, "version", lambda package: "another")
    found.add(folder(packages=["pytest"]))
    source.write_text("2")
    found.add(folder())
    assert len(found) == 8
    source.write_text("1")
    assert folder() == plain


def test_verified_file_is_hashed_again_only_when_it_changed(tmp_path, monkeypatch):
    file = tmp_path / "weights"
    file.write_bytes(b"abc")
    digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # FIPS 180-4, appendix B.1
    assert verified(file, digest)
    hashed: list[Path] = []
    seal = artifacts._seal
    monkeypatch.setattr(artifacts, "_seal", lambda path: hashed.append(path) or seal(path))
    assert verified(file, digest)
    assert hashed == []
    file.write_bytes(b"abd")
    os.utime(file, ns=(1, 1))
    assert not verified(file, digest)
    assert hashed == [file]
