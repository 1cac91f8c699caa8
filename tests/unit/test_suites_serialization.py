"""Every codec gives the records back; a codec that loses something is caught."""

from __future__ import annotations

import json

import pytest

from bench.api import Wrong
from bench.testing import FakeDevice
from suites import serialization
from suites.serialization import CODECS, records

NEEDS = {"orjson": "orjson", "msgpack": "msgpack"}


@pytest.fixture(autouse=True)
def _few(monkeypatch):
    monkeypatch.setattr(serialization, "RECORDS", 120)


def work(codec: str):
    pytest.importorskip("google.protobuf" if codec.startswith("protobuf") else NEEDS.get(codec, "json"))
    return records(FakeDevice(), codec)


@pytest.mark.parametrize("codec", CODECS)
def test_codec_gives_every_record_back(codec):
    made = work(codec)
    found = made.run()
    assert made.check(found) is True
    assert made.items == len(found) == 120


@pytest.mark.parametrize("codec", CODECS)
def test_one_lost_record_or_field_is_wrong(codec, monkeypatch):
    made = work(codec)
    found = made.run()
    if codec == "protobuf_parse":
        found[7].ClearField("summary")
    else:
        found[7] = {**found[7], "summary": ""}
    with pytest.raises(Wrong, match="record 7"):
        made.check(found)
    with pytest.raises(ValueError, match="shorter"):
        made.check(made.run()[:-1])


def test_sizes_are_those_of_the_payload():
    originals = serialization.sample()
    text = sum(len(json.dumps(r, separators=(",", ":"), ensure_ascii=False).encode()) for r in originals)
    assert work("json").size_bytes == work("orjson").size_bytes == text
    assert work("protobuf_parse").size_bytes < work("msgpack").size_bytes < text


def test_sample_spans_the_data():
    modules = [r["module"] for r in serialization.sample()]
    assert modules[0] < "b"
    assert modules[-1] > "x"
    assert len(set(modules)) > 60


def test_compiled_codecs_are_the_ones_that_ran():
    assert work("protobuf_parse").notes["implementation"] == "upb"
    assert work("msgpack").notes["implementation"] == "msgpack._cmsgpack"
