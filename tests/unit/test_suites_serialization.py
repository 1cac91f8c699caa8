"""Every format gives back what was written; one that loses something is caught."""

from __future__ import annotations

import json
import warnings

import pytest

from bench.api import Wrong
from bench.testing import FakeDevice
from suites import serialization
from suites.formats import messages, networks, tables
from suites.serialization import CODECS, records

NEEDS = {"orjson": "orjson", "msgpack": "msgpack"}


@pytest.fixture(scope="module", autouse=True)
def _few(tmp_path_factory):
    """Small data, and a cache of our own for the files."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BENCH_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setattr(serialization, "RECORDS", 120)
        patch.setattr(serialization, "EVENTS", 300)
        patch.setattr(networks, "WIDTH", 32)
        yield


def work(codec: str, timed=records):
    pytest.importorskip("google.protobuf" if codec.startswith("protobuf") else NEEDS.get(codec, "json"))
    return timed(FakeDevice(), codec)


@pytest.mark.parametrize("timed", [records, serialization.events_100k])
@pytest.mark.parametrize("codec", CODECS)
def test_codec_gives_every_record_back(codec, timed):
    made = work(codec, timed)
    found = made.run()
    assert made.check(found) is True
    assert made.items == len(found) == (120 if timed is records else 300)


@pytest.mark.parametrize(("timed", "field"), [(records, "summary"), (serialization.events_100k, "features")])
@pytest.mark.parametrize("codec", CODECS)
def test_one_lost_record_or_field_is_wrong(codec, timed, field):
    made = work(codec, timed)
    found = made.run()
    if codec == "protobuf_parse":
        found[7].ClearField(field)
    elif codec == "protobuf_fields":
        found[7] = tuple([] if value == found[7][-1] else value for value in found[7])
    else:
        found[7] = {**found[7], field: type(found[7][field])()}
    with pytest.raises(Wrong, match="record 7"):
        made.check(found)
    with pytest.raises(ValueError, match="shorter"):
        made.check(made.run()[:-1])


def test_every_field_is_read():
    """A field forgotten in `fields` would make protobuf look faster than it is."""
    pytest.importorskip("google.protobuf")
    for kind in (serialization.codecs.FUNCTIONS, serialization.codecs.EVENTS):
        assert set(kind.record(kind.fields(kind.message()()))) == {
            field.name for field in kind.message().DESCRIPTOR.fields
        }


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


@pytest.mark.parametrize("reader", tables.READERS)
def test_reader_finds_the_table_and_damage_is_wrong(reader):
    pytest.importorskip("pyarrow")
    pytest.importorskip("google.protobuf")
    if reader == "json_lines_orjson":
        pytest.importorskip("orjson")
    made = serialization.reading(reader, 1)
    features, score = made.run()
    assert made.check((features, score)) is True
    assert features.shape == (300, 8)
    with pytest.raises(Wrong, match="score"):
        made.check((features, score[::-1]))
    with pytest.raises(Wrong, match="features"):
        made.check((features.astype("float64"), score))


def test_containers_hold_more_than_the_two_columns_that_are_read():
    parquet = pytest.importorskip("pyarrow.parquet")
    pytest.importorskip("google.protobuf")
    made = tables.tables(serialization.EVENTS)
    names = set(serialization.clicks.clicks(1)[0])
    assert set(parquet.read_schema(made / tables.FILES["parquet"]).names) == names
    assert set(json.loads((made / tables.FILES["json_lines"]).read_text().splitlines()[0])) == names
    payloads = list(tables.frames((made / tables.FILES["tfrecord"]).read_bytes()))
    assert [messages.event_class().FromString(p).user_id for p in payloads] == list(range(300))


def test_checksum_and_frame_are_those_of_the_specification():
    assert tables.crc32c(b"123456789") == 0xE3069283  # the check value of CRC-32C
    assert tables.crc32c(bytes(32)) == 0x8A9136AA  # RFC 3720, appendix B.4
    blob = tables.frame(b"abc") + tables.frame(b"")
    assert list(tables.frames(blob)) == [b"abc", b""]


@pytest.fixture
def _torch():
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    torch = pytest.importorskip("torch")
    threads = torch.get_num_threads()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch.export warns of its own internals
        yield
    torch.set_num_threads(threads)


@pytest.mark.usefixtures("_torch")
@pytest.mark.parametrize("format", networks.LOADERS)
def test_weights_are_read_whole_and_another_file_is_wrong(format, monkeypatch):
    for read in ("first", "all"):
        made = serialization.weights(FakeDevice(), format, read)
        assert made.check(made.run()) is True
        with pytest.raises(Wrong, match="sum of the weights"):
            made.check(made.run() * 1.001)


@pytest.mark.usefixtures("_torch")
@pytest.mark.parametrize("form", networks.OPENERS)
def test_model_file_answers_and_another_network_is_wrong(form):
    made = serialization.model_files(FakeDevice(), form)
    answer = made.run()
    assert answer.shape == (1, 32)
    assert made.check(answer) is True
    with pytest.raises(Wrong, match="answer"):
        made.check(answer[:, ::-1])
    with pytest.raises(Wrong, match="answer"):
        made.check(answer * float("nan"))
