"""Runtimes, opened the same way by every suite: one session, one call, and what was really executed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from suites.artifacts import Artifact, artifact
from suites.imports import need

SUITES = "pip install 'inference-bench[suites]'"
TORCH = "pip install 'inference-bench[torch]'"
HERE = Path(__file__)
PLAN = "operators.json"


def ort_session(
    model: Path, threads: int, level: str = "all", *, save: Path | None = None, entries: Mapping[str, str] | None = None
) -> Any:
    """An ONNX Runtime session on the CPU; raises Skip where ONNX Runtime is missing.

    level: graph optimizations: off, basic, extended or all; save: where to put the optimized graph;
    entries: further session settings.
    """
    runtime = need("onnxruntime", SUITES)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # A spinning pool slows whatever else runs on a shared core.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    for name, value in (entries or {}).items():
        options.add_session_config_entry(name, value)
    options.log_severity_level = 3
    levels = runtime.GraphOptimizationLevel
    options.graph_optimization_level = {
        "off": levels.ORT_DISABLE_ALL, "basic": levels.ORT_ENABLE_BASIC, "extended": levels.ORT_ENABLE_EXTENDED,
        "all": levels.ORT_ENABLE_ALL,
    }[level]  # fmt: skip
    if save is not None:
        options.optimized_model_filepath = str(save)
    made = runtime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    if made.get_providers() != ["CPUExecutionProvider"]:
        raise RuntimeError(f"ONNX Runtime placed the network on {made.get_providers()} instead of the CPU")
    return made


def ort_plan(model: Path, source: str, level: str = "all") -> dict[str, int]:
    """Operator → number of nodes that ONNX Runtime really executes of `model` at that level.

    source: what identifies the content of `model`. Kept, because saving a graph costs more than loading it.
    """

    def build(folder: Path) -> None:
        onnx = need("onnx", SUITES)
        saved = folder / "optimized.onnx"
        ort_session(model, 1, level, save=saved)
        counts = Counter(node.op_type for node in onnx.load(str(saved)).graph.node)
        saved.unlink()
        (folder / PLAN).write_text(json.dumps(dict(sorted(counts.items()))), encoding="utf-8")

    made = artifact(
        f"ort-plan-{level}", build, sources=[HERE], packages=["onnx", "onnxruntime"], inputs={"model": source}, cpu=True
    )
    counts: dict[str, int] = json.loads((made / PLAN).read_text(encoding="utf-8"))
    return counts


def ort_notes(network: str, made: Artifact, model: Path, level: str = "all") -> dict[str, str]:
    """What is worth storing about a session of `model`, a file of the artifact `made`."""
    nodes = ort_plan(model, f"{made.folder.name}/{model.name}", level)
    return {
        "provider": "CPUExecutionProvider",
        "model": network,
        "nodes": str(sum(nodes.values())),
        "operators": ", ".join(f"{count} {kind}" for kind, count in nodes.items()),
        **build_notes(made),
    }


def build_notes(made: Artifact) -> dict[str, str]:
    """How long the artifact took to build and whether this launch did it."""
    return {
        "build_seconds": f"{made.build_seconds:.1f}",
        "artifact": "built in this launch" if made.built_now else "cached",
    }


class OpenVino:
    """A network compiled by OpenVINO for the CPU; a call gives its first output.

    model: an ONNX or IR file; threads: of inference; inputs: one call's arrays by input name, whose
    shapes the network is fixed to (none: they stay free); precision: `f32` or `bf16`, in which float operations run.
    Raises Skip where OpenVINO is missing.
    """

    def __init__(
        self, model: Path, threads: int, inputs: Mapping[str, Any], precision: str = "f32", cache: Path | None = None
    ) -> None:
        runtime = need("openvino", SUITES)
        core = runtime.Core()
        if cache is not None:
            core.set_property({"CACHE_DIR": str(cache)})
        network = core.read_model(str(model))
        # A network of fixed shapes is compiled better than one whose batch and length are free.
        if inputs:
            network.reshape({name: list(array.shape) for name, array in inputs.items()})
        self.compiled = core.compile_model(
            network, "CPU",
            {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": precision},
        )  # fmt: skip
        self.request = self.compiled.create_infer_request()
        self.inputs = dict(inputs)

    def __call__(self, inputs: Mapping[str, Any] | None = None) -> Any:
        """The first output, a copy, for other inputs of the same shapes or those given at first."""
        return self.request.infer(self.inputs if inputs is None else dict(inputs))[0].copy()

    def notes(self, network: str, made: Artifact) -> dict[str, str]:
        """What is worth storing: the device and precision that were really taken, and the build."""
        kind = self.compiled.get_property("INFERENCE_PRECISION_HINT")
        return {
            "provider": f"OpenVINO {'+'.join(self.compiled.get_property('EXECUTION_DEVICES'))}",
            "precision": kind.get_type_name() if hasattr(kind, "get_type_name") else str(kind),
            "model": network,
            **build_notes(made),
        }


def torch_call(module: Any, threads: int, *inputs: Any) -> Callable[[], Any]:
    """A call of the PyTorch module on arrays, in inference mode; its result is a tensor."""
    torch = need("torch", TORCH)
    torch.set_num_threads(threads)
    tensors = [torch.from_numpy(array) for array in inputs]

    def run() -> Any:
        with torch.inference_mode():
            return module(*tensors)

    return run
