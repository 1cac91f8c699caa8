"""The project that every tool measures: one package, three commits, one benchmark file for each tool."""

from __future__ import annotations

import subprocess
import textwrap
from pathlib import Path

NAMES = ("interpreter", "objects", "json_text", "matmul", "copy")

PERCENT = 3
"""Slowdown of the commit `slower`: extra units of the same work, so that it is exact."""

PACKAGE = '''
"""Work of five kinds; a call makes UNITS equal units."""
import json

{remark}
UNITS = {units}
WORDS = ["k%d" % (i * 7919 % 500) for i in range(60)]
DOCUMENT = json.dumps([{{"id": i, "name": "item%d" % i, "tags": ["a", "b"], "v": i * 1.5}} for i in range(8)])


def interpreter():
    x = 1
    for i in range(10 * UNITS):
        x = (x * 31 + i) & 0xFFFF
    return x


def objects():
    for _ in range(UNITS):
        counts = {{}}
        for word in WORDS:
            counts[word] = counts.get(word, 0) + 1


def json_text():
    for _ in range(UNITS):
        json.loads(DOCUMENT)


def matmul_data():
    import numpy as np
    a = np.random.default_rng(0).random((64, 64))
    return a, a.T.copy(), np.empty_like(a)


def matmul(data):
    import numpy as np
    a, b, out = data
    for _ in range(UNITS):
        np.matmul(a, b, out=out)


def copy_data():
    import numpy as np
    return np.ones(48 << 20, dtype=np.uint8), np.zeros(48 << 20, dtype=np.uint8), [0]


def copy(data):
    source, target, place = data
    at = place[0]
    for _ in range(UNITS):
        target[at : at + 65536] = source[at : at + 65536]
        at = (at + 65536) % len(source)
    place[0] = at
'''

ASV = """
from sidework import copy, copy_data, interpreter, json_text, matmul, matmul_data, objects


class Plain:
    def time_interpreter(self):
        interpreter()

    def time_objects(self):
        objects()

    def time_json_text(self):
        json_text()


class Matmul:
    def setup(self):
        self.data = matmul_data()

    def time_matmul(self):
        matmul(self.data)


class Copy:
    def setup(self):
        self.data = copy_data()

    def time_copy(self):
        copy(self.data)
"""

PYTEST = """
import sidework


def test_interpreter(benchmark):
    benchmark(sidework.interpreter)


def test_objects(benchmark):
    benchmark(sidework.objects)


def test_json_text(benchmark):
    benchmark(sidework.json_text)


def test_matmul(benchmark):
    benchmark(sidework.matmul, sidework.matmul_data())


def test_copy(benchmark):
    benchmark(sidework.copy, sidework.copy_data())
"""

PYPERF = """
import pyperf
import sidework

runner = pyperf.Runner()
runner.bench_func("objects", sidework.objects)
runner.bench_func("json_text", sidework.json_text)
"""

CONFIG = """
{"version": 1, "project": "sidework", "repo": ".", "branches": ["main"], "environment_type": "virtualenv",
 "matrix": {"req": {"numpy": []}}, "benchmark_dir": "benchmarks", "env_dir": ".asv/env",
 "results_dir": ".asv/results", "html_dir": ".asv/html"}
"""

PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "sidework"
version = "1"
dependencies = ["numpy"]
"""


def make(folder: Path) -> None:
    """Write the repository with the tags `base`, `same` and `slower`, and a checkout of each beside it."""
    files = {
        "asv.conf.json": CONFIG, "pyproject.toml": PROJECT, "benchmarks/__init__.py": "",
        "benchmarks/work.py": ASV, "tests/test_work.py": PYTEST, "perf_work.py": PYPERF,
        ".gitignore": ".asv/\n.bench/\n",
    }  # fmt: skip
    repository = folder / "repository"
    repository.mkdir(parents=True)
    for name, text in files.items():
        place = repository / name
        place.parent.mkdir(exist_ok=True)
        place.write_text(textwrap.dedent(text).lstrip())
    _git(repository, "init", "-q", "-b", "main")
    package = repository / "sidework" / "__init__.py"
    package.parent.mkdir()
    for tag, units, remark in (
        ("base", 100, "# as it was"),
        ("same", 100, "# as it was, told in other words"),
        ("slower", 100 + PERCENT, "# as it was"),
    ):
        package.write_text(PACKAGE.format(units=units, remark=remark).lstrip())
        _git(repository, "add", "-A")
        _git(repository, "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", tag)
        _git(repository, "tag", tag)
        _git(repository, "worktree", "add", "-q", "--detach", str(folder / tag), tag)


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True)
