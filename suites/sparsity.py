"""Does leaving weights out pay? Zeros alone, whole channels with and without fine-tuning, sparse formats.

A dense kernel multiplies zeros as fast as other numbers, so zeros alone gain nothing but a better
compressed file. What is gained by fewer channels is real, and paid for in accuracy until the
network is trained on. Cost is about quadratic in the channels: 30 % fewer is half of the work, and
half of the time only where the rest fills whole vectors.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from bench.api import LOWER, Metric, Skip, Work, Wrong, benchmark
from suites import engines
from suites.artifacts import Artifact
from suites.imports import need
from suites.models import digits as network
from suites.models import pruned

METHODS = tuple(pruned.METHODS)

BATCH = 32
"""Images a call: one image of 8 × 8 pixels is over before the runtime's own overhead is."""

ROWS = 4096
"""Rows and columns of the single matrix."""

TOLERANCE = 1e-3
"""Largest relative L2 error to the same pruned network in PyTorch (measured: 1e-6)."""

HALF_TOLERANCE = 5e-3
"""The same in float16."""

LOSS = 0.03
"""Most accuracy that a fine-tuned network may lose; by chance alone 500 images differ by 0.01."""

WIDE = {
    "dense": ((64, 128, 256), 0.0),
    "zeros_90": ((64, 128, 256), 0.9),
    "channels_30": ((45, 90, 179), 0.0),
    "channels_30_aligned": ((48, 96, 176), 0.0),
    "channels_50": ((32, 64, 128), 0.0),
}
"""Method → channels of the stages, share of zeros. Aligned: to whole vectors of 16 numbers."""

MACS = Metric("macs", unit="MAC", better=LOWER, kind="count", help="multiplications of one image, zeros included")
DIGITS = (*network.METRICS, MACS)
NEEDS = ("numpy", "onnx", "onnxruntime")


@benchmark(
    axes={"method": ("dense", "zeros_90", "channels_30_aligned")}, baseline={"method": "dense"}, metrics=DIGITS,
    requires=NEEDS, profiles=("quick",), launches=5,
)  # fmt: skip
def digits(device: Any, method: str) -> Work:
    """The trained digits CNN in ONNX Runtime, 32 images: do 90 % zeros pay, do 30 % fewer channels?"""
    return on_ort(device, method)


@benchmark(
    axes={"method": METHODS}, baseline={"method": "dense"}, metrics=DIGITS, requires=NEEDS, profiles=("full",),
    launches=7,
)  # fmt: skip
def methods(device: Any, method: str) -> Work:
    """The trained digits CNN in ONNX Runtime, 32 images: which way of pruning pays, and what does it lose?"""
    return on_ort(device, method)


@benchmark(
    axes={"method": METHODS}, baseline={"method": "dense"}, metrics=DIGITS, requires=("numpy", "openvino"),
    profiles=("full",), launches=7,
)  # fmt: skip
def methods_openvino(device: Any, method: str) -> Work:
    """The same networks in OpenVINO: does its compiler make anything of zeros?"""
    made = pruned.graph(method)
    images, _ = network.test_images()
    every = engines.OpenVino(made / pruned.MODEL, device.threads, {"input": images})
    call = engines.OpenVino(made / pruned.MODEL, device.threads, {"input": images[:BATCH]})
    return judged(method, made, call, every, call.notes("digits CNN", made))


@benchmark(
    axes={"method": tuple(WIDE)}, baseline={"method": "dense"}, metrics=(MACS,), requires=NEEDS, profiles=("full",),
    launches=7,
)  # fmt: skip
def wide_cnn(device: Any, method: str) -> Work:
    """A CNN of half a billion multiplications, one image: what do fewer channels gain where work is what counts?"""
    numpy = need("numpy", network.INSTALL)
    stages, zeros = WIDE[method]
    made = pruned.wide(stages, zeros)
    session = engines.ort_session(made / pruned.MODEL, device.threads)
    with numpy.load(made / pruned.ANSWER) as arrays:
        image, answer = arrays["image"], arrays["answer"]
    return Work(
        run=lambda: session.run(None, {"input": image})[0],
        check=lambda found: near(found, answer, TOLERANCE),
        report=lambda _: {"macs": pruned.wide_macs(stages)},
        size_bytes=(made / pruned.MODEL).stat().st_size,
        notes={"weights": "random", **engines.build_notes(made)},
    )


