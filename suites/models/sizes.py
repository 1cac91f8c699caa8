"""Networks for images at their native sizes, random weights, with their parameters and multiplications counted.

ResNet-50 and MobileNetV3 are those of `vision`; EfficientNet is built here. Random weights serve
speed and the error of an arithmetic: ImageNet accuracies are the papers', and not measured.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from suites.artifacts import Artifact, artifact
from suites.imports import need
from suites.models import bert, vision

NETWORKS = {
    "resnet50": 224,
    "mobilenet_v3": 224,
    "efficientnet_b0": 224,
    "efficientnet_b4": 380,
    "efficientnet_b7": 600,
}
"""Network → pixels of a side of the image that it was made for."""

SETTLING = 2
"""Images from which EfficientNet's batch normalisation takes its statistics."""

MODEL, ANSWER, COUNTS = "model.onnx", "answer.npy", "counts.json"
HERE = Path(__file__)
SOURCES = [HERE, HERE.with_name("efficientnet_torch.py"), *vision.MODULES, *vision.EXPORT]


def image(name: str) -> Any:
    """The timed image (1, 3, side, side) float32."""
    return vision.images(1, side=NETWORKS[name])


def module(name: str) -> Any:
    """The network in PyTorch, evaluation mode: images (batch, 3, side, side) → logits (batch, 1000)."""
    if name in vision.NETWORKS:
        return vision.module(name)
    torch = need("torch", vision.TORCH)
    from suites.models import efficientnet_torch, vision_torch

    network = efficientnet_torch.network(name)
    vision_torch.settle(network, torch.from_numpy(vision.images(SETTLING, first=1, side=NETWORKS[name])))
    return network.requires_grad_(False)


def graph(name: str) -> Artifact:
    """MODEL, ANSWER (1, 1000) of PyTorch for `image`, and COUNTS: parameters and macs."""

    def build(folder: Path) -> None:
        numpy = need("numpy", vision.SUITES)
        torch = need("torch", vision.TORCH)
        need("onnx", vision.SUITES)
        flops = need("torch.utils.flop_counter", vision.TORCH)
        from suites.models import torch_onnx

        network = module(name)
        with torch.inference_mode():
            numpy.save(folder / ANSWER, network(torch.from_numpy(image(name))).numpy())
        with torch.device("meta"), flops.FlopCounterMode(display=False) as counter:
            network.to("meta")(torch.zeros(1, 3, NETWORKS[name], NETWORKS[name]))
        counts = {"parameters": sum(p.numel() for p in network.parameters()), "macs": counter.get_total_flops() // 2}
        (folder / COUNTS).write_text(json.dumps(counts), encoding="utf-8")
        # Moving to `meta` dropped the weights: the same module again.
        torch_onnx.save(module(name), folder / MODEL, (3, NETWORKS[name], NETWORKS[name]), name)

    return artifact(
        f"{name}-native", build, sources=SOURCES, packages=["numpy", "onnx", "torch"],
        inputs={"side": str(NETWORKS[name])}, cpu=True,
    )  # fmt: skip


def bert_macs(size: bert.Size, length: int) -> int:
    """Multiplications of one text through the matrix products of a BERT encoder."""
    projections = length * (4 * size.width * size.width + 2 * size.width * size.inner)
    return size.layers * (projections + 2 * length * length * size.width)
