"""Import a package that a suite needs, or skip with the way to get it."""

from __future__ import annotations

import importlib
from types import ModuleType

from bench.api import Skip


def need(module: str, install: str) -> ModuleType:
    """The imported module. Raises Skip that names `install`, the command that brings it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        # A package that is there but lacks a part of its own is broken, not missing: say which.
        if error.name is not None and not f"{module}.".startswith(f"{error.name}."):
            raise Skip(f"{module} cannot be imported because {error.name} is missing: {install}") from None
        raise Skip(f"{module} is not installed: {install}") from None
