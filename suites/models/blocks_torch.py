"""The blocks as PyTorch modules, and one of them with its normalisation folded. Imports torch."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from suites.models import blocks


def network(block: str, seed: int = 0) -> nn.Sequential:
    """An untrained stack in evaluation mode, always the same; the caller's random state is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers: list[nn.Module] = []
        for _ in range(blocks.DEPTH):
            if block == "convolutions":
                layers += [
                    nn.Conv2d(blocks.CHANNELS, blocks.CHANNELS, 3, padding=1, bias=False),
                    nn.BatchNorm2d(blocks.CHANNELS), nn.ReLU(),
                ]  # fmt: skip
            else:
                layers += [nn.Linear(blocks.WIDTH, blocks.WIDTH), nn.GELU()]
        made = nn.Sequential(*layers)
        for layer in made:
            if isinstance(layer, nn.BatchNorm2d):  # statistics of its own, so that leaving it out would show
                nn.init.uniform_(layer.running_var, 0.2, 0.6)
                nn.init.normal_(layer.running_mean, std=0.1)
    return made.eval().requires_grad_(False)


def folded(stack: nn.Sequential) -> nn.Sequential:
    """The stack of convolutions with every normalisation multiplied into the convolution before it."""
    parts: list[Any] = list(stack)
    made: list[nn.Module] = []
    for part, after in zip(parts, [*parts[1:], None], strict=True):
        if isinstance(after, nn.BatchNorm2d):
            made.append(fuse_conv_bn_eval(part, after))
        elif not isinstance(part, nn.BatchNorm2d):
            made.append(part)
    return nn.Sequential(*made).eval()
