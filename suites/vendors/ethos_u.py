"""Compile a network for Arm's Ethos-U and compute its answers as the NPU would: `ethos_u.py FOLDER CHIP`.

FOLDER holds `network.pt2` (an exported program for one image) and `images.npz` (`calibration` and `test`, float32).
Left in it: `answers.npz` (`cpu`: the int8 network of Arm's quantizer, computed by PyTorch; `npu`: the compiled graph,
computed in integers by the TOSA reference model, Arm's definition of the operators), `program.bin` (its commands and
weights) and `facts.json`.
Runs where executorch with its extra ethos-u is installed.
"""

from __future__ import annotations

import csv
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy
import torch
import tosa_reference_model
from executorch.backends.arm.ethosu import EthosUCompileSpec, EthosUPartitioner
from executorch.backends.arm.quantizer import EthosUQuantizer, get_symmetric_quantization_config
from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

BORDER = ("quantize_per_tensor", "dequantize_per_tensor", "getitem", "executorch_call_delegate")
"""Functions of the program that are no operators of the network: they carry values to the NPU and back."""


def quantized(network: torch.fx.GraphModule, spec: EthosUCompileSpec, calibration: torch.Tensor) -> Any:
    """The int8 network by Arm's rules: symmetric, weights by channel."""
    quantizer = EthosUQuantizer(spec)
    quantizer.set_global(get_symmetric_quantization_config())
    prepared = prepare_pt2e(network, quantizer)
    for image in calibration:
        prepared(image[None])
    return convert_pt2e(prepared)


def compiled(network: Any, spec: EthosUCompileSpec, image: torch.Tensor) -> Any:
    """The program with what the NPU computes as one delegate."""
    return to_edge_transform_and_lower(
        torch.export.export(network, (image,)),
        partitioner=[EthosUPartitioner(spec)],
        compile_config=EdgeCompileConfig(_check_ir_validity=False),
    )


def borders(program: Any) -> dict[str, tuple[float, int]]:
    """Scale and zero point of the values that go to the NPU (`quantize`) and come back (`dequantize`)."""
    found = {}
    for node in program.exported_program().graph.nodes:
        for name in ("dequantize", "quantize"):
            if f".{name}_per_tensor" in str(node.target) or f"_{name}_per_tensor" in str(node.target):
                found[name] = (float(node.args[1]), int(node.args[2]))
                break
    return found


def left_over(program: Any) -> list[str]:
    """Operators of the network that stayed on the CPU."""
    names = [str(node.target) for node in program.exported_program().graph.nodes if node.op == "call_function"]
    return [name for name in names if not any(border in name for border in BORDER)]


def integers(graph: bytes, images: Any, border: dict[str, tuple[float, int]]) -> Any:
    """Logits of the compiled graph, computed in integers by the reference model."""
    scale, zero = border["quantize"]
    out_scale, out_zero = border["dequantize"]
    answers = []
    for image in images:
        steps = numpy.clip(numpy.rint(image[None] / scale) + zero, -128, 127).astype(numpy.int8)
        outputs, status = tosa_reference_model.run(graph, [steps], verbosity="LOW")
        if status != tosa_reference_model.GraphStatus.TOSA_VALID:
            raise RuntimeError(f"the reference model says {status}")
        answers.append((outputs[0].astype(numpy.float32).ravel() - out_zero) * out_scale)
    return numpy.stack(answers)


def payload(folder: Path) -> bytes:
    """Commands and encoded weights: what the NPU is given. The file around them names folders and people's paths."""
    with numpy.load(next(folder.rglob("*_vela.npz"))) as stored:
        return bytes(stored["cmd_data"].tobytes() + stored["weight_data"].tobytes())


def facts(folder: Path) -> dict[str, Any]:
    """What Vela reckons: cycles of one image, bytes of SRAM, operators by where they run."""
    with next(folder.rglob("*summary*.csv")).open(newline="") as stream:
        row = next(csv.DictReader(stream))
    with next(folder.rglob("*per-layer*.csv")).open(newline="") as stream:
        targets = [layer["Target"] for layer in csv.DictReader(stream)]
    return {
        "cycles": int(row["cycles_total"]),
        "sram_bytes": round(float(row["sram_memory_used"]) * 1024),
        "macs": int(row["nn_macs"]),
        "clock_hz": float(row["core_clock"]),
        "operators": {"npu": targets.count("NPU"), "cpu": len(targets) - targets.count("NPU")},
    }


def main(place: str, chip: str) -> None:
    """See the module's text."""
    folder = Path(place)
    data = numpy.load(folder / "images.npz")
    calibration, test = (torch.from_numpy(data[name]) for name in ("calibration", "test"))
    network = torch.export.load(folder / "network.pt2").module(check_guards=False)
    specs = [EthosUCompileSpec(target=chip, extra_flags=["--verbose-performance"]) for _ in range(2)]
    for number, spec in enumerate(specs):
        spec.dump_intermediate_artifacts_to(str(folder / f"vela{number}"))
    with torch.no_grad():
        network = quantized(network, specs[0], calibration)
        cpu = torch.cat([network(image[None]) for image in test]).numpy()
        half = time.perf_counter()
        program = compiled(network, specs[0], test[:1])
        left, border = left_over(program), borders(program)
        seconds = time.perf_counter() - half
        compiled(network, specs[1], test[:1])
    first, second = folder / "vela0", folder / "vela1"
    graph = next(first.glob("*_tag*.tosa")).read_bytes()
    npu = integers(graph, test.numpy(), border)
    numpy.savez(folder / "answers.npz", cpu=cpu, npu=npu)
    (folder / "program.bin").write_bytes(payload(first))
    same = payload(first) == payload(second) and facts(first) == facts(second)
    found = {**facts(first), "compile_seconds": round(seconds, 3), "reproduced": same}
    found["operators"]["cpu"] += len(left)
    (folder / "facts.json").write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main(*sys.argv[1:])
