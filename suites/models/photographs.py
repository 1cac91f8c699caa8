"""Photograph-like JPEG images, drawn from a seed: smooth areas, edges and fine grain, as cameras' files have them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from suites.artifacts import Artifact, artifact
from suites.imports import need

INSTALL = "pip install 'inference-bench[suites]'"

SIZES = {1.5: (1500, 1000), 6.0: (3000, 2000)}
"""Megapixels → width and height."""

QUALITY = 90
COUNT = 8
HERE = Path(__file__)


def files(megapixels: float) -> Artifact:
    """COUNT images `0.jpg`, `1.jpg`, …"""

    def build(folder: Path) -> None:
        image = need("PIL.Image", INSTALL)
        for index in range(COUNT):
            pixels = draw(index, *SIZES[megapixels])
            image.fromarray(pixels).save(folder / f"{index}.jpg", quality=QUALITY, subsampling="4:2:0")

    return artifact(
        "photographs", build, sources=[HERE], packages=["numpy", "pillow"], inputs={"megapixels": str(megapixels)}
    )  # fmt: skip


def blobs(megapixels: float) -> list[bytes]:
    """The images' bytes, as they come over a wire."""
    made = files(megapixels)
    return [(made / f"{index}.jpg").read_bytes() for index in range(COUNT)]


def draw(seed: int, width: int, height: int) -> Any:
    """One picture (height, width, 3) uint8: noise whose energy falls with its fineness, and discs with sharp edges."""
    numpy, image = need("numpy", INSTALL), need("PIL.Image", INSTALL)
    random = numpy.random.default_rng(seed)
    picture = numpy.full((height, width, 3), 128, "float32")
    for octave in range(2, 9):
        cells = (3, 2 << octave, 3 << octave)
        for channel, rough in enumerate(random.standard_normal(cells, dtype="float32")):
            smooth = image.fromarray(rough).resize((width, height), image.Resampling.BICUBIC)
            picture[:, :, channel] += 60 / octave**1.5 * numpy.asarray(smooth)
    rows, columns = numpy.ogrid[:height, :width]
    for _ in range(12):
        x, y, radius = random.integers((0, 0, height // 40), (width, height, height // 6))
        inside = (columns - x) ** 2 + (rows - y) ** 2 < radius**2
        picture[inside] += random.normal(0, 50, 3).astype("float32")
    picture += random.standard_normal(picture.shape, dtype="float32") * 3  # the grain of a sensor
    return numpy.clip(picture, 0, 255).astype("uint8")
