"""Do NPUs give the answers of the CPU's int8, and how much of a network do they take? By their vendors' own tools.

Without a device the vendors' emulators answer: exact, and slow, so that no time of theirs is shown. What a compiler
reckons (cycles) is exact for one version of it. Nothing falls back to the CPU in silence: what stays there is WRONG.
"""

from __future__ import annotations

import json
import platform
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.api import HIGHER, LOWER, Items, Metric, Skip, Work, Wrong, benchmark
from suites import environments
from suites.artifacts import Artifact, artifact
from suites.engines import SUITES, TORCH, build_notes, ort_notes, ort_session
from suites.imports import need
from suites.models import digits

FAITHFUL = 0.98
"""Smallest share of the images for which an NPU must read the digit that the same int8 network reads on the CPU.

Measured: all 500 agree on each NPU. A graph whose activations are quantized wrongly agrees on about every tenth.
"""

CALIBRATION = 64
"""Training images by which ranges are found: the answers of the int8 network are those of twice as many."""

HERE = Path(__file__)
VENDORS = HERE.with_name("vendors")
MODEL, ANSWERS, FACTS = "model.onnx", "answers.npz", "facts.json"

CHIPS = {"u55_128": "ethos-u55-128", "u55_256": "ethos-u55-256", "u85_256": "ethos-u85-256"}
"""Ethos-U configurations, named by their multipliers, and what Vela calls them."""

PLACES = {"ethos_u55": "u55_128", "ethos_u85": "u85_256"}

SAME = Metric("int8_agreement", unit="1", better=HIGHER, help="same digit as the same int8 network on the CPU, of 500")
ON_DEVICE = Metric("on_device", unit="1", better=HIGHER, help="share of the graph's operators that the device computes")
COMPILE = Metric(
    "compile_seconds", unit="s", better=LOWER, kind="time", exact=False, help="from the int8 network to what runs"
)
CYCLES = Metric("cycles", unit="cycles", better=LOWER, kind="count", help="of one image, as the compiler reckons")
SRAM = Metric("sram", unit="B", better=LOWER, kind="memory", help="most on-chip memory at once, as the compiler plans")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """A network on an NPU: its logits (images, classes), those of the same int8 network on the CPU, what was said."""

    npu: Any
    cpu: Any
    facts: Mapping[str, Any]
    size_bytes: int
    made: Artifact

    def agreement(self) -> Items:
        """Whether both read the same digit, for each image."""
        return Items(self.npu.argmax(axis=1) == self.cpu.argmax(axis=1))

    def share(self) -> float:
        """Operators on the device, of all."""
        operators = self.facts["operators"]
        return float(operators["npu"] / (operators["npu"] + operators["cpu"]))

    def check(self, _: Any = None) -> bool:
        """Raises Wrong for a network that is not wholly on the device, changes when loaded again, or misreads."""
        operators = self.facts["operators"]
        if operators["cpu"] or not operators["npu"]:
            raise Wrong(f"{operators['cpu']} operators stayed on the CPU, {operators['npu']} run on the device")
        if not self.facts["reproduced"]:
            raise Wrong("the same network, made once more, is another one")
        same = sum(self.agreement()) / len(self.npu)
        if same < FAITHFUL:
            raise Wrong(f"reads {same:.0%} of the digits as the same network on the CPU does, under {FAITHFUL:.0%}")
        return True

    def notes(self, toolchain: str) -> dict[str, str]:
        """What is worth storing."""
        return {"model": "digits CNN", "toolchain": toolchain, **build_notes(self.made)}


