"""Nothing at all: what is measured on it is what measuring costs."""

from __future__ import annotations


class Null:
    """Waits for nothing: a call of nothing on it has the time that the harness adds. See bench.ports.Device."""

    name = "null"
    kind = "real"

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads

    def synchronize(self) -> None:
        """Nothing is ever pending."""


DEVICE = Null
