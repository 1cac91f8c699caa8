"""Our own code as workers import it: the same for every target, and nothing of ours beside it."""

from __future__ import annotations

import shutil
from pathlib import Path

import bench
from bench.targets.cache import Cache, Entry
from bench.targets.contents import digest
from bench.targets.installer import Installer

FIRST = "first"
"""Holds `bench` alone and comes before everything: the measuring code is one on both sides."""

LAST = "last"
"""Holds `runners` (devices), which a project's own package of that name may hide."""


def harness_entry(cache: Cache, installer: Installer) -> Entry:
    """A compiled copy of `bench` and, where it is beside it, `runners`, for one version of Python.

    A copy, so that a change of our files while something is measured reaches neither side.
    """
    core = Path(bench.__file__).parent
    parts = [(FIRST, core), (LAST, core.with_name("runners"))]
    parts = [(place, package) for place, package in parts if (package / "__init__.py").is_file()]

    def build(folder: Path) -> dict[str, str]:
        for place, package in parts:
            shutil.copytree(package, folder / place / package.name, ignore=shutil.ignore_patterns("__pycache__"))
        (folder / LAST).mkdir(exist_ok=True)
        installer.compile(folder)
        return {}

    what = {
        "kind": "harness",
        "abi": installer.interpreter.abi,
        "files": {package.name: digest(package) for _, package in parts},
    }
    return cache.get(what, build)
