"""Files that hold a table of events, and readers that bring its numbers into arrays.

Every reader opens the file and returns the same two arrays: features (rows, FEATURES) float32 and
score (rows,) float64, owned by the caller's process and ready for a network.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from suites.artifacts import Artifact, artifact
from suites.data import clicks as data
from suites.formats import messages
from suites.imports import need

INSTALL = "pip install 'inference-bench[suites]'"

FILES = {
    "json_lines": "events.jsonl",
    "tfrecord": "events.tfrecord",
    "parquet": "events.parquet",
    "arrow": "events.arrow",
}
"""Container → its file in the artifact."""

ARRAYS = "events.npz"
"""The same two arrays as the readers must find them."""

COLUMNS = ["features", "score"]

Arrays = tuple[Any, Any]


def tables(rows: int) -> Artifact:
    """All FILES with the same `rows` events, and ARRAYS."""

    def build(folder: Path) -> None:
        numpy = need("numpy", INSTALL)
        events = data.clicks(rows)
        with (folder / FILES["json_lines"]).open("w", encoding="utf-8") as stream:
            stream.writelines(f"{json.dumps(event, separators=(',', ':'))}\n" for event in events)
        message = messages.event_class()
        with (folder / FILES["tfrecord"]).open("wb") as stream:
            stream.writelines(frame(message(**event).SerializeToString()) for event in events)
        _write_columns(folder, events)
        features = numpy.array([event["features"] for event in events], dtype=numpy.float32)
        numpy.savez(folder / ARRAYS, features=features, score=numpy.array([event["score"] for event in events]))

    return artifact(
        "tables", build, sources=[Path(__file__), Path(messages.__file__), Path(data.__file__)],
        packages=["numpy", "protobuf", "pyarrow"], inputs={"rows": str(rows)},
    )  # fmt: skip


def _write_columns(folder: Path, events: Any) -> None:
    arrow, parquet = need("pyarrow", INSTALL), need("pyarrow.parquet", INSTALL)
    types = {
        "user_id": arrow.int64(), "item_id": arrow.int64(), "timestamp": arrow.int64(), "country": arrow.string(),
        "device": arrow.string(), "score": arrow.float64(), "clicks": arrow.int32(),
        "features": arrow.list_(arrow.float32(), data.FEATURES),
    }  # fmt: skip
    table = arrow.Table.from_pylist(list(events), schema=arrow.schema(list(types.items())))
    # Dictionaries pay for the two texts; for numbers that hardly repeat they cost time and space.
    parquet.write_table(table, folder / FILES["parquet"], use_dictionary=["country", "device"])
    with arrow.OSFile(str(folder / FILES["arrow"]), "wb") as sink, arrow.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


def expected(made: Artifact) -> Arrays:
    """What every reader must return."""
    with need("numpy", INSTALL).load(made / ARRAYS) as arrays:
        return arrays["features"], arrays["score"]


def json_lines(file: Path) -> Arrays:
    """Row by row with the standard library."""
    return _rows(file, json.loads)


def json_lines_orjson(file: Path) -> Arrays:
    """Row by row with orjson."""
    return _rows(file, need("orjson", INSTALL).loads)


def json_lines_arrow(file: Path) -> Arrays:
    """The same text, parsed by Arrow's compiled reader into columns."""
    reader, arrow = need("pyarrow.json", INSTALL), need("pyarrow", INSTALL)
    table = reader.read_json(str(file), read_options=reader.ReadOptions(use_threads=False))
    return _arrays(table.cast(table.schema.set(7, arrow.field("features", arrow.list_(arrow.float32())))))


def tfrecord(file: Path) -> Arrays:
    """Frames of protobuf messages. Checksums are not verified, which is to its advantage."""
    numpy = need("numpy", INSTALL)
    parse = messages.event_class().FromString
    features, score = [], []
    for payload in frames(file.read_bytes()):
        event = parse(payload)
        features.append(event.features)
        score.append(event.score)
    return numpy.array(features, dtype=numpy.float32), numpy.array(score)


def parquet_all(file: Path, *, threads: bool = False) -> Arrays:
    """Every column decoded, two of them handed over."""
    return _arrays(need("pyarrow.parquet", INSTALL).read_table(file, use_threads=threads))


def parquet_columns(file: Path) -> Arrays:
    """Only the two columns that are needed."""
    return _arrays(need("pyarrow.parquet", INSTALL).read_table(file, columns=COLUMNS, use_threads=False))


def arrow_mapped(file: Path) -> Arrays:
    """Mapped memory that is the table already; copied, so that the arrays outlive the file as all others do."""
    arrow = need("pyarrow", INSTALL)
    with arrow.memory_map(str(file)) as source:
        features, score = _arrays(arrow.ipc.open_file(source).read_all())
        return features.copy(), score.copy()


def _rows(file: Path, loads: Callable[[bytes], Any]) -> Arrays:
    numpy = need("numpy", INSTALL)
    with file.open("rb") as stream:
        rows = [loads(line) for line in stream]
    features = numpy.array([row["features"] for row in rows], dtype=numpy.float32)
    return features, numpy.array([row["score"] for row in rows])


def _arrays(table: Any) -> Arrays:
    features = table.column("features").combine_chunks()
    if hasattr(features, "chunks"):  # older pyarrow combines into one chunk and stays chunked
        features = features.chunk(0)
    return features.flatten().to_numpy().reshape(-1, data.FEATURES), table.column("score").to_numpy()


READERS: dict[str, tuple[str, Callable[[Path], Arrays]]] = {
    "json_lines": ("json_lines", json_lines),
    "json_lines_orjson": ("json_lines", json_lines_orjson),
    "json_lines_arrow": ("json_lines", json_lines_arrow),
    "tfrecord": ("tfrecord", tfrecord),
    "parquet": ("parquet", parquet_all),
    "parquet_columns": ("parquet", parquet_columns),
    "parquet_threads": ("parquet", lambda file: parquet_all(file, threads=True)),
    "arrow_mmap": ("arrow", arrow_mapped),
}
"""Reader → its container and what is timed."""


def frame(payload: bytes) -> bytes:
    """One TFRecord: length, masked checksum of the length, payload, masked checksum of the payload.

    https://www.tensorflow.org/tutorials/load_data/tfrecord#tfrecords_format_details
    """
    length = struct.pack("<Q", len(payload))
    return length + struct.pack("<I", _masked(length)) + payload + struct.pack("<I", _masked(payload))


def frames(blob: bytes) -> Iterator[bytes]:
    """The payloads of a TFRecord file."""
    place = 0
    while place < len(blob):
        (size,) = struct.unpack_from("<Q", blob, place)
        yield blob[place + 12 : place + 12 + size]
        place += 16 + size


def _masked(blob: bytes) -> int:
    checksum = crc32c(blob)
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF


def crc32c(blob: bytes) -> int:
    """Castagnoli's CRC-32 (RFC 3720, appendix B.4). Slow: only writing needs it."""
    value = 0xFFFFFFFF
    for byte in blob:
        value = value >> 8 ^ CRC_TABLE[(value ^ byte) & 0xFF]
    return value ^ 0xFFFFFFFF


def _crc_table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


CRC_TABLE = _crc_table()
