"""How a worker finds suite modules, whatever the target itself has on its path.

An entry is a folder of modules, or `name=folder` for a package. A package is registered under its
name from that very folder and nothing else of its project is put on the path: the suites of head
can so judge the code of base, which the target's own path provides.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterable
from pathlib import Path


def entry_of(folder: Path) -> tuple[str, str]:
    """(entry, prefix of its modules' names) for a folder of suites."""
    folder = folder.resolve()
    if (folder / "__init__.py").is_file():
        return f"{folder.name}={folder}", f"{folder.name}."
    return str(folder), ""


def add(entries: Iterable[str]) -> None:
    """Make the modules of all entries importable. Raises ImportError when a package cannot be loaded."""
    for entry in entries:
        name, equals, folder = entry.partition("=")
        if equals and os.sep not in name:
            if name not in sys.modules:
                _register(name, Path(folder))
        elif entry not in sys.path:
            # After what the target put first: its own code must not be hidden by a suite's neighbour.
            sys.path.insert(len(_target_entries()), entry)


def _target_entries() -> list[str]:
    return [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]


def _register(name: str, folder: Path) -> None:
    spec = importlib.util.spec_from_file_location(
        name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"{folder} is no package of suites")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
