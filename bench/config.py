"""One frozen Config out of flag > environment > `[tool.bench]` of the nearest pyproject.toml > default."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from bench.errors import ConfigError
from bench.notify import read_channels
from bench.policy import Rule, read_rules


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Every setting. Each is a key of `[tool.bench]`, a variable `BENCH_<NAME>`, most also a flag.

    root: folder of the pyproject.toml that was found, else the current one.
    database: SQLAlchemy URL or path of a SQLite file.
    suites: folders or importable packages that hold benchmarks.
    profile: `quick` or `full`.
    state: folder for the database and the spool of this project.
    cache: folder for built artifacts, shared by all projects.
    tags: what people call this machine.
    branches: those whose runs are history; a run of another one is stored and shown, and is no point. Empty: all.
    keep_samples_days: how old a run is when `bench db prune` reduces its raw samples.
    canary: whether `bench run` measures the canary beside what was asked for.
    policy: what matters for which benchmark; only in pyproject.toml (see bench.policy).
    notify: who hears of a night; only in pyproject.toml (see bench.notify).
    """

    root: Path
    database: str
    suites: tuple[str, ...] = ("suites",)
    profile: str = "quick"
    state: Path = Path(".bench")
    cache: Path = Path("~/.cache/inference-bench")
    tags: tuple[str, ...] = ()
    branches: tuple[str, ...] = ()
    canary: bool = True
    keep_samples_days: int = 90
    policy: tuple[Rule, ...] = ()
    notify: tuple[Mapping[str, Any], ...] = ()


LISTS = ("suites", "tags", "branches")
"""Settings that hold several texts."""

SETTINGS = tuple(f.name for f in fields(Config) if f.name not in ("root", "policy", "notify"))


def load_config(
    flags: Mapping[str, Any] | None = None,
    *,
    cwd: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> Config:
    """Read all four layers. Raises ConfigError that names the layer, the setting and the value."""
    cwd = (cwd or Path.cwd()).resolve()
    environ = os.environ if environ is None else environ
    root, table = _project(cwd)
    values: dict[str, Any] = {}
    layer = f"[tool.bench] of {root / 'pyproject.toml'}"
    rules = read_rules(table.pop("policy", []), layer)
    channels = read_channels(table.pop("notify", []), layer)
    for name, value in table.items():
        values[name] = _check(name, value, layer)
    for name in SETTINGS:
        text = environ.get(f"BENCH_{name.upper()}")
        if text:
            parts = text.split(os.pathsep if name == "suites" else ",")
            values[name] = _check(name, parts if name in LISTS else text, f"BENCH_{name.upper()}")
    for name, value in (flags or {}).items():
        if value is not None and value != ():
            values[name] = _check(name, value, f"--{name}")
    state = _path(values.get("state", ".bench"), root)
    cache = _path(values.get("cache", "~/.cache/inference-bench"), root)
    database = str(values.get("database", state / "bench.db"))
    if "://" not in database:
        database = f"sqlite:///{_path(database, root)}"
    return Config(
        root=root, database=database, suites=tuple(values.get("suites", ("suites",))),
        profile=values.get("profile", "quick"), state=state, cache=cache, tags=tuple(values.get("tags", ())),
        branches=tuple(values.get("branches", ())),
        canary=values.get("canary", True), keep_samples_days=values.get("keep_samples_days", 90), policy=rules,
        notify=channels,
    )  # fmt: skip


def _path(value: str | Path, root: Path) -> Path:
    path = Path(value).expanduser()
    return path if path.is_absolute() else root / path


def _project(cwd: Path) -> tuple[Path, dict[str, Any]]:
    for folder in (cwd, *cwd.parents):
        file = folder / "pyproject.toml"
        if file.is_file():
            try:
                document = tomllib.loads(file.read_text(encoding="utf-8"))
            except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
                raise ConfigError(f"{file} cannot be read: {error}.") from None
            table = document.get("tool", {}).get("bench", {})
            if not isinstance(table, dict):
                raise ConfigError(f"[tool.bench] of {file} must be a table.")
            return folder, dict(table)
    return cwd, {}


def _check(name: str, value: Any, layer: str) -> Any:
    if name not in SETTINGS:
        raise ConfigError(f"{layer} has an unknown setting {name!r}; known are {', '.join(SETTINGS)}.")
    if name in LISTS:
        if isinstance(value, str) or not all(isinstance(item, str) for item in value):
            raise ConfigError(f"{layer}: {name} must be a list of texts, not {value!r}.")
        return tuple(value)
    if name == "canary":
        return _truth(value, layer)
    if name == "keep_samples_days":
        return _count(name, value, layer)
    if not isinstance(value, str | Path):
        raise ConfigError(f"{layer}: {name} must be a text, not {value!r}.")
    if name == "profile" and value not in ("quick", "full"):
        raise ConfigError(f"{layer}: profile must be quick or full, not {value!r}.")
    return value


def _count(name: str, value: Any, layer: str) -> int:
    """A whole number from 1 on, or the text that a variable holds."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigError(f"{layer}: {name} must be a whole number of at least 1, not {value!r}.")
    return value


def _truth(value: Any, layer: str) -> bool:
    """A TOML boolean, or the text that a variable holds."""
    words = {"1": True, "true": True, "0": False, "false": False}
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in words:
        return words[value.lower()]
    raise ConfigError(f"{layer}: canary must be true or false, not {value!r}.")
