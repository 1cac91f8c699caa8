"""Environments of vendors: virtual environments of their own for tools that would change ours.

`python -m suites.environments ethos-u qnn` makes them, in `$BENCH_CACHE/environments`. They stand on the environment
that makes them: what they do not bring themselves (PyTorch, ONNX Runtime) is found there, so that half a gigabyte
is all they take. Benchmarks run a program of suites.vendors in one, and are SKIPPED with this command where it is
not made; with BENCH_ENVIRONMENTS=make they make it.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.api import Skip
from suites.artifacts import cache_folder, locked, version

DONE = "made.json"
TIMEOUT_S = 900.0
LINES = 6
"""Last lines of a failed program that are worth telling."""


@dataclass(frozen=True, slots=True)
class Vendor:
    """What is installed, and which packages it takes from the environment below."""

    requirements: tuple[str, ...]
    below: tuple[str, ...]


VENDORS: Mapping[str, Vendor] = {
    "ethos-u": Vendor(("executorch[ethos-u]==1.5.1",), ("torch", "torchao")),  # pins an old ml_dtypes and numpy
    "qnn": Vendor(("onnxruntime-qnn==2.7.0",), ("onnxruntime",)),  # Qualcomm's libraries, under a licence of theirs
}


def folder_of(name: str) -> Path:
    """Where the environment is, or would be. Another version of what is below makes another environment."""
    vendor = VENDORS[name]
    facts = [*vendor.requirements, *(f"{package}=={version(package)}" for package in vendor.below), *_below()]
    digest = hashlib.sha256(json.dumps([sys.version, facts]).encode()).hexdigest()[:12]
    return cache_folder() / "environments" / f"{name}-{digest}"


def interpreter(name: str) -> Path:
    """The environment's Python. Raises Skip where it is not made and may not be made now."""
    folder = folder_of(name)
    if not (folder / DONE).is_file():
        if os.environ.get("BENCH_ENVIRONMENTS") != "make":
            wanted = " ".join(VENDORS[name].requirements)
            raise Skip(f"needs the environment {name} ({wanted}): python -m suites.environments {name}")
        make(name)
    return _python(folder)


def make(name: str) -> Path:
    """Make the environment, once. Raises Skip with pip's last line where that fails."""
    folder = folder_of(name)
    vendor = VENDORS[name]
    for package in vendor.below:
        if version(package) == "none":
            raise Skip(f"the environment {name} stands on {package}, which is not installed")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locked(folder.with_suffix(".lock")):
        if not (folder / DONE).is_file():
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True, timeout=TIMEOUT_S)
            packages = next(folder.glob("lib/python*/site-packages"), folder / "Lib" / "site-packages")
            (packages / "below.pth").write_text("\n".join(_below()) + "\n", encoding="utf-8")
            command = [str(_python(folder)), "-m", "pip", "install", "--disable-pip-version-check", "--quiet"]
            done = subprocess.run(
                [*command, *vendor.requirements], capture_output=True, text=True, check=False, timeout=TIMEOUT_S
            )
            if done.returncode:
                errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
                raise Skip(f"the environment {name} cannot be made: {(errors or ['pip failed'])[-1]}")
            (folder / DONE).write_text(json.dumps({"requirements": vendor.requirements}), encoding="utf-8")
    return folder


def run(name: str, program: Path, arguments: Sequence[str | Path]) -> None:
    """Run a program of suites.vendors to its end. Raises Skip without the environment, RuntimeError when it fails."""
    command = [str(interpreter(name)), "-I", str(program), *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, check=False,
        timeout=TIMEOUT_S,
    )  # fmt: skip
    if done.returncode:
        last = "\n".join(done.stderr.strip().splitlines()[-LINES:])
        raise RuntimeError(f"{program.name} failed in the environment {name} (exit code {done.returncode}):\n{last}")


def _below() -> list[str]:
    return list(dict.fromkeys(sysconfig.get_path(kind) for kind in ("purelib", "platlib")))


def _python(folder: Path) -> Path:
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def main(names: Sequence[str]) -> int:
    """Make those named, or all."""
    unknown = [name for name in names if name not in VENDORS]
    if unknown:
        sys.stderr.write(f"no environment {', '.join(unknown)}; there are {', '.join(VENDORS)}\n")
        return 2
    code = 0
    for name in names or VENDORS:
        try:
            sys.stderr.write(f"{name}: {make(name)}\n")
        except Skip as reason:
            sys.stderr.write(f"{name}: {reason}\n")
            code = 7
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
