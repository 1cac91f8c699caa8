"""A small decoder with random weights that generates greedily, with and without a cache. Imports torch.

Random weights serve speed; its tokens mean nothing, but they are the same whatever is kept between the
steps, and that is checked.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTH, HEADS, LAYERS, VOCABULARY = 128, 4, 2, 1000
PROMPT = 16
LONGEST = 512
"""Positions that the network knows."""

Cache = list[tuple[Tensor, Tensor]]
"""Keys and values of every layer, (1, HEADS, longest, WIDTH / HEADS), filled from the left."""


class Layer(nn.Module):
    """Causal attention and a feed-forward network, each after its normalisation."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.projections, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.widen, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        # PyTorch's small weights give every position the same attention: then none would be missed in a cache.
        for part in (self.projections, self.out):
            nn.init.normal_(part.weight, std=2 * WIDTH**-0.5)

    def forward(self, hidden: Tensor, kept: tuple[Tensor, Tensor] | None, start: int) -> Tensor:
        """hidden: (1, length, WIDTH) of the positions from `start` on; what `kept` has of those before is used."""
        length = hidden.shape[1]
        parts = self.projections(self.before(hidden)).view(1, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        query, key, value = parts.unbind(0)
        if kept is not None:
            end = start + length
            kept[0][:, :, start:end], kept[1][:, :, start:end] = key, value
            key, value = kept[0][:, :, :end], kept[1][:, :, :end]
        # One new position may look at everything; several must not look ahead.
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=length > 1)
        hidden = hidden + self.out(mixed.transpose(1, 2).reshape(1, length, WIDTH))
        return hidden + self.narrow(functional.gelu(self.widen(self.between(hidden))))


class Decoder(nn.Module):
    """Tokens → logits of the token after each."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LONGEST, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.last = nn.LayerNorm(WIDTH)
        # Not the embedding's weights: untrained, those would only repeat the token that was read.
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens: Tensor, cache: Cache | None = None, start: int = 0) -> Tensor:
        """tokens: (1, length), the first at position `start`; cache: of all before → (1, length, VOCABULARY)."""
        hidden = self.words(tokens) + self.places(torch.arange(start, start + tokens.shape[1]))
        for number, layer in enumerate(self.layers):
            hidden = layer(hidden, None if cache is None else cache[number], start)
        logits: Tensor = self.head(self.last(hidden))
        return logits


def network() -> Decoder:
    """Always the same; the caller's random state is left as it was."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return Decoder().eval()


def prompt() -> list[int]:
    """PROMPT tokens."""
    return torch.randint(VOCABULARY, (PROMPT,), generator=torch.Generator().manual_seed(1)).tolist()


def empty_cache(longest: int) -> Cache:
    """Room for `longest` positions."""
    shape = (1, HEADS, longest, WIDTH // HEADS)
    return [(torch.zeros(shape), torch.zeros(shape)) for _ in range(LAYERS)]


def generate(net: Decoder, begin: list[int], count: int, *, cached: bool) -> list[int]:
    """`count` tokens after `begin`, each the likeliest; without a cache every step reads the whole text again."""
    cache = empty_cache(len(begin) + count) if cached else None
    text = list(begin)
    with torch.inference_mode():
        for _ in range(count):
            # What the cache holds need not be read again: only the prompt at first, then the newest token.
            start = len(text) - 1 if cached and len(text) > len(begin) else 0
            logits = net(torch.tensor([text[start:]]), cache, start)
            text.append(int(logits[0, -1].argmax()))
    return text[len(begin) :]


def likeliest(net: Decoder, begin: list[int], tokens: list[int]) -> list[bool]:
    """For each token, whether it is the likeliest after all before it, by one pass over the finished text.

    Ties within the rounding of fp32 count as right.
    """
    with torch.inference_mode():
        logits = net(torch.tensor([begin + tokens]))[0, len(begin) - 1 : -1]
    chosen = logits[torch.arange(len(tokens)), torch.tensor(tokens)]
    return (chosen >= logits.max(dim=1).values - 1e-4).tolist()
