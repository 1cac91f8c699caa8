"""A reference network opened in a runtime at a precision, ready to be timed and judged."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.api import LOWER, Items, Metric, Work
from suites import quantizers, subjects
from suites.artifacts import kept
from suites.engines import OpenVino, ort_notes, ort_session
from suites.imports import need
from suites.quantizers import IR, ONNX
from suites.subjects import Call, Inputs, Subject, Values

TORCH = "pip install 'inference-bench[torch]'"
SUITES = "pip install 'inference-bench[suites]'"

BUILD = Metric(
    "build", unit="ns", better=LOWER, kind="time", exact=False, help="making the network's file or module, once"
)

JUDGED_BY = [Path(subjects.__file__), Path(quantizers.__file__), Path(__file__)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """run: the timed call. call: the same for any item. identity: what else its answers depend on."""

    run: Callable[[], Any]
    call: Call
    build_seconds: float
    size_bytes: int
    notes: Mapping[str, str]
    identity: Mapping[str, str]
    packages: tuple[str, ...]


def work(subject: Subject, opened: Opened, title: str) -> Work:
    """The Work of an opened network; `title` names runtime and precision. Metrics: the subject's and BUILD."""

    def report(_: Any) -> Mapping[str, float | int | Items]:
        return {**judged(subject, opened, title), "build": opened.build_seconds * 1e9}

    def check(answer: Any) -> bool:
        subject.confirm(_array(answer), opened.call)
        return True

    return Work(
        run=opened.run, check=check, report=report, size_bytes=opened.size_bytes,
        notes={**opened.notes, "weights": subject.weights},
    )  # fmt: skip


def judged(subject: Subject, opened: Opened, title: str) -> Values:
    """The subject's metrics over its whole test set; kept, because every launch would find the same."""

    def compute() -> dict[str, Any]:
        found = subject.judge(opened.call)
        return {name: {"items": list(value)} if isinstance(value, Items) else value for name, value in found.items()}

    values = kept(
        f"judged-{subject.name}-{title}", compute, sources=[*JUDGED_BY, *subject.made_by], packages=opened.packages,
        inputs=opened.identity,
    )  # fmt: skip
    return {name: Items(value["items"]) if isinstance(value, dict) else value for name, value in values.items()}


def ort(subject: Subject, precision: str, threads: int) -> Opened:
    """In ONNX Runtime: fp32, int8_per_tensor and int8_per_channel (ranges found in each call), int8_static."""
    made = subject.graph()
    if precision == "int8_static":
        made = quantizers.ort_static(
            made, subject.name, subject.calibration, per_channel=subject.per_channel, kinds=subject.sites,
            made_by=subject.made_by,
        )  # fmt: skip
    elif precision != "fp32":
        per_channel = {"int8_per_tensor": False, "int8_per_channel": True}[precision]
        made = quantizers.ort_dynamic(made, subject.name, per_channel=per_channel, kinds=subject.matrices)
    session, inputs = ort_session(made / ONNX, threads), dict(subject.inputs())
    return Opened(
        run=lambda: session.run(None, inputs)[0], call=lambda item: session.run(None, dict(item))[0],
        build_seconds=made.build_seconds, size_bytes=(made / ONNX).stat().st_size,
        notes=ort_notes(subject.title, made, made / ONNX), identity={"network": made.folder.name},
        packages=("onnxruntime",),
    )  # fmt: skip


def openvino(subject: Subject, precision: str, threads: int) -> Opened:
    """In OpenVINO: fp32, bf16, int8_static and int8_weights (both made by NNCF; the rest stays fp32)."""
    made, file = subject.graph(), ONNX
    if precision == "int8_static":
        made = quantizers.nncf_static(
            made, subject.name, subject.calibration, transformer=subject.transformer, made_by=subject.made_by
        )
    elif precision == "int8_weights":
        made = quantizers.nncf_weights(made, subject.name)
    if made.folder != subject.graph().folder:
        file = IR
    hint = "bf16" if precision == "bf16" else "f32"
    inputs = dict(subject.inputs())
    model = OpenVino(made / file, threads, inputs, hint)
    others: list[OpenVino] = []

    def call(item: Inputs) -> Any:
        if all(item[name].shape == array.shape for name, array in inputs.items()):
            return model(item)
        if not others:  # texts of other lengths than the timed one
            others.append(OpenVino(made / file, threads, {}, hint))
        return others[0](item)

    return Opened(
        run=model, call=call, build_seconds=made.build_seconds,
        size_bytes=quantizers.ir_bytes(made) if file == IR else (made / ONNX).stat().st_size,
        notes=model.notes(subject.title, made), identity={"network": made.folder.name}, packages=("openvino",),
    )  # fmt: skip


def torch(subject: Subject, precision: str, threads: int) -> Opened:
    """In eager PyTorch: fp32, bf16, int8_dynamic and int8_weights (both by torchao)."""
    torch = need("torch", TORCH)
    if subject.module is None:
        raise ValueError(f"{subject.name} has no PyTorch module")
    torch.set_num_threads(threads)
    tools = need("torchao.quantization", SUITES) if precision.startswith("int8") else None
    module = subject.module()
    start = time.perf_counter()
    if precision == "bf16":
        module = module.bfloat16()
    elif tools is not None:
        kinds = {
            "int8_dynamic": tools.Int8DynamicActivationInt8WeightConfig, "int8_weights": tools.Int8WeightOnlyConfig,
        }  # fmt: skip
        tools.quantize_(module, kinds[precision]())
    build_seconds = time.perf_counter() - start

    def tensor(item: Inputs) -> Any:
        made = torch.from_numpy(item[subject.argument])
        return made.bfloat16() if precision == "bf16" and made.is_floating_point() else made

    timed = tensor(subject.inputs())

    def run(given: Any = timed) -> Any:
        with torch.inference_mode():
            return module(given)

    return Opened(
        run=run, call=lambda item: _array(run(tensor(item))), build_seconds=build_seconds,
        size_bytes=sum(_bytes(part) for part in module.state_dict().values()),
        notes={"provider": "torch cpu", "model": subject.title, "threads": str(torch.get_num_threads())},
        identity={"network": subject.graph().folder.name}, packages=("torch", "torchao"),
    )  # fmt: skip


RUNTIMES: dict[str, Callable[[Subject, str, int], Opened]] = {"torch": torch, "ort": ort, "openvino": openvino}


def _array(answer: Any) -> Any:
    """A float32 array of what a runtime answers."""
    return answer.float().numpy() if hasattr(answer, "float") else answer


def _bytes(tensor: Any) -> int:
    """Bytes of a tensor; a quantized one wraps others."""
    if hasattr(tensor, "__tensor_flatten__"):
        return sum(_bytes(getattr(tensor, name)) for name in tensor.__tensor_flatten__()[0])
    return int(tensor.nbytes)
