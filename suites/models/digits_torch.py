"""The digits CNN as a PyTorch module, and its training. Imports torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from suites.models import digits

BATCH = 64
RATE = 1e-2
"""Peak of the learning rate's one cycle (Smith & Topin 2019)."""

DECAY = 1e-2


class DigitsCNN(nn.Module):
    """Three 3 × 3 convolutions with batch normalisation, mean over the places, one linear layer."""

    def __init__(self, first: int, rest: int) -> None:
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(1, first, 3, padding=1), nn.BatchNorm2d(first)
        self.conv2, self.norm2 = nn.Conv2d(first, rest, 3, stride=2, padding=1), nn.BatchNorm2d(rest)
        self.conv3, self.norm3 = nn.Conv2d(rest, rest, 3, padding=1), nn.BatchNorm2d(rest)
        self.head = nn.Linear(rest, digits.CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        """(batch, 1, 8, 8) → logits (batch, CLASSES)."""
        hidden = functional.relu(self.norm1(self.conv1(images)))
        hidden = functional.relu(self.norm2(self.conv2(hidden)))
        hidden = functional.relu(self.norm3(self.conv3(hidden)))
        logits: Tensor = self.head(hidden.mean((2, 3)))
        return logits


def network(widths: Sequence[int], seed: int) -> DigitsCNN:
    """An untrained network with `widths` channels; the caller's random state is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return DigitsCNN(*widths)


Loss = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(logits, images, labels) → the loss of a batch."""


def truth(logits: Tensor, images: Tensor, labels: Tensor) -> Tensor:
    """Cross entropy with the labels."""
    return functional.cross_entropy(logits, labels)


def train(start: nn.Module, *, epochs: int, seed: int, rate: float = RATE, loss: Loss = truth) -> Any:
    """Train `start` in place on the training images; returns it in evaluation mode.

    One thread and a fixed order of the images: the same versions on the same kind of CPU give the
    same bits. rate: peak of the learning rate; loss: other than the labels' (a teacher's, for example).
    """
    data = digits.images()
    images, labels = torch.from_numpy(data["train_images"]), torch.from_numpy(data["train_labels"])
    order = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(start.parameters(), weight_decay=DECAY)
    steps = epochs * -(-len(images) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    start.train()
    try:
        for _ in range(epochs):
            for chosen in torch.randperm(len(images), generator=order).split(BATCH):
                optimizer.zero_grad()
                loss(start(images[chosen]), images[chosen], labels[chosen]).backward()  # type: ignore[no-untyped-call]
                optimizer.step()
                schedule.step()
    finally:
        torch.set_num_threads(threads)
    return start.eval()
