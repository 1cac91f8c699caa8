"""Reference networks are the published shapes in every runtime, and damage to them can be seen."""

from __future__ import annotations

import importlib.util

import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

from bench.api import Skip  # noqa: E402
from suites.engines import OpenVino, ort_notes, ort_session, torch_call  # noqa: E402
from suites.models import bert, ocr, vision, vision_torch  # noqa: E402

with_ocr = pytest.mark.skipif(importlib.util.find_spec(ocr.PACKAGE) is None, reason="rapidocr is not installed")


@pytest.fixture(scope="module", autouse=True)
def _small(tmp_path_factory):
    """A cache of our own, few and small images, few strings, a BERT of two layers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BENCH_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setattr(vision, "SHAPE", (3, 64, 64))
        patch.setattr(vision, "IMAGES", 6)
        patch.setattr(vision.images, "__defaults__", (6, 0, 64))
        patch.setattr(ocr, "STRINGS", 6)
        patch.setitem(bert.SIZES, "tiny", bert.Size(layers=2, width=32, heads=4, inner=64, words=30522, places=16))
        yield


@pytest.mark.parametrize(
    ("name", "millions"),
    [("minilm_l6", 22.6), ("distilbert", 66.4), ("bert_mini", 11.1), ("bert_base", 108.9), ("bert_large", 334.1)],
)
def test_bert_sizes_are_the_published_ones(name, millions):
    assert bert.SIZES[name].parameters == pytest.approx(millions * 1e6, rel=0.003)


def test_bert_weights_are_as_many_as_stated_and_stay():
    found = bert.weights("tiny")
    assert sum(array.size for array in found.values()) == bert.SIZES["tiny"].parameters
    again = bert.weights("tiny")
    assert all(np.array_equal(found[name], again[name]) for name in found)


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_bert_is_one_network_in_all_runtimes(attention):
    ids = bert.tokens(8)
    expected = bert.reference("tiny", 8)
    assert expected.shape == (1, 8, 32)
    found = torch_call(bert.module("tiny", attention), 1, ids)()
    assert np.abs(found.numpy() - expected).max() < 1e-4
    other = torch_call(bert.module("tiny", attention), 1, ids[:, ::-1].copy())()
    assert np.abs(other.numpy() - expected).max() > 0.1


def test_bert_in_openvino_is_the_same_network():
    pytest.importorskip("openvino")
    made = bert.graph("tiny")
    compiled = OpenVino(made / bert.MODEL, 1, bert.feed(bert.tokens(8)))
    assert np.abs(compiled() - bert.reference("tiny", 8)).max() < 1e-4
    notes = compiled.notes("tiny", made)
    assert notes["provider"] == "OpenVINO CPU"
    assert "32" in notes["precision"]


@pytest.mark.parametrize(("name", "count"), [("resnet50", 25_557_032), ("mobilenet_v3", 5_481_872)])
def test_vision_networks_have_the_published_number_of_parameters(name, count):
    """As torchvision's documentation states 25,557,032; MobileNetV3's squeezed widths follow the paper."""
    with torch.device("meta"):
        network = vision_torch.NETWORKS[name]()
    assert sum(parameter.numel() for parameter in network.parameters()) == count


def test_mobilenet_tells_images_apart_and_is_one_network_in_all_runtimes():
    images, expected = vision.images(), vision.reference("mobilenet_v3")
    mean = expected.mean(axis=0)
    assert np.linalg.norm(expected - mean) > 0.1 * np.linalg.norm(expected)
    made = vision.graph("mobilenet_v3")
    session = ort_session(made / vision.MODEL, 1)
    found = session.run(None, {"input": images})[0]
    assert np.abs(found - expected).max() < 1e-4
    assert vision.likeness(found, expected, mean) > 0.99999
    assert "BatchNormalization" not in ort_notes("mobilenet_v3", made, made / vision.MODEL)["operators"]


def test_answers_to_other_images_are_unlike_though_their_plain_cosine_is_high():
    expected = vision.reference("mobilenet_v3")
    wrong, mean = np.roll(expected, 1, axis=0), expected.mean(axis=0)
    assert vision.likeness(wrong, expected, mean) < 0.5
    assert vision.likeness(wrong, expected, 0 * mean) > vision.likeness(wrong, expected, mean) + 0.2


def test_images_are_normal_and_differ():
    found = vision.images(2)
    assert found.dtype == np.float32
    assert found[0].mean() == pytest.approx(0, abs=1e-5)
    assert found[0].std() == pytest.approx(1, abs=1e-5)
    assert abs(np.corrcoef(found[0].ravel(), found[1].ravel())[0, 1]) < 0.3
    assert np.array_equal(vision.images(1, first=1)[0], found[1])


def test_unknown_placement_is_refused(monkeypatch):
    """A runtime that falls back silently must not be measured."""
    import onnxruntime

    monkeypatch.setattr(onnxruntime.InferenceSession, "get_providers", lambda self: ["Else", "CPUExecutionProvider"])
    with pytest.raises(RuntimeError, match="instead of the CPU"):
        ort_session(bert.graph("tiny") / bert.MODEL, 1)


@with_ocr
def test_recogniser_reads_drawn_strings_and_a_blank_image_as_nothing():
    readings = ocr.reference()[1]
    found = ocr.accuracy(readings)
    assert sum(found["exact"]) >= 5
    assert all(found["agreement"])
    assert sum(ocr.accuracy(readings[::-1])["agreement"]) == 0
    session = ort_session(ocr.graph() / ocr.MODEL, 1)
    assert ocr.read(session.run(None, {"x": np.ones((1, 3, ocr.HEIGHT, ocr.WIDTH), "float32")})[0]) == ""


def test_missing_recogniser_is_skipped_with_the_command_that_brings_it(monkeypatch):
    monkeypatch.setattr(ocr, "PACKAGE", "no_such_reader")
    with pytest.raises(Skip, match="pip install --no-deps rapidocr"):
        ocr.model_file()
