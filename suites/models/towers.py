"""A two-tower recommender with random weights: user and item networks, items, candidates, the reference's answers.

Random weights serve speed, and how far an arithmetic changes an order; they know nobody's taste.
The user's vector is computed for every request. That of an item depends on the item alone: it can be
computed for every request too, or once for all items.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from suites.artifacts import Artifact, artifact
from suites.data.events import COLUMNS, Row
from suites.imports import need
from suites.models import onnx_graph

HERE = Path(__file__)

WIDTH = 64
"""Of the vectors, of a user's profile and of an item's attributes."""

USER = (WIDTH + len(COLUMNS), 1024, 512, WIDTH)
ITEM = (WIDTH, 256, 256, WIDTH)
"""Widths of the layers, input first; ReLU between them."""

CANDIDATES = 500
"""Items that an earlier stage found for a user, and that are ranked here."""

BEST = 10

CHUNK = 4096
"""Items whose vectors are computed at once: their hidden layers stay in the processor's caches."""

INPUT, OUTPUT = "features", "vector"
USER_FP32, USER_INT8, ITEM_FP32, VECTORS, ATTRIBUTES = (
    "user.onnx", "user-int8.onnx", "item.onnx", "vectors.npy", "attributes.npy",
)  # fmt: skip

Array = NDArray[np.float32]
Layers = list[tuple[Array, Array]]


def layers(widths: Sequence[int], seed: int) -> Layers:
    """Weights (in, out) and biases, by He (2015), so that the signal keeps its size."""
    chance = np.random.default_rng(seed)
    return [
        (
            (chance.standard_normal((a, b)) * np.sqrt(2 / a)).astype(np.float32),
            (chance.standard_normal(b) * 0.1).astype(np.float32),
        )
        for a, b in pairwise(widths)
    ]


def forward(network: Layers, inputs: Array) -> Array:
    """(batch, in) → (batch, WIDTH), in numpy."""
    hidden = inputs
    for weights, bias in network[:-1]:
        hidden = np.maximum(hidden @ weights + bias, 0)
    return hidden @ network[-1][0] + network[-1][1]


def user_network() -> Layers:
    """The user tower."""
    return layers(USER, 1)


def item_network() -> Layers:
    """The item tower."""
    return layers(ITEM, 2)


def profiles(users: int) -> Array:
    """(users, WIDTH): what is known of each user beside the features that change."""
    return np.random.default_rng(3).standard_normal((users, WIDTH), np.float32)


def inputs(profile: Array, rows: Sequence[Row]) -> Array:
    """(batch, WIDTH + features): profiles (batch, WIDTH) and features, the latter by their logarithms."""
    scaled = np.log1p(np.array(rows, np.float32)) / 4
    return np.concatenate([profile, scaled], axis=1)


def candidates(users: int, items: int) -> NDArray[np.int32]:
    """(users, CANDIDATES): items for each user, none twice, that lie all over the catalogue.

    From a random beginning in steps of one random length: coprime to the number of items, so that
    the walk meets no item twice.
    """
    chance = np.random.default_rng(4)
    steps = np.array([s for s in chance.integers(1, items, 8 * users) if np.gcd(s, items) == 1][:users], np.int64)
    begins = chance.integers(0, items, users)
    return ((begins[:, None] + steps[:, None] * np.arange(CANDIDATES)) % items).astype(np.int32)


def best_of(vectors: Array, user: Array) -> NDArray[np.intp]:
    """Places of the BEST largest products of vectors (n, WIDTH) with user (WIDTH), best first."""
    scores = vectors @ user
    top = np.argpartition(scores, -BEST)[-BEST:]
    ranked: NDArray[np.intp] = top[np.argsort(-scores[top])]
    return ranked


def built(items: int) -> Artifact:
    """Both towers as ONNX, the user tower in int8 too, all items' attributes, and their vectors by numpy."""

    def build(folder: Path) -> None:
        quantization = need("onnxruntime.quantization", "pip install 'inference-bench[suites]'")
        write(user_network(), folder / USER_FP32)
        write(item_network(), folder / ITEM_FP32)
        logging.disable(logging.WARNING)  # it recommends a preparation that this graph does not need
        try:
            quantization.quantize_dynamic(
                str(folder / USER_FP32), str(folder / USER_INT8), per_channel=True,
                weight_type=quantization.QuantType.QInt8,
            )  # fmt: skip
        finally:
            logging.disable(logging.NOTSET)
        attributes = np.random.default_rng(5).standard_normal((items, WIDTH), np.float32)
        np.save(folder / ATTRIBUTES, attributes)
        network = item_network()
        parts = [forward(network, attributes[k : k + CHUNK]) for k in range(0, items, CHUNK)]
        np.save(folder / VECTORS, np.concatenate(parts))

    return artifact(
        f"towers-{items}", build, sources=[HERE, Path(onnx_graph.__file__)],
        packages=["onnx", "onnxruntime", "numpy"], inputs={"items": str(items)}, cpu=True,
    )  # fmt: skip


def write(network: Layers, file: Path) -> None:
    """The network as an ONNX file with a free batch."""
    graph = onnx_graph.Graph()
    hidden = INPUT
    for number, (weights, bias) in enumerate(network):
        last = number == len(network) - 1
        product = graph.node("MatMul", hidden, graph.constant(f"weights{number}", weights), name=f"product{number}")
        hidden = graph.node(
            "Add", product, graph.constant(f"bias{number}", bias), name=OUTPUT if last else f"sum{number}"
        )
        if not last:
            hidden = graph.node("Relu", hidden, name=f"hidden{number}")
    graph.save(file, "tower", {INPUT: ["batch", network[0][0].shape[0]]}, {OUTPUT: ["batch", WIDTH]})
