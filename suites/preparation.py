"""JPEG bytes to a network's input in several ways: decode, shrink to 256 pixels, cut out 224, normalise."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from typing import Any

from bench.api import Wrong
from suites.imports import need

INSTALL = "pip install 'inference-bench[suites]'"

SHORT, SIDE = 256, 224
"""Pixels of the shorter side after shrinking, and of the square that is cut out of the middle."""

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Of ImageNet's channels."""

LEAST_DB = 30.0
"""Least PSNR to the naive way. Another filter gives about 50 dB; swapped colours and a moved cut give under 30."""

MOST_DB = 100.0
"""What identical pictures are reported with."""

Prepare = Callable[[bytes], Any]
"""JPEG bytes → (3, SIDE, SIDE) float32, red first."""


def pillow(blob: bytes) -> Any:
    """As most tutorials have it: the whole picture decoded, double precision throughout."""
    numpy, image = need("numpy", INSTALL), need("PIL.Image", INSTALL)
    picture = image.open(io.BytesIO(blob)).convert("RGB")
    pixels = numpy.asarray(_shrunk(picture, image)) / 255.0
    return ((pixels - numpy.array(MEAN)) / numpy.array(DEVIATION)).transpose(2, 0, 1).astype("float32")


def pillow_draft(blob: bytes) -> Any:
    """The decoder itself gives a half, a quarter or an eighth of the size, by leaving out high frequencies."""
    numpy, image = need("numpy", INSTALL), need("PIL.Image", INSTALL)
    picture = image.open(io.BytesIO(blob))
    picture.draft("RGB", (SHORT, SHORT))
    return normal(numpy.asarray(_shrunk(picture.convert("RGB"), image)))


def opencv(blob: bytes) -> Any:
    """Another library, the whole picture decoded."""
    return _opencv(blob, 1)


def opencv_reduced(blob: bytes) -> Any:
    """Another library, and its decoder gives the smallest size that is large enough."""
    width, height = dimensions(blob)
    return _opencv(blob, next(k for k in (8, 4, 2, 1) if min(width, height) // k >= SHORT or k == 1))


WAYS: dict[str, Prepare] = {
    "pillow": pillow,
    "pillow_draft": pillow_draft,
    "opencv": opencv,
    "opencv_reduced": opencv_reduced,
}


def _shrunk(picture: Any, image: Any) -> Any:
    scale = SHORT / min(picture.size)
    width, height = (round(side * scale) for side in picture.size)
    left, top = (width - SIDE) // 2, (height - SIDE) // 2
    small = picture.resize((width, height), image.Resampling.BILINEAR)
    return small.crop((left, top, left + SIDE, top + SIDE))


def _opencv(blob: bytes, reduction: int) -> Any:
    cv2, numpy = need("cv2", INSTALL), need("numpy", INSTALL)
    flags = cv2.IMREAD_COLOR if reduction == 1 else getattr(cv2, f"IMREAD_REDUCED_COLOR_{reduction}")
    pixels = cv2.imdecode(numpy.frombuffer(blob, "uint8"), flags)
    height, width = pixels.shape[:2]
    scale = SHORT / min(width, height)
    # Bilinear filtering of OpenCV looks at four pixels whatever the scale: INTER_AREA takes all of them.
    small = cv2.resize(pixels, (round(width * scale), round(height * scale)), interpolation=cv2.INTER_AREA)
    top, left = (small.shape[0] - SIDE) // 2, (small.shape[1] - SIDE) // 2
    return normal(small[top : top + SIDE, left : left + SIDE, ::-1])


def normal(pixels: Any) -> Any:
    """(SIDE, SIDE, 3) uint8 → (3, SIDE, SIDE) float32, one multiplication and one addition a pixel."""
    numpy = need("numpy", INSTALL)
    deviation = numpy.array(DEVIATION, "float32")[:, None, None]
    planes = numpy.multiply(pixels.transpose(2, 0, 1), 1 / (255 * deviation), dtype="float32", order="C")
    planes -= numpy.array(MEAN, "float32")[:, None, None] / deviation
    return planes


def dimensions(blob: bytes) -> tuple[int, int]:
    """Width and height out of a JPEG's frame header (ITU-T T.81, B.2.2), without decoding."""
    place = 2
    while True:
        marker, length = blob[place + 1], int.from_bytes(blob[place + 2 : place + 4], "big")
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height = int.from_bytes(blob[place + 5 : place + 7], "big")
            return int.from_bytes(blob[place + 7 : place + 9], "big"), height
        place += 2 + length


def psnr(found: Any, expected: Any) -> float:
    """Peak signal-to-noise ratio in dB of two prepared pictures, over grey levels 0…1; at most MOST_DB."""
    numpy = need("numpy", INSTALL)
    apart = (found.astype("float64") - expected) * numpy.array(DEVIATION)[:, None, None]
    noise = float((apart**2).mean())
    if noise == 0:
        return MOST_DB
    decibel = -10 * math.log10(noise)
    return MOST_DB if decibel > MOST_DB else decibel  # what is no number stays none: min() would make it the best


def alike(found: Any, expected: Any) -> bool:
    """Raises Wrong when a prepared picture has another shape or type, or is under LEAST_DB to the expected one."""
    if found.shape != expected.shape or found.dtype != expected.dtype:
        raise Wrong(f"prepared as {found.dtype} {found.shape}, not {expected.dtype} {expected.shape}")
    decibel = psnr(found, expected)
    if not decibel >= LEAST_DB:
        raise Wrong(f"{decibel:.1f} dB to the naive way, under {LEAST_DB:.0f}")
    return True
