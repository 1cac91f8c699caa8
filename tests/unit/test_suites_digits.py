"""The digits CNN is trained the same way each time, and its graph is the same network."""

from __future__ import annotations

import pytest

pytest.importorskip("sklearn")
pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

from suites.models import digits, digits_torch, minilm, torch_onnx  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def _short(tmp_path_factory):
    """A cache of our own and a quarter of the training."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BENCH_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setattr(digits, "EPOCHS", 2)
        yield


def test_images_are_split_once_and_for_all():
    found = digits.images()
    assert found["train_images"].shape == (1297, 1, 8, 8)
    assert found["test_images"].shape == (500, 1, 8, 8)
    assert (found["test_images"].min(), found["test_images"].max()) == (0, 1)
    assert found["test_labels"][:8].tolist() == [4, 7, 8, 9, 3, 7, 8, 3]
    test = {image.tobytes() for image in found["test_images"]}
    assert not test & {image.tobytes() for image in found["train_images"]}


def test_training_gives_the_same_bits_again_and_leaves_the_caller_alone():
    state, threads = torch.random.get_rng_state(), torch.get_num_threads()
    first, second = (
        digits_torch.train(digits_torch.network((4, 8), 3), epochs=1, seed=3).state_dict() for _ in range(2)
    )
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.get_num_threads() == threads
    other = digits_torch.train(digits_torch.network((4, 8), 4), epochs=1, seed=4).state_dict()
    assert not torch.equal(first["head.weight"], other["head.weight"])


def test_graph_is_the_trained_network_and_reads_digits():
    session = minilm.session(digits.graph() / digits.MODEL, 1)
    logits = session.run(None, {"input": digits.test_images()[0]})[0]
    assert np.abs(logits - digits.reference()).max() < 1e-4
    found = digits.accuracy(logits)
    assert len(found["accuracy"]) == len(found["agreement"]) == digits.TESTS
    assert sum(found["accuracy"]) > 0.93 * digits.TESTS
    assert all(found["agreement"])
    shuffled = digits.accuracy(np.roll(logits, 1, axis=1))
    assert sum(shuffled["agreement"]) == 0
    assert sum(shuffled["accuracy"]) < 0.05 * digits.TESTS


def test_graph_leaves_every_fusion_to_the_runtime():
    onnx = pytest.importorskip("onnx")
    kinds = [node.op_type for node in onnx.load(str(digits.graph() / digits.MODEL)).graph.node]
    block = ["Conv", "BatchNormalization", "Relu"]
    assert kinds == [*block * 3, "ReduceMean", "Gemm", "Identity"]


class Every(torch.nn.Module):
    """One of each layer and function that can be translated."""

    def __init__(self) -> None:
        super().__init__()
        nn = torch.nn
        self.stem = nn.Sequential(nn.Conv2d(2, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.Hardswish())
        self.deep = nn.Sequential(nn.Conv2d(8, 8, 5, padding=2, groups=8), nn.SiLU(), nn.MaxPool2d(3, 2, 1))
        self.gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(8, 8, 1), nn.ReLU(), nn.Hardsigmoid())
        self.tail = nn.Sequential(nn.Linear(8, 6), nn.GELU(), nn.Identity(), nn.Linear(6, 5), nn.Sigmoid())

    def forward(self, images):
        hidden = self.deep(self.stem(images))
        hidden = torch.relu(hidden * self.gate(hidden) + hidden)
        return self.tail(hidden.mean((2, 3)) + torch.flatten(self.gate(hidden), 1))


def test_every_layer_is_translated_rightly(tmp_path):
    network = Every().eval()
    torch_onnx.save(network, tmp_path / "every.onnx", (2, 16, 16), "every")
    images = torch.randn(3, 2, 16, 16, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        expected = network(images).numpy()
    found = minilm.session(tmp_path / "every.onnx", 1).run(None, {"input": images.numpy()})[0]
    assert np.abs(found - expected).max() < 1e-5


@pytest.mark.parametrize("layer", [torch.nn.Dropout2d(), torch.nn.AdaptiveAvgPool2d(2), torch.nn.Softmax(1)])
def test_layer_without_translation_is_named_never_guessed(layer, tmp_path):
    with pytest.raises(NotImplementedError, match=r"no ONNX translation of call_module 0|average pooling to 2"):
        torch_onnx.save(torch.nn.Sequential(layer), tmp_path / "x.onnx", (1, 4, 4), "x")
