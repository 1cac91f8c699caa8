"""EfficientNet (Tan & Le 2019): one searched network, and larger ones by scaling it. Imports torch."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from suites.models.vision_torch import CLASSES

BLOCKS = (
    (1, 3, 1, 16, 1),
    (6, 3, 2, 24, 2),
    (6, 5, 2, 40, 2),
    (6, 3, 2, 80, 3),
    (6, 5, 1, 112, 3),
    (6, 5, 2, 192, 4),
    (6, 3, 1, 320, 1),
)
"""Table 1 of the paper: expansion, kernel, stride, output channels, layers."""

STEM, HEAD = 32, 1280
EPSILON = 1e-3
"""Of the batch normalisation (the published code)."""

SCALES = {"efficientnet_b0": (1.0, 1.0), "efficientnet_b4": (1.4, 1.8), "efficientnet_b7": (2.0, 3.1)}
"""Network → how much wider and deeper than B0 (the published code)."""


def _width(channels: int, scale: float) -> int:
    """Scaled and rounded to a multiple of 8, but not down by more than a tenth."""
    wanted = channels * scale
    rounded = max(8, int(wanted + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * wanted else rounded


def _convolution(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> list[nn.Module]:
    return [
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs, eps=EPSILON),
    ]


class Excite(nn.Module):
    """Scales channels by what the whole image shows (Hu et al. 2018)."""

    def __init__(self, channels: int, squeezed: int) -> None:
        super().__init__()
        self.gate = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(channels, squeezed, 1), nn.SiLU(),
            nn.Conv2d(squeezed, channels, 1), nn.Sigmoid(),
        )  # fmt: skip

    def forward(self, hidden: Tensor) -> Tensor:
        """(batch, channels, h, w) → the same shape."""
        scaled: Tensor = hidden * self.gate(hidden)
        return scaled


class Block(nn.Module):
    """Expand, filter each channel, excite, project; with a shortcut where the shape stays."""

    def __init__(self, inputs: int, outputs: int, expansion: int, kernel: int, stride: int) -> None:
        super().__init__()
        wide = inputs * expansion
        parts = [*_convolution(inputs, wide, 1), nn.SiLU()] if expansion > 1 else []
        self.deep = nn.Sequential(
            *parts, *_convolution(wide, wide, kernel, stride, groups=wide), nn.SiLU(),
            Excite(wide, max(1, inputs // 4)), *_convolution(wide, outputs, 1),
        )  # fmt: skip
        self.residual = stride == 1 and inputs == outputs

    def forward(self, hidden: Tensor) -> Tensor:
        """(batch, inputs, h, w) → (batch, outputs, h / stride, w / stride)."""
        deep: Tensor = self.deep(hidden)
        return hidden + deep if self.residual else deep


class EfficientNet(nn.Module):
    """B0 has 5.3 million parameters, B4 19 million, B7 66 million."""

    def __init__(self, width: float, depth: float) -> None:
        super().__init__()
        channels = _width(STEM, width)
        parts: list[nn.Module] = [*_convolution(3, channels, 3, 2), nn.SiLU()]
        for expansion, kernel, stride, outputs, layers in BLOCKS:
            for index in range(math.ceil(layers * depth)):
                wide = _width(outputs, width)
                parts.append(Block(channels, wide, expansion, kernel, stride if index == 0 else 1))
                channels = wide
        self.body = nn.Sequential(*parts, *_convolution(channels, _width(HEAD, width), 1), nn.SiLU())
        self.head = nn.Linear(_width(HEAD, width), CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        """(batch, 3, h, w) → logits (batch, CLASSES)."""
        logits: Tensor = self.head(self.body(images).mean((2, 3)))
        return logits


def network(name: str) -> nn.Module:
    """The network with He's initial weights (2015); the caller's random state is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        made = EfficientNet(*SCALES[name])
        for part in made.modules():
            if isinstance(part, nn.Conv2d):
                nn.init.kaiming_normal_(part.weight, mode="fan_in", nonlinearity="relu")
    return made
