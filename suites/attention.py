"""What does attention cost at which length: the textbook way, fused, in local windows, with linear kernels?

Fused attention (SDPA, "Flash") is the same function: its error must be rounding, and its operations
are as many. Local and linear attention are other functions: they are checked against their own
definition, and their `distance` to exact attention says what a network would have to be retrained for.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

from bench.api import LOWER, Metric, Skip, Work, Wrong, benchmark
from suites.imports import need

TORCH = "pip install 'inference-bench[torch]'"

KINDS = ("eager", "sdpa", "local", "linear")
LAYER_LENGTH = 1024
SWEEP = (512, 1024, 2048, 4096)
"""Lengths over which growth is fitted."""

LAPS = 2
"""Times each length of the sweep is run; the fastest counts, so that the first may warm up."""

PROBES = 16
"""Positions whose output is compared with the definition, spread over the text."""

TOLERANCE = {"float32": 1e-5, "float16": 5e-3}
"""Largest relative L2 error to the definition; measured 3e-7 and 5e-4."""

BACKENDS = {
    "flash": "FLASH_ATTENTION",
    "efficient": "EFFICIENT_ATTENTION",
    "cudnn": "CUDNN_ATTENTION",
    "math": "MATH",
}
"""Ours → torch.nn.attention.SDPBackend."""

DISTANCE = Metric("distance", unit="1", better=LOWER, help="relative L2 distance to exact attention, on a probe")
COUNTS = (
    Metric("operations", unit="FLOP", better=LOWER, kind="count", help="multiplications and additions of the products"),
    Metric("intermediate", unit="B", better=LOWER, kind="memory", help="bytes between query, key, value and output"),
)


@benchmark(
    axes={"kind": ("eager", "sdpa")},
    baseline={"kind": "eager"},
    metrics=(DISTANCE, *COUNTS),
    requires=("torch",),
    profiles=("quick",),
    launches=5,
)
def fused(device: Any, kind: str) -> Work:
    """Attention of 12 heads over 512 positions: does one fused operator pay over the textbook's four?"""
    return attending(device, kind, SWEEP[0])


@benchmark(
    axes={"kind": KINDS, "length": SWEEP},
    baseline={"kind": "eager"},
    metrics=(DISTANCE, *COUNTS),
    requires=("torch",),
    profiles=("full",),
    launches=5,
)
def op(device: Any, kind: str, length: int) -> Work:
    """Attention of 12 heads: how does what is gained grow with the length?"""
    return attending(device, kind, length)


@benchmark(
    axes={"kind": KINDS}, baseline={"kind": "eager"}, requires=("torch",), profiles=("full",), launches=5,
    metrics=(Metric("growth", unit="1", better=LOWER, kind="time", exact=False, help="exponent of the time's growth"),),
)  # fmt: skip
def growth(device: Any, kind: str) -> Work:
    """Lengths 512 to 4096: with which power of the length does the time of attention grow?"""
    torch, module = _torch(device)
    texts = {length: module.heads(length) for length in SWEEP}

    def run() -> tuple[float, Any]:
        times = {}
        with torch.inference_mode():
            for length, parts in texts.items():
                laps = []
                for _ in range(LAPS):
                    start = time.perf_counter()
                    found = module.KINDS[kind](*parts)
                    laps.append(time.perf_counter() - start)
                times[length] = min(laps)
        return exponent(times), found

    return Work(
        run=run, once=True,
        check=lambda answer: right(torch, module, kind, texts[SWEEP[-1]], answer[1]),
        report=lambda answer: {"growth": answer[0]},
        notes={"lengths": ", ".join(map(str, SWEEP))},
    )  # fmt: skip


@benchmark(
    axes={"kind": KINDS}, baseline={"kind": "eager"}, metrics=(DISTANCE,), requires=("torch",), profiles=("full",),
    launches=5,
)  # fmt: skip
def layer(device: Any, kind: str) -> Work:
    """A whole encoder layer of BERT-base's shape over 1,024 positions: what is left of the operator's gain?"""
    torch, module = _torch(device)
    network = module.layer(module.KINDS[kind])
    hidden = torch.randn(
        1, LAYER_LENGTH, module.HEADS * module.HEAD_WIDTH, generator=torch.Generator().manual_seed(1)
    )  # fmt: skip
    rows = probes(torch, LAYER_LENGTH)

    def run() -> Any:
        with torch.inference_mode():
            return network(hidden)

    def defined(kind: str) -> Any:
        """The layer in float64 around the literal attention, at the probed positions."""
        every = torch.arange(LAYER_LENGTH)
        exact = module.layer(lambda *parts: module.literal(kind, *parts, every)).double()
        with torch.inference_mode():
            return exact(hidden.double())[:, rows]

    return Work(
        run=run,
        check=lambda found: within(error(found[:, rows], defined(kind)), "float32"),
        report=lambda found: {"distance": rounded(error(found[:, rows], defined("eager")))},
        size_bytes=sum(tensor.nbytes for tensor in network.state_dict().values()),
        notes={"weights": "random"},
    )


