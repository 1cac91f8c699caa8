"""Arm's Ethos-U: its compiler Vela reckons the cycles, the TOSA reference model computes the answers.

No board is driven: what is measured on it is estimated, exact for one version of the compiler.
"""

from __future__ import annotations

import importlib.util

from bench.api import Skip


class EthosU:
    """See bench.ports.Device."""

    name = "ethos-u"
    kind = "estimated"

    def __init__(self, threads: int = 1) -> None:
        """Raises Skip where the compiler is missing."""
        if importlib.util.find_spec("ethosu") is None:
            raise Skip(
                "needs the device ethos-u: Vela is not installed here (executorch with its extra ethos-u; "
                "bench run --python with the one of an environment that has it)"
            )
        self.threads = threads

    def synchronize(self) -> None:
        """Nothing is ever pending."""


DEVICE = EthosU
