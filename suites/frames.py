"""A camera frame to probabilities, prepared on the host (badly or well) or inside OpenVINO's graph."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from bench.api import Wrong
from suites import engines
from suites.imports import need
from suites.models import vision

INSTALL = "pip install 'inference-bench[suites]'"
NETWORK = "mobilenet_v3"

HEIGHT, WIDTH = 720, 1280
MEAN, DEVIATION = (123.7, 116.3, 103.5), (58.4, 57.1, 57.4)
"""Of ImageNet's channels, red first, in grey levels."""

TOLERANCE = 0.02
"""Largest relative L2 error of the probabilities to those of the naive way.

Resizing before normalising rounds pixels to whole grey levels: measured 0.0003.
"""


def frame() -> Any:
    """One frame (HEIGHT, WIDTH, 3) uint8, blue first as cameras give it; always the same."""
    numpy, cv2 = need("numpy", INSTALL), need("cv2", INSTALL)
    rough = vision.images(1, side=224)[0].transpose(1, 2, 0)
    large = cv2.resize(rough, (WIDTH, HEIGHT), interpolation=cv2.INTER_CUBIC)
    return numpy.clip(128 + 50 * large, 0, 255).astype("uint8")


def host_naive(threads: int) -> tuple[Callable[[], Any], dict[str, str]]:
    """Normalise every pixel in double precision, then throw most of them away."""
    numpy, cv2 = need("numpy", INSTALL), need("cv2", INSTALL)
    cv2.setNumThreads(threads)
    network, notes = _network(threads)
    pixels = frame()

    def run() -> Any:
        normal = (pixels[:, :, ::-1].astype("float64") - MEAN) / DEVIATION
        small = cv2.resize(normal, vision.SHAPE[:0:-1])
        return softmax(network({"input": small.transpose(2, 0, 1)[None].astype("float32")}), numpy)

    return run, notes


def host_ordered(threads: int) -> tuple[Callable[[], Any], dict[str, str]]:
    """Resize the bytes first, then normalise what is left in single precision and in place."""
    numpy, cv2 = need("numpy", INSTALL), need("cv2", INSTALL)
    cv2.setNumThreads(threads)
    network, notes = _network(threads)
    pixels = frame()
    scale = (1 / numpy.array(DEVIATION)).astype("float32")[:, None, None]
    shift = -numpy.array(MEAN, "float32")[:, None, None] * scale
    planes = numpy.empty((1, *vision.SHAPE), "float32")

    def run() -> Any:
        small = cv2.resize(pixels, vision.SHAPE[:0:-1])
        numpy.multiply(small[:, :, ::-1].transpose(2, 0, 1), scale, out=planes[0])
        planes[0] += shift
        return softmax(network({"input": planes}), numpy)

    return run, notes


def in_graph(threads: int) -> tuple[Callable[[], Any], dict[str, str]]:
    """The frame's bytes go in and probabilities come out: conversion, resizing, softmax are operators of the graph."""
    openvino = need("openvino", INSTALL)
    preprocess, operators = need("openvino.preprocess", INSTALL), need("openvino.opset13", INSTALL)
    core = openvino.Core()
    made = vision.graph(NETWORK)
    model = core.read_model(str(made / vision.MODEL))
    model.reshape([1, *vision.SHAPE])
    logits = model.outputs[0].get_node().input_value(0)
    model = openvino.Model([operators.softmax(logits, 1)], model.get_parameters())
    steps = preprocess.PrePostProcessor(model)
    given = steps.input()
    given.tensor().set_element_type(openvino.Type.u8).set_layout(openvino.Layout("NHWC")).set_shape(
        [1, HEIGHT, WIDTH, 3]
    ).set_color_format(preprocess.ColorFormat.BGR)
    # Resizing before the conversion to float, as the ordered host code does.
    given.preprocess().resize(preprocess.ResizeAlgorithm.RESIZE_LINEAR).convert_element_type(
        openvino.Type.f32
    ).convert_color(preprocess.ColorFormat.RGB).mean(list(MEAN)).scale(list(DEVIATION))
    given.model().set_layout(openvino.Layout("NCHW"))
    settings = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    compiled = core.compile_model(steps.build(), "CPU", settings)
    request = compiled.create_infer_request()
    pixels = frame()[None]
    return lambda: request.infer({0: pixels})[0].copy(), {"provider": "OpenVINO CPU", **engines.build_notes(made)}


FRAME_PLACES: dict[str, Callable[[int], tuple[Callable[[], Any], dict[str, str]]]] = {
    "host_naive": host_naive,
    "host_ordered": host_ordered,
    "in_graph": in_graph,
}
"""Where and how a frame is prepared → what makes the call, given the threads."""


@cache
def _expected(threads: int) -> Any:
    return host_naive(threads)[0]()


def prepared_error(found: Any, threads: int, *, refuse: bool = False) -> float:
    """Relative L2 error of probabilities (1, 1000) to the naive way's; `refuse`: raises Wrong over TOLERANCE."""
    numpy = need("numpy", INSTALL)
    expected = _expected(threads)
    size = float(numpy.linalg.norm(found - expected) / numpy.linalg.norm(expected))
    if refuse and not size <= TOLERANCE:
        raise Wrong(f"relative error to the naive preparation is {size:.3f}, over {TOLERANCE}")
    return size


def softmax(logits: Any, numpy: Any) -> Any:
    """Probabilities of logits (batch, classes)."""
    powers = numpy.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def _network(threads: int) -> tuple[engines.OpenVino, dict[str, str]]:
    numpy = need("numpy", INSTALL)
    made = vision.graph(NETWORK)
    inputs = {"input": numpy.zeros((1, *vision.SHAPE), "float32")}
    network = engines.OpenVino(made / vision.MODEL, threads, inputs)
    return network, network.notes(NETWORK, made)
