"""Files that hold a network: its weights alone, or the whole of it. Random weights: they serve speed only."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from suites.artifacts import Artifact, artifact
from suites.imports import need

INSTALL = "pip install 'inference-bench[suites]'"
TORCH = "pip install 'inference-bench[torch]'"

WIDTH = 1024
LAYERS = 12
"""A multi-layer perceptron of WIDTH × WIDTH layers: 50 MB of weights, so that reading them is what costs."""

PICKLE, TORCH_STATE, SAFETENSORS, ONNX = "weights.pickle", "weights.pt", "weights.safetensors", "network.onnx"
TORCH_MODULE, EXPORT = "network.pt", "network.pt2"
ANSWER = "answer.npz"
"""An input row and the network's answer to it."""

Tensors = Mapping[str, Any]


def perceptron() -> Any:
    """LAYERS linear layers with ReLU between them, untrained."""
    torch = need("torch", TORCH)
    layers: list[Any] = []
    for _ in range(LAYERS):
        layers += [torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1]).eval()


def files() -> Artifact:
    """The same network in every format."""

    def build(folder: Path) -> None:
        torch = need("torch", TORCH)
        torch.manual_seed(0)
        network = perceptron()
        state = network.state_dict()
        row = torch.randn(1, WIDTH)
        with torch.inference_mode():
            answer = network(row)
        need("numpy", INSTALL).savez(folder / ANSWER, row=row.numpy(), answer=answer.numpy())
        arrays = {name: tensor.numpy() for name, tensor in state.items()}
        with (folder / PICKLE).open("wb") as stream:
            pickle.dump(arrays, stream, protocol=5)
        torch.save(state, folder / TORCH_STATE)
        torch.save(network, folder / TORCH_MODULE)
        need("safetensors.torch", INSTALL).save_file(state, folder / SAFETENSORS)
        torch.export.save(torch.export.export(network, (row,)), folder / EXPORT)
        need("onnx", INSTALL).save(_graph(arrays), folder / ONNX)

    return artifact(
        "network-files", build, sources=[Path(__file__)],
        packages=["numpy", "onnx", "safetensors", "torch"], inputs={"shape": f"{LAYERS}x{WIDTH}"},
    )  # fmt: skip


def _graph(arrays: Tensors) -> Any:
    onnx, numpy = need("onnx", INSTALL), need("numpy", INSTALL)
    helper = onnx.helper
    nodes, value = [], "row"
    weights = [onnx.numpy_helper.from_array(numpy.ascontiguousarray(a), name) for name, a in arrays.items()]
    for k in range(LAYERS):
        made = "answer" if k == LAYERS - 1 else f"linear{k}"
        nodes.append(helper.make_node("Gemm", [value, f"{2 * k}.weight", f"{2 * k}.bias"], [made], transB=1))
        if k < LAYERS - 1:
            nodes.append(helper.make_node("Relu", [made], [f"relu{k}"]))
        value = f"relu{k}"
    row, answer = (
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, WIDTH]) for name in ("row", "answer")
    )
    graph = helper.make_graph(nodes, "perceptron", [row], [answer], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def load_pickle(file: Path) -> Tensors:
    """Numpy arrays in a plain pickle: runs code on loading, so only for files of one's own."""
    with file.open("rb") as stream:
        tensors: Tensors = pickle.load(stream)
    return tensors


def load_torch(file: Path, *, mapped: bool = False) -> Tensors:
    """torch.save of a state dict, read or mapped."""
    tensors: Tensors = need("torch", TORCH).load(file, weights_only=True, mmap=mapped)
    return tensors


def load_safetensors(file: Path) -> Tensors:
    """A header and mapped bytes."""
    tensors: Tensors = need("safetensors.torch", INSTALL).load_file(file)
    return tensors


def load_onnx(file: Path) -> Tensors:
    """The protobuf message of a graph, its weights as arrays."""
    onnx = need("onnx", INSTALL)
    return {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in onnx.load(file).graph.initializer}


LOADERS: dict[str, tuple[str, Callable[[Path], Tensors]]] = {
    "pickle": (PICKLE, load_pickle),
    "torch_save": (TORCH_STATE, load_torch),
    "torch_save_mmap": (TORCH_STATE, lambda file: load_torch(file, mapped=True)),
    "safetensors": (SAFETENSORS, load_safetensors),
    "onnx": (ONNX, load_onnx),
}
"""Format → its file, and file → name → tensor."""


def first_tensor(format: str, file: Path) -> Any:
    """One tensor of a file, in the cheapest way the format has: only two of them can find it alone."""
    name = f"{2 * (LAYERS - 1)}.weight"
    if format == "safetensors":
        with need("safetensors", INSTALL).safe_open(file, framework="pt") as stream:
            return stream.get_tensor(name).sum()
    return LOADERS[format][1](file)[name].sum()


def every_tensor(format: str, file: Path) -> Any:
    """All tensors, each byte of them read: a mapped file costs nothing until then."""
    return sum(tensor.sum() for tensor in LOADERS[format][1](file).values())


def open_eager(file: Path) -> Callable[[Any], Any]:
    """The code of the network, and its weights from safetensors."""
    torch = need("torch", TORCH)
    with torch.device("meta"):  # no random weights only to throw them away
        network = perceptron()
    network.load_state_dict(load_safetensors(file), assign=True)
    return _eager(network)


def open_module(file: Path) -> Callable[[Any], Any]:
    """torch.save of the whole module: needs the classes, and runs code on loading."""
    return _eager(need("torch", TORCH).load(file, weights_only=False))


def open_export(file: Path) -> Callable[[Any], Any]:
    """torch.export: the graph travels with the weights, the code is not needed."""
    return _eager(need("torch", TORCH).export.load(file).module())


def open_onnx(file: Path, level: str) -> Callable[[Any], Any]:
    """An ONNX Runtime session with graph optimizations at `level` (ORT_DISABLE_ALL or ORT_ENABLE_ALL)."""
    runtime = need("onnxruntime", INSTALL)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = getattr(runtime.GraphOptimizationLevel, level)
    session = runtime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    return lambda row: session.run(["answer"], {"row": row})[0]


def _eager(network: Any) -> Callable[[Any], Any]:
    torch = need("torch", TORCH)

    def answer(row: Any) -> Any:
        with torch.inference_mode():
            return network(torch.from_numpy(row)).numpy()

    return answer


OPENERS: dict[str, tuple[str, Callable[[Path], Callable[[Any], Any]]]] = {
    "torch_save_module": (TORCH_MODULE, open_module),
    "code_and_safetensors": (SAFETENSORS, open_eager),
    "torch_export": (EXPORT, open_export),
    "onnx_unoptimized": (ONNX, lambda file: open_onnx(file, "ORT_DISABLE_ALL")),
    "onnx": (ONNX, lambda file: open_onnx(file, "ORT_ENABLE_ALL")),
}
"""Form → its file, and file → row (1, WIDTH) → answer (1, WIDTH)."""
