"""Work of several kinds with an exact, injected slowdown: what `bench selftest` judges the gate by.

A call is 100 equal units; `BENCH_SELFTEST_PERCENT` adds that many. The two arms of a self-test
differ in this variable alone, so the true effect is known.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bench.api import Work, benchmark

if TYPE_CHECKING:
    from bench.ports import Device

UNITS = 100


def units() -> int:
    """How many units a call has in this process."""
    return UNITS + int(os.environ.get("BENCH_SELFTEST_PERCENT", "0"))


def repeated(unit: Callable[[], Any]) -> Work:
    """A Work whose call makes every unit once."""
    count = range(units())

    def run() -> None:
        for _ in count:
            unit()

    return Work(run=run)


@benchmark(profiles=("selftest",))
def interpreter(device: Device) -> Work:
    """Integer arithmetic in a Python loop."""
    span = range(120)

    def unit() -> int:
        total = 0
        for i in span:
            total += i * i % 7
        return total

    return repeated(unit)


@benchmark(profiles=("selftest",))
def allocation(device: Device) -> Work:
    """Small dictionaries, texts and lists made and dropped."""
    return repeated(lambda: [{"id": i, "name": f"user-{i}", "tags": [i, i + 1]} for i in range(12)])


@benchmark(profiles=("selftest",))
def json_text(device: Device) -> Work:
    """A small JSON document parsed."""
    import json

    text = json.dumps({"user": 17, "items": [{"id": i, "score": i / 7, "name": f"item {i}"} for i in range(12)]})
    return repeated(lambda: json.loads(text))


@benchmark(profiles=("selftest",), requires=("numpy",))
def matmul_small(device: Device) -> Work:
    """Products of 64 × 64 matrices: call overhead counts."""
    import numpy as np

    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 64, 64), dtype=np.float32)
    out = np.empty_like(a)
    return repeated(lambda: np.matmul(a, b, out=out))


@benchmark(profiles=("selftest",), requires=("numpy",))
def matmul_large(device: Device) -> Work:
    """Products of 320 × 320 matrices: a call longer than a scheduler slice."""
    import numpy as np

    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 320, 320), dtype=np.float32)
    out = np.empty_like(a)
    return repeated(lambda: np.matmul(a, b, out=out))


@benchmark(profiles=("selftest",), requires=("numpy",))
def memory_copy(device: Device) -> Work:
    """Copies through buffers far larger than a level-2 cache: bound by memory."""
    import numpy as np

    source, target = np.ones(12_000_000, dtype=np.uint8), np.empty(12_000_000, dtype=np.uint8)
    chunk = 100_000
    place = [0]

    def unit() -> None:
        start = place[0]
        target[start : start + chunk] = source[start : start + chunk]
        place[0] = (start + chunk) % (source.size - chunk)

    return repeated(unit)


@benchmark(profiles=("selftest",), requires=("onnxruntime", "onnx"))
def onnxruntime_mlp(device: Device) -> Work:
    """A small multi-layer perceptron in ONNX Runtime."""
    import numpy as np
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    weights = [
        numpy_helper.from_array(rng.standard_normal((256, 256), dtype=np.float32) / 16, f"w{i}") for i in range(3)
    ]
    nodes = []
    for i in range(3):
        nodes.append(helper.make_node("MatMul", [f"h{i}", f"w{i}"], [f"m{i}"]))
        nodes.append(helper.make_node("Relu", [f"m{i}"], [f"h{i + 1}"]))
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "mlp", [value("h0", TensorProto.FLOAT, [4, 256])], [value("h3", TensorProto.FLOAT, [4, 256])], weights
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    feed = {"h0": rng.standard_normal((4, 256), dtype=np.float32)}
    return repeated(lambda: session.run(None, feed))


@benchmark(profiles=("selftest",), requires=("torch",))
def torch_mlp(device: Device) -> Work:
    """A small multi-layer perceptron in eager PyTorch."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    layers = [torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256), torch.nn.ReLU()]
    net = torch.nn.Sequential(*layers).eval()
    data = torch.randn(4, 256)

    def unit() -> None:
        with torch.inference_mode():
            net(data)

    return repeated(unit)
