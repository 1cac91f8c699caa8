"""Every precision is still the network, and what is not it any more is called wrong."""

from __future__ import annotations

import dataclasses
import importlib.util

import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("sklearn")
pytest.importorskip("torch")
np = pytest.importorskip("numpy")

from bench.api import Items, Wrong  # noqa: E402
from bench.testing import FakeDevice  # noqa: E402
from suites import precisions, quantization, quantizers, subjects  # noqa: E402
from suites.models import bert, digits, ocr, vision  # noqa: E402

TINY = bert.Size(layers=2, width=64, heads=4, inner=256, words=30522, places=128)


@pytest.fixture(scope="module", autouse=True)
def _small(tmp_path_factory):
    """A cache of our own, little training, a BERT of two layers, few small images and strings."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BENCH_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setattr(digits, "EPOCHS", 2)
        patch.setitem(bert.SIZES, "bert_base", TINY)
        patch.setattr(vision, "SHAPE", (3, 64, 64))
        patch.setattr(vision, "IMAGES", 6)
        patch.setattr(vision.images, "__defaults__", (6, 0, 64))
        patch.setattr(ocr, "STRINGS", 4)
        patch.setattr(subjects, "STRINGS", 4)
        yield


def right(work):
    """The work's own metrics, after its check."""
    answer = work.run()
    assert work.check(answer) is True
    return work.report(answer)


@pytest.mark.parametrize("precision", ["fp32", "int8_per_channel", "int8_static"])
def test_digits_are_still_read_in_onnx_runtime(precision):
    work = quantization.digits(FakeDevice(), precision)
    found = right(work)
    assert isinstance(found["accuracy"], Items)
    assert sum(found["accuracy"]) > 0.93 * digits.TESTS
    assert sum(found["agreement"]) >= 0.99 * digits.TESTS
    assert found["build"] > 0
    assert work.notes["weights"] == "trained"
    kinds = work.notes["operators"]
    assert ("QLinearConv" in kinds, "ConvInteger" in kinds) == (precision == "int8_static", "channel" in precision)


def test_digits_are_still_read_in_openvino():
    pytest.importorskip("openvino")
    pytest.importorskip("nncf")
    works = {precision: quantization.digits_openvino(FakeDevice(), precision) for precision in ("fp32", "int8_static")}
    assert all(sum(right(work)["agreement"]) >= 0.97 * digits.TESTS for work in works.values())
    assert works["int8_static"].size_bytes < works["fp32"].size_bytes


@pytest.mark.parametrize("precision", quantization.DYNAMIC)
def test_bert_is_still_bert_in_onnx_runtime(precision):
    work = quantization.bert_base(FakeDevice(), precision)
    found = right(work)
    assert work.notes["weights"] == "random"
    if precision == "fp32":
        assert found["error"] < 1e-5
    else:
        assert 1e-5 < found["error"] < 0.1
        fp32 = quantization.bert_base(FakeDevice(), "fp32")
        assert fp32.size_bytes / work.size_bytes > 3.5


@pytest.mark.parametrize("precision", quantization.EAGER)
def test_bert_is_still_bert_in_torch(precision):
    pytest.importorskip("torchao")
    work = quantization.bert_base_torch(FakeDevice(), precision)
    found = right(work)
    assert found["cosine"] > 0.999
    fp32 = sum(array.nbytes for array in bert.weights("bert_base").values())
    if precision == "bf16":
        assert work.size_bytes == pytest.approx(fp32 / 2, rel=0.01)


def test_weights_alone_in_openvino_are_a_quarter_of_the_bytes():
    pytest.importorskip("openvino")
    pytest.importorskip("nncf")
    fp32, small = (quantization.bert_base_openvino(FakeDevice(), precision) for precision in ("fp32", "int8_weights"))
    assert right(small)["cosine"] > 0.999
    assert fp32.size_bytes / small.size_bytes > 3


@pytest.mark.parametrize("stage", ["torch_fp32", "ort_int8"])
def test_stage_of_the_vision_stack_is_the_same_network(stage):
    work = quantization.vision_stack(FakeDevice(), "mobilenet_v3", stage)
    assert right(work)["likeness"] > (0.9999 if stage == "torch_fp32" else 0.8)


@pytest.mark.parametrize("name", sorted(subjects.SUBJECTS))
def test_answers_to_something_else_are_called_wrong(name):
    """The network of every subject, shown something other than what it is asked about."""
    if name == "minilm":
        pytest.skip("in test_suites_minilm")
    if name == "ocr" and importlib.util.find_spec(ocr.PACKAGE) is None:
        pytest.skip("rapidocr is not installed")
    if name == "resnet50":
        pytest.skip("the same check as mobilenet_v3")
    subject = subjects.SUBJECTS[name]
    opened = precisions.ort(subject, "fp32", 1)

    def call(item):
        return opened.call({key: array if key in ("position_ids", "attention_mask") else array[..., ::-1].copy()
                            for key, array in item.items()})  # fmt: skip

    broken = dataclasses.replace(opened, call=call, run=lambda: call(subject.inputs()))
    work = precisions.work(subject, broken, "broken")
    with pytest.raises(Wrong, match="under 0"):
        work.check(work.run())


def test_no_numbers_are_called_wrong():
    subject = subjects.BERT_BASE
    opened = precisions.ort(subject, "fp32", 1)
    work = precisions.work(subject, opened, "nan")
    with pytest.raises(Wrong, match="nan"):
        work.check(work.run() * np.nan)


def test_crushed_weights_are_called_wrong(monkeypatch):
    """Static int8 with ranges from calibration data that are nothing like the images."""
    subject = subjects.DIGITS_CNN
    blank = dataclasses.replace(
        subject, name="crushed", calibration=lambda: [{"input": np.zeros((1, 1, 8, 8), "float32")}]
    )
    work = precisions.work(blank, precisions.ort(blank, "int8_static", 1), "crushed")
    with pytest.raises(Wrong, match="share of digits read as by fp32"):
        work.check(work.run())


def test_a_test_set_is_judged_once_for_all_launches(monkeypatch):
    subject = subjects.DIGITS_CNN
    opened = precisions.ort(subject, "fp32", 1)
    first = precisions.judged(subject, opened, "once")
    deaf = dataclasses.replace(opened, call=lambda item: pytest.fail("judged again"))
    assert precisions.judged(subject, deaf, "once") == first
    other = dataclasses.replace(opened, identity={"network": "another"}, call=lambda item: np.eye(10)[:1])
    assert precisions.judged(subject, other, "once") != first


def test_vendor_tools_write_nothing_to_standard_output(capfd):
    """Standard output of a worker belongs to the harness."""
    pytest.importorskip("nncf")
    quantizers.nncf_weights(bert.graph("bert_base"), "quiet")
    assert capfd.readouterr().out == ""