@benchmark(
    axes={"backend": ("eager", *BACKENDS), "length": SWEEP, "precision": ("float16", "float32")},
    baseline={"backend": "eager"},
    exclude=({"backend": "flash", "precision": "float32"}, {"backend": "cudnn", "precision": "float32"}),
    metrics=(
        DISTANCE,
        Metric("device_peak", unit="B", better=LOWER, kind="memory", help="most device memory beyond the inputs"),
    ),
    requires=("torch", "device:cuda"), profiles=("full",), launches=5,
)  # fmt: skip
def cuda_op(device: Any, backend: str, length: int, precision: str) -> Work:
    """Attention of 12 heads on a GPU: which fused back end pays at which length and precision?"""
    torch, module = _torch(device)
    parts = tuple(part.to(device.name, getattr(torch, precision)) for part in module.heads(length))
    attend = module.eager if backend == "eager" else on_backend(torch, module.sdpa, BACKENDS[backend])

    def run() -> Any:
        with torch.inference_mode():
            return attend(*parts)

    def report(found: Any) -> Mapping[str, float]:
        torch.cuda.reset_peak_memory_stats(device.name)
        before = torch.cuda.memory_allocated(device.name)
        run()
        torch.cuda.synchronize(device.name)
        return {
            "distance": rounded(distance(torch, module, parts, found)),
            "device_peak": torch.cuda.max_memory_allocated(device.name) - before,
        }

    return Work(
        run=run,
        check=lambda found: right(torch, module, "eager", parts, found, precision),
        report=report,
        notes={"gpu": torch.cuda.get_device_name(device.name)},
    )


def attending(device: Any, kind: str, length: int) -> Work:
    """One call of the operator; its answer must be that of its own definition."""
    torch, module = _torch(device)
    parts = module.heads(length)

    def run() -> Any:
        with torch.inference_mode():
            return module.KINDS[kind](*parts)

    return Work(
        run=run,
        check=lambda found: right(torch, module, kind, parts, found),
        report=lambda found: {
            "distance": rounded(distance(torch, module, parts, found)),
            "operations": operations(kind, length, module.HEADS, module.HEAD_WIDTH, module.WINDOW),
            "intermediate": intermediate(kind, length, module.HEADS, module.HEAD_WIDTH),
        },
        notes={"shape": f"{module.HEADS} heads of {module.HEAD_WIDTH}", "window": str(module.WINDOW)},
    )


def operations(kind: str, length: int, heads: int, width: int, window: int) -> int:
    """Multiplications and additions of the matrix products; softmax and φ are below 3 % of them.

    Fused attention has exactly those of the textbook: what it saves is reading and writing.
    """
    if kind == "linear":  # φ(k)ᵀ·v, then φ(q) times that, then times the sum of φ(k)
        return heads * length * (2 * width * width * 2 + 2 * width)
    seen = window if kind == "local" else length
    return heads * length * seen * width * 2 * 2


def intermediate(kind: str, length: int, heads: int, width: int) -> int:
    """Bytes in float32 that the definition puts between the inputs and the output, each written once.

    Eager: scores, scaled scores and their softmax. Fused and local: a block at a time in the cache, none.
    Linear: φ(q), φ(k) and the summary.
    """
    numbers = {
        "eager": 3 * heads * length * length,
        "sdpa": 0,
        "local": 0,
        "linear": heads * (2 * length * width + width * width),
    }
    return 4 * numbers[kind]


def exponent(times: Mapping[int, float]) -> float:
    """Slope of the least-squares line through log time over log length."""
    points = [(math.log(length), math.log(seconds)) for length, seconds in times.items()]
    x, y = (sum(column) / len(points) for column in zip(*points, strict=True))
    return sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a, _ in points)


def right(torch: Any, module: Any, kind: str, parts: Any, found: Any, precision: str = "float32") -> bool:
    """Raises Wrong when `found` is not what the definition of `kind` gives at the probed positions."""
    rows = probes(torch, parts[0].shape[-2]).to(parts[0].device)
    if found.shape != parts[0].shape:
        raise Wrong(f"the output has the shape {tuple(found.shape)}, not {tuple(parts[0].shape)}")
    return within(error(found[..., rows, :], module.literal(kind, *parts, rows)), precision)


def within(size: float, precision: str) -> bool:
    """Raises Wrong when an error is over the precision's TOLERANCE (or not a number)."""
    if not size <= TOLERANCE[precision]:
        raise Wrong(f"relative error to the definition is {size:.1e}, over {TOLERANCE[precision]:.0e}")
    return True


def distance(torch: Any, module: Any, parts: Any, found: Any) -> float:
    """Relative L2 distance to exact attention at the probed positions."""
    rows = probes(torch, parts[0].shape[-2]).to(parts[0].device)
    return error(found[..., rows, :], module.literal("eager", *parts, rows))


def probes(torch: Any, length: int) -> Any:
    """PROBES positions, the first and the last among them."""
    return torch.linspace(0, length - 1, PROBES).long()


def error(found: Any, expected: Any) -> float:
    """Relative L2 error."""
    return float((found.double() - expected).norm() / expected.norm())


def rounded(size: float) -> float:
    """Five decimals: what is smaller is the rounding of the arithmetic and reads 0."""
    return round(size, 5)


def on_backend(torch: Any, attend: Callable[..., Any], name: str) -> Callable[..., Any]:
    """`attend` with one SDPA back end and no other; raises Skip where this GPU has it not."""
    attention = need("torch.nn.attention", TORCH)
    backend = getattr(attention.SDPBackend, name, None)
    if backend is None:
        raise Skip(f"torch {torch.__version__} knows no back end {name}; a newer one does: {TORCH}")

    def run(*parts: Any) -> Any:
        with attention.sdpa_kernel(backend):
            try:
                return attend(*parts)
            except RuntimeError as failure:
                if "No available kernel" in str(failure):
                    raise Skip(f"{name} does not run on this GPU for {parts[0].dtype}: {failure}") from None
                raise

    return run


def _torch(device: Any) -> tuple[Any, Any]:
    torch = need("torch", TORCH)
    from suites.models import attention_torch

    torch.set_num_threads(device.threads)
    return torch, attention_torch
