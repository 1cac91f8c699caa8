"""A BERT encoder as an eager PyTorch module, with textbook or fused attention. Imports torch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from suites.models.bert import EPSILON, Size


def encoder(weights: dict[str, Any], size: Size, attention: str, *, pooled: bool) -> nn.Module:
    """The encoder with these weights: token ids (batch, length) without padding → hidden (batch, length, width).

    attention: `eager` (two products around a softmax) or `sdpa` (scaled_dot_product_attention);
    pooled: the result is instead the mean over the tokens, brought to length 1: (batch, width).
    """
    tensors = {name: torch.from_numpy(array) for name, array in weights.items() if array.dtype == "float32"}
    kind = {"eager": eager, "sdpa": functional.scaled_dot_product_attention}[attention]
    return Encoder(tensors, size, kind, pooled).eval()


def eager(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """softmax(q·kᵀ / √d)·v, operator by operator (Vaswani et al. 2017)."""
    scores = torch.matmul(query, key.transpose(-1, -2)) / query.shape[-1] ** 0.5
    return torch.matmul(functional.softmax(scores, dim=-1), value)


def _linear(weights: dict[str, Tensor], name: str) -> nn.Linear:
    matrix = weights[f"{name}.weight"]
    layer = nn.Linear(matrix.shape[1], matrix.shape[0], device="meta")  # no random values to throw away
    layer.weight = nn.Parameter(matrix, requires_grad=False)
    layer.bias = nn.Parameter(weights[f"{name}.bias"], requires_grad=False)
    return layer


def _norm(weights: dict[str, Tensor], name: str) -> nn.LayerNorm:
    layer = nn.LayerNorm(len(weights[f"{name}.weight"]), eps=EPSILON, device="meta")
    layer.weight = nn.Parameter(weights[f"{name}.weight"], requires_grad=False)
    layer.bias = nn.Parameter(weights[f"{name}.bias"], requires_grad=False)
    return layer


class Layer(nn.Module):
    """One transformer layer."""

    def __init__(self, weights: dict[str, Tensor], prefix: str, heads: int, attention: Any) -> None:
        super().__init__()
        self.query = _linear(weights, f"{prefix}.attention.self.query")
        self.key = _linear(weights, f"{prefix}.attention.self.key")
        self.value = _linear(weights, f"{prefix}.attention.self.value")
        self.joined = _linear(weights, f"{prefix}.attention.output.dense")
        self.attention_norm = _norm(weights, f"{prefix}.attention.output.LayerNorm")
        self.grow = _linear(weights, f"{prefix}.intermediate.dense")
        self.shrink = _linear(weights, f"{prefix}.output.dense")
        self.output_norm = _norm(weights, f"{prefix}.output.LayerNorm")
        self.attention = attention
        self.heads = heads

    def _heads(self, rows: Tensor) -> Tensor:
        batch, length, width = rows.shape
        return rows.view(batch, length, self.heads, width // self.heads).transpose(1, 2)

    def forward(self, hidden: Tensor) -> Tensor:
        """(batch, length, width) → the same shape."""
        query, key, value = (self._heads(part(hidden)) for part in (self.query, self.key, self.value))
        context = self.attention(query, key, value).transpose(1, 2).reshape(hidden.shape)
        hidden = self.attention_norm(self.joined(context) + hidden)
        result: Tensor = self.output_norm(self.shrink(functional.gelu(self.grow(hidden))) + hidden)
        return result


class Encoder(nn.Module):
    """Embedding, layers; with `pooled` also the mean over the tokens, length 1."""

    def __init__(self, weights: dict[str, Tensor], size: Size, attention: Any, pooled: bool) -> None:
        super().__init__()
        places = (
            weights["embeddings.position_embeddings.weight"] + weights["embeddings.token_type_embeddings.weight"][0]
        )
        self.words = nn.Parameter(weights["embeddings.word_embeddings.weight"], requires_grad=False)
        self.places = nn.Parameter(places, requires_grad=False)
        self.norm = _norm(weights, "embeddings.LayerNorm")
        layers = (Layer(weights, f"encoder.layer.{k}", size.heads, attention) for k in range(size.layers))
        self.layers = nn.ModuleList(layers)
        self.pooled = pooled

    def forward(self, ids: Tensor) -> Tensor:
        """Token ids (batch, length) int64 → hidden states (batch, length, width), or embeddings (batch, width)."""
        hidden = self.norm(functional.embedding(ids, self.words) + self.places[: ids.shape[1]])
        for layer in self.layers:
            hidden = layer(hidden)
        return functional.normalize(hidden.mean(dim=1), dim=-1) if self.pooled else hidden
