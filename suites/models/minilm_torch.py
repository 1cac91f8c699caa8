"""MiniLM-L6 as an eager PyTorch module, with textbook or fused attention. Imports torch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from suites.models.minilm import EPSILON, HEADS, LAYERS, WIDTH


def encoder(weights: dict[str, Any], attention: str) -> nn.Module:
    """The encoder with trained weights: token ids (batch, length) without padding → embeddings (batch, WIDTH).

    attention: `eager` (two products around a softmax) or `sdpa` (scaled_dot_product_attention).
    """
    tensors = {name: torch.from_numpy(array) for name, array in weights.items() if array.dtype == "float32"}
    return Encoder(tensors, {"eager": eager, "sdpa": functional.scaled_dot_product_attention}[attention]).eval()


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
    layer = nn.LayerNorm(WIDTH, eps=EPSILON, device="meta")
    layer.weight = nn.Parameter(weights[f"{name}.weight"], requires_grad=False)
    layer.bias = nn.Parameter(weights[f"{name}.bias"], requires_grad=False)
    return layer


class Layer(nn.Module):
    """One transformer layer."""

    def __init__(self, weights: dict[str, Tensor], prefix: str, attention: Any) -> None:
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

    def _heads(self, rows: Tensor) -> Tensor:
        batch, length, _ = rows.shape
        return rows.view(batch, length, HEADS, WIDTH // HEADS).transpose(1, 2)

    def forward(self, hidden: Tensor) -> Tensor:
        """(batch, length, WIDTH) → the same shape."""
        query, key, value = (self._heads(part(hidden)) for part in (self.query, self.key, self.value))
        context = self.attention(query, key, value).transpose(1, 2).reshape(hidden.shape)
        hidden = self.attention_norm(self.joined(context) + hidden)
        result: Tensor = self.output_norm(self.shrink(functional.gelu(self.grow(hidden))) + hidden)
        return result


class Encoder(nn.Module):
    """Embedding, layers, mean over the tokens, length 1."""

    def __init__(self, weights: dict[str, Tensor], attention: Any) -> None:
        super().__init__()
        places = (
            weights["embeddings.position_embeddings.weight"] + weights["embeddings.token_type_embeddings.weight"][0]
        )
        self.words = nn.Parameter(weights["embeddings.word_embeddings.weight"], requires_grad=False)
        self.places = nn.Parameter(places, requires_grad=False)
        self.norm = _norm(weights, "embeddings.LayerNorm")
        self.layers = nn.ModuleList(Layer(weights, f"encoder.layer.{k}", attention) for k in range(LAYERS))

    def forward(self, ids: Tensor) -> Tensor:
        """Token ids (batch, length) int64 → embeddings (batch, WIDTH)."""
        hidden = self.norm(functional.embedding(ids, self.words) + self.places[: ids.shape[1]])
        for layer in self.layers:
            hidden = layer(hidden)
        return functional.normalize(hidden.mean(dim=1), dim=-1)
