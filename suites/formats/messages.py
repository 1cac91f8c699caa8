"""Protobuf messages described in code: no compiler and no generated file is needed."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from suites.imports import need

INSTALL = "pip install 'inference-bench[suites]'"

FUNCTION_FIELDS = (
    "module", "name", "kind", "line", "lines", "mean_width", "public", "arguments", "summary", "body"
)  # fmt: skip
EVENT_FIELDS = ("user_id", "item_id", "timestamp", "country", "device", "score", "clicks", "features")

FUNCTION, EVENT = attrgetter(*FUNCTION_FIELDS), attrgetter(*EVENT_FIELDS)
"""One call that reads all fields, and the fastest way to do so."""


def function_class() -> Any:
    """The message type of a record of suites.data.functions."""
    kinds = _kinds()
    text, number = kinds.TYPE_STRING, kinds.TYPE_INT32
    file = _file("functions")
    _add(file, "Argument", [("name", text), ("default", text)])
    record = _add(
        file, "Record",
        [
            ("module", text), ("name", text), ("kind", text), ("line", number), ("lines", number),
            ("mean_width", kinds.TYPE_DOUBLE), ("public", kinds.TYPE_BOOL), ("summary", text), ("body", text),
        ],
    )  # fmt: skip
    record.field.add(
        name="arguments", number=10, type=kinds.TYPE_MESSAGE, label=kinds.LABEL_REPEATED,
        type_name=".bench.functions.Argument",
    )  # fmt: skip
    return _class(file, "Record")


def function_fields(message: Any) -> tuple[Any, ...]:
    """Every field of a parsed function as plain values, in the order of its record."""
    *plain, arguments, summary, body = FUNCTION(message)
    return (*plain, [(argument.name, argument.default) for argument in arguments], summary, body)


def function_record(values: tuple[Any, ...]) -> dict[str, Any]:
    """The record with those fields."""
    record = dict(zip(FUNCTION_FIELDS, values, strict=True))
    record["arguments"] = [{"name": name, "default": default} for name, default in record["arguments"]]
    return record


def event_class() -> Any:
    """The message type of an event of suites.data.clicks. Doubles, so that no value is rounded."""
    kinds = _kinds()
    file = _file("events")
    event = _add(
        file, "Event",
        [
            ("user_id", kinds.TYPE_INT64), ("item_id", kinds.TYPE_INT64), ("timestamp", kinds.TYPE_INT64),
            ("country", kinds.TYPE_STRING), ("device", kinds.TYPE_STRING), ("score", kinds.TYPE_DOUBLE),
            ("clicks", kinds.TYPE_INT32),
        ],
    )  # fmt: skip
    event.field.add(name="features", number=8, type=kinds.TYPE_DOUBLE, label=kinds.LABEL_REPEATED)
    return _class(file, "Event")


def event_fields(message: Any) -> tuple[Any, ...]:
    """Every field of a parsed event as plain values, in the order of its record."""
    *plain, features = EVENT(message)
    return (*plain, list(features))


def event_record(values: tuple[Any, ...]) -> dict[str, Any]:
    """The record with those fields."""
    return dict(zip(EVENT_FIELDS, values, strict=True))


def version() -> dict[str, str]:
    """Notes: which protobuf ran, and whether it is the compiled one (`upb`)."""
    implementation = need("google.protobuf.internal.api_implementation", INSTALL).Type()
    return {"protobuf": need("google.protobuf", INSTALL).__version__, "implementation": implementation}


def _kinds() -> Any:
    return need("google.protobuf.descriptor_pb2", INSTALL).FieldDescriptorProto


def _file(name: str) -> Any:
    description = need("google.protobuf.descriptor_pb2", INSTALL)
    return description.FileDescriptorProto(name=f"{name}.proto", package=f"bench.{name}", syntax="proto3")


def _add(file: Any, name: str, fields: Sequence[tuple[str, int]]) -> Any:
    message = file.message_type.add(name=name)
    for number, (field, kind) in enumerate(fields, start=1):
        message.field.add(name=field, number=number, type=kind, label=_kinds().LABEL_OPTIONAL)
    return message


def _class(file: Any, name: str) -> Any:
    pool = need("google.protobuf.descriptor_pool", INSTALL).DescriptorPool()
    pool.Add(file)
    message = pool.FindMessageTypeByName(f"{file.package}.{name}")
    return need("google.protobuf.message_factory", INSTALL).GetMessageClass(message)
