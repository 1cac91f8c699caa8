"""BERT encoders by size: shapes, random weights, tokens, the ONNX graph and the answer of the fp32 network.

MiniLM-L6 with its trained weights is `suites.models.minilm`; the others have random weights, which
serve speed and the error of an arithmetic, never a task's accuracy.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from suites.artifacts import Artifact, artifact
from suites.engines import ort_session
from suites.imports import need

SUITES = "pip install 'inference-bench[suites]'"

EPSILON = 1e-12
"""Of every layer normalisation (config.json of the published models)."""

SPREAD = 0.02
"""Standard deviation of initial weights (Devlin et al. 2019, appendix of the published code)."""

LENGTH = 128
"""Tokens of the timed text."""

SEED = 0
MODEL = "model.onnx"
HERE = Path(__file__)
GRAPH = [HERE, HERE.with_name("bert_graph.py"), HERE.with_name("onnx_graph.py")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Layers, width of the hidden states, heads, width of the feed-forward part, vocabulary, longest text."""

    layers: int
    width: int
    heads: int
    inner: int
    words: int = 30522
    places: int = 512

    @property
    def parameters(self) -> int:
        """How many numbers the network holds (no pooler)."""
        layer = 4 * self.width * (self.width + 1) + 2 * self.width * self.inner + self.inner + 5 * self.width
        return (self.words + self.places + 2 + 2) * self.width + self.layers * layer


SIZES = {
    "minilm_l6": Size(layers=6, width=384, heads=12, inner=1536),
    "distilbert": Size(layers=6, width=768, heads=12, inner=3072),
    "bert_mini": Size(layers=4, width=256, heads=4, inner=1024),
    "bert_base": Size(layers=12, width=768, heads=12, inner=3072),
    "bert_large": Size(layers=24, width=1024, heads=16, inner=4096),
}
"""As published: Wang et al. 2020, Sanh et al. 2019, Turc et al. 2019, Devlin et al. 2019."""


def weights(name: str) -> dict[str, Any]:
    """Random float32 arrays of that size, named as the published checkpoints name them; always the same."""
    numpy = need("numpy", SUITES)
    size, random = SIZES[name], numpy.random.default_rng(SEED)
    found: dict[str, Any] = {}

    def matrix(title: str, *shape: int) -> None:
        found[f"{title}.weight"] = random.standard_normal(shape, dtype="float32") * numpy.float32(SPREAD)

    def linear(title: str, rows: int, columns: int) -> None:
        matrix(title, rows, columns)
        found[f"{title}.bias"] = numpy.zeros(rows, "float32")

    def norm(title: str) -> None:
        found[f"{title}.weight"] = numpy.ones(size.width, "float32")
        found[f"{title}.bias"] = numpy.zeros(size.width, "float32")

    matrix("embeddings.word_embeddings", size.words, size.width)
    matrix("embeddings.position_embeddings", size.places, size.width)
    matrix("embeddings.token_type_embeddings", 2, size.width)
    norm("embeddings.LayerNorm")
    for layer in range(size.layers):
        prefix = f"encoder.layer.{layer}"
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            linear(f"{prefix}.attention.{part}", size.width, size.width)
        norm(f"{prefix}.attention.output.LayerNorm")
        linear(f"{prefix}.intermediate.dense", size.inner, size.width)
        linear(f"{prefix}.output.dense", size.width, size.inner)
        norm(f"{prefix}.output.LayerNorm")
    return found


def tokens(length: int = LENGTH, batch: int = 1, seed: int = SEED) -> Any:
    """Random token ids (batch, length) int64, none of them one of BERT's special tokens."""
    numpy = need("numpy", SUITES)
    return numpy.random.default_rng(seed).integers(1000, 30000, (batch, length))


def feed(ids: Any) -> dict[str, Any]:
    """Inputs of the ONNX graph for token ids (batch, length) without padding."""
    numpy = need("numpy", SUITES)
    positions = numpy.broadcast_to(numpy.arange(ids.shape[1]), ids.shape)
    return {
        "input_ids": ids,
        "position_ids": numpy.ascontiguousarray(positions),
        "attention_mask": numpy.ones_like(ids),
    }


def graph(name: str) -> Artifact:
    """MODEL: the unfused fp32 network, inputs as `feed` makes them → `hidden` (batch, length, width)."""

    def build(folder: Path) -> None:
        need("onnx", SUITES)
        from suites.models import bert_graph

        bert_graph.save(weights(name), SIZES[name], folder / MODEL, name)

    return artifact(f"{name}-fp32", build, sources=GRAPH, packages=["numpy", "onnx"], inputs={"size": str(SIZES[name])})


def module(name: str, attention: str = "eager") -> Any:
    """The network in PyTorch, evaluation mode: token ids (batch, length) → hidden states (batch, length, width)."""
    need("torch", "pip install 'inference-bench[torch]'")
    from suites.models import bert_torch

    return bert_torch.encoder(weights(name), SIZES[name], attention, pooled=False)


def reference(name: str, length: int = LENGTH) -> Any:
    """Hidden states (1, length, width) of the unfused fp32 network for `tokens(length)`, by ONNX Runtime."""
    numpy = need("numpy", SUITES)
    network = graph(name)

    def build(folder: Path) -> None:
        session = ort_session(network / MODEL, 1, "off")
        numpy.save(folder / "hidden.npy", session.run(["hidden"], feed(tokens(length)))[0])

    made = artifact(
        f"{name}-{length}-reference", build, sources=[HERE], packages=["onnxruntime"],
        inputs={"network": network.folder.name, "length": str(length)}, cpu=True,
    )  # fmt: skip
    return numpy.load(made / "hidden.npy")
