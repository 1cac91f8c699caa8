"""A small project with a history, local wheels, and a cache: what the tests of targets share."""

import os
import shutil
import subprocess
import textwrap
import zipfile
from pathlib import Path

import pytest

from bench.measure.session import Session
from bench.sources.native import NativeSource
from bench.targets import parse_side, resolve

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


def notes_at(target, suites, kind=NativeSource):
    """What the suite's set-up says of itself in a worker at `target`."""
    source = kind([str(suites)])
    (benchmark,) = source.discover(target).benchmarks
    with Session() as session:
        worker = session.start(target, threads=1, hash_seed=0)
        work = {"loader": benchmark.loader, "source": benchmark.source}
        worker.ask("import", 30, path=list(source.path), suite=benchmark.suite, **work)
        answer = worker.ask("set_up", 30, device="runners.devices.cpu:Cpu", threads=1, requires=[], params={}, **work)
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


# Helpers for the tests, which cannot import this file.


@pytest.fixture(name="git")
def git_helper():
    return git


@pytest.fixture(name="write")
def write_helper():
    return write


@pytest.fixture(name="module")
def module_helper():
    return module


@pytest.fixture(name="pyproject")
def pyproject_helper():
    return pyproject


@pytest.fixture(name="notes_at")
def notes_at_helper():
    return notes_at


@pytest.fixture(name="wheel")
def wheel_helper():
    return wheel


@pytest.fixture
def backend():
    return BACKEND
