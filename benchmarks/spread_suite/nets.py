"""One network in two engines: is it the engine or the network whose CPU time is noisy?"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench.api import Work, benchmark

EXPORT = """
import sys, torch
from nets import network
net, data = network(sys.argv[1])
torch.onnx.export(net, data, sys.argv[2], input_names=["x"], dynamo=False)
"""


def network(name: str) -> tuple[Any, Any]:
    """A module with random weights and its input: `conv` has few of them and much arithmetic, `encoder` 16 MB."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    torch.set_num_threads(1)
    if name == "conv":
        layers = [nn.Conv2d(3, 32, 3, 2, 1), nn.ReLU()]
        for _ in range(20):
            layers += [nn.Conv2d(32, 32, 3, 1, 1), nn.ReLU()]
        return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten()).eval(), torch.randn(1, 3, 160, 160)
    layers = [nn.TransformerEncoderLayer(128, 4, 512, batch_first=True) for _ in range(20)]
    return nn.Sequential(*layers).eval(), torch.randn(1, 64, 128)


def exported(name: str) -> Path:
    """The network as ONNX, made once by a process of its own."""
    path = Path(os.environ["BENCH_CACHE"]) / f"spread-{name}.onnx"
    if not path.exists():
        new = path.with_suffix(f".{os.getpid()}")
        here = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
        subprocess.run([sys.executable, "-c", EXPORT, name, str(new)], env=here, check=True)
        new.rename(path)
    return path


@benchmark(axes={"net": ("conv", "encoder"), "engine": ("torch", "onnxruntime")}, baseline={"engine": "torch"})
def forward(device: Any, net: str, engine: str) -> Work:
    """One forward pass, one thread."""
    if engine == "torch":
        import torch

        module, data = network(net)

        def run() -> Any:
            with torch.no_grad():
                return module(data)

        return Work(run=run)
    import numpy
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(exported(net)), options)
    shape = [size if isinstance(size, int) else 1 for size in session.get_inputs()[0].shape]
    feed = {"x": numpy.random.default_rng(0).standard_normal(shape, dtype=numpy.float32)}
    return Work(run=lambda: session.run(None, feed))
