"""Students of the digits CNN, fifty times smaller: trained on the labels alone, and on its teacher's answers too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from suites.artifacts import Artifact, artifact
from suites.imports import need
from suites.models import digits

WIDTHS = (4, 8)
"""Channels of a student: 1,050 parameters; the teacher has 56,714."""

SEEDS = 8
"""Trainings of each kind: one alone differs by chance as much as the two kinds do."""

EPOCHS = 16
TEMPERATURE = 4.0
TEACHER_SHARE = 0.9
"""Of the loss; the rest is the labels' (Hinton et al. 2015)."""

KINDS = ("scratch", "distilled")
ANSWERS = "logits.npy"
MODEL = digits.MODEL
HERE = Path(__file__)


def trained(kind: str) -> Artifact:
    """MODEL: the student of the first seed; ANSWERS (SEEDS, TESTS, CLASSES) of all of them, by PyTorch."""

    def build(folder: Path) -> None:
        numpy = need("numpy", digits.INSTALL)
        torch = need("torch", digits.TORCH)
        need("onnx", digits.INSTALL)
        from suites.models import digits_torch, torch_onnx

        images = torch.from_numpy(digits.test_images()[0])
        loss = distilling(digits.module()) if kind == "distilled" else digits_torch.truth
        answers = []
        for seed in range(SEEDS):
            student = digits_torch.network(WIDTHS, seed)
            digits_torch.train(student, epochs=EPOCHS, seed=seed, loss=loss)
            with torch.inference_mode():
                answers.append(student(images).numpy())
            if seed == 0:
                torch_onnx.save(student, folder / MODEL, digits.SHAPE, f"student-{kind}")
        numpy.save(folder / ANSWERS, numpy.stack(answers))

    return artifact(
        f"digits-student-{kind}", build, sources=[HERE, digits.HERE, digits.NETWORK, *digits.EXPORT],
        packages=["onnx", "scikit-learn", "torch"], inputs={"teacher": digits.trained().folder.name}, cpu=True,
    )  # fmt: skip


def distilling(teacher: Any) -> Any:
    """The loss of a student: divergence from the teacher's softened answers, and a little of the labels."""
    torch = need("torch", digits.TORCH)
    functional = torch.nn.functional

    def loss(logits: Any, images: Any, labels: Any) -> Any:
        with torch.no_grad():
            aim = functional.softmax(teacher(images) / TEMPERATURE, dim=-1)
        soft = functional.kl_div(functional.log_softmax(logits / TEMPERATURE, dim=-1), aim, reduction="batchmean")
        hard = functional.cross_entropy(logits, labels)
        # Softening divides gradients by T²: without the factor the labels would decide alone.
        return TEACHER_SHARE * TEMPERATURE**2 * soft + (1 - TEACHER_SHARE) * hard

    return loss


def accuracies(kind: str) -> Any:
    """Share of the held-out digits that the student of each seed reads rightly (SEEDS,)."""
    numpy = need("numpy", digits.INSTALL)
    _, labels = digits.test_images()
    return (numpy.load(trained(kind) / ANSWERS).argmax(axis=2) == labels).mean(axis=1)
