"""Model calls of 5–100 ms with an exact, injected slowdown: what a gate finds hard on a shared machine.

A call runs 100 equal convolutions; `BENCH_SELFTEST_PERCENT` adds that many. All engines run the same
graph with the same random weights (speed only: nothing here says anything of accuracy). Threads
wait passively: a spinning pool would measure its neighbours.
"""

from __future__ import annotations

import os
from typing import Any

from bench.api import Work, benchmark

LAYERS = 100
CHANNELS, SIDE = 16, 48

ENGINES = ("onnxruntime", "openvino", "torch")


def layers() -> int:
    """How many convolutions a call has in this process."""
    return LAYERS + int(os.environ.get("BENCH_SELFTEST_PERCENT", "0"))


@benchmark(axes={"engine": ENGINES}, profiles=("selftest",), requires=("numpy", "onnx"))
def one_thread(device: Any, engine: str) -> Work:
    """A convolution net on one thread."""
    return MAKERS[engine](1)


@benchmark(axes={"engine": ENGINES}, profiles=("selftest",), requires=("numpy", "onnx"), threads=2)
def two_threads(device: Any, engine: str) -> Work:
    """The same on two threads."""
    return MAKERS[engine](2)


def _weights() -> list[Any]:
    import numpy as np

    rng = np.random.default_rng(0)
    scale = 1 / np.sqrt(CHANNELS * 9 / 2)
    return [
        (rng.standard_normal((CHANNELS, CHANNELS, 3, 3)) * scale).astype(np.float32) for _ in range(layers())
    ]  # fmt: skip


def _data() -> Any:
    import numpy as np

    return np.random.default_rng(1).standard_normal((1, CHANNELS, SIDE, SIDE), dtype=np.float32)


def _graph() -> bytes:
    from onnx import TensorProto, helper, numpy_helper

    weights = [numpy_helper.from_array(w, f"w{i}") for i, w in enumerate(_weights())]
    nodes = []
    for i in range(len(weights)):
        nodes.append(helper.make_node("Conv", [f"h{i}", f"w{i}"], [f"c{i}"], pads=[1, 1, 1, 1]))
        nodes.append(helper.make_node("Relu", [f"c{i}"], [f"h{i + 1}"]))
    shape = [1, CHANNELS, SIDE, SIDE]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "stack", [value("h0", TensorProto.FLOAT, shape)],
        [value(f"h{len(weights)}", TensorProto.FLOAT, shape)], weights,
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    text: bytes = model.SerializeToString()
    return text


def _onnxruntime(threads: int) -> Work:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(_graph(), options, providers=["CPUExecutionProvider"])
    feed = {"h0": _data()}
    return Work(run=lambda: session.run(None, feed))


def _openvino(threads: int) -> Work:
    import openvino

    core = openvino.Core()
    settings = {
        "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY",
        "ENABLE_CPU_PINNING": False, "INFERENCE_PRECISION_HINT": "f32",
    }  # fmt: skip
    request = core.compile_model(core.read_model(_graph(), b""), "CPU", settings).create_infer_request()
    data = _data()
    return Work(run=lambda: request.infer([data]))


def _torch(threads: int) -> Work:
    import torch

    torch.set_num_threads(threads)
    parts: list[Any] = []
    for weight in _weights():
        conv = torch.nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1, bias=False)
        conv.weight = torch.nn.Parameter(torch.from_numpy(weight), requires_grad=False)
        parts += [conv, torch.nn.ReLU()]
    net = torch.nn.Sequential(*parts).eval()
    data = torch.from_numpy(_data())

    def run() -> Any:
        with torch.inference_mode():
            return net(data)

    return Work(run=run)


MAKERS = {"onnxruntime": _onnxruntime, "openvino": _openvino, "torch": _torch}
