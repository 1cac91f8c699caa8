"""The ONNX graph of a BERT encoder in its textbook form: every fusion is left to the runtime.

Separate matrix products and additions, GELU through Erf, layer normalisation through ReduceMean,
attention as two products around a softmax (Vaswani et al. 2017; Devlin et al. 2019). Batch and
length are free.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto

from suites.models.bert import EPSILON, Size
from suites.models.onnx_graph import Graph

INPUTS = ("input_ids", "position_ids", "attention_mask")
"""Positions are an input: computed inside, their length is unknown to shape inference, and fusions give up."""

MASKED = -10000.0
"""Added to the scores of padding, as BERT does."""


def save(weights: dict[str, Any], size: Size, file: Path, title: str, *, pooled: bool = False) -> None:
    """Write the graph: INPUTS (batch, length) int64 → `hidden` (batch, length, width) float32.

    pooled: the result is instead `embedding` (batch, width): the mean over the tokens, length 1.
    """
    graph = Graph()
    hidden = _embed(graph, weights)
    mask = _mask(graph)
    for layer in range(size.layers):
        prefix = f"encoder.layer.{layer}"
        attended = _attention(graph, weights, size, f"{prefix}.attention", hidden, mask)
        hidden = _normalise(graph, weights, f"{prefix}.attention.output.LayerNorm", attended, hidden)
        grown = _gelu(graph, _linear(graph, weights, f"{prefix}.intermediate.dense", hidden))
        shrunk = _linear(graph, weights, f"{prefix}.output.dense", grown)
        hidden = _normalise(graph, weights, f"{prefix}.output.LayerNorm", shrunk, hidden)
    free = ["batch", "length"]
    if pooled:
        _pool(graph, hidden)
        outputs = {"embedding": ["batch", size.width]}
    else:
        graph.node("Identity", hidden, name="hidden")
        outputs = {"hidden": [*free, size.width]}
    graph.save(file, title, dict.fromkeys(INPUTS, free), outputs, TensorProto.INT64)


def _embed(g: Graph, weights: dict[str, Any]) -> str:
    table = g.constant("embeddings.word", weights["embeddings.word_embeddings.weight"])
    # There is one segment, so its vector is part of every position's.
    places = weights["embeddings.position_embeddings.weight"] + weights["embeddings.token_type_embeddings.weight"][0]
    words = g.node("Gather", table, "input_ids", name="embeddings.words")
    position = g.node("Gather", g.constant("embeddings.position", places), "position_ids", name="embeddings.positions")
    return _normalise(g, weights, "embeddings.LayerNorm", words, position)


def _mask(g: Graph) -> str:
    """(batch, 1, 1, length): 0 for tokens, MASKED for padding."""
    row = g.node("Unsqueeze", "attention_mask", _ints(g, "one", [1]), name="mask.row")
    head = g.node("Unsqueeze", row, _ints(g, "two", [2]), name="mask.head")
    number = g.node("Cast", head, name="mask.number", to=TensorProto.FLOAT)
    padding = g.node("Sub", g.constant("mask.one", 1.0), number, name="mask.padding")
    return g.node("Mul", padding, g.constant("mask.masked", MASKED), name="mask.bias")


def _attention(g: Graph, weights: dict[str, Any], size: Size, prefix: str, hidden: str, mask: str) -> str:
    def heads(part: str, order: list[int]) -> str:
        flat = _linear(g, weights, f"{prefix}.self.{part}", hidden)
        shape = _ints(g, "heads", [0, 0, size.heads, size.width // size.heads])
        return g.node(
            "Transpose", g.node("Reshape", flat, shape, name=f"{flat}.split"), name=f"{flat}.heads", perm=order
        )

    query, key, value = heads("query", [0, 2, 1, 3]), heads("key", [0, 2, 3, 1]), heads("value", [0, 2, 1, 3])
    scores = g.node("MatMul", query, key, name=f"{prefix}.products")
    root = g.constant("attention.root", (size.width // size.heads) ** 0.5)
    scaled = g.node("Div", scores, root, name=f"{prefix}.scaled")
    masked = g.node("Add", scaled, mask, name=f"{prefix}.masked")
    shares = g.node("Softmax", masked, name=f"{prefix}.shares", axis=-1)
    context = g.node("MatMul", shares, value, name=f"{prefix}.context")
    rows = g.node("Transpose", context, name=f"{prefix}.rows", perm=[0, 2, 1, 3])
    joined = g.node("Reshape", rows, _ints(g, "joined", [0, 0, size.width]), name=f"{prefix}.joined")
    return _linear(g, weights, f"{prefix}.output.dense", joined)


def _linear(g: Graph, weights: dict[str, Any], name: str, value: str) -> str:
    matrix = g.constant(f"{name}.weight", weights[f"{name}.weight"].T)
    product = g.node("MatMul", value, matrix, name=f"{name}.product")
    return g.node("Add", product, g.constant(f"{name}.bias", weights[f"{name}.bias"]), name=f"{name}.sum")


def _gelu(g: Graph, value: str) -> str:
    """GELU(x) = x · (1 + erf(x / √2)) · ½ (Hendrycks & Gimpel 2016)."""
    inner = g.node("Div", value, g.constant("gelu.root", 2.0**0.5), name=f"{value}.ratio")
    shifted = g.node(
        "Add", g.node("Erf", inner, name=f"{value}.erf"), g.constant("gelu.one", 1.0), name=f"{value}.shifted"
    )
    scaled = g.node("Mul", value, shifted, name=f"{value}.scaled")
    return g.node("Mul", scaled, g.constant("gelu.half", 0.5), name=f"{value}.gelu")


def _normalise(g: Graph, weights: dict[str, Any], name: str, value: str, residual: str) -> str:
    """Layer normalisation of value + residual (Ba et al. 2016)."""
    total = g.node("Add", value, residual, name=f"{name}.total")
    mean = g.node("ReduceMean", total, name=f"{name}.mean", axes=[-1])
    centred = g.node("Sub", total, mean, name=f"{name}.centred")
    square = g.node("Pow", centred, g.constant("norm.two", 2.0), name=f"{name}.square")
    variance = g.node("ReduceMean", square, name=f"{name}.variance", axes=[-1])
    safe = g.node("Add", variance, g.constant("norm.epsilon", EPSILON), name=f"{name}.safe")
    deviation = g.node("Sqrt", safe, name=f"{name}.deviation")
    unit = g.node("Div", centred, deviation, name=f"{name}.unit")
    scaled = g.node("Mul", unit, g.constant(f"{name}.weight", weights[f"{name}.weight"]), name=f"{name}.scaled")
    return g.node("Add", scaled, g.constant(f"{name}.bias", weights[f"{name}.bias"]), name=f"{name}.out")


def _pool(g: Graph, hidden: str) -> None:
    """Mean over the tokens, length 1."""
    column = g.node("Unsqueeze", "attention_mask", _ints(g, "two", [2]), name="pool.column")
    number = g.node("Cast", column, name="pool.number", to=TensorProto.FLOAT)
    kept = g.node("Mul", hidden, number, name="pool.kept")
    axis = _ints(g, "one", [1])
    total = g.node("ReduceSum", kept, axis, name="pool.total", keepdims=0)
    count = g.node("ReduceSum", number, axis, name="pool.count", keepdims=0)
    mean = g.node("Div", total, count, name="pool.mean")
    norm = g.node("ReduceL2", mean, name="pool.norm", axes=[-1], keepdims=1)
    g.node("Div", mean, norm, name="embedding")


def _ints(g: Graph, name: str, values: list[int]) -> str:
    return g.constant(f"ints.{name}", values, np.int64)
