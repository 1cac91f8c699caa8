"""Benchmarks declared with `bench.api.benchmark`: load the modules of a place, loudly. Runs in a worker.

A place is a folder or an importable package. Modules whose name begins with `_` and sub-packages
are not suites. Standard library only.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import pkgutil
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.api import MARK, Work
from bench.loaders import paths
from bench.loaders.scope import left_out
from bench.model import Benchmark, Scalar

if TYPE_CHECKING:
    from bench.ports import Device


def modules_of(place: str) -> tuple[list[str], list[str]]:
    """(entries for bench.loaders.paths, module names) of a place. Raises ValueError when it is not there."""
    if Path(place).is_dir():
        folder = Path(place)
    else:
        try:
            spec = importlib.util.find_spec(place)
        except (ImportError, ValueError):
            spec = None
        if spec is None or not spec.submodule_search_locations:
            raise ValueError(f"{place} is neither a folder nor an importable package of suites")
        folder = Path(next(iter(spec.submodule_search_locations)))
    entry, prefix = paths.entry_of(folder)
    return [entry], [prefix + name for name in _names([str(folder)])]


def _names(folders: list[str]) -> list[str]:
    return sorted(m.name for m in pkgutil.iter_modules(folders) if not m.ispkg and not m.name.startswith("_"))


def discover(
    places: Sequence[str], skip: Sequence[str], announce: Callable[[str], None], patterns: Sequence[str] = ()
) -> dict[str, Any]:
    """Import everything. Returns {benchmarks, path, problems} as plain values.

    `skip` names modules that killed an earlier worker; `announce` is told each name before its import.
    Modules without anything that `patterns` could name are left out (bench.loaders.scope).
    """
    benchmarks, path, problems = find(places, skip, announce, patterns)
    return {"benchmarks": [asdict(benchmark) for benchmark in benchmarks], "path": path, "problems": problems}


def find(
    places: Sequence[str],
    skip: Sequence[str] = (),
    announce: Callable[[str], None] = lambda name: None,
    patterns: Sequence[str] = (),
) -> tuple[list[Benchmark], list[str], list[dict[str, str]]]:
    """(benchmarks, entries for bench.loaders.paths, problems) of the places, with all modules imported here."""
    benchmarks: list[Benchmark] = []
    problems: list[dict[str, str]] = []
    path: list[str] = []
    seen: dict[str, str] = {}
    owner = os.getpid()
    for place in places:
        try:
            entries, names = modules_of(place)
        except ValueError as error:
            problems.append({"module": place, "message": str(error), "detail": ""})
            continue
        path += [entry for entry in entries if entry not in path]
        try:
            paths.add(entries)
        except BaseException as error:  # noqa: BLE001 - the package itself is broken
            problems.append(problem_of(place, error))
            continue
        for name in names:
            if name in skip or left_out(name.rpartition(".")[2], patterns):
                continue
            announce(name)
            try:
                found = _benchmarks(importlib.import_module(name), name)
            except BaseException as error:  # noqa: BLE001 - a broken suite is reported, the rest is listed
                found = []
                problems.append(problem_of(name, error))
            finally:
                if os.getpid() != owner:  # the suite forked and its child came back to us
                    os._exit(0)
            for benchmark in found:
                if benchmark.name in seen:
                    text = f"{benchmark.name} is defined in {seen[benchmark.name]} and again in {name}; rename one"
                    problems.append({"module": name, "message": text, "detail": ""})
                    continue
                seen[benchmark.name] = name
                benchmarks.append(benchmark)
    return benchmarks, path, problems


def _benchmarks(module: Any, name: str) -> list[Benchmark]:
    marked = [getattr(value, MARK, None) for value in vars(module).values() if callable(value)]
    return [b for b in marked if isinstance(b, Benchmark) and b.source.startswith(f"{name}:")]


def problem_of(name: str, error: BaseException) -> dict[str, str]:
    """Why the module of that name cannot be imported, as a source passes it on."""
    if isinstance(error, SystemExit):
        message = f"calls sys.exit({error.code!r}) when it is imported"
    elif isinstance(error, SyntaxError):
        message = f"line {error.lineno}: {error.msg}"
    else:
        message = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no message'}"
    detail = "\n".join(traceback.format_exception(error)[-3:])
    return {"module": name, "message": message, "detail": detail.strip()}


def import_suite(source: str, suite: str) -> None:
    """Import the module of `module:function`: what all its benchmarks share."""
    importlib.import_module(source.partition(":")[0])


def load(source: str, device: Device, params: dict[str, Scalar]) -> Work:
    """Run the set-up of `module:function`. Raises TypeError when it is no benchmark or returns no Work."""
    module, _, name = source.partition(":")
    function = getattr(importlib.import_module(module), name)
    if not hasattr(function, MARK):
        raise TypeError(f"{source} is not a benchmark")
    work = function(device, **params)
    if not isinstance(work, Work):
        raise TypeError(f"{name} must return bench.api.Work, not {type(work).__name__}")
    return work
