"""Fused blocks and compiled networks give the answer of the unfused ones, and what does not is called wrong."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

from bench.api import Skip, Wrong  # noqa: E402
from bench.testing import FakeDevice  # noqa: E402
from suites import compiled, fusion, fusion_cuda  # noqa: E402
from suites.models import bert, blocks, blocks_torch, vision  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def _small(tmp_path_factory):
    """A cache of our own, and small networks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BENCH_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setitem(blocks.SHAPES, "convolutions", (blocks.CHANNELS, 8, 8))
        patch.setitem(blocks.SHAPES, "gelu", (4, blocks.WIDTH))
        tiny = bert.Size(layers=2, width=64, heads=4, inner=128, words=30522, places=128)
        patch.setitem(bert.SIZES, "bert_base", tiny)
        patch.setitem(fusion.ENCODERS, "bert_base", tiny)
        patch.setattr(vision, "SHAPE", (3, 64, 64))
        patch.setattr(vision, "IMAGES", 4)
        patch.setattr(vision.images, "__defaults__", (4, 0, 64))
        yield


@pytest.fixture
def _uncompiled(monkeypatch):
    """torch.compile takes tens of seconds: here it hands the module back."""
    monkeypatch.setattr(torch, "compile", lambda module: module)
    monkeypatch.setattr(compiled, "compiler", lambda: None)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "")


@pytest.mark.parametrize("block", fusion.BLOCKS)
def test_blocks_are_fused_step_by_step_in_onnx_runtime(block):
    kinds = {}
    for graph in ("unfused", "basic", "all"):
        work = fusion.blocks_ort(FakeDevice(), block, graph)
        found = work.run()
        assert work.check(found) is True
        assert work.report(found) == {"error": 0.0}
        kinds[graph] = work.notes["operators"]
    if block == "convolutions":
        assert "8 BatchNormalization" in kinds["unfused"]
        assert "BatchNormalization" not in kinds["basic"]
        assert "Relu" not in kinds["all"]
    else:
        assert "8 Erf" in kinds["unfused"]
        assert "Erf" not in kinds["all"]
        assert "Gelu" in kinds["all"]


@pytest.mark.parametrize("block", fusion.BLOCKS)
def test_block_without_one_layer_is_called_wrong(block):
    stack = blocks.module(block)
    kinds = (torch.nn.BatchNorm2d, torch.nn.GELU)
    shorter = torch.nn.Sequential(*(layer for layer in stack if not isinstance(layer, kinds)))
    with torch.inference_mode():
        found = shorter(torch.from_numpy(blocks.inputs(block))).numpy()
    with pytest.raises(Wrong, match="relative error"):
        fusion.close(found, blocks.reference(block))


def test_folding_by_hand_takes_every_normalisation_away():
    stack = blocks.module("convolutions")
    folded = blocks_torch.folded(stack)
    assert len(folded) == 2 * blocks.DEPTH
    work = fusion.blocks_torch(FakeDevice(), "convolutions", "folded")
    assert work.check(work.run()) is True


@pytest.mark.parametrize("graph", fusion.GRAPHS)
def test_bert_is_the_same_at_every_level(graph):
    work = fusion.bert_base_ort(FakeDevice(), graph)
    assert work.check(work.run()) is True
    assert ("Attention" in work.notes["operators"]) == (graph == "optimizer")


@pytest.mark.parametrize("engine", ["eager", "compile", "ort", "openvino"])
@pytest.mark.parametrize("network", ["bert_base", "mobilenet_v3"])
@pytest.mark.usefixtures("_uncompiled")
def test_engines_run_the_same_network(network, engine):
    if engine == "openvino":
        pytest.importorskip("openvino")
    work = fusion.engines(FakeDevice(), network, engine)
    found = work.run()
    assert work.check(found) is True
    assert work.report(found)["build"] >= 0
    with pytest.raises(Wrong):
        work.check(found * 1.01)


@pytest.mark.usefixtures("_uncompiled")
def test_cold_compilation_is_measured_once_per_machine(monkeypatch):
    module = blocks.module("gelu")
    inputs = [torch.from_numpy(blocks.inputs("gelu"))]
    _, cold = compiled.warm("once", module, inputs, sources=[])
    monkeypatch.setattr(compiled.shutil, "rmtree", lambda *a, **k: pytest.fail("compiled cold again"))
    call, again = compiled.warm("once", module, inputs, sources=[])
    assert again == cold > 0
    assert call().shape == (1, *blocks.SHAPES["gelu"])


def test_machine_without_a_compiler_is_skipped_with_advice(monkeypatch):
    monkeypatch.setattr(compiled.shutil, "which", lambda name: None)
    with pytest.raises(Skip, match=r"install g\+\+"):
        compiled.compiler()


def test_cuda_checks_catch_a_wrong_answer():
    right = torch.randn(2, 3, generator=torch.Generator().manual_seed(0))
    assert fusion_cuda._confirm(right.half(), right, 5e-3) < 1e-3
    with pytest.raises(Wrong, match="over 5e-03"):
        fusion_cuda._confirm(right * 1.1, right, 5e-3)
    with pytest.raises(Wrong, match="nan"):
        fusion_cuda._confirm(right * float("nan"), right, 5e-3)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
@pytest.mark.parametrize("backend", ["math", "efficient", "flash", "cudnn"])
def test_attention_on_the_gpu(backend):
    device = FakeDevice()
    device.name = "cuda"
    work = fusion_cuda.attention(device, backend, 128)
    assert work.check(work.run()) is True
