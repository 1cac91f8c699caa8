"""ResNet-50 and MobileNetV3-Large with random weights that still tell images apart, and images to tell apart.

Random weights serve speed and the error of an arithmetic, never a task's accuracy. Plain random
initialisation would not serve even the second: its answers hardly depend on the image, so that any
damage looks like a cosine of 1. Here every batch normalisation takes its mean and variance from
images, and answers are compared after the mean over the images is taken off (`likeness`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from suites.artifacts import Artifact, artifact
from suites.imports import need

SUITES = "pip install 'inference-bench[suites]'"
TORCH = "pip install 'inference-bench[torch]'"

NETWORKS = ("resnet50", "mobilenet_v3")
SHAPE = (3, 224, 224)
IMAGES = 16
"""Images by which answers are compared; the first is the timed one."""

SETTLING = 12
"""Images, others than those, from which batch normalisation takes its statistics."""

MODEL = "model.onnx"
WEIGHTS = "weights.npz"
HERE = Path(__file__)
MODULES = [HERE, HERE.with_name("vision_torch.py")]
EXPORT = [HERE.with_name("torch_onnx.py"), HERE.with_name("onnx_graph.py")]


def images(count: int = IMAGES, first: int = 0, side: int = SHAPE[1]) -> Any:
    """Images (count, 3, side, side) float32 of mean 0 and deviation 1, always the same.

    Noise of five scales: like photographs, they have most of their energy in coarse structure.
    """
    numpy = need("numpy", SUITES)
    found = numpy.zeros((count, 3, side, side), "float32")
    for index, image in enumerate(found):
        random = numpy.random.default_rng(1000 + first + index)
        for octave in range(5):
            cells = 7 << octave
            rough = random.standard_normal((3, cells, cells), dtype="float32") / numpy.float32(octave + 1)
            places = numpy.arange(side) * cells // side
            image += rough[:, places][:, :, places]
        image -= image.mean()
        image /= image.std()
    return found


def settled(name: str) -> Artifact:
    """WEIGHTS: the parameters by name."""

    def build(folder: Path) -> None:
        numpy = need("numpy", SUITES)
        torch = need("torch", TORCH)
        from suites.models import vision_torch

        network = vision_torch.network(name)
        vision_torch.settle(network, torch.from_numpy(images(SETTLING, first=IMAGES)))
        numpy.savez(folder / WEIGHTS, **{key: tensor.numpy() for key, tensor in network.state_dict().items()})

    return artifact(f"{name}-settled", build, sources=MODULES, packages=["torch"], cpu=True)


def module(name: str) -> Any:
    """The network in PyTorch, evaluation mode: images (batch, *SHAPE) → logits (batch, 1000)."""
    numpy = need("numpy", SUITES)
    torch = need("torch", TORCH)
    from suites.models import vision_torch

    with torch.device("meta"):  # no random values to throw away
        network = vision_torch.NETWORKS[name]()
    with numpy.load(settled(name) / WEIGHTS) as stored:
        state = {key: torch.from_numpy(array) for key, array in stored.items()}
    network.load_state_dict(state, assign=True)
    return network.eval().requires_grad_(False)


def graph(name: str) -> Artifact:
    """MODEL: the network as a textbook ONNX graph, `input` (batch, *SHAPE) → `output` (batch, 1000)."""

    def build(folder: Path) -> None:
        need("onnx", SUITES)
        network = module(name)
        from suites.models import torch_onnx

        torch_onnx.save(network, folder / MODEL, SHAPE, name)

    return artifact(
        f"{name}-fp32", build, sources=[*MODULES, *EXPORT], packages=["onnx", "torch"],
        inputs={"weights": settled(name).folder.name},
    )  # fmt: skip


def reference(name: str) -> Any:
    """Logits (IMAGES, 1000) of the fp32 network in PyTorch for `images()`."""
    numpy = need("numpy", SUITES)

    def build(folder: Path) -> None:
        torch = need("torch", TORCH)
        network = module(name)
        with torch.inference_mode():
            rows = [network(torch.from_numpy(image[None])).numpy() for image in images()]
        numpy.save(folder / "logits.npy", numpy.concatenate(rows))

    made = artifact(
        f"{name}-reference", build, sources=MODULES, packages=["torch"], inputs={"weights": settled(name).folder.name},
        cpu=True,
    )  # fmt: skip
    return numpy.load(made / "logits.npy")


def likeness(found: Any, expected: Any, mean: Any) -> float:
    """Mean cosine of answers (n, classes) with the expected ones after `mean` (classes,), over images, is taken off.

    What all images have in common says nothing of whether a network still tells them apart.
    """
    numpy = need("numpy", SUITES)
    ours, theirs = found - mean, expected - mean
    norms = numpy.linalg.norm(ours, axis=1) * numpy.linalg.norm(theirs, axis=1)
    return float(((ours * theirs).sum(axis=1) / norms).mean())
