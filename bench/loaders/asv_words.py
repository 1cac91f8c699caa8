"""What the loader of asv suites and the reader of asv results must spell alike. Standard library only."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bench.metrics import Better, Kind, Metric, Summary
from bench.model import Scalar

UNITS = {
    "seconds": ("ns", Kind.TIME, 1e9), "s": ("ns", Kind.TIME, 1e9), "ms": ("ns", Kind.TIME, 1e6),
    "us": ("ns", Kind.TIME, 1e3), "ns": ("ns", Kind.TIME, 1.0), "bytes": ("B", Kind.MEMORY, 1.0),
    "B": ("B", Kind.MEMORY, 1.0), "KB": ("B", Kind.MEMORY, 1e3), "MB": ("B", Kind.MEMORY, 1e6),
    "unit": ("1", Kind.COUNT, 1.0), "": ("1", Kind.COUNT, 1.0),
}  # fmt: skip
"""Units of a tracked value that have a spelling of ours: (unit, kind, factor). Others keep their own."""

OBJECT_SIZE = Metric(
    name="object_size", unit="B", better=Better.LOWER, kind=Kind.MEMORY, summary=Summary.LAUNCH,
    help="memory of the object that the benchmark returns, by pympler as in asv",
)  # fmt: skip


def tracked(unit: str) -> tuple[Metric, float]:
    """The metric of a `track_` benchmark, and the factor into its unit. asv reads more as worse: so do we."""
    spelled, kind, factor = UNITS.get(unit, (unit, Kind.COUNT, 1.0))
    metric = Metric(
        name="value", unit=spelled, better=Better.LOWER, kind=kind, summary=Summary.LAUNCH,
        help="what the function returns; asv reads more as worse",
    )  # fmt: skip
    return metric, factor


def axes(names: Sequence[str], params: Sequence[Sequence[object]]) -> dict[str, list[Scalar]]:
    """The texts that asv gives to parameters, by axis: without addresses, all different."""
    found: dict[str, list[Scalar]] = {}
    for name, texts in zip(names, params, strict=True):
        axis = name if name not in found else f"{name}_{len(found) + 1}"
        plain = [re.sub(r" at 0x[0-9a-fA-F]+", "", str(text)) for text in texts]
        found[axis] = [
            text if plain.count(text) == 1 else f"{text} ({plain[:place].count(text)})"
            for place, text in enumerate(plain)
        ]
    return found
