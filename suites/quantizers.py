"""Networks made smaller: one function for each way, each an artifact. Calibration data are arrays by input name."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from suites.artifacts import Artifact, artifact
from suites.imports import need

SUITES = "pip install 'inference-bench[suites]'"
HERE = Path(__file__)

ONNX = "model.onnx"
"""File of an ONNX artifact."""

IR = "model.xml"
"""File of an OpenVINO artifact; its weights lie beside it as `model.bin`."""

Inputs = Mapping[str, Any]
Calibration = Callable[[], Sequence[Inputs]]


def ort_dynamic(source: Artifact, name: str, *, per_channel: bool, kinds: Sequence[str] | None = None) -> Artifact:
    """ONNX with int8 weights (embeddings included); activations are quantized while it runs.

    kinds: operators that are quantized, all known ones by default.
    """

    def build(folder: Path) -> None:
        tools = need("onnxruntime.quantization", SUITES)
        with _quiet():  # it recommends a preparation that these graphs do not need
            tools.quantize_dynamic(
                str(source / ONNX), str(folder / ONNX), per_channel=per_channel, weight_type=tools.QuantType.QInt8,
                op_types_to_quantize=list(kinds) if kinds else None,
                # Attention multiplies two activations: quantizing those costs accuracy and gains nothing.
                extra_options={"MatMulConstBOnly": True},
            )  # fmt: skip

    return artifact(
        f"{name}-int8-{'channel' if per_channel else 'tensor'}", build, sources=[HERE],
        packages=["onnx", "onnxruntime"],
        inputs={"network": source.folder.name, "kinds": ",".join(kinds or ())},
    )  # fmt: skip


def ort_static(
    source: Artifact, name: str, calibration: Calibration, *, per_channel: bool = True,
    kinds: Sequence[str] | None = None, made_by: Sequence[Path] = (),
) -> Artifact:  # fmt: skip
    """ONNX with quantize and dequantize nodes around its operators; ranges are the extremes of the calibration data.

    made_by: files of the code that makes those data.
    """

    def build(folder: Path) -> None:
        tools = need("onnxruntime.quantization", SUITES)
        prepare = need("onnxruntime.quantization.shape_inference", SUITES).quant_pre_process

        class Rows(tools.CalibrationDataReader):  # type: ignore[misc]
            def __init__(self) -> None:
                self.rows = iter(calibration())

            def get_next(self) -> dict[str, Any] | None:
                row = next(self.rows, None)
                return None if row is None else dict(row)

        prepared = folder / "prepared.onnx"  # convolutions must have taken in their normalisation first
        with _quiet():
            prepare(str(source / ONNX), str(prepared), skip_symbolic_shape=True)
            tools.quantize_static(
                str(prepared), str(folder / ONNX), Rows(), quant_format=tools.QuantFormat.QDQ, per_channel=per_channel,
                activation_type=tools.QuantType.QUInt8, weight_type=tools.QuantType.QInt8,
                op_types_to_quantize=list(kinds) if kinds else None, extra_options={"MatMulConstBOnly": True},
            )  # fmt: skip
        prepared.unlink()

    return artifact(
        f"{name}-int8-static", build, sources=[HERE, *made_by], packages=["onnx", "onnxruntime"], cpu=True,
        inputs={"network": source.folder.name, "channel": str(per_channel), "kinds": ",".join(kinds or ())},
    )  # fmt: skip


def nncf_static(
    source: Artifact, name: str, calibration: Calibration, *, transformer: bool = False, made_by: Sequence[Path] = ()
) -> Artifact:
    """OpenVINO IR with int8 weights and activations, by NNCF's post-training quantization.

    transformer: smooth the outliers of activations into the weights first (Xiao et al. 2023).
    """

    def build(folder: Path) -> None:
        nncf, core, model = _opened(source)
        rows = list(calibration())
        with _quiet():
            made = nncf.quantize(
                model, nncf.Dataset(rows, dict), subset_size=len(rows),
                model_type=nncf.ModelType.TRANSFORMER if transformer else None,
            )  # fmt: skip
        core.save_model(made, str(folder / IR), compress_to_fp16=False)

    return artifact(
        f"{name}-nncf-int8", build, sources=[HERE, *made_by], packages=["nncf", "openvino"], cpu=True,
        inputs={"network": source.folder.name, "transformer": str(transformer)},
    )  # fmt: skip


def nncf_weights(source: Artifact, name: str) -> Artifact:
    """OpenVINO IR with int8 weights; activations stay float."""

    def build(folder: Path) -> None:
        nncf, core, model = _opened(source)
        with _quiet():
            made = nncf.compress_weights(model, mode=nncf.CompressWeightsMode.INT8_ASYM)
        core.save_model(made, str(folder / IR), compress_to_fp16=False)

    return artifact(
        f"{name}-nncf-weights", build, sources=[HERE], packages=["nncf", "openvino"],
        inputs={"network": source.folder.name},
    )  # fmt: skip


def ir_bytes(made: Artifact) -> int:
    """Size of an OpenVINO artifact's network: structure and weights."""
    return (made / IR).stat().st_size + (made / IR).with_suffix(".bin").stat().st_size


def _opened(source: Artifact) -> tuple[Any, Any, Any]:
    with _quiet():  # it greets on import
        nncf = need("nncf", SUITES)
    openvino = need("openvino", SUITES)
    nncf.set_log_level(logging.ERROR)
    return nncf, openvino, openvino.Core().read_model(str(source / ONNX))


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """No log lines below an error, and no progress bars: standard output belongs to the harness."""
    logging.disable(logging.WARNING)
    try:
        with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
            yield
    finally:
        logging.disable(logging.NOTSET)
