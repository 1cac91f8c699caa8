"""Who hears of a night: every module here that does not begin with `_` is one kind of channel.

    [[tool.bench.notify]]
    kind = "slack"
    name = "team"                        # default: the kind
    url_variable = "TEAM_SLACK_URL"      # secrets are named here and read from the environment

Such a module holds `make(name, settings, environ)`, which returns a bench.ports.Notifier or raises
ConfigError, and `SETTINGS`, the keys that it understands.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from typing import Any

from bench.errors import ConfigError
from bench.ports import Notifier


def kinds() -> tuple[str, ...]:
    """Names of all kinds."""
    return tuple(sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_")))


def read_channels(value: Any, layer: str) -> tuple[dict[str, Any], ...]:
    """Settings of `[[tool.bench.notify]]`, checked but for what the environment holds. Raises ConfigError."""
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise ConfigError(f"{layer}: notify must be written as [[tool.bench.notify]] tables.")
    found: list[dict[str, Any]] = []
    for number, item in enumerate(value, 1):
        place = f"{layer}: notify {number}"
        kind = item.get("kind")
        if kind not in kinds():
            raise ConfigError(f"{place}: kind must be one of {', '.join(kinds())}, not {kind!r}.")
        known = ("kind", "name", *importlib.import_module(f"{__name__}.{kind}").SETTINGS)
        if unknown := set(item) - set(known):
            raise ConfigError(f"{place} has an unknown setting {min(unknown)!r}; known are {', '.join(known)}.")
        name = item.get("name", kind)
        if not isinstance(name, str) or name in [channel["name"] for channel in found]:
            raise ConfigError(f"{place}: name must be a text that no other channel has, not {name!r}.")
        found.append({**item, "name": name})
    return tuple(found)


def notifiers(channels: Sequence[Mapping[str, Any]], environ: Mapping[str, str]) -> tuple[Notifier, ...]:
    """All that are configured. Raises ConfigError for a variable that is not set."""
    made: list[Notifier] = []
    for channel in channels:
        module = importlib.import_module(f"{__name__}.{channel['kind']}")
        settings = {key: value for key, value in channel.items() if key not in ("kind", "name")}
        made.append(module.make(channel["name"], settings, environ))
    return tuple(made)