@benchmark(
    axes={"place": ("cpu", "hexagon", "ethos_u55", "ethos_u85")},
    baseline={"place": "cpu"},
    metrics=(*digits.METRICS, SAME, ON_DEVICE, COMPILE),
    requires=("numpy", "onnx", "onnxruntime"),
    timeout=240,
)
def digits_cnn(device: Any, place: str) -> Work:
    """The digits CNN in int8, one image: do NPUs read what the CPU reads, and do they take the whole network?"""
    if place == "cpu":
        return on_cpu(device.threads)
    found = hexagon() if place == "hexagon" else ethos_u(PLACES[place])
    return Work(
        run=lambda: found.npu,
        check=found.check,
        report=lambda logits: {
            **digits.accuracy(logits), SAME.name: found.agreement(), ON_DEVICE.name: found.share(),
            COMPILE.name: found.facts["compile_seconds"],
        },
        size_bytes=found.size_bytes,
        notes=found.notes(" ".join(environments.VENDORS["qnn" if place == "hexagon" else "ethos-u"].requirements)),
        kind="emulated",
    )  # fmt: skip


@benchmark(
    axes={"chip": tuple(CHIPS)},
    baseline={"chip": "u55_128"},
    metrics=(CYCLES, SRAM, ON_DEVICE),
    requires=("numpy", "torch"),
    timeout=240,
)
def ethos_u_cycles(device: Any, chip: str) -> Work:
    """The digits CNN compiled for Ethos-U NPUs: how many cycles and how much memory does Vela reckon for one image?"""
    found = ethos_u(chip)
    cycles, clock = found.facts["cycles"], found.facts["clock_hz"]
    return Work(
        run=lambda: cycles,
        check=found.check,
        report=lambda _: {CYCLES.name: cycles, SRAM.name: found.facts["sram_bytes"], ON_DEVICE.name: found.share()},
        size_bytes=found.size_bytes,
        notes={
            **found.notes(" ".join(environments.VENDORS["ethos-u"].requirements)),
            "clock": f"{clock / 1e6:.0f} MHz", "macs": str(found.facts["macs"]),
        },
        kind="estimated",
    )  # fmt: skip


@benchmark(
    axes={"place": ("cpu", "npu")},
    baseline={"place": "cpu"},
    metrics=(*digits.METRICS, SAME, ON_DEVICE, COMPILE),
    requires=("numpy", "onnx", "onnxruntime", "device:qnn"),
    profiles=("full",),
)
def qnn(device: Any, place: str) -> Work:
    """The digits CNN in int8 in ONNX Runtime, one image: does a Hexagon NPU that is here pay over the CPU?"""
    if place == "cpu":
        return on_cpu(device.threads)
    from suites.vendors import qnn as tools

    made = int8()
    images, _ = digits.test_images()
    devices = tools.devices()
    session, seconds = tools.session(made / MODEL, devices)
    operators = tools.operators(session)
    cpu = tools.answers(ort_session(made / MODEL, device.threads), images)
    found = Compiled(
        npu=tools.answers(session, images), cpu=cpu, facts={"operators": operators, "reproduced": True},
        size_bytes=(made / MODEL).stat().st_size, made=made,
    )  # fmt: skip
    first = images[:1]
    return Work(
        run=lambda: session.run(None, {"input": first})[0],
        check=found.check,
        report=lambda _: {
            **digits.accuracy(found.npu), SAME.name: found.agreement(), ON_DEVICE.name: found.share(),
            COMPILE.name: seconds,
        },
        size_bytes=found.size_bytes,
        notes={"provider": session.get_providers()[0], **found.notes("onnxruntime-qnn")},
    )  # fmt: skip


