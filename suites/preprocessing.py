"""How should images be prepared: which library, how large decoded, on threads or processes, ahead of the network?

A pool raises the rate, by cores at most, and leaves one image's time as it was. Decoding at a
reduced size lowers both. Every way is compared with the naive one's pixels, by PSNR.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from functools import cache
from typing import Any

from bench.api import HIGHER, Metric, Work, Wrong, benchmark
from suites import engines
from suites.imports import need
from suites.models import photographs, vision
from suites.preparation import WAYS, alike, pillow, psnr

INSTALL = "pip install 'inference-bench[suites]'"

SMALL, LARGE = 1.5, 6.0
"""Megapixels."""

PSNR = Metric("psnr", unit="dB", better=HIGHER, help="least of the images' to the naive way's; 100: the same pixels")
NEEDS = ("numpy", "PIL", "cv2")

POOLS: dict[str, tuple[str, str]] = {
    "pillow": ("pillow", "serial"),
    "pillow_threads": ("pillow", "threads"),
    "pillow_processes": ("pillow", "processes"),
    "pillow_draft": ("pillow_draft", "serial"),
    "opencv": ("opencv", "serial"),
    "opencv_reduced": ("opencv_reduced", "serial"),
    "opencv_reduced_threads": ("opencv_reduced", "threads"),
}
"""Variant → way of preparing, and what works on the images."""


@benchmark(
    axes={"way": ("pillow", "pillow_draft", "opencv_reduced")}, baseline={"way": "pillow"}, metrics=(PSNR,),
    requires=NEEDS, profiles=("quick",), launches=5,
)  # fmt: skip
def small_image(device: Any, way: str) -> Work:
    """One JPEG of 1.5 megapixels to a network's input: what does decoding at a reduced size gain?"""
    return one(way, SMALL)


@benchmark(
    axes={"way": tuple(WAYS)}, baseline={"way": "pillow"}, metrics=(PSNR,), requires=NEEDS, profiles=("full",),
    launches=7,
)  # fmt: skip
def image(device: Any, way: str) -> Work:
    """One JPEG of 6 megapixels to a network's input: which library, and does decoding at a reduced size pay?"""
    return one(way, LARGE)


@benchmark(
    axes={"way": tuple(POOLS)}, baseline={"way": "pillow"}, metrics=(PSNR,), requires=NEEDS, profiles=("full",),
    launches=5, threads=2,
)  # fmt: skip
def batch(device: Any, way: str) -> Work:
    """Eight JPEGs of 6 megapixels: what do two threads or two processes gain, and what does a better decoder?"""
    need("cv2", INSTALL).setNumThreads(1)  # the pool's threads are the parallel ones
    prepare, workers = WAYS[POOLS[way][0]], POOLS[way][1]
    blobs = photographs.blobs(LARGE)
    pool = pool_of(workers, device.threads)
    if pool is not None:
        list(pool.map(prepare, blobs[: device.threads]))  # started, and warm
    return Work(
        run=lambda: list(map(prepare, blobs) if pool is None else pool.map(prepare, blobs)),
        items=len(blobs),
        check=lambda found: as_naive(found, LARGE),
        report=lambda found: {"psnr": least_psnr(found, LARGE)},
        close=None if pool is None else pool.shutdown,
        notes={"workers": workers},
    )


@benchmark(
    axes={"order": ("serial", "prefetched"), "inference_threads": (1, 2)}, baseline={"order": "serial"},
    requires=(*NEEDS, "onnxruntime"), profiles=("full",), launches=5, threads=2,
)  # fmt: skip
def pipeline(device: Any, order: str, inference_threads: int) -> Work:
    """Eight JPEGs through MobileNetV3: does preparing the next one beside the network pay?"""
    numpy = need("numpy", INSTALL)
    need("cv2", INSTALL).setNumThreads(1)
    made = vision.graph("mobilenet_v3")
    session = engines.ort_session(made / vision.MODEL, inference_threads)
    blobs = photographs.blobs(SMALL)
    prepare = WAYS["pillow_draft"]
    stream = {"serial": one_by_one, "prefetched": one_ahead}[order]

    def answers(prepared: Iterator[Any]) -> Any:
        return numpy.concatenate([session.run(["output"], {"input": picture[None]})[0] for picture in prepared])

    expected = answers(map(prepare, blobs))

    def check(found: Any) -> bool:
        if found.shape != expected.shape or not numpy.allclose(found, expected, rtol=1e-3, atol=1e-3):
            raise Wrong("the answers are not those of the images one after the other")
        return True

    return Work(
        run=lambda: answers(stream(prepare, blobs)), items=len(blobs), check=check,
        notes={"weights": "random", **engines.build_notes(made)},
    )  # fmt: skip


def one(way: str, megapixels: float) -> Work:
    """The first image prepared in a call, on one thread."""
    need("cv2", INSTALL).setNumThreads(1)
    blob = photographs.blobs(megapixels)[0]
    prepare = WAYS[way]
    return Work(
        run=lambda: prepare(blob),
        check=lambda found: as_naive([found], megapixels, 1),
        report=lambda found: {"psnr": least_psnr([found], megapixels, 1)},
        notes={"jpeg_bytes": str(len(blob))},
    )


def pool_of(workers: str, count: int) -> Executor | None:
    """`count` threads, or processes that begin with nothing of this one's; None for `serial`."""
    if workers == "threads":
        return ThreadPoolExecutor(count)
    if workers == "processes":
        return ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn"))
    return None


def one_by_one(prepare: Callable[[bytes], Any], blobs: Sequence[bytes]) -> Iterator[Any]:
    """Each image prepared when it is asked for."""
    return map(prepare, blobs)


def one_ahead(prepare: Callable[[bytes], Any], blobs: Sequence[bytes]) -> Iterator[Any]:
    """Each image prepared by another thread while the one before is used."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(prepare, blobs[0])
        for blob in blobs[1:]:
            ready = coming.result()
            coming = pool.submit(prepare, blob)
            yield ready
        yield coming.result()


@cache
def naive(megapixels: float, count: int) -> list[Any]:
    """What the naive way makes of the first `count` images."""
    return [pillow(blob) for blob in photographs.blobs(megapixels)[:count]]


def as_naive(found: Sequence[Any], megapixels: float, count: int = photographs.COUNT) -> bool:
    """Raises Wrong when an image is missing or is not alike what the naive way makes of it."""
    if len(found) != count:
        raise Wrong(f"{len(found)} images were prepared, not {count}")
    return all(alike(ours, theirs) for ours, theirs in zip(found, naive(megapixels, count), strict=True))


def least_psnr(found: Sequence[Any], megapixels: float, count: int = photographs.COUNT) -> float:
    """The least PSNR of the images, in dB."""
    return round(min(psnr(a, b) for a, b in zip(found, naive(megapixels, count), strict=True)), 2)
