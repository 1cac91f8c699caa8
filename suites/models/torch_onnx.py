"""A PyTorch network as a textbook ONNX graph: one node for each layer, batch normalisation and activations apart.

PyTorch's own exporter folds normalisation into convolutions before any runtime sees the network;
here that is the runtime's work, which is what the suites measure. Networks must be traceable by
torch.fx and made of the layers and functions below. Imports torch and onnx.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import fx, nn
from torch.fx.passes.shape_prop import ShapeProp
from torch.nn import functional

from suites.models.onnx_graph import Graph

INPUT = "input"
OUTPUT = "output"


def save(network: nn.Module, file: Path, shape: Sequence[int], title: str) -> None:
    """Write `network`: INPUT (batch, *shape) float32 → OUTPUT (batch, …), batch free.

    Raises NotImplementedError for a layer or function that has no translation here.
    """
    graph = Graph()
    traced = fx.symbolic_trace(network.eval())
    with torch.no_grad():
        rank = ShapeProp(traced).propagate(torch.zeros(1, *shape)).shape[1:]
    names: dict[fx.Node, str] = {}
    for node in traced.graph.nodes:
        if node.op == "placeholder":
            names[node] = INPUT
        elif node.op == "output":
            graph.node("Identity", names[node.args[0]], name=OUTPUT)
        else:
            names[node] = _translate(graph, traced, node, names)
    graph.save(file, title, {INPUT: ["batch", *shape]}, {OUTPUT: ["batch", *rank]})


def _translate(graph: Graph, traced: fx.GraphModule, node: fx.Node, names: dict[fx.Node, str]) -> str:
    inputs = [names[value] for value in node.args if isinstance(value, fx.Node)]
    if node.op == "call_module":
        layer = traced.get_submodule(str(node.target))
        rule = LAYERS.get(type(layer))
        if isinstance(layer, nn.Linear) and len(node.meta["tensor_meta"].shape) > 2:
            rule = _rows
        if rule is not None:
            return rule(graph, layer, node.name, inputs[0])
    elif node.target in PLAIN:
        return graph.node(PLAIN[node.target], *inputs, name=node.name)
    elif node.target in ("mean", torch.mean):
        axes = list(node.args[1] if len(node.args) > 1 else node.kwargs["dim"])
        return graph.node("ReduceMean", *inputs, name=node.name, axes=axes, keepdims=0)
    elif node.target in ("flatten", torch.flatten):
        return graph.node("Flatten", *inputs, name=node.name, axis=1)
    raise NotImplementedError(f"no ONNX translation of {node.op} {node.target}")


def _array(tensor: torch.Tensor) -> Any:
    return tensor.detach().numpy()


def _convolution(g: Graph, layer: nn.Conv2d, name: str, value: str) -> str:
    inputs = [value, g.constant(f"{name}.weight", _array(layer.weight))]
    if layer.bias is not None:
        inputs.append(g.constant(f"{name}.bias", _array(layer.bias)))
    return g.node(
        "Conv", *inputs, name=name, strides=list(layer.stride), pads=[*layer.padding, *layer.padding],
        dilations=list(layer.dilation), group=layer.groups, kernel_shape=list(layer.kernel_size),
    )  # fmt: skip


def _normalisation(g: Graph, layer: nn.BatchNorm2d, name: str, value: str) -> str:
    parts = ("weight", "bias", "running_mean", "running_var")
    constants = [g.constant(f"{name}.{part}", _array(getattr(layer, part))) for part in parts]
    return g.node("BatchNormalization", value, *constants, name=name, epsilon=layer.eps)


def _linear(g: Graph, layer: nn.Linear, name: str, value: str) -> str:
    weight = g.constant(f"{name}.weight", _array(layer.weight))
    return g.node("Gemm", value, weight, g.constant(f"{name}.bias", _array(layer.bias)), name=name, transB=1)


def _rows(g: Graph, layer: nn.Linear, name: str, value: str) -> str:
    """A linear layer on more than one axis of rows, which Gemm does not take."""
    matrix = g.constant(f"{name}.weight", _array(layer.weight.T))
    product = g.node("MatMul", value, matrix, name=f"{name}.product")
    return g.node("Add", product, g.constant(f"{name}.bias", _array(layer.bias)), name=name)


def _largest(g: Graph, layer: nn.MaxPool2d, name: str, value: str) -> str:
    sides = [[side, side] for side in (layer.kernel_size, layer.stride, layer.padding)]
    return g.node("MaxPool", value, name=name, kernel_shape=sides[0], strides=sides[1], pads=[*sides[2], *sides[2]])


def _average(g: Graph, layer: nn.AdaptiveAvgPool2d, name: str, value: str) -> str:
    if layer.output_size not in (1, (1, 1)):
        raise NotImplementedError(f"average pooling to {layer.output_size}")
    return g.node("GlobalAveragePool", value, name=name)


def _swish(g: Graph, layer: nn.SiLU, name: str, value: str) -> str:
    return g.node("Mul", value, g.node("Sigmoid", value, name=f"{name}.gate"), name=name)


def _hard_sigmoid(g: Graph, layer: nn.Hardsigmoid, name: str, value: str) -> str:
    return g.node("HardSigmoid", value, name=name, alpha=1 / 6, beta=0.5)


def _gelu(g: Graph, layer: nn.GELU, name: str, value: str) -> str:
    """GELU(x) = x · (1 + erf(x / √2)) · ½ (Hendrycks & Gimpel 2016)."""
    inner = g.node("Div", value, g.constant("gelu.root", 2.0**0.5), name=f"{name}.ratio")
    erf = g.node("Erf", inner, name=f"{name}.erf")
    shifted = g.node("Add", erf, g.constant("gelu.one", 1.0), name=f"{name}.shifted")
    scaled = g.node("Mul", value, shifted, name=f"{name}.scaled")
    return g.node("Mul", scaled, g.constant("gelu.half", 0.5), name=name)


def _plain(kind: str) -> Callable[[Graph, nn.Module, str, str], str]:
    return lambda g, layer, name, value: g.node(kind, value, name=name)


LAYERS: dict[type[nn.Module], Callable[[Graph, Any, str, str], str]] = {
    nn.AdaptiveAvgPool2d: _average,
    nn.BatchNorm2d: _normalisation,
    nn.Conv2d: _convolution,
    nn.GELU: _gelu,
    nn.Hardsigmoid: _hard_sigmoid,
    nn.Hardswish: _plain("HardSwish"),
    nn.Identity: _plain("Identity"),
    nn.Linear: _linear,
    nn.MaxPool2d: _largest,
    nn.ReLU: _plain("Relu"),
    nn.SiLU: _swish,
    nn.Sigmoid: _plain("Sigmoid"),
}

PLAIN: dict[Any, str] = {
    functional.relu: "Relu", torch.relu: "Relu", operator.add: "Add", torch.add: "Add", operator.mul: "Mul",
}  # fmt: skip
