"""Does int8 pay, and what does it change? Always against fp32 in the same runtime."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from bench.api import HIGHER, Items, Metric, Work, Wrong, benchmark
from suites.artifacts import Artifact, artifact
from suites.imports import need
from suites.models import minilm as network

FAITHFUL = 0.94
"""Smallest mean cosine to fp32 that still counts as the same network.

Measured on the 400 pairs: dynamic int8 has .994 (per channel; 9 % of the answers change) and .961
(per tensor; 17 %), a static min-max calibration .910 (28 %). The line lies where more than every
fifth answer would change, six standard errors of the probe away from either side.
"""

PROBE = 32
"""Every PROBE-th text is used by the check; the report uses all."""

SCHEMES = {"int8_per_tensor": False, "int8_per_channel": True}


@benchmark(
    axes={"precision": ("fp32", "int8_per_tensor", "int8_per_channel")},
    baseline={"precision": "fp32"},
    metrics=(
        Metric("recall", unit="1", better=HIGHER, help="right body found first for a docstring's summary, of 400"),
        Metric("agreement", unit="1", better=HIGHER, help="same first answer as fp32, of 400"),
        Metric("cosine", unit="1", better=HIGHER, help="mean cosine of the embeddings to those of fp32"),
    ),
    requires=("numpy", "onnx", "onnxruntime"),
)
def minilm(device: Any, precision: str) -> Work:
    """MiniLM-L6 sentence encoder, one text of 64 tokens: what does dynamic int8 gain, and which answers change?"""
    made = network.graph() if precision == "fp32" else quantized(per_channel=SCHEMES[precision])
    queries, documents = network.tokens()
    session = network.session(made / network.MODEL, device.threads)
    inputs = network.feed(documents[network.timed_text(documents)])
    return Work(
        run=lambda: session.run(["embedding"], inputs)[0],
        check=lambda found: faithful(session, found, queries, documents),
        report=lambda _: accuracy(session, queries, documents),
        size_bytes=(made / network.MODEL).stat().st_size,
        notes=network.notes(made, made / network.MODEL, "all"),
    )


def quantized(*, per_channel: bool) -> Artifact:
    """The network with int8 weights (embeddings included); activations are quantized while it runs."""
    source = network.graph()

    def build(folder: Path) -> None:
        quantization = need("onnxruntime.quantization", network.SUITES)
        logging.disable(logging.WARNING)  # it recommends a preparation that this graph does not need
        try:
            quantization.quantize_dynamic(
                str(source / network.MODEL), str(folder / network.MODEL), per_channel=per_channel,
                weight_type=quantization.QuantType.QInt8,
                # Attention multiplies two activations: quantizing those costs accuracy and gains nothing.
                extra_options={"MatMulConstBOnly": True},
            )  # fmt: skip
        finally:
            logging.disable(logging.NOTSET)

    return artifact(
        f"minilm-int8-{'channel' if per_channel else 'tensor'}", build, sources=[Path(__file__)],
        packages=["onnx", "onnxruntime"], inputs={"network": source.folder.name},
    )  # fmt: skip


def faithful(session: Any, found: Any, queries: list[Any], documents: list[Any]) -> bool:
    """Raises Wrong when the embeddings are not those of the network, by the timed text and a probe."""
    numpy = need("numpy", network.SUITES)
    expected = numpy.concatenate(network.reference())
    probe = range(0, len(expected), PROBE)
    rows = [*queries, *documents]
    cosines = [float(found[0] @ expected[len(queries) + network.timed_text(documents)])]
    cosines += list((network.encode(session, [rows[k] for k in probe]) * expected[list(probe)]).sum(axis=1))
    mean = sum(cosines) / len(cosines)
    if not mean >= FAITHFUL:
        raise Wrong(f"mean cosine to fp32 is {mean:.3f} over {len(cosines)} texts, under {FAITHFUL}")
    return True


def accuracy(session: Any, queries: list[Any], documents: list[Any]) -> dict[str, float | int | Items]:
    """Over all pairs, one text at a time: dynamic ranges depend on what shares the batch."""
    numpy = need("numpy", network.SUITES)
    expected_queries, expected_documents = network.reference()
    found_queries, found_documents = network.encode(session, queries), network.encode(session, documents)
    best = network.best(found_queries, found_documents)
    cosines = numpy.concatenate([found_queries, found_documents]) * numpy.concatenate(
        [expected_queries, expected_documents]
    )
    return {
        "recall": Items(best == numpy.arange(len(queries))),
        "agreement": Items(best == network.best(expected_queries, expected_documents)),
        # Four digits: the last ones belong to the order of additions, not to the network.
        "cosine": round(float(cosines.sum(axis=1, dtype="float64").mean()), 4),
    }