@benchmark(
    axes={"place": ("cpu", "npu")},
    baseline={"place": "cpu"},
    metrics=(*digits.METRICS, COMPILE),
    requires=("numpy", "openvino", "nncf", "onnx", "device:openvino:NPU"),
    profiles=("full",),
)
def openvino_npu(device: Any, place: str) -> Work:
    """The digits CNN in int8 in OpenVINO, one image: does the NPU pay over the CPU?"""
    numpy = need("numpy", SUITES)
    core = need("openvino", SUITES).Core()
    made = nncf_int8()
    images, _ = digits.test_images()
    start = time.perf_counter()
    compiled = core.compile_model(str(made / "model.xml"), place.upper(), {"PERFORMANCE_HINT": "LATENCY"})
    seconds = time.perf_counter() - start
    ran = [str(name) for name in compiled.get_property("EXECUTION_DEVICES")]
    if ran != [place.upper()]:
        raise RuntimeError(f"OpenVINO placed the network on {', '.join(ran)} instead of the {place.upper()}")
    request = compiled.create_infer_request()

    def logits() -> Any:
        return numpy.concatenate([request.infer({0: image[None]})[0] for image in images])

    return Work(
        run=lambda: request.infer({0: images[:1]})[0],
        check=lambda _: reads(digits.accuracy(logits())["accuracy"]),
        report=lambda _: {**digits.accuracy(logits()), COMPILE.name: seconds},
        size_bytes=(made / "model.bin").stat().st_size,
        notes={"provider": f"OpenVINO {ran[0]}", "model": "digits CNN", **build_notes(made)},
    )


def on_cpu(threads: int) -> Work:
    """The int8 network in ONNX Runtime on the CPU, which is what the NPUs are held against."""
    numpy = need("numpy", SUITES)
    made = int8()
    images, _ = digits.test_images()
    start = time.perf_counter()
    session = ort_session(made / MODEL, threads)
    seconds = time.perf_counter() - start
    first = images[:1]

    def report(_: Any) -> dict[str, Any]:
        logits = numpy.concatenate([session.run(None, {"input": image[None]})[0] for image in images])
        return {
            **digits.accuracy(logits), SAME.name: Items([1] * len(images)), ON_DEVICE.name: 1.0, COMPILE.name: seconds
        }  # fmt: skip

    return Work(
        run=lambda: session.run(None, {"input": first})[0],
        check=lambda _: reads(report(None)["accuracy"]),
        report=report,
        size_bytes=(made / MODEL).stat().st_size,
        notes=ort_notes("digits CNN", made, made / MODEL),
        kind="real",
    )


def reads(right: Items) -> bool:
    """Whether nearly all digits are read: quantized ranges that are wrong leave about every tenth."""
    return sum(right) >= 0.9 * len(right)


def int8() -> Artifact:
    """MODEL: the network in QDQ form for one image, activations uint8, weights int8: what every NPU tool reads."""
    source = digits.graph()

    def build(folder: Path) -> None:
        onnx = need("onnx", SUITES)
        quantization = need("onnxruntime.quantization", SUITES)
        tools = need("onnxruntime.tools.onnx_model_utils", SUITES)
        network = onnx.load(str(source / digits.MODEL))
        tools.make_dim_param_fixed(network.graph, "batch", 1)  # QNN leaves what has a free batch to the CPU
        tools.fix_output_shapes(network)
        with tempfile.TemporaryDirectory() as scratch:
            fixed, folded = Path(scratch) / "fixed.onnx", Path(scratch) / "folded.onnx"
            onnx.save(network, str(fixed))
            ort_session(fixed, 1, "basic", save=folded)  # normalisation becomes part of the convolutions
            quantization.quantize_static(
                str(folded), str(folder / MODEL), _reader(quantization.CalibrationDataReader),
                quant_format=quantization.QuantFormat.QDQ, activation_type=quantization.QuantType.QUInt8,
                weight_type=quantization.QuantType.QInt8,
            )  # fmt: skip

    return artifact(
        "digits-int8-qdq", build, sources=[HERE], packages=["onnx", "onnxruntime"],
        inputs={"network": source.folder.name},
    )  # fmt: skip


def _reader(base: type) -> Any:
    rows = iter([{"input": image[None]} for image in digits.images()["train_images"][:CALIBRATION]])

    class Reader(base):  # type: ignore[misc, valid-type]
        def get_next(self) -> Any:
            return next(rows, None)

    return Reader()


