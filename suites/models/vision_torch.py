"""ResNet-50 (He et al. 2016, stride in the 3 × 3) and MobileNetV3-Large (Howard et al. 2019). Imports torch."""

from __future__ import annotations

import torch
from torch import Tensor, nn

CLASSES = 1000

Activation = type[nn.Module]

BRANCH = 0.2
"""Initial scale of what a block adds to its shortcut.

Training starts from a small one (Goyal et al. 2017 take 0) and keeps branches small beside their shortcut. With 1,
noise adds up over sixteen random blocks as it does in no trained network: even bf16 then hides what the image was.
"""

BLOCKS: tuple[tuple[int, int, int, bool, Activation, int], ...] = (
    (3, 16, 16, False, nn.ReLU, 1),
    (3, 64, 24, False, nn.ReLU, 2),
    (3, 72, 24, False, nn.ReLU, 1),
    (5, 72, 40, True, nn.ReLU, 2),
    (5, 120, 40, True, nn.ReLU, 1),
    (5, 120, 40, True, nn.ReLU, 1),
    (3, 240, 80, False, nn.Hardswish, 2),
    (3, 200, 80, False, nn.Hardswish, 1),
    (3, 184, 80, False, nn.Hardswish, 1),
    (3, 184, 80, False, nn.Hardswish, 1),
    (3, 480, 112, True, nn.Hardswish, 1),
    (3, 672, 112, True, nn.Hardswish, 1),
    (5, 672, 160, True, nn.Hardswish, 2),
    (5, 960, 160, True, nn.Hardswish, 1),
    (5, 960, 160, True, nn.Hardswish, 1),
)
"""Table 1 of the paper: kernel, expanded channels, output channels, squeeze-and-excite, activation, stride."""


def convolution(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> list[nn.Module]:
    """A convolution that keeps the size (over stride), and its batch normalisation."""
    return [
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
    ]


class Bottleneck(nn.Module):
    """1 × 1, 3 × 3 and 1 × 1 convolutions around a shortcut."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = 4 * width
        self.deep = nn.Sequential(
            *convolution(inputs, width, 1), nn.ReLU(), *convolution(width, width, 3, stride), nn.ReLU(),
            *convolution(width, outputs, 1),
        )  # fmt: skip
        same = stride == 1 and inputs == outputs
        self.shortcut = nn.Identity() if same else nn.Sequential(*convolution(inputs, outputs, 1, stride))

    def forward(self, hidden: Tensor) -> Tensor:
        """(batch, inputs, h, w) → (batch, 4 · width, h / stride, w / stride)."""
        return torch.relu(self.deep(hidden) + self.shortcut(hidden))


class ResNet50(nn.Module):
    """25.6 million parameters, 4.1 billion multiplications for 224 × 224 pixels."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(*convolution(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        blocks, channels = [], 64
        for width, depth, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
            for index in range(depth):
                blocks.append(Bottleneck(channels, width, stride if index == 0 else 1))
                channels = 4 * width
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(channels, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        """(batch, 3, h, w) → logits (batch, CLASSES)."""
        logits: Tensor = self.head(self.blocks(self.stem(images)).mean((2, 3)))
        return logits


class Excite(nn.Module):
    """Scales channels by what the whole image shows (Hu et al. 2018)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        squeezed = max(8, (channels // 4 + 4) // 8 * 8)
        self.gate = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(channels, squeezed, 1), nn.ReLU(),
            nn.Conv2d(squeezed, channels, 1), nn.Hardsigmoid(),
        )  # fmt: skip

    def forward(self, hidden: Tensor) -> Tensor:
        """(batch, channels, h, w) → the same shape."""
        scaled: Tensor = hidden * self.gate(hidden)
        return scaled


class Inverted(nn.Module):
    """Expand, filter each channel, excite, project; with a shortcut where the shape stays (Sandler et al. 2018)."""

    def __init__(
        self, inputs: int, kernel: int, expanded: int, outputs: int, excite: bool, activation: Activation, stride: int
    ) -> None:
        super().__init__()
        parts: list[nn.Module] = []
        if expanded != inputs:
            parts += [*convolution(inputs, expanded, 1), activation()]
        parts += [*convolution(expanded, expanded, kernel, stride, groups=expanded), activation()]
        if excite:
            parts.append(Excite(expanded))
        self.deep = nn.Sequential(*parts, *convolution(expanded, outputs, 1))
        self.residual = stride == 1 and inputs == outputs

    def forward(self, hidden: Tensor) -> Tensor:
        """(batch, inputs, h, w) → (batch, outputs, h / stride, w / stride)."""
        deep: Tensor = self.deep(hidden)
        return hidden + deep if self.residual else deep


class MobileNetV3(nn.Module):
    """5.5 million parameters, 0.22 billion multiplications for 224 × 224 pixels."""

    def __init__(self) -> None:
        super().__init__()
        parts, channels = [*convolution(3, 16, 3, 2), nn.Hardswish()], 16
        for kernel, expanded, outputs, excite, activation, stride in BLOCKS:
            parts.append(Inverted(channels, kernel, expanded, outputs, excite, activation, stride))
            channels = outputs
        self.body = nn.Sequential(*parts, *convolution(channels, 960, 1), nn.Hardswish())
        self.head = nn.Sequential(nn.Linear(960, 1280), nn.Hardswish(), nn.Linear(1280, CLASSES))

    def forward(self, images: Tensor) -> Tensor:
        """(batch, 3, h, w) → logits (batch, CLASSES)."""
        logits: Tensor = self.head(self.body(images).mean((2, 3)))
        return logits


NETWORKS: dict[str, type[nn.Module]] = {"resnet50": ResNet50, "mobilenet_v3": MobileNetV3}


def network(name: str, seed: int = 0) -> nn.Module:
    """The network with He's initial weights (2015) and small branches; the caller's random state is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        made = NETWORKS[name]()
        for part in made.modules():
            if isinstance(part, nn.Conv2d):
                nn.init.kaiming_normal_(part.weight, mode="fan_in", nonlinearity="relu")
            elif isinstance(part, Bottleneck) or (isinstance(part, Inverted) and part.residual):
                nn.init.constant_(part.deep[-1].weight, BRANCH)
    return made


def settle(network: nn.Module, images: Tensor) -> None:
    """Give every batch normalisation the mean and variance that these images have there."""
    layers = [part for part in network.modules() if isinstance(part, nn.BatchNorm2d)]
    for layer in layers:
        layer.momentum = None  # the average of what it sees, instead of a running one
        layer.reset_running_stats()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        network.train()
        with torch.no_grad():
            network(images)
    finally:
        torch.set_num_threads(threads)
        network.eval()
