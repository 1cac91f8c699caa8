"""Counts behind claims, from the definition of a network: nothing is built and nothing is timed.

Standard library only. `suites/claims.toml` names these functions; each returns one number.
"""

from __future__ import annotations

BYTES = 4
"""Of a parameter in fp32."""

BANDWIDTH = 10e9
"""Bytes a second that the article assumes for a load."""


def attention_dot_products(length: int = 1024) -> int:
    """Dot products of queries and keys: one for each pair of positions, in one head of one layer."""
    return length * length


def bert_dot_products(length: int = 1024, layers: int = 12, heads: int = 12) -> int:
    """The same over the whole of BERT-base."""
    return attention_dot_products(length) * layers * heads


def bert_large_parameters() -> int:
    """BERT-large as published: 24 layers of width 1024 (Devlin et al., 2018), embeddings and pooler included."""
    return _bert_parameters(layers=24, width=1024, inner=4096)


def bert_base_parameters() -> int:
    """BERT-base: 12 layers of width 768."""
    return _bert_parameters(layers=12, width=768, inner=3072)


def bert_large_flops(length: int = 128) -> int:
    """Floating-point operations of one forward pass, a multiplication and an addition each counting one.

    Matrix products only; norms, softmax and GELU are below 1 %.
    """
    layers, width, inner = 24, 1024, 4096
    projections = 2 * length * (4 * width * width + 2 * width * inner)
    attention = 2 * 2 * length * length * width  # scores, and their product with the values
    return layers * (projections + attention)


def resnet152_parameters() -> int:
    """ResNet-152: bottlenecks 3, 8, 36, 3 (He et al., 2015), with batch norm and the classifier of 1000 classes."""
    total = _convolution(7, 3, 64)
    channels = 64
    for blocks, width in ((3, 64), (8, 128), (36, 256), (3, 512)):
        for block in range(blocks):
            total += _convolution(1, channels, width) + _convolution(3, width, width)
            total += _convolution(1, width, 4 * width)
            if block == 0:
                total += _convolution(1, channels, 4 * width)  # the shortcut
            channels = 4 * width
    return total + channels * 1000 + 1000


def resnet152_megabytes() -> float:
    """Its fp32 parameters in MB (10⁶ bytes)."""
    return resnet152_parameters() * BYTES / 1e6


def resnet152_load_ms() -> float:
    """Milliseconds to move them once at BANDWIDTH."""
    return resnet152_parameters() * BYTES / BANDWIDTH * 1e3


def distilbert_cut() -> float:
    """Parameters that DistilBERT saves against BERT-base, in %: half of the layers, neither pooler nor segments."""
    small = _bert_parameters(layers=6, width=768, inner=3072) - (768 * 768 + 768) - 2 * 768
    return 100 * (1 - small / bert_base_parameters())


def _bert_parameters(*, layers: int, width: int, inner: int, words: int = 30522, positions: int = 512) -> int:
    norm = 2 * width
    embeddings = (words + positions + 2) * width + norm
    attention = 4 * (width * width + width) + norm
    feed_forward = width * inner + inner + inner * width + width + norm
    pooler = width * width + width
    return embeddings + layers * (attention + feed_forward) + pooler


def _convolution(size: int, inputs: int, outputs: int) -> int:
    """A convolution without bias and the batch norm after it."""
    return size * size * inputs * outputs + 2 * outputs
