"""Compile a graph for Qualcomm's Hexagon NPU and let it, or its emulator, answer: `qnn.py FOLDER`.

FOLDER holds `model.onnx` (int8, QDQ form, every shape fixed; input `input`, one image) and `images.npz` (`test`).
Left in it: `answers.npz` (`cpu`: by ONNX Runtime's CPU provider; `npu`), `context.onnx` (the compiled graph) and
`facts.json`. On x86-64 the HTP library is Qualcomm's emulator of the NPU, exact but slow; on a Snapdragon the device.
Runs where onnxruntime and onnxruntime-qnn are installed.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy
import onnxruntime
import onnxruntime_qnn

PROVIDER = "QNNExecutionProvider"


def session(model: Path, where: list[Any], context: Path | None = None) -> tuple[Any, float]:
    """A session on the NPU alone, and the seconds it took to make. `context`: where to leave the compiled graph."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.add_provider_for_devices(where, {"backend_path": onnxruntime_qnn.get_qnn_htp_path()})
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    if context is not None:
        options.add_session_config_entry("ep.context_enable", "1")
        options.add_session_config_entry("ep.context_file_path", str(context))
        options.add_session_config_entry("ep.context_embed_mode", "1")
    start = time.perf_counter()
    made = onnxruntime.InferenceSession(str(model), options)
    if made.get_providers()[0] != PROVIDER:
        raise RuntimeError(f"the session runs on {made.get_providers()[0]}, not on {PROVIDER}")
    return made, time.perf_counter() - start


def devices() -> list[Any]:
    """What Qualcomm's provider can compute on; ONNX Runtime calls the emulator a CPU."""
    onnxruntime.register_execution_provider_library(PROVIDER, onnxruntime_qnn.get_library_path())
    found = [device for device in onnxruntime.get_ep_devices() if device.ep_name == PROVIDER]
    if not found:
        raise RuntimeError("onnxruntime-qnn shows no device")
    return found


def operators(made: Any) -> dict[str, int]:
    """Operators of the session's graph on the NPU, and on whatever else."""
    found = {"npu": 0, "cpu": 0}
    for part in made.get_provider_graph_assignment_info():
        found["npu" if part.ep_name == PROVIDER else "cpu"] += len(part.get_nodes())
    return found


def answers(made: Any, images: Any) -> Any:
    """Logits (images, classes), one image at a time."""
    return numpy.concatenate([made.run(None, {"input": image[None]})[0] for image in images])


def main(place: str) -> None:
    """See the module's text."""
    folder = Path(place)
    images = numpy.load(folder / "images.npz")["test"]
    model, context = folder / "model.onnx", folder / "context.onnx"
    context.unlink(missing_ok=True)
    where = devices()
    npu, compile_seconds = session(model, where, context)
    found = answers(npu, images)
    again, load_seconds = session(context, where)
    cpu = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    numpy.savez(folder / "answers.npz", cpu=answers(cpu, images), npu=found)
    facts = {
        "compile_seconds": round(compile_seconds, 3),
        "load_seconds": round(load_seconds, 3),
        "operators": operators(npu),
        "reproduced": bool(numpy.array_equal(answers(again, images[:8]), found[:8])),
    }
    (folder / "facts.json").write_text(json.dumps(facts, indent=1))


if __name__ == "__main__":
    main(*sys.argv[1:])