@benchmark(
    axes={"format": ("dense", "csr"), "zeros": (0.5, 0.9, 0.99)}, baseline={"format": "dense"},
    requires=("torch",), profiles=("full",), launches=5,
)  # fmt: skip
def matvec(device: Any, format: str, zeros: float) -> Work:
    """A matrix of 4096² times a vector: from how many zeros on does a sparse format pay?"""
    torch = need("torch", network.TORCH)
    torch.set_num_threads(device.threads)
    random = torch.Generator().manual_seed(0)
    matrix = torch.randn(ROWS, ROWS, generator=random)
    matrix[torch.rand(ROWS, ROWS, generator=random) < zeros] = 0
    vector = torch.randn(ROWS, generator=random)
    expected = (matrix.double() @ vector.double()).numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch calls the format beta
        kept = matrix.to_sparse_csr() if format == "csr" else matrix
    parts = (kept.values(), kept.col_indices(), kept.crow_indices()) if format == "csr" else (kept,)

    def run() -> Any:
        with torch.inference_mode():
            return kept @ vector

    return Work(
        run=run,
        check=lambda found: near(found.numpy(), expected, TOLERANCE),
        size_bytes=sum(part.nbytes for part in parts),
        notes={"weights": "random"},
    )


@benchmark(
    axes={"format": ("dense", "zeros", "semi_structured"), "batch": (128, 4096)}, baseline={"format": "dense"},
    requires=("torch", "device:cuda"), profiles=("full",), launches=5,
)  # fmt: skip
def cuda_2_4(device: Any, format: str, batch: int) -> Work:
    """A linear layer of 4096² in float16 on a GPU: do two zeros in every four pay, and zeros without the format?"""
    torch = need("torch", network.TORCH)
    random = torch.Generator().manual_seed(0)
    weight = torch.randn(ROWS, ROWS, generator=random) / ROWS**0.5
    if format != "dense":
        weight = two_of_four(torch, weight)
    rows = torch.randn(batch, ROWS, generator=random)
    expected = rows[:16].half().double() @ weight.half().double().T
    weight = weight.half().to(device.name)
    if format == "semi_structured":
        try:
            weight = need("torch.sparse", network.TORCH).to_sparse_semi_structured(weight)
        except RuntimeError as failure:
            raise Skip(f"this GPU has no sparse tensor cores that torch can use: {failure}") from None
    rows = rows.half().to(device.name)

    def run() -> Any:
        with torch.inference_mode():
            return torch.nn.functional.linear(rows, weight)

    return Work(
        run=run, items=batch,
        check=lambda found: near(found[:16].double().cpu().numpy(), expected.numpy(), HALF_TOLERANCE),
        notes={"weights": "random", "gpu": torch.cuda.get_device_name(device.name)},
    )  # fmt: skip


def two_of_four(torch: Any, weight: Any) -> Any:
    """The matrix with the two smaller of every four neighbours in a row set to zero."""
    groups = weight.view(-1, 4)
    smaller = groups.abs().argsort(dim=1)[:, :2]
    return groups.scatter(1, smaller, 0.0).view(weight.shape)


def on_ort(device: Any, method: str) -> Work:
    """The pruned digits CNN in ONNX Runtime."""
    made = pruned.graph(method)
    session = engines.ort_session(made / pruned.MODEL, device.threads)

    def call(inputs: Any) -> Any:
        return session.run(["output"], inputs)[0]

    timed = {"input": network.test_images()[0][:BATCH]}
    notes = engines.ort_notes("digits CNN", made, made / pruned.MODEL)
    return judged(method, made, lambda: call(timed), lambda: call({"input": network.test_images()[0]}), notes)


def judged(method: str, made: Artifact, call: Any, every: Any, notes: dict[str, str]) -> Work:
    """`call` on BATCH images is timed; `every` answers all of them, by which the network is judged."""
    numpy = need("numpy", network.INSTALL)
    expected = numpy.load(made / pruned.LOGITS)
    weights = Path(made / pruned.MODEL)
    return Work(
        run=call,
        items=BATCH,
        check=lambda found: faithful(method, found, every(), expected),
        report=lambda _: {**network.accuracy(every()), "macs": pruned.macs(method)},
        size_bytes=weights.stat().st_size,
        notes=notes,
    )


def faithful(method: str, found: Any, every: Any, expected: Any) -> bool:
    """Raises Wrong for other answers than PyTorch's, and for a fine-tuned network that reads clearly worse."""
    near(found, expected[: len(found)], TOLERANCE)
    near(every, expected, TOLERANCE)
    if method == "dense" or (method.startswith("channels") and not method.endswith("raw")):
        _, labels = network.test_images()
        lost = float((network.reference().argmax(1) == labels).mean() - (every.argmax(1) == labels).mean())
        if not lost <= LOSS:
            raise Wrong(f"the network lost {lost:.1%} of its accuracy, over {LOSS:.0%}")
    return True


def near(found: Any, expected: Any, tolerance: float) -> bool:
    """Raises Wrong when the relative L2 error is over the tolerance (or not a number)."""
    numpy = need("numpy", network.INSTALL)
    size = numpy.linalg.norm(found.astype("float64") - expected) / numpy.linalg.norm(expected)
    if not size <= tolerance:
        raise Wrong(f"relative error is {size:.1e}, over {tolerance:.0e}")
    return True
