"""Attention four ways on (batch, heads, length, head width), its definition, and a whole layer. Imports torch."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

WINDOW = 128
"""Positions of a local window; the length must be a multiple of it."""

HEADS = 12
HEAD_WIDTH = 64
INNER = 3072
"""The shapes of BERT-base."""

Attention = Callable[[Tensor, Tensor, Tensor], Tensor]


def eager(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """softmax(q·kᵀ / √d)·v, operator by operator: all scores are written and read again (Vaswani et al. 2017)."""
    scores = torch.matmul(query, key.transpose(-1, -2)) / query.shape[-1] ** 0.5
    return torch.matmul(functional.softmax(scores, dim=-1), value)


def sdpa(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """The same function in one operator that never holds the whole matrix (Dao et al. 2022)."""
    return functional.scaled_dot_product_attention(query, key, value)


def local(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Exact attention inside windows of WINDOW positions that do not overlap (Liu et al. 2021): another function."""
    batch, heads, length, width = query.shape
    windows = (batch, heads * length // WINDOW, WINDOW, width)
    parts = (part.reshape(windows) for part in (query, key, value))
    return functional.scaled_dot_product_attention(*parts).view(query.shape)


def linear(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """φ(q)·(φ(k)ᵀ·v) over its sum, with φ(x) = elu(x) + 1 (Katharopoulos et al. 2020): another function."""
    query, key = functional.elu(query).add_(1), functional.elu(key).add_(1)
    summary = torch.matmul(key.transpose(-1, -2), value)
    weight = torch.matmul(query, key.sum(dim=-2).unsqueeze(-1))
    return torch.matmul(query, summary) / weight


KINDS: dict[str, Attention] = {"eager": eager, "sdpa": sdpa, "local": local, "linear": linear}


def literal(kind: str, query: Tensor, key: Tensor, value: Tensor, rows: Tensor) -> Tensor:
    """What `kind` must give at the positions `rows`, in float64 and with every weight written out."""
    query, key, value = query[..., rows, :].double(), key.double(), value.double()
    if kind == "linear":
        weights = (functional.elu(query) + 1) @ (functional.elu(key) + 1).transpose(-1, -2)
    else:
        scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
        if kind == "local":
            places = torch.arange(key.shape[-2], device=key.device)
            apart = (rows[:, None] // WINDOW) != (places // WINDOW)
            scores = scores.masked_fill(apart, float("-inf"))
        weights = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    return weights @ value / weights.sum(dim=-1, keepdim=True)


def heads(length: int, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Random query, key and value of one text, each (1, HEADS, length, HEAD_WIDTH) float32."""
    random = torch.Generator().manual_seed(seed)
    query, key, value = torch.randn(3, 1, HEADS, length, HEAD_WIDTH, generator=random)
    return query, key, value


class Layer(nn.Module):
    """One encoder layer of BERT-base's shape: projections, attention, feed-forward part, two norms."""

    def __init__(self, attention: Attention) -> None:
        super().__init__()
        width = HEADS * HEAD_WIDTH
        self.attention = attention
        self.split, self.join = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.grow, self.shrink = nn.Linear(width, INNER), nn.Linear(INNER, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, hidden: Tensor) -> Tensor:
        """(batch, length, width) → the same shape."""
        batch, length, width = hidden.shape
        parts = self.split(hidden).view(batch, length, 3, HEADS, HEAD_WIDTH).permute(2, 0, 3, 1, 4)
        context = self.attention(*parts).transpose(1, 2).reshape(batch, length, width)
        hidden = self.norm1(hidden + self.join(context))
        result: Tensor = self.norm2(hidden + self.shrink(functional.gelu(self.grow(hidden))))
        return result


def layer(attention: Attention) -> Layer:
    """The layer with random weights, the same for every kind of attention; the caller's random state is left alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return Layer(attention).eval().requires_grad_(False)
