"""Standard output: for a night's job whose log is read."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from bench.night import Night
from bench.reports.night import night_text

SETTINGS: tuple[str, ...] = ()


class Stdout:
    """See bench.ports.Notifier."""

    one_by_one = False

    def __init__(self, name: str) -> None:
        self.name = name

    def tell(self, night: Night) -> Mapping[str, str]:
        """Print."""
        sys.stdout.write(night_text(night))
        return {}


def make(name: str, settings: Mapping[str, Any], environ: Mapping[str, str]) -> Stdout:
    """Nothing to set."""
    return Stdout(name)
