"""How each tool is asked whether head got slower than base, and what it answers by benchmark."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.side_by_side.project import NAMES

Answers = dict[str, str]
"""Benchmark → slower, faster, same or undecided."""

ENVIRONMENT = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def bench(folder: Path, head: str) -> Answers:
    """`bench compare base HEAD --asv asv.conf.json`, with its confirmation."""
    text = _run(
        [_script("bench"), "compare", "base", head, "--asv", "asv.conf.json", "--format", "json"],
        folder / "repository", codes=(0, 3, 4),
    )  # fmt: skip
    words = {"regressed": "slower", "improved": "faster", "unchanged": "same"}
    return {
        _name(variant["name"]): words.get(variant["verdict"], "undecided")
        for variant in json.loads(text)["variants"]
    }  # fmt: skip


def asv(folder: Path, head: str) -> Answers:
    """`asv continuous base HEAD`, its defaults: two processes a side, Mann–Whitney, a factor of 1.1."""
    text = _run([_script("asv"), "continuous", "base", head], folder / "repository", codes=(0, 1))
    answers = dict.fromkeys(NAMES, "same")
    for sign, name in re.findall(r"^\|\s*([+-])\s*\|.*?work\.\w+\.time_(\w+)", text, re.MULTILINE):
        answers[name] = "slower" if sign == "+" else "faster"
    return answers


def pytest_benchmark(folder: Path, head: str) -> Answers:
    """`--benchmark-compare-fail=mean:5%` on two runs."""
    means = {}
    for side in ("base", head):
        file = folder / f"{side}.pytest.json"
        _run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests", f"--benchmark-json={file}"],
            folder / side, codes=(0,), PYTHONPATH=str(folder / side),
        )  # fmt: skip
        rows = json.loads(file.read_text())["benchmarks"]
        means[side] = {_name(row["name"]): row["stats"]["mean"] for row in rows}
    return {name: _by_threshold(means[head][name] / means["base"][name], 1.05) for name in means["base"]}


def pyperf(folder: Path, head: str) -> Answers:
    """Two runs with its defaults (20 processes, 3 values each), then `pyperf compare_to`."""
    for side in ("base", head):
        file = folder / f"{side}.pyperf.json"
        file.unlink(missing_ok=True)
        keep = "--inherit-environ=PYTHONPATH,OPENBLAS_NUM_THREADS"
        command = [sys.executable, "perf_work.py", "-q", keep, "-o", str(file)]
        _run(command, folder / side, codes=(0,), PYTHONPATH=str(folder / side))
    files = [str(folder / f"{side}.pyperf.json") for side in ("base", head)]
    text = _run([sys.executable, "-m", "pyperf", "compare_to", *files], folder, codes=(0,))
    answers = {"objects": "same", "json_text": "same"}
    for name, word in re.findall(r"^(\w+): Mean.*?(slower|faster)$", text, re.MULTILINE):
        answers[name] = word
    return answers


TOOLS: dict[str, Callable[[Path, str], Answers]] = {
    "bench": bench, "asv": asv, "pytest-benchmark": pytest_benchmark, "pyperf": pyperf,
}  # fmt: skip


def _by_threshold(ratio: float, limit: float) -> str:
    return "slower" if ratio > limit else "faster" if ratio < 1 / limit else "same"


def _name(text: str) -> str:
    return next(name for name in NAMES if name in text)


def _script(name: str) -> str:
    return str(Path(sys.executable).with_name(name))


def _run(command: list[str], folder: Path, *, codes: tuple[int, ...], **variables: str) -> str:
    done = subprocess.run(command, cwd=folder, env={**ENVIRONMENT, **variables}, capture_output=True, text=True)
    if done.returncode not in codes:
        raise RuntimeError(f"{command} ended with {done.returncode}:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return done.stdout
