"""Codecs of single records: every record is a message of its own, as it comes over a wire."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from suites.formats import messages
from suites.imports import need

INSTALL = "pip install 'inference-bench[suites]'"

Record = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """Records as messages.

    decode: what is timed for each message; finish: turns its result into a record again, untimed.
    """

    messages: list[bytes]
    decode: Callable[[bytes], Any]
    finish: Callable[[Any], Record]
    notes: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of record: its protobuf message type, what reads all fields of a message, the record they make."""

    message: Callable[[], Any]
    fields: Callable[[Any], tuple[Any, ...]]
    record: Callable[[tuple[Any, ...]], Record]


FUNCTIONS = Kind(message=messages.function_class, fields=messages.function_fields, record=messages.function_record)
EVENTS = Kind(message=messages.event_class, fields=messages.event_fields, record=messages.event_record)


def encode(codec: str, originals: Sequence[Record], kind: Kind) -> Encoded:
    """The records in one of CODECS."""
    return CODECS[codec](originals, kind)


def _same(value: Any) -> Record:
    record: Record = value
    return record


def _json(originals: Sequence[Record], kind: Kind) -> Encoded:
    # Bytes, as they come from a socket; compact, as services send them.
    texts = [json.dumps(r, separators=(",", ":"), ensure_ascii=False).encode() for r in originals]
    return Encoded(messages=texts, decode=json.loads, finish=_same)


def _orjson(originals: Sequence[Record], kind: Kind) -> Encoded:
    orjson = need("orjson", INSTALL)
    texts = _json(originals, kind).messages
    return Encoded(messages=texts, decode=orjson.loads, finish=_same, notes={"orjson": orjson.__version__})


def _msgpack(originals: Sequence[Record], kind: Kind) -> Encoded:
    msgpack = need("msgpack", INSTALL)
    # The pure-Python fallback is a hundred times slower: another thing to measure.
    notes = {"msgpack": ".".join(map(str, msgpack.version)), "implementation": msgpack.Unpacker.__module__}
    return Encoded(
        messages=[msgpack.packb(r) for r in originals], decode=msgpack.unpackb, finish=_same, notes=notes
    )  # fmt: skip


def _protobuf_parse(originals: Sequence[Record], kind: Kind) -> Encoded:
    message = kind.message()
    encoded = [message(**r).SerializeToString() for r in originals]
    return Encoded(
        messages=encoded,
        decode=message.FromString,
        finish=lambda value: kind.record(kind.fields(value)),
        notes=messages.version(),
    )


def _protobuf_fields(originals: Sequence[Record], kind: Kind) -> Encoded:
    parsed = _protobuf_parse(originals, kind)
    parse, fields = parsed.decode, kind.fields
    return Encoded(
        messages=parsed.messages, decode=lambda blob: fields(parse(blob)), finish=kind.record, notes=parsed.notes
    )  # fmt: skip


CODECS: dict[str, Callable[[Sequence[Record], Kind], Encoded]] = {
    "json": _json,
    "orjson": _orjson,
    "msgpack": _msgpack,
    "protobuf_parse": _protobuf_parse,
    "protobuf_fields": _protobuf_fields,
}
