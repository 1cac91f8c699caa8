"""Does preparing a network before it is needed pay? Load, first answer, every answer after, and when it is earned back.

The call that is timed makes the network ready; what it gains or costs later is in the metrics. What
was prepared belongs to this kind of CPU and these versions: on others the artifact is made again.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.api import LOWER, Metric, Work, benchmark
from suites import compiled
from suites.artifacts import Artifact, artifact
from suites.engines import ort_session
from suites.fusion import close, module_of, reference
from suites.imports import need
from suites.precisions import BUILD
from suites.subjects import SUBJECTS, Subject

SUITES = "pip install 'inference-bench[suites]'"
TORCH = "pip install 'inference-bench[torch]'"

STEADY = 9
"""Calls of which `steady` is the median."""

LOADS = 3
"""Loads of which `first_answer` is the median, where loading takes less than a second."""

NEVER = 10**9
"""Value of `calls` and `starts` where nothing is earned back."""

NOTICED = 0.02
"""Smallest share of the plain time that counts as a gain: less is noise, and dividing by it says nothing."""

FIRST = Metric("first_answer", unit="ns", better=LOWER, kind="time", exact=False, help="from nothing to an answer")
STEADY_TIME = Metric("steady", unit="ns", better=LOWER, kind="time", exact=False, help="an answer later on")
CALLS = Metric(
    "calls", unit="calls", better=LOWER, kind="count", exact=False,
    help="calls in one process after which building and loading are earned back; 1e9: never",
)  # fmt: skip
STARTS = Metric(
    "starts", unit="starts", better=LOWER, kind="count", exact=False,
    help="starts of a process after which building is earned back by earlier first answers; 1e9: never",
)  # fmt: skip
METRICS = (FIRST, STEADY_TIME, STARTS, BUILD)
"""Of forms that run the same kernels once they are loaded: later calls can earn nothing back."""

ORT = ("numpy", "onnx", "onnxruntime")
FORMS = ("online", "saved", "ort")

Call = Callable[[], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """load: makes the network ready. size_bytes: of the file it reads. build_seconds: what making that file took."""

    load: Callable[[], Call]
    size_bytes: int
    build_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """Seconds of a network's life in one process."""

    first: float
    steady: float


def life(load: Callable[[], Call], loads: int) -> Life:
    """Make the network ready and ask it once, `loads` times; then ask until its steady pace is known. Medians."""
    firsts, times = [], []
    for _ in range(loads):
        start = time.perf_counter()
        call = load()
        call()
        firsts.append(time.perf_counter() - start)
    for _ in range(STEADY):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return Life(first=statistics.median(firsts), steady=statistics.median(times))


def break_even(build_seconds: float, ours: Life, plain: Life) -> dict[str, float]:
    """How many calls in one process, and how many starts of one, it takes to earn the building back."""
    cost = build_seconds + ours.first - plain.first
    return {
        "calls": 1.0 if cost <= 0 else _earned(cost, plain.steady - ours.steady, plain.steady),
        "starts": _earned(build_seconds, plain.first - ours.first, plain.first),
    }


def _earned(cost: float, gain: float, plain: float) -> float:
    return min(NEVER, cost / gain) if gain > NOTICED * plain else float(NEVER)


def _work(network: str, form: Form, plain: Form, notes: Mapping[str, str], *, once: bool = False) -> Work:
    expected = reference(network)

    def run() -> Call:
        call = form.load()
        if once:
            call()
        return call

    def report(_: Any) -> dict[str, float]:
        loads = 1 if once else LOADS
        ours = life(form.load, loads)
        earned = {"calls": 0.0, "starts": 0.0}
        if form is not plain:
            earned = break_even(form.build_seconds, ours, life(plain.load, loads))
        if not once:
            del earned["calls"]
        return {
            "first_answer": ours.first * 1e9, "steady": ours.steady * 1e9, "build": form.build_seconds * 1e9, **earned
        }  # fmt: skip

    def check(call: Call) -> bool:
        found = call()
        return close(found.numpy() if hasattr(found, "numpy") else found, expected)

    return Work(run=run, check=check, report=report, size_bytes=form.size_bytes, notes=notes, once=once)


@benchmark(
    axes={"form": FORMS}, baseline={"form": "online"}, metrics=METRICS, requires=ORT, launches=5
)  # fmt: skip
def mobilenet_ort(device: Any, form: str) -> Work:
    """MobileNetV3 in ONNX Runtime, time to load: optimize the graph now, or load it optimized (as ONNX, as .ort)?"""
    return _ort(device, "mobilenet_v3", form)


@benchmark(
    axes={"network": ("minilm", "bert_base"), "form": FORMS}, baseline={"form": "online"},
    metrics=METRICS, requires=ORT, profiles=("full",), launches=5,
)  # fmt: skip
def encoders_ort(device: Any, network: str, form: str) -> Work:
    """MiniLM-L6 and BERT-base in ONNX Runtime, time to load: does a saved graph pay where weights are the bulk?"""
    return _ort(device, network, form)


@benchmark(
    axes={"network": ("mobilenet_v3", "minilm"), "form": ("online", "compiled")}, baseline={"form": "online"},
    metrics=METRICS, requires=(*ORT, "openvino"), profiles=("full",), launches=5,
)  # fmt: skip
def openvino(device: Any, network: str, form: str) -> Work:
    """OpenVINO, time to load: compile the network now, or import what was compiled before (its model cache)?"""
    subject = SUBJECTS[network]
    plain = _openvino_form(subject, device.threads, "online")
    form_ = plain if form == "online" else _openvino_form(subject, device.threads, form)
    return _work(network, form_, plain, {"provider": "OpenVINO CPU", "model": subject.title})


