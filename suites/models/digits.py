"""A small CNN that reads handwritten digits: trained here, in seconds and always the same way.

Data: the 1797 images of 8 × 8 pixels that come with scikit-learn (the test part of the UCI set
"Optical Recognition of Handwritten Digits", E. Alpaydin and C. Kaynak 1998, CC BY 4.0). The last
TESTS of a fixed shuffle are held out; accuracy is judged by them. Importing this module needs
neither torch nor scikit-learn, and a launch whose artifacts are cached needs neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.api import HIGHER, Items, Metric
from suites.artifacts import Artifact, artifact
from suites.imports import need

INSTALL = "pip install 'inference-bench[suites]'"
TORCH = "pip install 'inference-bench[torch]'"

SHAPE = (1, 8, 8)
"""Channels, height, width of an image; values 0…1."""

CLASSES = 10
TESTS = 500
SHUFFLE_SEED = 20250

WIDTHS = (32, 64)
"""Channels of the first convolution, and of the second and third."""

EPOCHS = 8
SEED = 0

MODEL = "model.onnx"
WEIGHTS = "weights.npz"
IMAGES = "images.npz"
HERE = Path(__file__)
NETWORK = HERE.with_name("digits_torch.py")
EXPORT = [HERE.with_name("torch_onnx.py"), HERE.with_name("onnx_graph.py")]

METRICS = (
    Metric("accuracy", unit="1", better=HIGHER, help=f"digits read rightly, of {TESTS} held out"),
    Metric("agreement", unit="1", better=HIGHER, help=f"same digit as the fp32 network, of {TESTS} held out"),
)


def images() -> dict[str, Any]:
    """`train_images` and `test_images` (n, *SHAPE) float32, `train_labels` and `test_labels` (n,) int64."""
    numpy = need("numpy", INSTALL)

    def build(folder: Path) -> None:
        data = need("sklearn.datasets", INSTALL).load_digits()
        order = numpy.random.RandomState(SHUFFLE_SEED).permutation(len(data.target))
        pixels = (data.data[order] / 16).astype("float32").reshape(-1, *SHAPE)
        labels = data.target[order].astype("int64")
        numpy.savez(
            folder / IMAGES, train_images=pixels[:-TESTS], train_labels=labels[:-TESTS],
            test_images=pixels[-TESTS:], test_labels=labels[-TESTS:],
        )  # fmt: skip

    made = artifact("digits-images", build, sources=[HERE], packages=["scikit-learn"])
    with numpy.load(made / IMAGES) as stored:
        return dict(stored)


def test_images() -> tuple[Any, Any]:
    """The held-out images (TESTS, *SHAPE) float32 and their labels (TESTS,) int64."""
    found = images()
    return found["test_images"], found["test_labels"]


def trained() -> Artifact:
    """WEIGHTS: the network's parameters by name, trained on one thread with a fixed seed."""

    def build(folder: Path) -> None:
        numpy = need("numpy", INSTALL)
        need("torch", TORCH)
        from suites.models import digits_torch

        network = digits_torch.train(digits_torch.network(WIDTHS, SEED), epochs=EPOCHS, seed=SEED)
        numpy.savez(folder / WEIGHTS, **{name: tensor.numpy() for name, tensor in network.state_dict().items()})

    return artifact(
        "digits-trained", build, sources=[HERE, NETWORK], packages=["scikit-learn", "torch"], cpu=True
    )  # fmt: skip


def module() -> Any:
    """The trained network as a PyTorch module in evaluation mode: images (batch, *SHAPE) → logits (batch, CLASSES)."""
    numpy = need("numpy", INSTALL)
    torch = need("torch", TORCH)
    from suites.models import digits_torch

    network = digits_torch.network(WIDTHS, SEED)
    with numpy.load(trained() / WEIGHTS) as stored:
        network.load_state_dict({name: torch.from_numpy(array) for name, array in stored.items()})
    return network.eval()


def graph() -> Artifact:
    """MODEL: the trained network as a textbook ONNX graph, `input` (batch, *SHAPE) → `output` (batch, CLASSES)."""

    def build(folder: Path) -> None:
        need("onnx", INSTALL)
        network = module()
        from suites.models import torch_onnx

        torch_onnx.save(network, folder / MODEL, SHAPE, "digits")

    return artifact(
        "digits-fp32", build, sources=[HERE, NETWORK, *EXPORT], packages=["onnx", "torch"],
        inputs={"weights": trained().folder.name},
    )  # fmt: skip


def reference() -> Any:
    """Logits (TESTS, CLASSES) float32 of the trained fp32 network in PyTorch for the held-out images."""
    numpy = need("numpy", INSTALL)

    def build(folder: Path) -> None:
        torch = need("torch", TORCH)
        with torch.inference_mode():
            numpy.save(folder / "logits.npy", module()(torch.from_numpy(test_images()[0])).numpy())

    made = artifact(
        "digits-reference", build, sources=[HERE, NETWORK], packages=["scikit-learn", "torch"],
        inputs={"weights": trained().folder.name}, cpu=True,
    )  # fmt: skip
    return numpy.load(made / "logits.npy")


def accuracy(logits: Any) -> Mapping[str, Items]:
    """Values of METRICS for the logits (TESTS, CLASSES) of the held-out images."""
    answers = logits.argmax(axis=1)
    return {
        "accuracy": Items(answers == test_images()[1]),
        "agreement": Items(answers == reference().argmax(axis=1)),
    }
