"""Does fusing operators pay? One benchmark per runtime, so that no runtime's own speed is credited to fusion.

`engines` is the exception, on purpose: eager PyTorch against whole compilers. The GPU has `fusion_cuda`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.api import LOWER, Metric, Work, Wrong, benchmark
from suites import compiled
from suites.artifacts import Artifact, artifact
from suites.engines import OpenVino, ort_notes, ort_session, torch_call
from suites.imports import need
from suites.models import bert, blocks, minilm, vision
from suites.precisions import BUILD
from suites.subjects import SUBJECTS

SUITES = "pip install 'inference-bench[suites]'"
TORCH = "pip install 'inference-bench[torch]'"

TOLERANCE = 1e-3
"""Largest relative L2 error: fusion reorders additions (about 1e-6) and may do no more."""

DIGITS = 5
"""Decimals of the reported error; what is smaller is the rounding of fp32 and reads 0."""

ERROR = Metric("error", unit="1", better=LOWER, help="relative L2 error to the unfused network; 0: below 5e-6")

LEVELS = {"unfused": "off", "basic": "basic", "all": "all", "optimizer": "all"}
"""Graph → level of ONNX Runtime's own optimizations."""

GRAPHS = tuple(LEVELS)
UNFUSED = {"graph": "unfused"}
EAGER = {"attention": "eager"}
ORT = ("numpy", "onnx", "onnxruntime")

ENCODERS = {"minilm": minilm.SIZE, "bert_base": bert.SIZES["bert_base"]}
BLOCKS = ("convolutions", "gelu")


@benchmark(axes={"graph": GRAPHS}, baseline=UNFUSED, metrics=(ERROR,), requires=ORT, launches=5)
def minilm_ort(device: Any, graph: str) -> Work:
    """MiniLM-L6 in ONNX Runtime, one text of 64 tokens: do its graph optimizations pay over the textbook graph?"""
    return _subject_in_ort(device, "minilm", graph)


@benchmark(axes={"graph": GRAPHS}, baseline=UNFUSED, metrics=(ERROR,), requires=ORT, profiles=("full",), launches=5)
def bert_base_ort(device: Any, graph: str) -> Work:
    """BERT-base in ONNX Runtime, 128 tokens: do graph optimizations pay where matrices are large?"""
    return _subject_in_ort(device, "bert_base", graph)


@benchmark(
    axes={"attention": ("eager", "sdpa")}, baseline=EAGER, metrics=(ERROR,), requires=(*ORT, "torch"),
    profiles=("full",),
)  # fmt: skip
def minilm_torch(device: Any, attention: str) -> Work:
    """MiniLM-L6 in eager PyTorch, one text of 64 tokens: does fused attention pay over the textbook one?"""
    return _subject_in_torch(device, "minilm", attention)


@benchmark(
    axes={"attention": ("eager", "sdpa")}, baseline=EAGER, metrics=(ERROR,), requires=(*ORT, "torch"),
    profiles=("full",), launches=5,
)  # fmt: skip
def bert_base_torch(device: Any, attention: str) -> Work:
    """BERT-base in eager PyTorch, 128 tokens: does fused attention pay where it is a few per cent of the work?"""
    return _subject_in_torch(device, "bert_base", attention)


@benchmark(
    axes={"network": ("minilm", "bert_base", "mobilenet_v3"), "engine": ("eager", "compile", "ort", "openvino")},
    baseline={"engine": "eager"}, metrics=(ERROR, BUILD), requires=(*ORT, "openvino", "torch"), profiles=("full",),
    launches=5, timeout=600.0,
)  # fmt: skip
def engines(device: Any, network: str, engine: str) -> Work:
    """Eager PyTorch (fused attention) against whole compilers, all fp32: what do they gain, what do they cost?"""
    subject = SUBJECTS[network]
    inputs, expected = dict(subject.inputs()), reference(network)
    if engine in ("eager", "compile"):
        module = module_of(network, "sdpa")
        run, seconds = torch_call(module, device.threads, inputs[subject.argument]), 0.0
        if engine == "compile":
            tensors = _tensors(device, inputs[subject.argument])
            run, seconds = compiled.warm(f"engines-{network}", module, tensors, sources=subject.made_by)
        return _torch_work(run, module, expected, subject.title, seconds)
    made = subject.graph()
    if engine == "ort":
        return _ort_work(device, subject.title, made, "all", inputs, expected, built=True)
    model = OpenVino(made / minilm.MODEL, device.threads, inputs)
    notes, size = model.notes(subject.title, made), (made / minilm.MODEL).stat().st_size
    return _work(model, expected, size, notes, made.build_seconds)


@benchmark(
    axes={"block": BLOCKS, "graph": ("unfused", "basic", "all")}, baseline=UNFUSED, metrics=(ERROR,), requires=ORT,
    profiles=("full",),
)  # fmt: skip
def blocks_ort(device: Any, block: str, graph: str) -> Work:
    """Convolution + normalisation + ReLU, and linear + bias + GELU, in ONNX Runtime: are they worth one kernel?"""
    made = blocks.graph(block)
    return _ort_work(device, block, made, LEVELS[graph], {"input": blocks.inputs(block)}, blocks.reference(block))