def nncf_int8() -> Artifact:
    """`model.xml` and `model.bin`: the network quantized by NNCF, for one image."""
    source = digits.graph()

    def build(folder: Path) -> None:
        openvino, nncf = need("openvino", SUITES), need("nncf", SUITES)
        network = openvino.Core().read_model(str(source / digits.MODEL))
        network.reshape([1, *digits.SHAPE])
        images = [image[None] for image in digits.images()["train_images"][:CALIBRATION]]
        quantized = nncf.quantize(network, nncf.Dataset(images), subset_size=CALIBRATION)
        openvino.save_model(quantized, str(folder / "model.xml"))

    return artifact(
        "digits-nncf-int8", build, sources=[HERE], packages=["nncf", "openvino"], inputs={"network": source.folder.name}
    )


def hexagon(count: int | None = None) -> Compiled:
    """The int8 network on Qualcomm's HTP, for the first `count` test images; null: all. Raises Skip."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        raise Skip("Qualcomm's emulator is for x86-64; a device answers in npu.qnn")
    source, program = int8(), VENDORS / "qnn.py"
    environments.interpreter("qnn")

    def build(folder: Path) -> None:
        _vendor("qnn", program, folder, {MODEL: source / MODEL}, "context.onnx", [], count)

    made = artifact(
        "digits-hexagon", build, sources=[HERE, program], packages=["onnxruntime"],
        inputs={"network": source.folder.name, "environment": _identity("qnn"), "count": str(count)},
    )  # fmt: skip
    return _compiled(made, "context.onnx")


def ethos_u(chip: str, count: int | None = None) -> Compiled:
    """The network quantized by Arm's rules and compiled for an Ethos-U, as `hexagon`."""
    source, program = exported(), VENDORS / "ethos_u.py"
    environments.interpreter("ethos-u")

    def build(folder: Path) -> None:
        files = {"network.pt2": source / "network.pt2"}
        _vendor("ethos-u", program, folder, files, "program.bin", [CHIPS[chip]], count)

    made = artifact(
        f"digits-{CHIPS[chip]}", build, sources=[HERE, program], packages=["torch", "torchao"],
        inputs={"network": source.folder.name, "environment": _identity("ethos-u"), "count": str(count)},
    )  # fmt: skip
    return _compiled(made, "program.bin")


def exported() -> Artifact:
    """`network.pt2`: the fp32 network as torch.export writes it, for one image."""

    def build(folder: Path) -> None:
        torch = need("torch", TORCH)
        program = torch.export.export(digits.module(), (torch.zeros(1, *digits.SHAPE),))
        torch.export.save(program, folder / "network.pt2")

    return artifact(
        "digits-exported", build, sources=[HERE], packages=["torch"], inputs={"weights": digits.trained().folder.name}
    )


def _vendor(
    name: str, program: Path, folder: Path, files: Mapping[str, Path], product: str, words: list[str], count: int | None
) -> None:
    """Run a vendor's program on the files and the images; keep what it leaves in `folder`."""
    numpy = need("numpy", SUITES)
    data = digits.images()
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        for file, source in files.items():
            (place / file).write_bytes(source.read_bytes())
        numpy.savez(
            place / "images.npz", calibration=data["train_images"][:CALIBRATION], test=data["test_images"][:count]
        )
        environments.run(name, program, [place, *words])
        for file in (ANSWERS, FACTS, product):
            (folder / file).write_bytes((place / file).read_bytes())


def _identity(name: str) -> str:
    return environments.folder_of(name).name


def _compiled(made: Artifact, product: str) -> Compiled:
    numpy = need("numpy", SUITES)
    with numpy.load(made / ANSWERS) as stored:
        answers = dict(stored)
    return Compiled(
        npu=answers["npu"], cpu=answers["cpu"], facts=json.loads((made / FACTS).read_text(encoding="utf-8")),
        size_bytes=(made / product).stat().st_size, made=made,
    )  # fmt: skip
