"""Small stacks of one pattern that runtimes fuse: convolution + normalisation + ReLU, and linear + bias + GELU.

Random weights: they serve speed and the error of an arithmetic.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from suites.artifacts import Artifact, artifact
from suites.engines import ort_session
from suites.imports import need

SUITES = "pip install 'inference-bench[suites]'"
TORCH = "pip install 'inference-bench[torch]'"

DEPTH = 8
CHANNELS, SIDE = 64, 28
"""Of the convolutions: as in the second stage of ResNet-50."""

WIDTH, ROWS = 256, 64
"""Of the linear layers and of the rows that they are given."""

SHAPES = {"convolutions": (CHANNELS, SIDE, SIDE), "gelu": (ROWS, WIDTH)}
"""Block → shape of one item."""

MODEL = "model.onnx"
HERE = Path(__file__)
SOURCES = [HERE, HERE.with_name("blocks_torch.py")]
EXPORT = [HERE.with_name("torch_onnx.py"), HERE.with_name("onnx_graph.py")]


def inputs(block: str) -> Any:
    """One item (1, *shape) float32, always the same."""
    numpy = need("numpy", SUITES)
    return numpy.random.default_rng(0).standard_normal((1, *SHAPES[block]), dtype="float32")


def module(block: str) -> Any:
    """The stack in PyTorch, evaluation mode: (batch, *shape) → the same shape."""
    need("torch", TORCH)
    from suites.models import blocks_torch

    return blocks_torch.network(block)


def graph(block: str) -> Artifact:
    """MODEL: the textbook ONNX graph, `input` → `output`."""

    def build(folder: Path) -> None:
        need("onnx", SUITES)
        network = module(block)
        from suites.models import torch_onnx

        torch_onnx.save(network, folder / MODEL, SHAPES[block], block)

    return artifact(f"block-{block}", build, sources=[*SOURCES, *EXPORT], packages=["onnx", "torch"])


def reference(block: str) -> Any:
    """What the unfused graph answers to `inputs`, by ONNX Runtime."""
    numpy = need("numpy", SUITES)
    network = graph(block)

    def build(folder: Path) -> None:
        answer = ort_session(network / MODEL, 1, "off").run(None, {"input": inputs(block)})[0]
        numpy.save(folder / "answer.npy", answer)

    made = artifact(
        f"block-{block}-reference", build, sources=SOURCES, packages=["onnxruntime"],
        inputs={"network": network.folder.name}, cpu=True,
    )  # fmt: skip
    return numpy.load(made / "answer.npy")
