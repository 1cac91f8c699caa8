"""Fused kernels on an NVIDIA GPU: which back end computes attention, and does searching for convolutions pay?"""

from __future__ import annotations

import itertools
from typing import Any

from bench.api import LOWER, Metric, Skip, Work, Wrong, benchmark
from suites.imports import need
from suites.models import vision

TORCH = "pip install 'inference-bench[torch]'"
CUDA = ("torch", "device:cuda")

HEADS, DEPTH = 12, 64
"""Of the attention: as in BERT-base."""

BATCH = 4
TOLERANCE = {"attention": 5e-3, "convolutions": 5e-3}
"""Largest relative L2 error to fp32: half precision has eleven bits, TF32 as many."""

ERROR = Metric("error", unit="1", better=LOWER, help="relative L2 error to the same computation in fp32")

SIDES = range(160, 257, 8)
BATCHES = range(1, 9)
"""Of images whose shape changes: 104 shapes, so that none comes again soon."""


def _confirm(found: Any, expected: Any, limit: float) -> float:
    """The relative L2 error. Raises Wrong when it is over `limit` or not a number."""
    size = float((found.float() - expected).norm() / expected.norm())
    if not size <= limit:
        raise Wrong(f"relative error to fp32 is {size:.1e}, over {limit:.0e}")
    return size


@benchmark(
    axes={"backend": ("math", "efficient", "flash", "cudnn"), "length": (128, 512, 2048, 4096)},
    baseline={"backend": "math"}, metrics=(ERROR,), requires=CUDA, profiles=("full",),
)  # fmt: skip
def attention(device: Any, backend: str, length: int) -> Work:
    """Attention of 12 heads, batch 4, half precision: what is a fused kernel worth, by length?"""
    torch = need("torch", TORCH)
    kernels = need("torch.nn.attention", TORCH)
    kinds = {
        "math": kernels.SDPBackend.MATH, "efficient": kernels.SDPBackend.EFFICIENT_ATTENTION,
        "flash": kernels.SDPBackend.FLASH_ATTENTION, "cudnn": kernels.SDPBackend.CUDNN_ATTENTION,
    }  # fmt: skip
    random = torch.Generator().manual_seed(0)
    rows = [torch.randn(BATCH, HEADS, length, DEPTH, generator=random).to(device.name) for _ in range(3)]
    halves = [part.half() for part in rows]
    attend = torch.nn.functional.scaled_dot_product_attention

    def run() -> Any:
        with torch.inference_mode(), kernels.sdpa_kernel(kinds[backend]):
            return attend(*halves)

    try:
        run()
    except RuntimeError as error:
        raise Skip(f"{torch.cuda.get_device_name(device.name)} has no {backend} attention: {error}") from None
    with torch.inference_mode(), kernels.sdpa_kernel(kinds["math"]):
        expected = attend(*(part.half().float() for part in rows))
    limit = TOLERANCE["attention"]
    return Work(
        run=run, items=BATCH, check=lambda found: _confirm(found, expected, limit) <= limit,
        report=lambda found: {"error": round(_confirm(found, expected, limit), 5)},
        notes={"provider": device.name, "weights": "none", "cudnn": str(torch.backends.cudnn.version())},
    )  # fmt: skip


@benchmark(
    axes={"shapes": ("fixed", "changing"), "search": ("off", "on")}, baseline={"search": "off"}, metrics=(ERROR,),
    requires=CUDA, profiles=("full",),
)  # fmt: skip
def convolutions(device: Any, shapes: str, search: str) -> Work:
    """ResNet-50 with `cudnn.benchmark` off and on: does the search for the fastest convolution pay, and when not?"""
    torch = need("torch", TORCH)
    torch.backends.cudnn.benchmark = search == "on"
    torch.backends.cudnn.allow_tf32 = True
    network = vision.module("resnet50").to(device.name, memory_format=torch.channels_last)
    one = torch.from_numpy(vision.images(1)).to(device.name)
    expected = torch.from_numpy(vision.reference("resnet50")[:1]).to(device.name)

    def images(batch: int, side: int) -> Any:
        return one[:, :, :1, :1].expand(batch, 3, side, side).contiguous(memory_format=torch.channels_last)

    fixed = one.expand(max(BATCHES), *vision.SHAPE).contiguous(memory_format=torch.channels_last)
    given = [images(batch, side) for batch, side in itertools.product(BATCHES, SIDES)]
    turns = itertools.chain([fixed], itertools.cycle(given)) if shapes == "changing" else itertools.repeat(fixed)

    def run() -> Any:
        with torch.inference_mode():
            return network(next(turns))

    limit = TOLERANCE["convolutions"]
    return Work(
        run=run, items=max(BATCHES) if shapes == "fixed" else sum(BATCHES) / len(BATCHES),
        check=lambda found: _confirm(found[:1], expected, limit) <= limit,
        report=lambda found: {"error": round(_confirm(found[:1], expected, limit), 5)},
        notes={"provider": device.name, "weights": "random", "cudnn": str(torch.backends.cudnn.version())},
    )  # fmt: skip
