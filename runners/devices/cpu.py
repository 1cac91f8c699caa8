"""The processor itself. Standard library only: imported in the worker."""

from __future__ import annotations


class Cpu:
    """Computes at once, so there is nothing to wait for. See bench.ports.Device."""

    name = "cpu"
    kind = "real"

    def __init__(self, threads: int = 1) -> None:
        """`threads`: how many the work may use. Raises ValueError under 1."""
        if threads < 1:
            raise ValueError(f"a CPU benchmark needs at least one thread, not {threads}")
        self.threads = threads

    def synchronize(self) -> None:
        """Nothing is ever pending."""


DEVICE = Cpu
