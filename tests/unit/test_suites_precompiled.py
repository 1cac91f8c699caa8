"""What was prepared answers as what was not; when it is earned back is simple arithmetic."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

from bench.api import Wrong  # noqa: E402
from bench.testing import FakeDevice  # noqa: E402
from suites import compiled, precompiled, subjects  # noqa: E402
from suites.models import bert, vision  # noqa: E402
from suites.precompiled import NEVER, Life, break_even  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def _small(tmp_path_factory):
    """A cache of our own, and small networks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BENCH_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setitem(bert.SIZES, "bert_base", bert.Size(layers=2, width=64, heads=4, inner=128))
        patch.setattr(vision, "SHAPE", (3, 64, 64))
        patch.setattr(vision, "IMAGES", 4)
        patch.setattr(vision.images, "__defaults__", (4, 0, 64))
        patch.setattr(precompiled, "STEADY", 3)
        yield


def right(work) -> dict[str, float]:
    call = work.run()
    assert work.check(call) is True
    with pytest.raises(Wrong):
        work.check(lambda: call() * 1.01)
    return work.report(call)


@pytest.mark.parametrize("form", precompiled.FORMS)
def test_saved_graphs_answer_as_the_plain_one(form):
    work = precompiled.mobilenet_ort(FakeDevice(), form)
    found = right(work)
    assert found["first_answer"] > found["steady"] > 0
    assert (found["build"] > 0) == (form != "online")


@pytest.mark.parametrize("form", ["online", "compiled"])
def test_openvino_blob_answers_as_the_network_compiled_now(form):
    pytest.importorskip("openvino")
    found = right(precompiled.openvino(FakeDevice(), "mobilenet_v3", form))
    assert (found["build"] > 0) == (form == "compiled")


def test_compiled_module_answers_as_the_eager_one(monkeypatch):
    """torch.compile takes tens of seconds: here it hands the module back."""
    monkeypatch.setattr(torch, "compile", lambda module: module)
    monkeypatch.setattr(compiled, "compiler", lambda: None)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "")
    monkeypatch.setitem(subjects.SUBJECTS, "minilm", subjects.BERT_BASE)
    monkeypatch.setattr(precompiled, "module_of", lambda network, attention: bert.module("bert_base", attention))
    monkeypatch.setattr(precompiled, "reference", lambda network: bert.reference("bert_base"))
    for form in ("eager", "compile"):
        work = precompiled.minilm_torch(FakeDevice(), form)
        assert work.once
        assert (right(work)["build"] > 0) == (form == "compile")


def test_graph_of_another_network_is_called_wrong(monkeypatch):
    """A cache that hands out the wrong file must not be measured."""
    expected = vision.reference("mobilenet_v3")
    monkeypatch.setattr(precompiled, "reference", lambda name: expected[1:2])
    work = precompiled.mobilenet_ort(FakeDevice(), "saved")
    with pytest.raises(Wrong, match="relative error"):
        work.check(work.run())


@pytest.mark.parametrize(
    ("build", "ours", "plain", "calls", "starts"),
    [
        (10.0, Life(first=1, steady=0.5), Life(first=2, steady=1.0), 18, 10),
        (10.0, Life(first=1, steady=1.0), Life(first=2, steady=1.0), NEVER, 10),
        (10.0, Life(first=3, steady=0.99), Life(first=2, steady=1.0), NEVER, NEVER),
        (0.5, Life(first=1, steady=1.0), Life(first=2, steady=1.0), 1, 0.5),
    ],
)
def test_break_even(build, ours, plain, calls, starts):
    assert break_even(build, ours, plain) == {"calls": pytest.approx(calls), "starts": pytest.approx(starts)}
