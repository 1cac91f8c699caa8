"""Does int8 pay, and what does it change? Always against fp32 in the same runtime.

Leaving one runtime for another is no gain of a precision: `stack` adds both up, and says so.
Random weights tell speed and the error of the arithmetic; what a task loses only trained ones can.
"""

from __future__ import annotations

from typing import Any

from bench.api import Work, benchmark
from suites.precisions import BUILD, RUNTIMES, work
from suites.subjects import BERT_BASE, DIGITS_CNN, MINILM, OCR, SUBJECTS

ORT = ("numpy", "onnx", "onnxruntime")
OPENVINO = ("numpy", "onnx", "onnxruntime", "openvino", "nncf")
TORCH = ("numpy", "onnx", "onnxruntime", "torch", "torchao")

DYNAMIC = ("fp32", "int8_per_tensor", "int8_per_channel")
FULL = ("fp32", "bf16", "int8_static", "int8_weights")
EAGER = ("fp32", "bf16", "int8_dynamic", "int8_weights")
BASE = {"precision": "fp32"}

VISION = ("resnet50", "mobilenet_v3")
LIKENESS = SUBJECTS["resnet50"].metrics

STAGES = ("torch_fp32", "ort_fp32", "ort_int8", "openvino_fp32", "openvino_bf16", "openvino_int8")
"""From eager PyTorch on: another runtime, then another precision in it."""


def _work(device: Any, name: str, runtime: str, precision: str) -> Work:
    subject = SUBJECTS[name]
    return work(subject, RUNTIMES[runtime](subject, precision, device.threads), f"{runtime}-{precision}")


@benchmark(axes={"precision": DYNAMIC}, baseline=BASE, metrics=(*MINILM.metrics, BUILD), requires=ORT)
def minilm(device: Any, precision: str) -> Work:
    """MiniLM-L6 sentence encoder, one text of 64 tokens: what does dynamic int8 gain, and which answers change?"""
    return _work(device, "minilm", "ort", precision)


@benchmark(
    axes={"precision": FULL}, baseline=BASE, metrics=(*MINILM.metrics, BUILD), requires=OPENVINO, profiles=("full",)
)
def minilm_openvino(device: Any, precision: str) -> Work:
    """MiniLM-L6 in OpenVINO, one text of 64 tokens: bf16, int8 of all with smoothed outliers, or of weights alone?"""
    return _work(device, "minilm", "openvino", precision)


@benchmark(
    axes={"precision": EAGER}, baseline=BASE, metrics=(*MINILM.metrics, BUILD), requires=TORCH, profiles=("full",),
    launches=5,
)  # fmt: skip
def minilm_torch(device: Any, precision: str) -> Work:
    """MiniLM-L6 in eager PyTorch, one text of 64 tokens: does any precision pay without a compiler?"""
    return _work(device, "minilm", "torch", precision)


@benchmark(
    axes={"precision": ("fp32", "int8_per_channel", "int8_static")},
    baseline=BASE,
    metrics=(*DIGITS_CNN.metrics, BUILD),
    requires=ORT,
    launches=5,
)
def digits(device: Any, precision: str) -> Work:
    """A CNN of 60 thousand weights that reads digits, in ONNX Runtime: does int8 pay for what is small?"""
    return _work(device, "digits", "ort", precision)


@benchmark(
    axes={"precision": ("fp32", "bf16", "int8_static")}, baseline=BASE, metrics=(*DIGITS_CNN.metrics, BUILD),
    requires=OPENVINO, profiles=("full",),
)  # fmt: skip
def digits_openvino(device: Any, precision: str) -> Work:
    """The digits CNN in OpenVINO: do bf16 and static int8 pay for what is small?"""
    return _work(device, "digits", "openvino", precision)


@benchmark(
    axes={"precision": (*DYNAMIC, "int8_static")}, baseline=BASE, metrics=(*OCR.metrics, BUILD), requires=ORT,
    profiles=("full",),
)  # fmt: skip
def ocr(device: Any, precision: str) -> Work:
    """A trained text recogniser, one string: is static int8, the faster one, still able to read?"""
    return _work(device, "ocr", "ort", precision)


