"""A perceptron of four layers and 2.4 million weights, whose cost is reading them: it gains most from batches.

Random weights: they serve speed.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

from suites.artifacts import Artifact, artifact
from suites.imports import need

SUITES = "pip install 'inference-bench[suites]'"

WIDTHS = (256, 1024, 1024, 1024, 64)
MODEL = "model.onnx"
HERE = Path(__file__)


def weights() -> list[tuple[Any, Any]]:
    """(matrix, bias) of each layer, float32, always the same."""
    numpy = need("numpy", SUITES)
    random = numpy.random.default_rng(0)
    found = []
    for rows, columns in pairwise(WIDTHS):
        scale = numpy.float32((2 / rows) ** 0.5)
        found.append((random.standard_normal((rows, columns), dtype="float32") * scale, numpy.zeros(columns, "f4")))
    return found


def inputs(batch: int) -> Any:
    """Rows (batch, 256) float32; row k is the same whatever the batch."""
    numpy = need("numpy", SUITES)
    return numpy.stack([numpy.random.default_rng(k).standard_normal(WIDTHS[0], dtype="float32") for k in range(batch)])


def answer(rows: Any) -> Any:
    """What the network answers, computed by numpy: (batch, 256) → (batch, 64)."""
    layers = weights()
    for matrix, bias in layers[:-1]:
        rows = (rows @ matrix + bias).clip(0)
    matrix, bias = layers[-1]
    return rows @ matrix + bias


def graph() -> Artifact:
    """MODEL: the network, `input` (batch, 256) → `output` (batch, 64)."""

    def build(folder: Path) -> None:
        need("onnx", SUITES)
        from suites.models.onnx_graph import Graph

        made, value = Graph(), "input"
        layers = weights()
        for k, (matrix, bias) in enumerate(layers):
            last = k == len(layers) - 1
            name = "output" if last else f"sum{k}"
            value = made.node(
                "Gemm", value, made.constant(f"matrix{k}", matrix), made.constant(f"bias{k}", bias), name=name
            )
            if not last:
                value = made.node("Relu", value, name=f"hidden{k}")
        made.save(folder / MODEL, "mlp", {"input": ["batch", WIDTHS[0]]}, {"output": ["batch", WIDTHS[-1]]})

    return artifact("mlp-fp32", build, sources=[HERE, HERE.with_name("onnx_graph.py")], packages=["numpy", "onnx"])
