"""Reading the settings of a channel: clear sentences for what is missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.errors import ConfigError


class Settings:
    """Settings of one channel, and the environment that holds its secrets."""

    def __init__(self, name: str, values: Mapping[str, Any], environ: Mapping[str, str]) -> None:
        self.name = name
        self._values = values
        self._environ = environ

    def text(self, key: str, default: str | None = None) -> str:
        """A text; raises ConfigError where it is missing and has no default."""
        value = self._values.get(key, default)
        if not isinstance(value, str) or not value:
            raise ConfigError(f"channel {self.name!r} of [[tool.bench.notify]] needs {key}, a text.")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts with at least one."""
        value = self._values.get(key)
        if not isinstance(value, list) or not value or not all(isinstance(item, str) and item for item in value):
            raise ConfigError(f"channel {self.name!r} of [[tool.bench.notify]] needs {key}, a list of texts.")
        return tuple(value)

    def number(self, key: str, default: int) -> int:
        """A whole number over 0."""
        value = self._values.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
            raise ConfigError(f"channel {self.name!r} of [[tool.bench.notify]]: {key} must be a number over 0.")
        return value

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        value = self._values.get(key, default)
        if not isinstance(value, bool):
            raise ConfigError(f"channel {self.name!r} of [[tool.bench.notify]]: {key} must be true or false.")
        return value

    def secret(self, key: str, *, required: bool = True) -> str | None:
        """What the variable named by `key` holds; a secret is never written in a file."""
        if key not in self._values and not required:
            return None
        variable = self.text(key)
        value = self._environ.get(variable)
        if not value:
            raise ConfigError(f"channel {self.name!r} of [[tool.bench.notify]]: the variable {variable} is not set.")
        return value

    def url(self, key: str) -> str:
        """A secret that is an address to post to."""
        value = self.secret(key)
        assert value is not None
        if not value.startswith(("https://", "http://")):
            raise ConfigError(f"channel {self.name!r} of [[tool.bench.notify]]: {key} names no http(s) address.")
        return value
