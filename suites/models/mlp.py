"""Perceptrons of four layers: a small one whose weights stay in a core's cache, a large one's come from memory.

Random weights: they serve speed.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

from suites.artifacts import Artifact, artifact
from suites.imports import need

SUITES = "pip install 'inference-bench[suites]'"

SIZES = {"small": (256, 1024, 1024, 1024, 64), "large": (256, 4096, 4096, 4096, 64)}
"""Name → widths of input, hidden layers and answer: 2.4 and 35 million weights (10 and 140 MB)."""

MODEL = "model.onnx"
HERE = Path(__file__)


def weights(size: str) -> list[tuple[Any, Any]]:
    """(matrix, bias) of each layer, float32, always the same."""
    numpy = need("numpy", SUITES)
    random = numpy.random.default_rng(0)
    found = []
    for rows, columns in pairwise(SIZES[size]):
        scale = numpy.float32((2 / rows) ** 0.5)
        found.append((random.standard_normal((rows, columns), dtype="float32") * scale, numpy.zeros(columns, "f4")))
    return found


def inputs(batch: int) -> Any:
    """Rows (batch, 256) float32; row k is the same whatever the batch."""
    numpy = need("numpy", SUITES)
    return numpy.stack([numpy.random.default_rng(k).standard_normal(256, dtype="float32") for k in range(batch)])


def answer(rows: Any, size: str = "small") -> Any:
    """What the network answers, computed by numpy: (batch, 256) → (batch, 64)."""
    layers = weights(size)
    for matrix, bias in layers[:-1]:
        rows = (rows @ matrix + bias).clip(0)
    matrix, bias = layers[-1]
    return rows @ matrix + bias


def graph(size: str = "small") -> Artifact:
    """MODEL: the network, `input` (batch, 256) → `output` (batch, 64)."""

    def build(folder: Path) -> None:
        need("onnx", SUITES)
        from suites.models.onnx_graph import Graph

        made, value = Graph(), "input"
        layers = weights(size)
        for k, (matrix, bias) in enumerate(layers):
            last = k == len(layers) - 1
            name = "output" if last else f"sum{k}"
            value = made.node(
                "Gemm", value, made.constant(f"matrix{k}", matrix), made.constant(f"bias{k}", bias), name=name
            )
            if not last:
                value = made.node("Relu", value, name=f"hidden{k}")
        made.save(folder / MODEL, "mlp", {"input": ["batch", SIZES[size][0]]}, {"output": ["batch", SIZES[size][-1]]})

    return artifact(f"mlp-{size}", build, sources=[HERE, HERE.with_name("onnx_graph.py")], packages=["numpy", "onnx"])
