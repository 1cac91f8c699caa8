"""The digits CNN pruned in several ways, as ONNX graphs, and the answers that each must give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from suites.artifacts import Artifact, artifact
from suites.imports import need
from suites.models import digits

METHODS = {
    "dense": 0.0,
    "zeros_30": 0.3,
    "zeros_90": 0.9,
    "channels_30_raw": 0.3,
    "channels_30": 0.3,
    "channels_30_aligned": 0.3,
    "channels_50_raw": 0.5,
    "channels_50": 0.5,
}
"""Method → share of weights set to zero, or of channels taken out; `raw` is without fine-tuning.

Aligned: each layer keeps whole vectors, 30 % fewer channels in all: kernels pad what does not fill one.
"""

VECTOR = 16
"""Channels that one vector instruction works on (AVX-512, float32); narrower ones divide it."""

MODEL = digits.MODEL
LOGITS = "logits.npy"
HERE = Path(__file__)
PRUNING = HERE.with_name("pruning_torch.py")

SIDE = 128
"""Pixels of the wide network's image."""

CLASSES = 100
ANSWER = "answer.npz"


def network(method: str) -> Any:
    """The pruned PyTorch module in evaluation mode."""
    from suites.models import pruning_torch

    dense, share = digits.module(), METHODS[method]
    if method == "dense":
        return dense
    if method.startswith("zeros"):
        return pruning_torch.zeroed(dense, share)
    slim = pruning_torch.slimmed(dense, widths(method))
    return slim if method.endswith("raw") else pruning_torch.tuned(slim)


def graph(method: str) -> Artifact:
    """MODEL, and LOGITS (TESTS, CLASSES) that PyTorch gives for the held-out images."""

    def build(folder: Path) -> None:
        numpy = need("numpy", digits.INSTALL)
        torch = need("torch", digits.TORCH)
        need("onnx", digits.INSTALL)
        from suites.models import torch_onnx

        module = network(method)
        torch_onnx.save(module, folder / MODEL, digits.SHAPE, f"digits-{method}")
        with torch.inference_mode():
            numpy.save(folder / LOGITS, module(torch.from_numpy(digits.test_images()[0])).numpy())

    return artifact(
        f"digits-{method.replace('_', '-')}", build, sources=[HERE, PRUNING, digits.NETWORK, *digits.EXPORT],
        packages=["onnx", "torch"], inputs={"weights": digits.trained().folder.name}, cpu=True,
    )  # fmt: skip


def widths(method: str) -> tuple[int, int]:
    """Channels of the first convolution, and of the second and third, after that method."""
    kept = 1 - METHODS[method] if method.startswith("channels") else 1
    first, rest = (width * kept for width in digits.WIDTHS)
    if method.endswith("aligned"):
        return round(first / VECTOR) * VECTOR, round(rest / VECTOR) * VECTOR
    return int(first), int(rest)


def macs(method: str) -> int:
    """Multiplications of one image through the convolutions and the linear layer; zeros are multiplied too."""
    first, rest = widths(method)
    full, half = digits.SHAPE[1] ** 2, (digits.SHAPE[1] // 2) ** 2
    return 9 * first * full + 9 * first * rest * half + 9 * rest * rest * half + rest * digits.CLASSES


def wide_macs(stages: tuple[int, ...]) -> int:
    """Multiplications of one image through `wide(stages)`."""
    total, inputs, side = 0, 3, SIDE
    for width in stages:
        side //= 2
        total += 9 * (inputs + width) * width * side * side
        inputs = width
    return total + inputs * CLASSES


def wide(stages: tuple[int, ...], zeros: float = 0.0) -> Artifact:
    """MODEL: a CNN with random weights, (batch, 3, SIDE, SIDE) → (batch, CLASSES): it serves speed only.

    ANSWER: one image, and what PyTorch makes of it. stages: their channels; zeros: share of the weights set to zero.
    """

    def build(folder: Path) -> None:
        numpy = need("numpy", digits.INSTALL)
        torch = need("torch", digits.TORCH)
        need("onnx", digits.INSTALL)
        from suites.models import pruning_torch, torch_onnx

        module = pruning_torch.zeroed(pruning_torch.wide(stages, CLASSES), zeros)
        image = torch.randn(1, 3, SIDE, SIDE, generator=torch.Generator().manual_seed(0))
        with torch.inference_mode():
            numpy.savez(folder / ANSWER, image=image.numpy(), answer=module(image).numpy())
        torch_onnx.save(module, folder / MODEL, (3, SIDE, SIDE), "wide")

    return artifact(
        "wide-cnn", build, sources=[HERE, PRUNING, *digits.EXPORT], packages=["onnx", "torch"],
        inputs={"stages": str(stages), "zeros": str(zeros), "side": str(SIDE)}, cpu=True,
    )  # fmt: skip
