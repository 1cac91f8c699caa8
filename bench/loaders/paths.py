"""How a worker finds suite modules, whatever the target itself has on its path.

An entry is a folder of modules, or `name=folder` for a package. A package is registered under its
name from that very folder and nothing else of its project is put on the path: the suites of head
can so judge the code of base, which the target's own path provides.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import pkgutil
import sys
from collections.abc import Iterable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

OVERLAYS = "BENCH_OVERLAYS"
"""Variable that names a worker the folders of its target: their modules come before all others."""


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


class OverlaysFirst:
    """Finds what the target's overlays hold there, whatever a suite or its tool puts in front of sys.path.

    pytest, asv's reader and many a conftest.py do so with the project's own folder, and every side
    would then be measured with the code that lies beside the suite.
    """

    def __init__(self, folders: Sequence[str]) -> None:
        self._installed = [folder for folder in folders if any(Path(folder).glob("*.dist-info"))]
        self._sources = [folder for folder in folders if folder not in self._installed]
        self.suites: set[str] = set()
        """Modules of the suite itself, which judges all sides: a side's source tree has them too."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """See importlib.abc.MetaPathFinder. Parts of packages follow their package, namespaces the search path."""
        if path is not None:
            return None
        folders = self._installed if name in self.suites else [*self._installed, *self._sources]
        spec = PathFinder.find_spec(name, folders)
        return spec if spec is not None and spec.origin is not None else None


def prefer_overlays() -> OverlaysFirst:
    """Let the overlays of this worker's target win over everything that comes later. Once a process."""
    for finder in sys.meta_path:
        if isinstance(finder, OverlaysFirst):
            return finder
    folders = [part for part in os.environ.get(OVERLAYS, "").split(os.pathsep) if part]
    made = OverlaysFirst(folders)
    if folders:
        sys.meta_path.insert(0, made)
    return made


def share_name(folder: Path) -> None:
    """Let the modules of a suite's package be imported although the harness has a package of that name.

    They are looked for beside the harness's own, and the suite's `__init__.py` is not run. Raises
    ImportError when a module of both has the same name.
    """
    package = importlib.import_module(folder.name)
    if str(folder) in package.__path__:
        return
    theirs, ours = ({m.name for m in pkgutil.iter_modules(path)} for path in ([str(folder)], package.__path__))
    if both := sorted(theirs & ours):
        raise ImportError(
            f"{folder / both[0]} is named like a module of the harness, {folder.name}.{both[0]}: rename it"
        )
    package.__path__.append(str(folder))
    os.environ["PY_IGNORE_IMPORTMISMATCH"] = "1"  # pytest would miss the suite's own __init__.py


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
