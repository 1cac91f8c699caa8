"""Clicks in a recommender's log, made from a seed: mostly numbers, as a model is fed with."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

FEATURES = 8
"""Numbers in the feature vector of an event."""


@cache
def clicks(count: int) -> tuple[dict[str, Any], ...]:
    """`count` events with eight fields; numbers have six decimals at most, as services send them."""
    draw = random.Random(20_260)
    return tuple(
        {
            "user_id": k,
            "item_id": draw.randrange(1_000_000),
            "timestamp": 1_700_000_000 + k,
            "country": "CN" if k % 3 else "US",
            "device": f"android-{k % 17}",
            "score": draw.randrange(1_000_000) / 1_000_000,
            "clicks": k % 50,
            "features": [draw.randrange(1_000_000) / 1_000_000 for _ in range(FEATURES)],
        }
        for k in range(count)
    )
