"""Smaller networks are the published shapes, students have learnt, and a damaged one is called wrong."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")
pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")
pytest.importorskip("sklearn")

from bench.api import Wrong  # noqa: E402
from bench.testing import FakeDevice  # noqa: E402
from suites import smaller  # noqa: E402
from suites.models import bert, digits, digits_torch, efficientnet_torch, sizes, students, vision  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def _short(tmp_path_factory):
    """A cache of our own, short training, small images, a small BERT."""
    threads = torch.get_num_threads()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BENCH_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setattr(digits, "EPOCHS", 3)
        patch.setattr(students, "EPOCHS", 3)
        patch.setattr(students, "SEEDS", 5)
        patch.setattr(smaller, "LEAST", 0.3)
        patch.setitem(sizes.NETWORKS, "efficientnet_b0", 64)
        patch.setitem(bert.SIZES, "tiny", bert.Size(layers=2, width=32, heads=4, inner=64, words=30522, places=128))
        yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("network", ["teacher", *students.KINDS])
def test_network_reads_digits_and_damage_is_wrong(network):
    work = smaller.distillation(FakeDevice(), network)
    found = work.run()
    assert work.check(found) is True
    with pytest.raises(Wrong, match="relative error"):
        work.check(found[::-1])
    report = work.report(found)
    assert len(report["accuracy"]) == digits.TESTS
    assert report["seeds_gain_low"] <= report["seeds_gain"] <= report["seeds_gain_high"]
    if network == "scratch":
        assert report["seeds_gain"] == 0


def test_network_that_learnt_nothing_is_wrong():
    _, labels = digits.test_images()
    right = np.eye(digits.CLASSES)[labels]
    assert smaller.learnt(right)
    with pytest.raises(Wrong, match="of the digits"):
        smaller.learnt(np.roll(right, 1, axis=0))


def test_kinds_of_students_begin_alike_and_end_differently():
    scratch, distilled = (np.load(students.trained(kind) / students.ANSWERS) for kind in students.KINDS)
    assert scratch.shape == distilled.shape == (5, digits.TESTS, digits.CLASSES)
    assert not np.allclose(scratch, distilled, atol=0.1)
    assert len({answers.tobytes() for answers in scratch}) == 5


def test_loss_is_least_where_the_student_answers_as_its_teacher():
    teacher = digits_torch.network(digits.WIDTHS, 0).eval()
    images = torch.from_numpy(digits.images()["train_images"][:8])
    logits = teacher(images).detach()
    loss = students.distilling(teacher)
    labels = logits.argmax(dim=1)
    assert float(loss(logits, images, labels)) < float(loss(logits.flip(0), images, labels))


def test_interval_is_students():
    low, mean, high = smaller.interval(np.array([1.0, 2, 3, 4, 5]))  # half width 2.776 · √2.5 / √5
    assert (low, mean, high) == pytest.approx((3 - 1.963, 3, 3 + 1.963), abs=1e-3)


@pytest.mark.parametrize("widths", [digits.WIDTHS, students.WIDTHS])
def test_counts_of_the_digits_networks_are_right(widths):
    from torch.utils.flop_counter import FlopCounterMode

    network = digits_torch.network(widths, 0).eval()
    with FlopCounterMode(display=False) as counter:
        network(torch.zeros(1, *digits.SHAPE))
    counts = smaller.cnn_counts(*widths)
    assert counts["parameters"] == sum(p.numel() for p in network.parameters())
    assert counts["macs"] == counter.get_total_flops() // 2


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("efficientnet_b0", 5_288_548), ("efficientnet_b4", 19_341_616), ("efficientnet_b7", 66_347_960)],
)
def test_efficientnets_have_the_published_number_of_parameters(name, parameters):
    """As torchvision's documentation states them."""
    with torch.device("meta"):
        network = efficientnet_torch.network(name)
    assert sum(p.numel() for p in network.parameters()) == parameters


def test_efficientnet_is_right_in_the_runtime_and_another_answer_is_wrong():
    work = smaller.architectures(FakeDevice(), "efficientnet_b0")
    found = work.run()
    assert work.check(found) is True
    report = work.report(found)
    assert report["parameters"] == 5_288_548
    # 0.39 billion at 224 × 224 pixels (table 2 of the paper), here over 64 × 64.
    assert report["macs"] == pytest.approx(0.39e9 * (64 / 224) ** 2, rel=0.1)
    with pytest.raises(Wrong, match="relative error"):
        work.check(found[:, ::-1])


def test_efficientnet_tells_images_apart():
    """Without settled normalisation its answers would hardly depend on the image."""
    network = sizes.module("efficientnet_b0")
    with torch.inference_mode():
        one, other = network(torch.from_numpy(vision.images(2, side=64)))
    assert float((one - other).norm() / one.norm()) > 0.1


def test_encoder_is_right_and_its_macs_are_those_of_its_graph():
    from torch.utils.flop_counter import FlopCounterMode

    work = smaller.encoders(FakeDevice(), "tiny")
    found = work.run()
    assert work.check(found) is True
    with pytest.raises(Wrong, match="relative error"):
        work.check(found * float("nan"))
    with FlopCounterMode(display=False) as counter:
        bert.module("tiny")(torch.from_numpy(bert.tokens()))
    assert work.report(found)["macs"] == counter.get_total_flops() // 2
