"""What is gained by a smaller network: distilled, searched for, or just of another shape?

Size is not latency: parameters, multiplications and time are three columns here, and they disagree.
"""

from __future__ import annotations

import json
from typing import Any

from bench.api import HIGHER, LOWER, Metric, Work, Wrong, benchmark
from suites import engines
from suites.imports import need
from suites.models import bert, digits, sizes, students

BATCH = 32
"""Digits a call: a single one is over before the runtime's own overhead is."""

TOLERANCE = 1e-3
"""Largest relative L2 error to the same network elsewhere (measured: under 2e-5)."""

LEAST = 0.85
"""Least accuracy of a student: far over one that has learnt nothing (0.1), under any that has (0.93)."""

T_95 = {5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}
"""Number of seeds → 97.5 % point of Student's t with one degree of freedom less."""

COUNTS = (
    Metric("parameters", unit="parameters", better=LOWER, kind="count", help="numbers that the network holds"),
    Metric("macs", unit="MAC", better=LOWER, kind="count", help="multiplications for one input"),
)
SEEDS = (
    Metric("seeds_accuracy", unit="1", better=HIGHER, help="mean over the seeds of training"),
    Metric("seeds_gain", unit="1", better=HIGHER, help="mean over the seeds of what is gained over from scratch"),
    Metric("seeds_gain_low", unit="1", better=HIGHER, help="lower end of its 95 % interval over seeds"),
    Metric("seeds_gain_high", unit="1", better=HIGHER, help="upper end of its 95 % interval over seeds"),
)
ORT = ("numpy", "onnx", "onnxruntime")


@benchmark(
    axes={"network": ("teacher", *students.KINDS)}, baseline={"network": "teacher"}, launches=5, requires=ORT,
    metrics=(*digits.METRICS, *SEEDS, *COUNTS),
)  # fmt: skip
def distillation(device: Any, network: str) -> Work:
    """A teacher and students fifty times smaller, 32 digits: what do its answers teach that labels do not?"""
    numpy = need("numpy", digits.INSTALL)
    made = digits.graph() if network == "teacher" else students.trained(network)
    expected = digits.reference() if network == "teacher" else numpy.load(made / students.ANSWERS)[0]
    session = engines.ort_session(made / digits.MODEL, device.threads)
    timed = {"input": digits.test_images()[0][:BATCH]}

    def every() -> Any:
        return session.run(["output"], {"input": digits.test_images()[0]})[0]

    def check(found: Any) -> bool:
        near(found, expected[:BATCH])
        answers = every()
        near(answers, expected)
        return learnt(answers)

    widths = digits.WIDTHS if network == "teacher" else students.WIDTHS
    return Work(
        run=lambda: session.run(["output"], timed)[0],
        items=BATCH,
        check=check,
        report=lambda _: {**digits.accuracy(every()), **over_seeds(network), **cnn_counts(*widths)},
        size_bytes=(made / digits.MODEL).stat().st_size,
        notes={"seeds": str(students.SEEDS), **engines.build_notes(made)},
    )


@benchmark(
    axes={"network": tuple(sizes.NETWORKS)}, baseline={"network": "resnet50"}, metrics=COUNTS, requires=ORT,
    profiles=("full",), launches=5,
)  # fmt: skip
def architectures(device: Any, network: str) -> Work:
    """One image at each network's native size in ONNX Runtime: is the smaller, or the searched one, the faster?"""
    numpy = need("numpy", digits.INSTALL)
    made = sizes.graph(network)
    session = engines.ort_session(made / sizes.MODEL, device.threads)
    image = {"input": sizes.image(network)}
    return Work(
        run=lambda: session.run(["output"], image)[0],
        check=lambda found: near(found, numpy.load(made / sizes.ANSWER)),
        report=lambda _: json.loads((made / sizes.COUNTS).read_text(encoding="utf-8")),
        size_bytes=(made / sizes.MODEL).stat().st_size,
        notes={"weights": "random", "pixels": f"{sizes.NETWORKS[network]}²", **engines.build_notes(made)},
    )


@benchmark(
    axes={"network": ("bert_large", "bert_base", "distilbert")}, baseline={"network": "bert_base"}, metrics=COUNTS,
    requires=ORT, profiles=("full",), launches=5,
)  # fmt: skip
def encoders(device: Any, network: str) -> Work:
    """BERT-large, BERT-base and DistilBERT's shapes in ONNX Runtime, 128 tokens: how much faster is half as deep?"""
    made = bert.graph(network)
    session = engines.ort_session(made / bert.MODEL, device.threads)
    inputs = bert.feed(bert.tokens())
    size = bert.SIZES[network]
    return Work(
        run=lambda: session.run(["hidden"], inputs)[0],
        check=lambda found: near(found, bert.reference(network)),
        report=lambda _: {"parameters": size.parameters, "macs": sizes.bert_macs(size, bert.LENGTH)},
        size_bytes=(made / bert.MODEL).stat().st_size,
        notes={"weights": "random", **engines.build_notes(made)},
    )


def over_seeds(network: str) -> dict[str, float]:
    """Values of SEEDS. The teacher was trained once; students of one seed began with the same weights."""
    numpy = need("numpy", digits.INSTALL)
    scratch = students.accuracies("scratch")
    if network == "teacher":
        ours = numpy.full_like(scratch, (digits.reference().argmax(axis=1) == digits.test_images()[1]).mean())
    else:
        ours = students.accuracies(network)
    low, gain, high = interval(ours - scratch)
    found = {
        "seeds_accuracy": float(ours.mean()),
        "seeds_gain": gain,
        "seeds_gain_low": low,
        "seeds_gain_high": high,
    }
    return {name: round(value, 4) for name, value in found.items()}


def interval(values: Any) -> tuple[float, float, float]:
    """Low, mean and high of a 95 % t interval over (n,) values."""
    mean = float(values.mean())
    half = T_95[len(values)] * float(values.std(ddof=1)) / len(values) ** 0.5
    return mean - half, mean, mean + half


def cnn_counts(first: int, rest: int) -> dict[str, int]:
    """Values of COUNTS for a digits CNN of those widths."""
    full, half = digits.SHAPE[1] ** 2, (digits.SHAPE[1] // 2) ** 2
    weights = (9 * first, 9 * first * rest, 9 * rest * rest, rest * digits.CLASSES)
    biases = 3 * (first + 2 * rest) + digits.CLASSES  # of the convolutions, and scale and shift of their norms
    return {
        "parameters": sum(weights) + biases,
        "macs": weights[0] * full + (weights[1] + weights[2]) * half + weights[3],
    }


def learnt(answers: Any) -> bool:
    """Raises Wrong for a network that reads fewer than LEAST of the held-out digits."""
    right = float((answers.argmax(axis=1) == digits.test_images()[1]).mean())
    if not right >= LEAST:
        raise Wrong(f"it reads {right:.1%} of the digits, under {LEAST:.0%}")
    return True


def near(found: Any, expected: Any) -> bool:
    """Raises Wrong when the relative L2 error is over TOLERANCE (or not a number)."""
    numpy = need("numpy", digits.INSTALL)
    size = numpy.linalg.norm(found.astype("float64") - expected) / numpy.linalg.norm(expected)
    if not size <= TOLERANCE:
        raise Wrong(f"relative error to the same network elsewhere is {size:.1e}, over {TOLERANCE:.0e}")
    return True
