"""What does it cost to decode what came over a wire or lies in a file: records, tables, networks?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.api import Work, Wrong, benchmark
from suites.data import clicks, functions
from suites.formats import codecs, networks
from suites.formats import tables as containers
from suites.imports import need

RECORDS = 2000
"""Records per call, spread evenly over the data: short and long, with and without arguments."""

EVENTS = 100_000
"""Events in a call or in a table."""

TOLERANCE = 1e-5
"""Largest relative error of a loaded network's answer: another runtime adds in another order."""

CODECS = tuple(codecs.CODECS)

Record = dict[str, Any]


@benchmark(axes={"codec": CODECS}, baseline={"codec": "json"}, launches=7)
def records(device: Any, codec: str) -> Work:
    """Decode 2,000 records, each a message of its own: is a binary format faster once the fields are read?"""
    return decoding(codec, sample(), codecs.FUNCTIONS)


@benchmark(axes={"codec": CODECS}, baseline={"codec": "json"}, profiles=("full",), launches=5)
def events_100k(device: Any, codec: str) -> Work:
    """Decode 100,000 events, mostly numbers, each a message of its own: how much faster is a binary format?"""
    return decoding(codec, clicks.clicks(EVENTS), codecs.EVENTS)


@benchmark(
    axes={"reader": tuple(r for r in containers.READERS if r != "parquet_threads")}, baseline={"reader": "json_lines"},
    requires=("numpy", "pyarrow"), profiles=("full",), launches=5,
)  # fmt: skip
def tables(device: Any, reader: str) -> Work:
    """A file of 100,000 events to two arrays, on one thread: how much faster than JSON lines are binary tables?"""
    return reading(reader, device.threads)


@benchmark(
    axes={"reader": ("parquet", "parquet_threads")}, baseline={"reader": "parquet"}, requires=("numpy", "pyarrow"),
    profiles=("full",), launches=5, threads=2,
)  # fmt: skip
def tables_threads(device: Any, reader: str) -> Work:
    """The same Parquet file: do two threads decode its columns faster than one?"""
    return reading(reader, device.threads)


@benchmark(
    axes={"format": tuple(networks.LOADERS), "read": ("first", "all")}, baseline={"format": "torch_save"},
    requires=("numpy", "onnx", "torch"), profiles=("full",), launches=5,
)  # fmt: skip
def weights(device: Any, format: str, read: str) -> Work:
    """50 MB of weights from the page cache: how soon is one tensor there, and how soon all of them?"""
    need("torch", networks.TORCH).set_num_threads(device.threads)
    made = networks.files()
    file = made / networks.LOADERS[format][0]
    take = networks.first_tensor if read == "first" else networks.every_tensor
    expected = float(take("pickle", made / networks.PICKLE))
    return Work(
        run=lambda: take(format, file),
        check=lambda total: near(float(total), expected, "sum of the weights"),
        size_bytes=file.stat().st_size,
        notes={"weights": "random", "layers": f"{networks.LAYERS} of {networks.WIDTH}²"},
    )


@benchmark(
    axes={"form": tuple(networks.OPENERS)}, baseline={"form": "torch_save_module"},
    requires=("numpy", "onnx", "onnxruntime", "torch"), profiles=("full",), launches=5,
)  # fmt: skip
def model_files(device: Any, form: str) -> Work:
    """A network of 50 MB from its file to its first answer: which form of a model is ready first?"""
    numpy = need("numpy", networks.INSTALL)
    need("torch", networks.TORCH).set_num_threads(device.threads)
    made = networks.files()
    name, load = networks.OPENERS[form]
    with numpy.load(made / networks.ANSWER) as arrays:
        row, answer = arrays["row"], arrays["answer"]
    return Work(
        run=lambda: load(made / name)(row),
        check=lambda found: near(numpy.linalg.norm(found - answer), 0.0, "answer", numpy.linalg.norm(answer)),
        size_bytes=(made / name).stat().st_size,
        notes={"weights": "random", "layers": f"{networks.LAYERS} of {networks.WIDTH}²"},
    )


def sample() -> list[Record]:
    """RECORDS of the shipped records."""
    everything = functions.records()
    return [everything[k * len(everything) // RECORDS] for k in range(RECORDS)]


def decoding(codec: str, originals: Sequence[Record], kind: codecs.Kind) -> Work:
    """Every message decoded once per call; each record must come back as it was."""
    encoded = codecs.encode(codec, originals, kind)
    messages, decode = encoded.messages, encoded.decode

    def check(found: Sequence[Any]) -> bool:
        for index, (original, value) in enumerate(zip(originals, found, strict=True)):
            if encoded.finish(value) != original:
                raise Wrong(f"record {index} came back other than it was encoded")
        return True

    return Work(
        run=lambda: [decode(message) for message in messages],
        items=len(messages),
        check=check,
        size_bytes=sum(len(message) for message in messages),
        notes=encoded.notes,
    )


def reading(reader: str, threads: int) -> Work:
    """One file read from the page cache per call; both arrays must be the table's, to the bit."""
    numpy, arrow = need("numpy", containers.INSTALL), need("pyarrow", containers.INSTALL)
    arrow.set_cpu_count(threads)
    made = containers.tables(EVENTS)
    container, read = containers.READERS[reader]
    file = made / containers.FILES[container]
    names = ("features", "score")

    def check(found: containers.Arrays) -> bool:
        for name, array, wanted in zip(names, found, containers.expected(made), strict=True):
            if array.dtype != wanted.dtype or not numpy.array_equal(array, wanted):
                raise Wrong(f"{name} came back other than it was written")
        return True

    return Work(
        run=lambda: read(file), items=EVENTS, check=check, size_bytes=file.stat().st_size,
        notes={"pyarrow": arrow.__version__},
    )  # fmt: skip


def near(found: float, expected: float, what: str, scale: float | None = None) -> bool:
    """Raises Wrong when `found` is further from `expected` than TOLERANCE of `scale` (by default of `expected`)."""
    if not abs(found - expected) <= TOLERANCE * abs(expected if scale is None else scale):
        raise Wrong(f"the {what} is {abs(found - expected):.1e} off")
    return True
