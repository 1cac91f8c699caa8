"""Pruning of the digits CNN: single weights, or whole channels. Imports torch."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TypeVar

import torch
from torch import Tensor, nn

from suites.models import digits, digits_torch

Network = TypeVar("Network", bound=nn.Module)

TUNING_EPOCHS = 4
TUNING_RATE = 5e-3
"""Half of the training's peak: the network is to be mended, not trained anew."""


def zeroed(network: Network, share: float) -> Network:
    """A copy in which that share of each layer's weights, the smallest ones, is zero (Han et al. 2015)."""
    pruned = copy.deepcopy(network)
    with torch.no_grad():
        for layer in pruned.modules():
            if isinstance(layer, nn.Conv2d | nn.Linear):
                count = round(share * layer.weight.numel())
                layer.weight.view(-1)[layer.weight.abs().flatten().argsort()[:count]] = 0
    return pruned


def slimmed(network: digits_torch.DigitsCNN, widths: tuple[int, int]) -> digits_torch.DigitsCNN:
    """A network of those widths, without the channels of the least L1 norm (Li et al. 2017).

    What a channel fed into the next layer goes with it; nothing makes up for that but fine-tuning.
    """
    first, rest = widths
    pruned = digits_torch.network(widths, digits.SEED)
    parts = ((network.conv1, network.norm1), (network.conv2, network.norm2), (network.conv3, network.norm3))
    targets = ((pruned.conv1, pruned.norm1), (pruned.conv2, pruned.norm2), (pruned.conv3, pruned.norm3))
    inputs = torch.arange(1)
    with torch.no_grad():
        for (conv, norm), (to_conv, to_norm), width in zip(parts, targets, (first, rest, rest), strict=True):
            kept = strongest(conv.weight, width)
            to_conv.weight.copy_(conv.weight[kept][:, inputs])
            assert conv.bias is not None
            assert to_conv.bias is not None
            to_conv.bias.copy_(conv.bias[kept])
            for name, value in norm.state_dict().items():
                to_norm.state_dict()[name].copy_(value[kept] if value.dim() else value)
            inputs = kept
        pruned.head.weight.copy_(network.head.weight[:, inputs])
        pruned.head.bias.copy_(network.head.bias)
    return pruned.eval()


class Wide(nn.Module):
    """Stages of two 3 × 3 convolutions, the first halving the image, without normalisation; mean; one linear layer."""

    def __init__(self, stages: Sequence[int], classes: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        inputs = 3
        for width in stages:
            layers += [nn.Conv2d(inputs, width, 3, 2, 1), nn.ReLU(), nn.Conv2d(width, width, 3, 1, 1), nn.ReLU()]
            inputs = width
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(inputs, classes)

    def forward(self, images: Tensor) -> Tensor:
        """(batch, 3, h, w) → logits (batch, classes)."""
        logits: Tensor = self.head(self.body(images).mean((2, 3)))
        return logits


def wide(stages: Sequence[int], classes: int) -> Wide:
    """The network with random weights; the caller's random state is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return Wide(stages, classes).eval()


def strongest(weight: Tensor, count: int) -> Tensor:
    """The `count` output channels of a convolution's weight with the largest L1 norm, in their order."""
    return weight.abs().sum(dim=(1, 2, 3)).argsort(descending=True)[:count].sort().values


def tuned(network: digits_torch.DigitsCNN) -> digits_torch.DigitsCNN:
    """Train on, in place, with a lower rate for fewer epochs."""
    mended: digits_torch.DigitsCNN = digits_torch.train(
        network, epochs=TUNING_EPOCHS, seed=digits.SEED + 1, rate=TUNING_RATE
    )
    return mended
