"""Does fusing operators pay? One benchmark per runtime, so that no runtime's own speed is credited to fusion."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from bench.api import LOWER, Metric, Work, Wrong, benchmark
from suites.artifacts import Artifact, artifact
from suites.imports import need
from suites.models import minilm

TOLERANCE = 1e-3
"""Largest relative L2 error: fusion reorders additions (about 1e-6) and may do no more."""

DIGITS = 5
"""Decimals of the reported error; what is smaller is the rounding of fp32 and reads 0."""

ERROR = Metric("error", unit="1", better=LOWER, help="relative L2 error to the unfused network; 0: below 5e-6")

LEVELS = {"unfused": "off", "basic": "basic", "all": "all", "optimizer": "all"}
"""Graph → level of ONNX Runtime's own optimizations."""


@benchmark(
    axes={"graph": ("unfused", "basic", "all", "optimizer")},
    baseline={"graph": "unfused"},
    metrics=(ERROR,),
    requires=("numpy", "onnx", "onnxruntime"),
)
def minilm_ort(device: Any, graph: str) -> Work:
    """MiniLM-L6 in ONNX Runtime, one text of 64 tokens: do its graph optimizations pay over the textbook graph?"""
    made = fused() if graph == "optimizer" else minilm.graph()
    session = minilm.session(made / minilm.MODEL, device.threads, LEVELS[graph])
    _, documents = minilm.tokens()
    inputs = minilm.feed(documents[minilm.timed_text(documents)])
    return Work(
        run=lambda: session.run(["embedding"], inputs)[0],
        check=close,
        report=lambda found: {"error": round(error(found), DIGITS)},
        size_bytes=(made / minilm.MODEL).stat().st_size,
        notes=minilm.notes(made, made / minilm.MODEL, LEVELS[graph]),
    )


@benchmark(
    axes={"attention": ("eager", "sdpa")},
    baseline={"attention": "eager"},
    metrics=(ERROR,),
    requires=("numpy", "onnx", "onnxruntime"),
)
def minilm_torch(device: Any, attention: str) -> Work:
    """MiniLM-L6 in eager PyTorch, one text of 64 tokens: does fused attention pay over the textbook one?"""
    torch = need("torch", "pip install 'inference-bench[torch]'")
    from suites.models import bert_torch

    torch.set_num_threads(device.threads)
    _, documents = minilm.tokens()
    encoder = bert_torch.encoder(minilm.weights(), minilm.SIZE, attention, pooled=True)
    ids = torch.from_numpy(documents[minilm.timed_text(documents)])

    def run() -> Any:
        with torch.inference_mode():
            return encoder(ids)

    return Work(
        run=run,
        check=lambda found: close(found.numpy()),
        report=lambda found: {"error": round(error(found.numpy()), DIGITS)},
        size_bytes=sum(tensor.nbytes for tensor in encoder.state_dict().values()),
        notes={"provider": "torch cpu", "model": "all-MiniLM-L6-v2", "threads": str(torch.get_num_threads())},
    )


def fused() -> Artifact:
    """The graph rewritten by ONNX Runtime's offline transformer optimizer, which also fuses attention."""
    source = minilm.graph()

    def build(folder: Path) -> None:
        optimizer = need("onnxruntime.transformers.optimizer", minilm.SUITES)
        logging.getLogger(optimizer.__name__).setLevel(logging.ERROR)  # it doubts every producer but PyTorch
        model = optimizer.optimize_model(
            str(source / minilm.MODEL), model_type="bert", num_heads=minilm.SIZE.heads, hidden_size=minilm.SIZE.width,
            opt_level=0, use_gpu=False,
        )  # fmt: skip
        found = model.get_fused_operator_statistics()
        if found.get("Attention") != minilm.SIZE.layers:
            raise RuntimeError(f"the optimizer fused {found.get('Attention')} of {minilm.SIZE.layers} attentions")
        model.save_model_to_file(str(folder / minilm.MODEL))

    return artifact(
        "minilm-optimizer", build, sources=[Path(__file__)], packages=["onnx", "onnxruntime"],
        inputs={"network": source.folder.name},
    )  # fmt: skip


def error(found: Any) -> float:
    """Relative L2 distance of the timed text's embedding to the unfused fp32 network's."""
    numpy = need("numpy", minilm.SUITES)
    _, documents = minilm.tokens()
    expected = minilm.reference()[1][minilm.timed_text(documents)]
    return float(numpy.linalg.norm(found[0] - expected) / numpy.linalg.norm(expected))


def close(found: Any) -> bool:
    """Raises Wrong when the error is over TOLERANCE (or not a number)."""
    size = error(found)
    if not size <= TOLERANCE:
        raise Wrong(f"relative error to the unfused network is {size:.1e}, over {TOLERANCE:.0e}")
    return True
