"""What a target's processes really import, asked of such a process."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.errors import HostError
from bench.measure.session import worker_environment
from bench.model import HARNESS_VARIABLES, Target
from bench.targets.cache import read_entry
from bench.targets.contents import digest
from bench.targets.process import run_quietly

TIMEOUT_S = 60.0

OURS = ("bench",)
"""Modules of the harness, which come first whatever a project holds."""

FIND = """
import importlib.util, json, sys
found = {}
for name in sys.argv[1:]:
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        spec = None
    found[name] = None if spec is None else spec.origin or next(iter(spec.submodule_search_locations or ()), None)
print(json.dumps(found))
"""

VERSION = """
import importlib.metadata, json, sys
try:
    found = importlib.metadata.distribution(sys.argv[1])
except importlib.metadata.PackageNotFoundError:
    print("null")
else:
    tops = {f.parts[0] for f in found.files or () if ".." not in f.parts and f.suffix in (".py", ".so", ".pyd")}
    names = sorted({top.partition(".")[0] for top in tops if not top.endswith((".dist-info", ".data"))})
    names = [name for name in names if name.isidentifier() and not name.startswith("__")]
    print(json.dumps({"version": found.version, "root": str(found.locate_file("")), "modules": names}))
"""

PACKAGES = """
import importlib.metadata, json, platform, re
packages = {}
for found in importlib.metadata.distributions():
    if name := found.metadata["Name"]:
        packages.setdefault(re.sub(r"[-_.]+", "-", name).lower(), found.version)
print(json.dumps([f"{platform.python_implementation()} {platform.python_version()}", packages]))
"""


def installed_packages(target: Target) -> tuple[str, dict[str, str]]:
    """(`CPython 3.12.1`, version by distribution) as processes at `target` have them."""
    python, packages = _ask(target, PACKAGES)
    return python, packages


def installed_version(target: Target, name: str) -> str | None:
    """Version of a distribution as a process at `target` imports it; null where it has none.

    Its modules are looked up too: raises HostError when they come from elsewhere than the version's
    metadata, as an editable installation may cause.
    """
    found = _ask(target, VERSION, name)
    if found is None:
        return None
    check_origins(target, found["modules"], Path(found["root"]))
    version: str = found["version"]
    return version


def check_origins(target: Target, names: Sequence[str], folder: Path) -> None:
    """Raise HostError when a process at `target` would import one of `names` from outside `folder`."""
    asked = [n for n in names if n not in OURS and n not in sys.stdlib_module_names]
    for name, origin in _ask(target, FIND, *asked).items():
        if origin is None or not Path(origin).resolve().is_relative_to(folder.resolve()):
            raise HostError(
                f"{target.label}: {name} would be imported from {origin or 'nowhere'}, not from {folder}; an editable "
                "installation or a search path hides it: remove that, or choose another interpreter."
            )


def identical(one: Target, two: Target) -> bool:
    """Whether processes at both targets would run the same bytes, so that nothing is left to measure.

    Compared are interpreter, device, variables and the contents of every folder that a target puts
    before the interpreter's own; descriptions, licences and version numbers of packages do not count.
    """
    if (one.python or sys.executable, one.device) != (two.python or sys.executable, two.device):
        return False
    if _without_path(one) != _without_path(two):
        return False
    ours, theirs = _folders(one), _folders(two)
    return len(ours) == len(theirs) and all(
        a == b or _digest(a) == _digest(b) for a, b in zip(ours, theirs, strict=True)
    )


def _without_path(target: Target) -> dict[str, str]:
    return {name: value for name, value in target.variables.items() if name not in HARNESS_VARIABLES}


def _folders(target: Target) -> list[str]:
    path = target.variables.get("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    return [part for part in path.split(os.pathsep) if part]


def _digest(folder: str) -> str:
    path = Path(folder)
    for parent in (path, *path.parents):
        entry = read_entry(parent)
        if entry is not None and "digest" in entry.facts:
            return str(entry.facts["digest"])
    return digest(path) if path.is_dir() else folder


def _ask(target: Target, code: str, *arguments: str) -> Any:
    environment = worker_environment(target, 1, 0)
    answer = _run([target.python or sys.executable, "-P", "-c", code, *arguments], target, environment)
    try:
        return json.loads(answer.strip().splitlines()[-1])
    except (ValueError, IndexError):
        raise HostError(f"{target.label}: its interpreter answered {answer.strip()[:80]!r}, not ours.") from None


def _run(command: list[str], target: Target, environment: dict[str, str]) -> str:
    with tempfile.TemporaryDirectory(prefix="bench-ask-") as empty:
        return run_quietly(
            command, what=f"asking {target.label} what it imports", timeout_s=TIMEOUT_S, folder=Path(empty),
            environment=environment,
        )  # fmt: skip
