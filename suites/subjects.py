"""The reference networks as what is quantized, compiled and judged: one description for every suite.

An answer is judged in two steps: `confirm` is quick and raises Wrong for what is not this network
any more; `judge` looks at a whole test set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench.api import HIGHER, LOWER, Items, Metric, Wrong
from suites.artifacts import Artifact
from suites.imports import need
from suites.models import bert, digits, minilm, ocr, vision

SUITES = "pip install 'inference-bench[suites]'"

FAITHFUL = 0.94
"""Smallest mean cosine to fp32 that still counts as the same sentence encoder.

Measured on the 400 pairs: dynamic int8 has .994 (per channel; 9 % of the answers change) and .961
(per tensor; 17 %), a static min-max calibration .910 (28 %). The line lies where more than every
fifth answer would change, six standard errors of the probe away from either side.
"""

PROBE = 32
"""Every PROBE-th text is used by `confirm`; `judge` uses all."""

SAME_DIGITS = 0.97
"""Smallest share of the held-out digits that must be read as by fp32."""

READABLE = 0.5
"""Smallest share of strings that must be read as by fp32: static int8 reads .7, a broken network none."""

STRINGS = 20
"""Strings that `confirm` reads."""

ALIKE = 0.8
"""Smallest likeness of a vision network's answers to those of fp32 (see `vision.likeness`)."""

PICTURES = 4
"""Images that `confirm` shows."""

CLOSE = 0.995
"""Smallest cosine of BERT's hidden states to those of fp32."""

DIGITS = 5
"""Decimals of a reported cosine or error: the last ones belong to the order of additions, not to the network."""

Inputs = Mapping[str, Any]
Call = Callable[[Inputs], Any]
"""Inputs of one item → the network's answer as a float32 array."""