@benchmark(
    axes={"precision": ("fp32", "bf16", "int8_weights")}, baseline=BASE, metrics=(*OCR.metrics, BUILD),
    requires=OPENVINO, profiles=("full",),
)  # fmt: skip
def ocr_openvino(device: Any, precision: str) -> Work:
    """The text recogniser in OpenVINO: bf16 or int8 weights? Static int8 by NNCF read 8 % and is left out."""
    return _work(device, "ocr", "openvino", precision)


@benchmark(
    axes={"network": VISION, "precision": ("fp32", "int8_static")}, baseline=BASE, metrics=(*LIKENESS, BUILD),
    requires=ORT, profiles=("full",), launches=5,
)  # fmt: skip
def vision(device: Any, network: str, precision: str) -> Work:
    """A large dense CNN and a small depthwise one, one image, in ONNX Runtime: does static int8 pay for both?"""
    return _work(device, network, "ort", precision)


@benchmark(
    axes={"network": VISION, "precision": ("fp32", "bf16", "int8_static")}, baseline=BASE, metrics=(*LIKENESS, BUILD),
    requires=OPENVINO, profiles=("full",), launches=5,
)  # fmt: skip
def vision_openvino(device: Any, network: str, precision: str) -> Work:
    """A large dense CNN and a small depthwise one, one image, in OpenVINO: bf16 or static int8?"""
    return _work(device, network, "openvino", precision)


@benchmark(
    axes={"precision": (*DYNAMIC, "int8_static")}, baseline=BASE, metrics=(*BERT_BASE.metrics, BUILD), requires=ORT,
    profiles=("full",), launches=5,
)  # fmt: skip
def bert_base(device: Any, precision: str) -> Work:
    """BERT-base in ONNX Runtime, 128 tokens: dynamic or static int8, and is the file four times smaller?"""
    return _work(device, "bert_base", "ort", precision)


@benchmark(
    axes={"precision": FULL}, baseline=BASE, metrics=(*BERT_BASE.metrics, BUILD), requires=OPENVINO,
    profiles=("full",), launches=5,
)  # fmt: skip
def bert_base_openvino(device: Any, precision: str) -> Work:
    """BERT-base in OpenVINO, 128 tokens: bf16, int8 of all, or int8 weights alone?"""
    return _work(device, "bert_base", "openvino", precision)


@benchmark(
    axes={"precision": EAGER}, baseline=BASE, metrics=(*BERT_BASE.metrics, BUILD), requires=TORCH, profiles=("full",),
    launches=5,
)  # fmt: skip
def bert_base_torch(device: Any, precision: str) -> Work:
    """BERT-base in eager PyTorch, 128 tokens: does any precision pay without a compiler?"""
    return _work(device, "bert_base", "torch", precision)


def _stage(device: Any, network: str, stage: str) -> Work:
    runtime, precision = stage.split("_")
    return _work(device, network, runtime, "int8_static" if precision == "int8" else precision)


@benchmark(
    axes={"stage": STAGES}, baseline={"stage": "torch_fp32"}, metrics=(*BERT_BASE.metrics, BUILD),
    requires=(*OPENVINO, "torch"), profiles=("full",), launches=5,
)  # fmt: skip
def stack(device: Any, stage: str) -> Work:
    """BERT-base, 128 tokens, from eager PyTorch to the whole stack: how much do runtime and precision gain together?"""
    return _stage(device, "bert_base", stage)


@benchmark(
    axes={"network": VISION, "stage": STAGES}, baseline={"stage": "torch_fp32"}, metrics=(*LIKENESS, BUILD),
    requires=(*OPENVINO, "torch"), profiles=("full",), launches=5,
)  # fmt: skip
def vision_stack(device: Any, network: str, stage: str) -> Work:
    """ResNet-50 and MobileNetV3, from eager PyTorch to the whole stack: is it the runtime or the precision?"""
    return _stage(device, network, stage)
