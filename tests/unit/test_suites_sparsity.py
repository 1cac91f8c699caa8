"""Pruned networks are what was taken from the trained one, and a damaged one is called wrong."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")
pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")
pytest.importorskip("sklearn")

from bench.api import Skip, Wrong  # noqa: E402
from bench.measure.contract import require  # noqa: E402
from bench.testing import FakeDevice  # noqa: E402
from suites import sparsity  # noqa: E402
from suites.models import digits, pruned, pruning_torch  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def _short(tmp_path_factory):
    """A cache of our own, and short training: accuracy is another test's matter."""
    threads = torch.get_num_threads()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BENCH_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setattr(digits, "EPOCHS", 3)
        patch.setattr(pruning_torch, "TUNING_EPOCHS", 2)
        patch.setattr(pruned, "SIDE", 32)
        patch.setattr(sparsity, "ROWS", 256)
        yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("method", ["dense", "zeros_90", "channels_30_raw", "channels_30_aligned"])
def test_pruned_network_is_right_in_the_runtime(method):
    work = sparsity.methods(FakeDevice(), method)
    found = work.run()
    assert found.shape == (sparsity.BATCH, digits.CLASSES)
    assert work.check(found) is True
    report = work.report(found)
    assert len(report["accuracy"]) == digits.TESTS
    assert report["macs"] == pruned.macs(method)
    with pytest.raises(Wrong, match="relative error"):
        work.check(found[::-1])
    with pytest.raises(Wrong, match="relative error"):
        work.check(found * float("nan"))


def test_openvino_runs_the_same_network():
    pytest.importorskip("openvino")
    work = sparsity.methods_openvino(FakeDevice(), "channels_30_raw")
    assert work.check(work.run()) is True


def test_fine_tuning_that_failed_is_wrong():
    """The raw network's answers under the tuned one's name: right arithmetic, and it reads nothing."""
    raw = np.load(pruned.graph("channels_50_raw") / pruned.LOGITS)
    with pytest.raises(Wrong, match="lost"):
        sparsity.faithful("channels_50", raw[:8], raw, raw)
    assert sparsity.faithful("channels_50_raw", raw[:8], raw, raw)


def test_shares_are_what_the_methods_say():
    dense = digits.module()
    for share in (0.3, 0.9):
        for layer in pruning_torch.zeroed(dense, share).modules():
            if isinstance(layer, torch.nn.Conv2d):
                assert float((layer.weight == 0).float().mean()) == pytest.approx(share, abs=0.003)
    assert all(bool((p != 0).any()) for p in dense.parameters())
    assert 1 - pruned.macs("channels_30") / pruned.macs("dense") == pytest.approx(0.52, abs=0.01)
    assert pruned.macs("zeros_90") == pruned.macs("dense")
    first, rest = pruned.widths("channels_30_aligned")
    assert first % pruned.VECTOR == rest % pruned.VECTOR == 0
    assert (first + 2 * rest) / (digits.WIDTHS[0] + 2 * digits.WIDTHS[1]) == pytest.approx(0.7)


@pytest.mark.parametrize("method", ["dense", "channels_30_raw", "channels_50_raw"])
def test_macs_are_those_that_torch_counts(method):
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        pruned.network(method)(torch.zeros(1, *digits.SHAPE))
    assert counter.get_total_flops() == 2 * pruned.macs(method)


def test_wide_macs_are_those_that_torch_counts():
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        pruning_torch.wide((4, 8), pruned.CLASSES)(torch.zeros(1, 3, pruned.SIDE, pruned.SIDE))
    assert counter.get_total_flops() == 2 * pruned.wide_macs((4, 8))


def test_channels_that_say_nothing_go_without_a_trace():
    """A network whose weakest half is silent keeps its answers when that half is taken out."""
    network = digits.module()
    with torch.no_grad():
        for conv, norm in (
            (network.conv1, network.norm1),
            (network.conv2, network.norm2),
            (network.conv3, network.norm3),
        ):
            weak = conv.weight.abs().sum(dim=(1, 2, 3)).argsort()[: conv.out_channels // 2]
            conv.weight[weak] = 0
            norm.weight[weak] = 0
            norm.bias[weak] = 0
    images = torch.from_numpy(digits.test_images()[0][:16])
    with torch.inference_mode():
        assert torch.allclose(
            pruning_torch.slimmed(network, pruned.widths("channels_50"))(images), network(images), atol=1e-4
        )


@pytest.mark.parametrize("method", ["dense", "channels_50"])
def test_wide_network_is_right_and_another_answer_is_wrong(method, monkeypatch):
    monkeypatch.setattr(sparsity, "WIDE", {"dense": ((8, 16), 0.0), "channels_50": ((4, 8), 0.0)})
    work = sparsity.wide_cnn(FakeDevice(), method)
    found = work.run()
    assert work.check(found) is True
    with pytest.raises(Wrong, match="relative error"):
        work.check(found[:, ::-1])


@pytest.mark.parametrize("zeros", [0.5, 0.9])
@pytest.mark.parametrize("format", ["dense", "csr"])
def test_product_is_right_and_a_lost_row_is_wrong(format, zeros):
    work = sparsity.matvec(FakeDevice(), format, zeros)
    found = work.run()
    assert work.check(found) is True
    damaged = found.clone()
    damaged[found.abs().argmax()] = 0
    with pytest.raises(Wrong, match="relative error"):
        work.check(damaged)


def test_sparse_format_is_smaller_only_where_most_is_zero():
    size = {zeros: sparsity.matvec(FakeDevice(), "csr", zeros).size_bytes for zeros in (0.5, 0.9)}
    dense = sparsity.matvec(FakeDevice(), "dense", 0.5).size_bytes
    assert size[0.9] < dense / 2 < dense < size[0.5]


def test_two_of_every_four_are_zero_and_the_larger_ones_stay():
    weight = torch.tensor([[4.0, -1, 3, 2, 0.1, -9, 8, 7]])
    assert sparsity.two_of_four(torch, weight).tolist() == [[4, 0, 3, 0, 0, -9, 8, 0]]


def test_gpu_variants_are_skipped_without_one():
    with pytest.raises(Skip, match="needs the device cuda"):
        require(sparsity.cuda_2_4.__bench_benchmark__.requires, "cpu")