Values = dict[str, "float | Items"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A reference network.

    title: for notes. weights: `trained` or `random`; random ones serve speed and the error of an arithmetic.
    graph: its ONNX artifact. module: the same in PyTorch, evaluation mode, which takes the input `argument`.
    inputs: one item, which is timed. calibration: other items, from which ranges are taken; made_by: the files
    that make them. confirm(answer, call), judge(call), metrics: see the top of this file.
    matrices: operators that dynamic int8 takes (None: all it knows); sites: the same for static int8.
    """

    name: str
    title: str
    weights: str
    metrics: tuple[Any, ...]
    graph: Callable[[], Artifact]
    module: Callable[[], Any] | None
    argument: str
    inputs: Callable[[], Inputs]
    calibration: Callable[[], Sequence[Inputs]]
    confirm: Callable[[Any, Call], object]
    judge: Callable[[Call], Values]
    made_by: tuple[Path, ...]
    transformer: bool = False
    per_channel: bool = True
    matrices: tuple[str, ...] | None = None
    sites: tuple[str, ...] | None = None


def _cosine(found: Any, expected: Any) -> float:
    numpy = need("numpy", SUITES)
    ours, theirs = found.ravel().astype("float64"), expected.ravel().astype("float64")
    return float(ours @ theirs / (numpy.linalg.norm(ours) * numpy.linalg.norm(theirs)))


def _at_least(value: float, floor: float, what: str) -> None:
    if not value >= floor:  # a NaN is not, either
        raise Wrong(f"{what} is {value:.3f}, under {floor}")


# MiniLM: finds a function's description by its summary


def _texts() -> list[Any]:
    queries, documents = minilm.tokens()
    return [*queries, *documents]


def _timed_text() -> Inputs:
    _, documents = minilm.tokens()
    return minilm.feed(documents[minilm.timed_text(documents)])


def _other_texts() -> list[Inputs]:
    full = [ids for ids in minilm.tokens()[1] if ids.shape[1] == minilm.LENGTH]
    return [minilm.feed(ids) for ids in full[1:25]]


def faithful(answer: Any, call: Call) -> None:
    """Raises Wrong when the embeddings are not MiniLM's, by the timed text and a probe."""
    numpy = need("numpy", SUITES)
    queries, documents = minilm.tokens()
    expected = numpy.concatenate(minilm.reference())
    rows = _texts()
    cosines = [_cosine(answer, expected[len(queries) + minilm.timed_text(documents)])]
    cosines += [_cosine(call(minilm.feed(rows[k])), expected[k]) for k in range(0, len(rows), PROBE)]
    _at_least(sum(cosines) / len(cosines), FAITHFUL, f"mean cosine to fp32 over {len(cosines)} texts")


def _retrieval(call: Call) -> Values:
    """Over all pairs, one text at a time: dynamic ranges depend on what shares the batch."""
    numpy = need("numpy", SUITES)
    expected = minilm.reference()
    queries, documents = (numpy.concatenate([call(minilm.feed(ids)) for ids in side]) for side in minilm.tokens())
    best = minilm.best(queries, documents)
    pairs = zip([*queries, *documents], numpy.concatenate(expected), strict=True)
    cosines = [_cosine(found, right) for found, right in pairs]
    return {
        "recall": Items(best == numpy.arange(len(queries))),
        "agreement": Items(best == minilm.best(*expected)),
        "cosine": round(sum(cosines) / len(cosines), DIGITS),
    }


def _minilm_module() -> Any:
    need("torch", "pip install 'inference-bench[torch]'")
    from suites.models import bert_torch

    return bert_torch.encoder(minilm.weights(), minilm.SIZE, "sdpa", pooled=True)


MINILM = Subject(
    name="minilm", title="all-MiniLM-L6-v2, one text of 64 tokens", weights="trained",
    metrics=(
        Metric("recall", unit="1", better=HIGHER, help="right body found first for a docstring's summary, of 400"),
        Metric("agreement", unit="1", better=HIGHER, help="same first answer as fp32, of 400"),
        Metric("cosine", unit="1", better=HIGHER, help="mean cosine of the embeddings to those of fp32"),
    ),
    graph=minilm.graph, module=_minilm_module, argument="input_ids", inputs=_timed_text, calibration=_other_texts,
    confirm=faithful, judge=_retrieval, made_by=(Path(minilm.__file__),), transformer=True,
)  # fmt: skip


# Digits


def _digit(image: Any) -> Inputs:
    return {"input": image[None]}


def _read_digits(call: Call) -> Any:
    numpy = need("numpy", SUITES)
    return numpy.concatenate([call(_digit(image)) for image in digits.test_images()[0]])


def _same_digits(answer: Any, call: Call) -> None:
    agreement = digits.accuracy(_read_digits(call))["agreement"]
    _at_least(sum(agreement) / len(agreement), SAME_DIGITS, "share of digits read as by fp32")


DIGITS_CNN = Subject(
    name="digits", title="digits CNN, one image", weights="trained", metrics=digits.METRICS,
    graph=digits.graph, module=digits.module, argument="input",
    inputs=lambda: _digit(digits.test_images()[0][0]),
    calibration=lambda: [_digit(image) for image in digits.images()["train_images"][:320]],
    confirm=_same_digits, judge=lambda call: dict(digits.accuracy(_read_digits(call))),
    made_by=(Path(digits.__file__),),
)  # fmt: skip


# Text recognition


def _read_strings(call: Call, count: int) -> list[str]:
    return [ocr.read(call({"x": image[None]})) for image in ocr.test_strings()[1][:count]]


def _readable(answer: Any, call: Call) -> None:
    expected = ocr.reference()[1][:STRINGS]
    same = sum(ours == theirs for ours, theirs in zip(_read_strings(call, STRINGS), expected, strict=True))
    _at_least(same / len(expected), READABLE, "share of strings read as by fp32")


OCR = Subject(
    name="ocr", title="PP-OCRv6 small recogniser, one string of 12 letters", weights="trained", metrics=ocr.METRICS,
    graph=ocr.graph, module=None, argument="x",
    inputs=lambda: {"x": ocr.test_strings()[1][:1]},
    calibration=lambda: [{"x": image[None]} for image in ocr.drawn(ocr.CALIBRATION, first=ocr.STRINGS)[1]],
    confirm=_readable, judge=lambda call: dict(ocr.accuracy(_read_strings(call, ocr.STRINGS))),
    made_by=(Path(ocr.__file__),),
    # Its reshaped biases make an invalid graph per channel (ONNX Runtime 1.32); its convolutions do not gain.
    per_channel=False, matrices=("MatMul", "Gemm"),
)  # fmt: skip


# Vision networks


def _classify(call: Call, count: int) -> Any:
    numpy = need("numpy", SUITES)
    return numpy.concatenate([call({"input": image[None]}) for image in vision.images(count)])


def _alike(name: str, answer: Any, call: Call) -> None:
    expected = vision.reference(name)
    likeness = vision.likeness(_classify(call, PICTURES), expected[:PICTURES], expected.mean(axis=0))
    _at_least(likeness, ALIKE, "likeness to fp32 after what images share is taken off")


def _likeness(name: str, call: Call) -> Values:
    expected, found = vision.reference(name), _classify(call, vision.IMAGES)
    return {
        "likeness": round(vision.likeness(found, expected, expected.mean(axis=0)), DIGITS),
        "cosine": round(_cosine(found, expected), DIGITS),
        "agreement": Items(found.argmax(axis=1) == expected.argmax(axis=1)),
    }


def _vision(name: str, title: str) -> Subject:
    return Subject(
        name=name, title=f"{title}, one image of 224 × 224", weights="random",
        metrics=(
            Metric("likeness", unit="1", better=HIGHER, help="mean cosine to fp32 without what all images share"),
            Metric("cosine", unit="1", better=HIGHER, help="cosine of all answers to those of fp32"),
            Metric("agreement", unit="1", better=HIGHER, help=f"same first class as fp32, of {vision.IMAGES} images"),
        ),
        graph=partial(vision.graph, name), module=partial(vision.module, name), argument="input",
        inputs=lambda: {"input": vision.images(1)},
        calibration=lambda: [{"input": image[None]} for image in vision.images(vision.SETTLING, first=vision.IMAGES)],
        confirm=partial(_alike, name), judge=partial(_likeness, name), made_by=(Path(vision.__file__),),
    )  # fmt: skip


# BERT


def _close(answer: Any, call: Call) -> None:
    _at_least(_cosine(answer, bert.reference("bert_base")), CLOSE, "cosine of the hidden states to those of fp32")


def _hidden(call: Call) -> Values:
    numpy = need("numpy", SUITES)
    expected, found = bert.reference("bert_base"), call(bert.feed(bert.tokens()))
    return {
        "cosine": round(_cosine(found, expected), DIGITS),
        "error": round(float(numpy.linalg.norm(found - expected) / numpy.linalg.norm(expected)), DIGITS),
    }


BERT_BASE = Subject(
    name="bert_base", title="BERT-base, one text of 128 tokens", weights="random",
    metrics=(
        Metric("cosine", unit="1", better=HIGHER, help="cosine of the hidden states to those of fp32"),
        Metric("error", unit="1", better=LOWER, help="relative L2 error of the hidden states to those of fp32"),
    ),
    graph=partial(bert.graph, "bert_base"), module=partial(bert.module, "bert_base"), argument="input_ids",
    inputs=lambda: bert.feed(bert.tokens()),
    calibration=lambda: [bert.feed(bert.tokens(seed=seed)) for seed in range(1, 5)],
    confirm=_close, judge=_hidden, made_by=(Path(bert.__file__),), transformer=True, sites=("MatMul",),
)  # fmt: skip

SUBJECTS = {
    subject.name: subject
    for subject in (
        MINILM, DIGITS_CNN, OCR, BERT_BASE, _vision("resnet50", "ResNet-50"),
        _vision("mobilenet_v3", "MobileNetV3-Large"),
    )
}  # fmt: skip
