"""What does it cost to decode records that came over a wire?"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from bench.api import Work, Wrong, benchmark
from suites.data import functions
from suites.imports import need

RECORDS = 2000
"""Records per call, spread evenly over the data: short and long, with and without arguments."""

INSTALL = "pip install 'inference-bench[suites]'"

Record = dict[str, Any]


@benchmark(
    axes={"codec": ("json", "orjson", "msgpack", "protobuf_parse", "protobuf_fields")},
    baseline={"codec": "json"},
)
def records(device: Any, codec: str) -> Work:
    """Decode 2,000 records, each a message of its own: is a binary format faster once the fields are read?"""
    originals = sample()
    messages, decode, finish, notes = CODECS[codec](originals)

    def check(found: Sequence[Any]) -> bool:
        for index, (original, value) in enumerate(zip(originals, found, strict=True)):
            if finish(value) != original:
                raise Wrong(f"record {index} came back other than it was encoded")
        return True

    return Work(
        run=lambda: [decode(message) for message in messages],
        items=len(messages),
        check=check,
        size_bytes=sum(len(message) for message in messages),
        notes=notes,
    )


def sample() -> list[Record]:
    """RECORDS of the shipped records."""
    everything = functions.records()
    return [everything[k * len(everything) // RECORDS] for k in range(RECORDS)]


Codec = tuple[list[bytes], Callable[[bytes], Any], Callable[[Any], Record], dict[str, str]]
"""Messages, what is timed per message, what turns its result into a record again (untimed), notes."""


def _same(value: Any) -> Record:
    record: Record = value
    return record


def _json(originals: list[Record]) -> Codec:
    # Bytes, as they come from a socket; compact, as services send them.
    messages = [json.dumps(r, separators=(",", ":"), ensure_ascii=False).encode() for r in originals]
    return messages, json.loads, _same, {}


def _orjson(originals: list[Record]) -> Codec:
    orjson = need("orjson", INSTALL)
    messages, *_ = _json(originals)
    return messages, orjson.loads, _same, {"orjson": orjson.__version__}


def _msgpack(originals: list[Record]) -> Codec:
    msgpack = need("msgpack", INSTALL)
    # The pure-Python fallback is a hundred times slower: another thing to measure.
    notes = {"msgpack": ".".join(map(str, msgpack.version)), "implementation": msgpack.Unpacker.__module__}
    return [msgpack.packb(r) for r in originals], msgpack.unpackb, _same, notes


def _protobuf(originals: list[Record], *, fields: bool) -> Codec:
    message = message_class()
    implementation = need("google.protobuf.internal.api_implementation", INSTALL).Type()
    encoded = [message(**r).SerializeToString() for r in originals]
    notes = {"protobuf": need("google.protobuf", INSTALL).__version__, "implementation": implementation}
    if fields:
        return encoded, lambda blob: fields_of(message.FromString(blob)), _same, notes
    return encoded, message.FromString, fields_of, notes


def fields_of(message: Any) -> Record:
    """Every field of a parsed message as plain values."""
    return {
        "module": message.module,
        "name": message.name,
        "kind": message.kind,
        "line": message.line,
        "lines": message.lines,
        "mean_width": message.mean_width,
        "public": message.public,
        "arguments": [{"name": a.name, "default": a.default} for a in message.arguments],
        "summary": message.summary,
        "body": message.body,
    }


def message_class() -> Any:
    """The message type of a record, described here: no compiler and no generated file is needed."""
    description = need("google.protobuf.descriptor_pb2", INSTALL)
    pools = need("google.protobuf.descriptor_pool", INSTALL)
    factory = need("google.protobuf.message_factory", INSTALL)
    kinds = description.FieldDescriptorProto
    file = description.FileDescriptorProto(name="records.proto", package="bench", syntax="proto3")

    def add(name: str, fields: Sequence[tuple[str, int]]) -> Any:
        message = file.message_type.add(name=name)
        for number, (field, kind) in enumerate(fields, start=1):
            message.field.add(name=field, number=number, type=kind, label=kinds.LABEL_OPTIONAL)
        return message

    text, number = kinds.TYPE_STRING, kinds.TYPE_INT32
    add("Argument", [("name", text), ("default", text)])
    record = add(
        "Record",
        [
            ("module", text), ("name", text), ("kind", text), ("line", number), ("lines", number),
            ("mean_width", kinds.TYPE_DOUBLE), ("public", kinds.TYPE_BOOL), ("summary", text), ("body", text),
        ],
    )  # fmt: skip
    record.field.add(
        name="arguments", number=10, type=kinds.TYPE_MESSAGE, label=kinds.LABEL_REPEATED, type_name=".bench.Argument"
    )
    pool = pools.DescriptorPool()
    pool.Add(file)
    return factory.GetMessageClass(pool.FindMessageTypeByName("bench.Record"))


CODECS: dict[str, Callable[[list[Record]], Codec]] = {
    "json": _json,
    "orjson": _orjson,
    "msgpack": _msgpack,
    "protobuf_parse": lambda originals: _protobuf(originals, fields=False),
    "protobuf_fields": lambda originals: _protobuf(originals, fields=True),
}