@benchmark(
    axes={"block": BLOCKS, "kind": ("eager", "folded", "compile")}, baseline={"kind": "eager"},
    exclude=({"block": "gelu", "kind": "folded"},), metrics=(ERROR, BUILD), requires=(*ORT, "torch"),
    profiles=("full",), launches=5, timeout=600.0,
)  # fmt: skip
def blocks_torch(device: Any, block: str, kind: str) -> Work:
    """The same blocks in PyTorch: eager, normalisation folded into the convolutions, compiled?"""
    module, inputs, seconds = blocks.module(block), blocks.inputs(block), 0.0
    if kind == "folded":
        from suites.models import blocks_torch as modules

        module = modules.folded(module)
    run = torch_call(module, device.threads, inputs)
    if kind == "compile":
        run, seconds = compiled.warm(f"block-{block}", module, _tensors(device, inputs), sources=blocks.SOURCES)
    return _torch_work(run, module, blocks.reference(block), block, seconds)


def module_of(network: str, attention: str) -> Any:
    """A subject's PyTorch module; encoders with this kind of attention."""
    if network == "minilm":
        need("torch", TORCH)
        from suites.models import bert_torch

        return bert_torch.encoder(minilm.weights(), minilm.SIZE, attention, pooled=True)
    return bert.module(network, attention) if network in bert.SIZES else vision.module(network)


def fused(network: str) -> Artifact:
    """The graph rewritten by ONNX Runtime's offline transformer optimizer, which also fuses attention."""
    source, size = SUBJECTS[network].graph(), ENCODERS[network]

    def build(folder: Path) -> None:
        optimizer = need("onnxruntime.transformers.optimizer", SUITES)
        logging.getLogger(optimizer.__name__).setLevel(logging.ERROR)  # it doubts every producer but PyTorch
        model = optimizer.optimize_model(
            str(source / minilm.MODEL), model_type="bert", num_heads=size.heads, hidden_size=size.width,
            opt_level=0, use_gpu=False,
        )  # fmt: skip
        found = model.get_fused_operator_statistics()
        if found.get("Attention") != size.layers:
            raise RuntimeError(f"the optimizer fused {found.get('Attention')} of {size.layers} attentions")
        model.save_model_to_file(str(folder / minilm.MODEL))

    return artifact(
        f"{network}-optimizer", build, sources=[Path(__file__)], packages=["onnx", "onnxruntime"],
        inputs={"network": source.folder.name},
    )  # fmt: skip


def reference(network: str) -> Any:
    """What the unfused fp32 network answers to the subject's timed inputs."""
    if network == "minilm":
        _, documents = minilm.tokens()
        return minilm.reference()[1][minilm.timed_text(documents)][None]
    return bert.reference(network) if network in bert.SIZES else vision.reference(network)[:1]


def error(found: Any, expected: Any) -> float:
    """Relative L2 distance of an answer to the expected one."""
    numpy = need("numpy", SUITES)
    return float(numpy.linalg.norm(found - expected) / numpy.linalg.norm(expected))


def close(found: Any, expected: Any) -> bool:
    """Raises Wrong when the error is over TOLERANCE (or not a number)."""
    size = error(found, expected)
    if not size <= TOLERANCE:
        raise Wrong(f"relative error to the unfused network is {size:.1e}, over {TOLERANCE:.0e}")
    return True


def _work(
    run: Callable[[], Any], expected: Any, size: int, notes: Mapping[str, str], build_seconds: float | None = None
) -> Work:
    """A Work that reports its error and, where the benchmark declares BUILD, what building it took."""
    built = {} if build_seconds is None else {"build": build_seconds * 1e9}
    return Work(
        run=run, check=lambda found: close(_array(found), expected), size_bytes=size, notes=notes,
        report=lambda found: {"error": round(error(_array(found), expected), DIGITS), **built},
    )  # fmt: skip


def _ort_work(
    device: Any, title: str, made: Artifact, level: str, inputs: Mapping[str, Any], expected: Any, *,
    built: bool = False,
) -> Work:  # fmt: skip
    session = ort_session(made / minilm.MODEL, device.threads, level)
    size, notes = (made / minilm.MODEL).stat().st_size, ort_notes(title, made, made / minilm.MODEL, level)
    return _work(
        lambda: session.run(None, inputs)[0], expected, size, notes, made.build_seconds if built else None
    )  # fmt: skip


def _torch_work(run: Any, module: Any, expected: Any, title: str, build_seconds: float | None = None) -> Work:
    torch = need("torch", TORCH)
    size = sum(tensor.nbytes for tensor in module.state_dict().values())
    notes = {"provider": "torch cpu", "model": title, "threads": str(torch.get_num_threads())}
    return _work(run, expected, size, notes, build_seconds)


def _subject_in_ort(device: Any, network: str, graph: str) -> Work:
    subject = SUBJECTS[network]
    made = fused(network) if graph == "optimizer" else subject.graph()
    return _ort_work(device, subject.title, made, LEVELS[graph], dict(subject.inputs()), reference(network))


def _subject_in_torch(device: Any, network: str, attention: str) -> Work:
    subject, module = SUBJECTS[network], module_of(network, attention)
    run = torch_call(module, device.threads, subject.inputs()[subject.argument])
    return _torch_work(run, module, reference(network), subject.title)


def _tensors(device: Any, *arrays: Any) -> Sequence[Any]:
    torch = need("torch", TORCH)
    torch.set_num_threads(device.threads)
    return [torch.from_numpy(array) for array in arrays]


def _array(answer: Any) -> Any:
    return answer.numpy() if hasattr(answer, "numpy") else answer