@benchmark(
    axes={"form": ("eager", "compile", "aot")}, baseline={"form": "eager"},
    metrics=(*METRICS, CALLS), requires=(*ORT, "torch"), profiles=("full",), launches=5,
    timeout=600.0,
)  # fmt: skip
def minilm_torch(device: Any, form: str) -> Work:
    """MiniLM-L6 in PyTorch, time to its first answer: eager, torch.compile with a warm cache, AOTInductor?

    `build` is what torch.compile takes with an empty cache, or making AOTInductor's package.
    """
    torch = need("torch", TORCH)
    torch.set_num_threads(device.threads)
    subject = SUBJECTS["minilm"]
    plain = _torch_form(subject, "eager")
    form_ = plain if form == "eager" else _torch_form(subject, form)
    notes = {"provider": "torch cpu", "model": subject.title, "threads": str(torch.get_num_threads())}
    return _work("minilm", form_, plain, notes, once=True)


def _ort(device: Any, network: str, form: str) -> Work:
    subject = SUBJECTS[network]
    plain = _ort_form(subject, device.threads, "online")
    form_ = plain if form == "online" else _ort_form(subject, device.threads, form)
    return _work(network, form_, plain, {"provider": "CPUExecutionProvider", "model": subject.title})


def _ort_form(subject: Subject, threads: int, form: str) -> Form:
    inputs = dict(subject.inputs())
    made, file, level = subject.graph(), "model.onnx", "all"
    if form != "online":
        made, file, level = optimized(subject, form), f"model.{'ort' if form == 'ort' else 'onnx'}", "off"

    def load() -> Call:
        session = ort_session(made / file, threads, level)
        return lambda: session.run(None, inputs)[0]

    built = 0.0 if form == "online" else made.build_seconds
    return Form(load=load, size_bytes=(made / file).stat().st_size, build_seconds=built)


def optimized(subject: Subject, form: str) -> Artifact:
    """The graph as ONNX Runtime optimized it for this CPU: `saved` as ONNX, `ort` in its own format."""
    source = subject.graph()

    def build(folder: Path) -> None:
        kind = "ORT" if form == "ort" else "ONNX"
        file = folder / f"model.{kind.lower()}"
        ort_session(source / "model.onnx", 1, "all", save=file, entries={"session.save_model_format": kind})

    return artifact(
        f"{subject.name}-{form}", build, sources=[Path(__file__)], packages=["onnxruntime"],
        inputs={"network": source.folder.name}, cpu=True,
    )  # fmt: skip


def _openvino_form(subject: Subject, threads: int, form: str) -> Form:
    runtime = need("openvino", SUITES)
    inputs, source = dict(subject.inputs()), subject.graph()
    settings = {
        "INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32",
    }  # fmt: skip

    def ready() -> Any:
        core = runtime.Core()
        model = core.read_model(str(source / "model.onnx"))
        model.reshape({name: list(array.shape) for name, array in inputs.items()})
        return core.compile_model(model, "CPU", settings)

    def call_of(made: Any) -> Call:
        request = made.create_infer_request()
        return lambda: request.infer(inputs)[0].copy()

    if form == "online":
        size = (source / "model.onnx").stat().st_size
        return Form(load=lambda: call_of(ready()), size_bytes=size, build_seconds=0.0)

    def build(folder: Path) -> None:
        (folder / "model.blob").write_bytes(ready().export_model().getvalue())

    made = artifact(
        f"{subject.name}-openvino-{threads}", build, sources=[Path(__file__)], packages=["openvino"],
        inputs={"network": source.folder.name}, cpu=True,
    )  # fmt: skip
    blob = made / "model.blob"

    def load() -> Call:
        return call_of(runtime.Core().import_model(blob.read_bytes(), "CPU", settings))

    return Form(load=load, size_bytes=blob.stat().st_size, build_seconds=made.build_seconds)


def _torch_form(subject: Subject, form: str) -> Form:
    torch = need("torch", TORCH)
    inputs = torch.from_numpy(subject.inputs()[subject.argument])
    module = module_of(subject.name, "sdpa")
    size = sum(tensor.nbytes for tensor in module.state_dict().values())

    def call_of(made: Any) -> Call:
        def call() -> Any:
            with torch.inference_mode():
                return made(inputs)

        return call

    if form == "eager":
        return Form(load=lambda: call_of(module), size_bytes=size, build_seconds=0.0)
    compiled.compiler()
    if form == "compile":
        sources = [*subject.made_by, Path(__file__)]
        _, cold = compiled.warm(f"precompiled-{subject.name}", module, [inputs], sources=sources)

        def again() -> Call:
            torch.compiler.reset()  # forget what this process compiled; the cache on disk stays
            return compiled.first_call(module, [inputs])[0]

        return Form(load=again, size_bytes=size, build_seconds=cold)
    inductor = need("torch._inductor", TORCH)

    def build(folder: Path) -> None:
        with torch.no_grad():
            program = torch.export.export(module, (inputs,))
            inductor.aoti_compile_and_package(program, package_path=str(folder / "model.pt2"))

    made = artifact(
        f"{subject.name}-aot", build, sources=[*subject.made_by, Path(__file__)], packages=["torch"], cpu=True,
        inputs={"network": subject.graph().folder.name},
    )  # fmt: skip
    package = made / "model.pt2"
    return Form(
        load=lambda: call_of(inductor.aoti_load_package(str(package))), size_bytes=package.stat().st_size,
        build_seconds=made.build_seconds,
    )  # fmt: skip
