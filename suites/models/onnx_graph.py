"""ONNX graphs written node by node, so that what a runtime is given is known: no exporter fuses first. Imports onnx."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper, save_model

OPSET = 17
"""The last one whose ReduceMean takes its axes as an attribute, which every fusion pass understands."""

IR_VERSION = 8


class Graph:
    """Collects nodes and constants under readable names."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {}

    def constant(self, name: str, value: Any, dtype: Any = np.float32) -> str:
        """A named constant; the same name twice is the same constant."""
        if name not in self.constants:
            self.constants[name] = numpy_helper.from_array(np.array(value, dtype=dtype, order="C"), name)
        return name

    def node(self, kind: str, *inputs: str, name: str, **attributes: Any) -> str:
        """One node with one output, which is returned."""
        self.nodes.append(helper.make_node(kind, inputs, [name], name=f"{name}/{kind}", **attributes))
        return name

    def save(
        self, file: Path, title: str, inputs: Mapping[str, Sequence[Any]], outputs: Mapping[str, Sequence[Any]],
        dtype: Any = TensorProto.FLOAT,
    ) -> None:  # fmt: skip
        """Check and write the graph; inputs (of `dtype`) and float32 outputs: name → shape, free axes by name."""
        model = helper.make_model(
            helper.make_graph(
                self.nodes, title,
                [helper.make_tensor_value_info(name, dtype, shape) for name, shape in inputs.items()],
                [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs.items()],
                list(self.constants.values()),
            ),
            opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION, producer_name="inference-bench",
        )  # fmt: skip
        checker.check_model(model, full_check=True)
        save_model(model, str(file))
