"""The installed command in a folder of its own, and small projects with a history."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from bench.errors import Exit

BENCH = str(Path(sys.executable).with_name("bench"))
SUITES = str(Path(__file__).parents[1] / "suites")


def heed_interrupts():
    """A shell starts background jobs deaf to SIGINT, and what they start inherits that: a CI job may be one."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Shell:
    """A folder with a database of its own, and a cache for what is built."""

    def __init__(self, folder, cache):
        self.folder = folder
        self.environ = {
            **{k: v for k, v in os.environ.items() if not k.startswith("BENCH_")},
            "BENCH_LOCK": str(folder / "machine.lock"),
            "BENCH_SUITES": SUITES,
            "BENCH_CANARY": "0",
            "BENCH_CACHE": str(cache),
        }
        (folder / "pyproject.toml").write_text("")

    def start(self, *arguments, **variables):
        return subprocess.Popen(
            [BENCH, *arguments], cwd=self.folder, env={**self.environ, **variables}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=heed_interrupts,
        )  # fmt: skip

    def __call__(self, *arguments, code=Exit.OK, **variables):
        process = self.start(*arguments, **variables)
        try:
            out, err = process.communicate(timeout=120)
        finally:
            process.kill()
        assert code is None or process.returncode == code, f"{arguments} → {process.returncode}\n{out}\n{err}"
        assert "Traceback" not in err
        return out, err

    def sentence(self, *arguments, code, **variables):
        """The one sentence that a mistake gets: nothing on stdout, one line on stderr."""
        out, err = self(*arguments, code=code, **variables)
        assert out == ""
        lines = [line for line in err.splitlines() if line and line != "bench: looking for benchmarks"]
        assert len(lines) == 1, err
        assert lines[0].startswith("bench: ")
        return lines[0]


def wait_for(condition, seconds=60):
    for _ in range(seconds * 20):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it did not happen")


def spooled(shell):
    """Whether a launch of a living run is on disk."""
    return any('"launches":[{' in f.read_text() for f in shell.folder.glob(".bench/spool/*/0*.json"))


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    """What is built is built once for all tests, and never in the user's own cache."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def shell_in(cache):
    """folder → Shell."""
    return lambda folder: Shell(folder, cache)


@pytest.fixture
def bench(tmp_path, shell_in):
    return shell_in(tmp_path)


@pytest.fixture(scope="session")
def until_spooled():
    """Wait until a launch of a shell's living run is on disk."""
    return lambda shell: wait_for(lambda: spooled(shell))


CODE = """
    import os, time

    UNITS = {units}

    def work():
        return sum(i * i % 7 for i in range(UNITS * int(os.environ.get("SHOP_TIMES", "1"))))

    def wait():
        time.sleep({wait})
"""

SUITE = """
    from bench.api import Work, benchmark

    @benchmark()
    def work(device):
        import shop
        return Work(run=shop.work)

    @benchmark()
    def wait(device):
        import shop
        return Work(run=shop.wait)
"""


class Project(Shell):
    """A git repository of a module `shop` and a suite `shopping`, which is on main; nothing needs building."""

    def __init__(self, folder, cache):
        super().__init__(folder, cache)
        del self.environ["BENCH_SUITES"]
        self.write("pyproject.toml", '[tool.bench]\nsuites = ["suites"]\n')
        self.write(".gitignore", ".bench/\nmachine.lock\n__pycache__/\n")
        self.write("src/shop.py", self.code())
        self.write("suites/shopping.py", SUITE)
        self.git("init", "-q", "-b", "main")
        self.commit("start")

    @staticmethod
    def code(units=1500, wait=0.0):
        return CODE.format(units=units, wait=wait)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))

    def git(self, *arguments):
        variables = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        for who in ("AUTHOR", "COMMITTER"):  # a fixed date: equal commits, so that one build serves many tests
            variables |= {f"GIT_{who}_NAME": "A", f"GIT_{who}_EMAIL": "a@example.org"}
            variables[f"GIT_{who}_DATE"] = "2026-01-02T03:04:05Z"
        done = subprocess.run(
            ["git", *arguments], cwd=self.folder, env=variables, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def commit(self, message):
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def branch(self, name, **files):
        """A branch from main with these files; stays checked out. `src__shop` is src/shop.py."""
        self.git("checkout", "-q", "-b", name, "main")
        for key, text in files.items():
            self.write(f"{key.replace('__', '/')}.py", text)
        return self.commit(name)

    def compare(self, *arguments, code=Exit.OK, **variables):
        """A short comparison without confirmation: (JSON, what was said beside it)."""
        short = ("--launches", "9", "--budget", "20", "--no-confirm", "--format", "json")
        out, err = self("compare", *arguments, *short, code=code, **variables)
        document = json.loads(out)
        assert document["exit_code"] == code
        return document, err


@pytest.fixture
def project(tmp_path, cache):
    folder = tmp_path / "project"
    folder.mkdir()
    return Project(folder, cache)
