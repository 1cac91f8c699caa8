"""An airspeed velocity project: its asv.conf.json, and the benchmarks of its folder."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from bench.errors import ConfigError
from bench.sources.discovery import WorkerSource

CONDA_TYPES = ("conda", "mamba", "rattler")
"""Kinds of environments whose `1.26` means 1.26 and everything after the next point."""

PIP_NAMES = {
    "pytorch": "torch", "pytables": "tables", "matplotlib-base": "matplotlib", "msgpack-python": "msgpack",
    "python-graphviz": "graphviz", "py-xgboost": "xgboost", "dask-core": "dask", "tbb-devel": "tbb",
}  # fmt: skip
"""Packages that conda and pip call differently."""

CONDA_ONLY = (
    "cudatoolkit",
    "compilers",
    "c-compiler",
    "cxx-compiler",
    "fortran-compiler",
    "libblas",
    "openblas",
    "nomkl",
)
"""What conda installs and pip does not have; the suites of a project that needs one say so themselves."""

_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/|,(?=(?>\s|//[^\n]*+|/\*.*?\*/)*+[}\]])', re.DOTALL)


class AsvSource(WorkerSource):
    """The suite that an asv.conf.json names, unmodified. See bench.loaders.asv for what becomes of it."""

    name = "asv"
    loader = "bench.loaders.asv"

    def __init__(self, conf_path: Path | str) -> None:
        """`conf_path` may also be the folder of the file. Raises ConfigError for one that cannot be read."""
        self.conf = find_conf(conf_path)
        settings = read_conf(self.conf)
        self.benchmark_dir = self.conf.parent / _text(self.conf, settings, "benchmark_dir", "benchmarks")
        if not self.benchmark_dir.is_dir():
            raise ConfigError(f"{self.conf}: benchmark_dir {self.benchmark_dir} is not there; correct the setting.")
        timeout = settings.get("default_benchmark_timeout", 60.0)
        if isinstance(timeout, bool) or not isinstance(timeout, int | float) or timeout <= 0:
            raise ConfigError(f"{self.conf}: default_benchmark_timeout must be seconds, not {timeout!r}.")
        self._timeout_s = float(timeout)
        super().__init__([str(self.benchmark_dir)])

    def adapt(self, benchmark: dict[str, Any]) -> dict[str, Any]:
        """A benchmark without a timeout gets asv's default."""
        return {"timeout_s": self._timeout_s, **benchmark}


def find_conf(path: Path | str) -> Path:
    """The configuration at a path, or in the folder there. Raises ConfigError."""
    path = Path(path)
    names = ("asv.conf.json", "asv.conf.jsonc", "asv.conf.json5")
    candidates = [path / name for name in names] if path.is_dir() else [path]
    for candidate in candidates:
        if candidate.is_file():
            return candidate.resolve()
    raise ConfigError(f"{path} is no asv configuration; name an asv.conf.json or its folder.")


def read_conf(path: Path) -> dict[str, Any]:
    """The settings, with the comments and trailing commas that asv allows. Raises ConfigError."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}.") from None

    def keep(match: re.Match[str]) -> str:
        # Lines stay where they are, so that an error names the right one.
        found = match[0]
        return found if found.startswith('"') else "\n" * found.count("\n")

    try:
        settings = json.loads(_TOKEN.sub(keep, text))
    except json.JSONDecodeError as error:
        raise ConfigError(f"{path} line {error.lineno} is not JSON: {error.msg}.") from None
    if not isinstance(settings, dict):
        raise ConfigError(f"{path} must hold an object of settings.")
    return settings


def requirements_of(conf_path: Path | str) -> list[str]:
    """What pip installs for the suite, whatever tool `environment_type` names.

    asv builds an environment for every combination of its matrix; this is the last version given of
    each requirement, which suites list in rising order. `""` or nothing means any version. A requirement
    whose last version is null is left out, and so is what only conda has. Raises ConfigError for a
    matrix of another shape.
    """
    path = find_conf(conf_path)
    settings = read_conf(path)
    matrix = settings.get("matrix", {})
    if not isinstance(matrix, dict):
        raise ConfigError(f"{path}: matrix must be an object, not {matrix!r}.")
    if {"req", "env", "env_nobuild"} & matrix.keys():
        matrix = matrix.get("req", {})
    conda = _text(path, settings, "environment_type", "") in CONDA_TYPES
    found = []
    for name, versions in matrix.items():
        chosen = versions if isinstance(versions, list) else [versions]
        if not all(version is None or isinstance(version, str) for version in chosen):
            raise ConfigError(f"{path}: versions of {name} must be texts, not {versions!r}.")
        version = chosen[-1] if chosen else ""
        if version is not None and not (conda and name in CONDA_ONLY):
            found.append(_requirement(name, version.strip(), conda=conda))
    return found


def _requirement(name: str, version: str, *, conda: bool) -> str:
    if name.startswith("pip+"):
        name, conda = name[4:], False
    elif conda:
        name = name.rpartition("::")[2]  # conda-forge::numpy
        name = PIP_NAMES.get(name, name)
    if not version:
        return name
    if not version[0].isdigit():
        return f"{name}{version}" if version[0] in "<>=!~[" else f"{name} @ {version}"
    if conda and not version.endswith("*"):
        return f"{name}=={version.partition('=')[0]}.*"
    return f"{name}=={version}"


def _text(path: Path, settings: dict[str, Any], name: str, default: str) -> str:
    value = settings.get(name, default)
    if not isinstance(value, str):
        raise ConfigError(f"{path}: {name} must be a text, not {value!r}.")
    return value
