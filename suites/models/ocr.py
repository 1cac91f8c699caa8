"""A text recogniser with trained weights (PP-OCR, from the package rapidocr) and strings drawn for it to read.

Inputs are images (batch, 3, 48, 320) float32 in −1…1; the answer is (batch, places, characters):
shares of each character at each place, read by taking the likeliest, dropping repetitions and
blanks (Graves et al. 2006).
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.api import HIGHER, Items, Metric, Skip
from suites.artifacts import Artifact, artifact, verified
from suites.engines import ort_session
from suites.imports import need

SUITES = "pip install 'inference-bench[suites]'"
PACKAGE = "rapidocr"
FILE = "PP-OCRv6_rec_small.onnx"
SHA256 = "6f327246b50388f3c176ae304bd95767ea6dc0c9ae92153ef8cbe210b3c14884"
INSTALL = "pip install --no-deps rapidocr==3.10.0"

STRINGS = 60
LETTERS = 12
ALPHABET = "abdefghmnqrtyACDEFGHJKLMNPRTUVWXYZ23456789"
"""Without those that look alike: i and l, O and 0 and Q, B and 8, S and 5, and small letters of a capital's shape."""

CALIBRATION = 12
"""Strings, others than those judged, from which a static quantization takes its ranges."""

HEIGHT, WIDTH = 48, 320
REDUCED = (112, 17)
"""Width and height to which a drawn string is reduced before it is enlarged again: a blur."""

NOISE = 35
"""Standard deviation of the noise, in steps of 0…255."""

MODEL = "model.onnx"
HERE = Path(__file__)

METRICS = (
    Metric("exact", unit="1", better=HIGHER, help=f"strings read without a mistake, of {STRINGS}"),
    Metric("agreement", unit="1", better=HIGHER, help=f"same reading as the fp32 network, of {STRINGS}"),
)


def model_file() -> Path:
    """The recogniser's ONNX file, found without importing its package.

    Raises Skip when it is missing or another one than pinned here.
    """
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise Skip(f"the text recogniser is not installed: {INSTALL}")
    file = Path(next(iter(spec.submodule_search_locations))) / "models" / FILE
    if not file.is_file() or not verified(file, SHA256):
        raise Skip(f"{FILE} of {PACKAGE} is not the file these results are for; get it with {INSTALL}")
    return file


def graph() -> Artifact:
    """MODEL: the recogniser with its shapes inferred, as quantization needs it."""

    def build(folder: Path) -> None:
        prepare = need("onnxruntime.quantization.shape_inference", SUITES).quant_pre_process
        prepare(str(model_file()), str(folder / MODEL), skip_symbolic_shape=True)

    return artifact(
        "ocr-fp32", build, sources=[HERE], packages=["onnx", "onnxruntime"], inputs={"model": SHA256}, cpu=True
    )


def drawn(count: int, first: int = 0) -> tuple[list[str], Any]:
    """Strings and their images (count, 3, HEIGHT, WIDTH) float32: blurred, noised, always the same."""
    numpy = need("numpy", SUITES)
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.load_default(30)
    strings, images = [], []
    for index in range(first, first + count):
        random = numpy.random.default_rng(index)
        strings.append("".join(ALPHABET[k] for k in random.integers(0, len(ALPHABET), LETTERS)))
        image = Image.new("RGB", (WIDTH, HEIGHT), "white")
        ImageDraw.Draw(image).text((8, 4), strings[-1], "black", font=font)
        blurred = numpy.asarray(image.resize(REDUCED).resize((WIDTH, HEIGHT)), "float32")
        noised = (blurred + random.normal(0, NOISE, blurred.shape)).clip(0, 255).astype("uint8")
        images.append((noised[:, :, ::-1].astype("float32") / 127.5 - 1).transpose(2, 0, 1))
    return strings, numpy.ascontiguousarray(numpy.stack(images))


def test_strings() -> tuple[list[str], Any]:
    """The STRINGS strings that are judged and their images; the first image is the timed one."""
    numpy = need("numpy", SUITES)

    def build(folder: Path) -> None:
        need("PIL", SUITES)
        strings, images = drawn(STRINGS)
        numpy.savez(folder / "strings.npz", strings=numpy.array(strings), images=images)

    made = artifact("ocr-strings", build, sources=[HERE], packages=["pillow"], inputs={"count": str(STRINGS)})
    with numpy.load(made / "strings.npz") as stored:
        return stored["strings"].tolist(), stored["images"]


@functools.cache
def characters() -> list[str]:
    """Character of every class; the first is the blank."""
    known = ort_session(model_file(), 1, "off").get_modelmeta().custom_metadata_map["character"]
    return ["", *known.splitlines(), " "]


def read(shares: Any) -> str:
    """The string that the network saw, from its answer (1, places, characters)."""
    alphabet, likeliest = characters(), shares[0].argmax(axis=1).tolist()
    kept = (now for before, now in zip([0, *likeliest], likeliest, strict=False) if now != before)
    return "".join(alphabet[k] for k in kept)


def reference() -> tuple[Any, list[str]]:
    """The fp32 network's answer for the first image, and its readings of all."""
    numpy = need("numpy", SUITES)

    def build(folder: Path) -> None:
        session = ort_session(model_file(), 1)
        answers = [session.run(None, {"x": image[None]})[0] for image in test_strings()[1]]
        numpy.savez(folder / "read.npz", first=answers[0], readings=numpy.array([read(answer) for answer in answers]))

    made = artifact(
        "ocr-reference", build, sources=[HERE], packages=["onnxruntime", "pillow"],
        inputs={"model": SHA256, "count": str(STRINGS)}, cpu=True,
    )  # fmt: skip
    with numpy.load(made / "read.npz") as stored:
        return stored["first"], stored["readings"].tolist()


def accuracy(readings: list[str]) -> Mapping[str, Items]:
    """Values of METRICS for the readings of all strings."""
    strings, expected = test_strings()[0], reference()[1]
    return {
        "exact": Items(ours == truth for ours, truth in zip(readings, strings, strict=True)),
        "agreement": Items(ours == theirs for ours, theirs in zip(readings, expected, strict=True)),
    }
