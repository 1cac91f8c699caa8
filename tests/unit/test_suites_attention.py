"""Each kind of attention is what its definition says; a changed one, or another kind, is called wrong."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from bench.api import Skip, Wrong  # noqa: E402
from bench.measure.contract import require  # noqa: E402
from bench.testing import FakeDevice  # noqa: E402
from suites import attention  # noqa: E402
from suites.models import attention_torch as module  # noqa: E402

LENGTH = 256


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    threads = torch.get_num_threads()
    monkeypatch.setattr(module, "HEADS", 2)
    monkeypatch.setattr(module, "INNER", 64)
    monkeypatch.setattr(attention, "LAYER_LENGTH", LENGTH)
    monkeypatch.setattr(attention, "SWEEP", (128, 256))
    yield
    torch.set_num_threads(threads)


def check(kind, found):
    return attention.right(torch, module, kind, module.heads(LENGTH), found)


@pytest.mark.parametrize("kind", attention.KINDS)
def test_operator_is_right_and_counts_what_it_does(kind):
    work = attention.attending(FakeDevice(), kind, LENGTH)
    found = work.run()
    assert work.check(found) is True
    report = work.report(found)
    assert (report["distance"] == 0) == (kind in ("eager", "sdpa"))
    products = 2 * 2 * 2 * LENGTH * LENGTH * module.HEAD_WIDTH
    assert report["operations"] == {
        "eager": products, "sdpa": products, "local": products // 2,
        "linear": 2 * LENGTH * (2 * 2 * module.HEAD_WIDTH**2 + 2 * module.HEAD_WIDTH),
    }[kind]  # fmt: skip


@pytest.mark.parametrize("kind", attention.KINDS)
def test_operations_are_those_that_torch_counts(kind):
    """torch's own counter of matrix products."""
    counter = pytest.importorskip("torch.utils.flop_counter")
    products = torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH)  # it knows no CPU kernel of SDPA
    with products, counter.FlopCounterMode(display=False) as counted:
        module.KINDS[kind](*module.heads(LENGTH))
    stated = attention.operations(kind, LENGTH, module.HEADS, module.HEAD_WIDTH, module.WINDOW)
    assert counted.get_total_flops() == stated


@pytest.mark.parametrize("kind", attention.KINDS)
@pytest.mark.parametrize("other", attention.KINDS)
def test_another_kind_is_wrong(kind, other):
    found = module.KINDS[other](*module.heads(LENGTH))
    if {kind, other} <= {"eager", "sdpa"} or kind == other:
        assert check(kind, found)
        return
    with pytest.raises(Wrong, match="relative error to the definition"):
        check(kind, found)


def test_forgotten_scale_lost_sum_wrong_shape_and_no_number_are_wrong():
    query, key, value = module.heads(LENGTH)
    with pytest.raises(Wrong, match="relative error"):
        check("eager", torch.softmax(query @ key.transpose(-1, -2), -1) @ value)
    phi_q, phi_k = torch.nn.functional.elu(query) + 1, torch.nn.functional.elu(key) + 1
    with pytest.raises(Wrong, match="relative error"):
        check("linear", phi_q @ (phi_k.transpose(-1, -2) @ value))
    with pytest.raises(Wrong, match="shape"):
        check("eager", query[..., :-1])
    with pytest.raises(Wrong, match="nan"):
        check("eager", value * float("nan"))


def test_window_sees_its_own_positions_only():
    query, key, value = module.heads(LENGTH)
    changed = value.clone()
    changed[..., module.WINDOW :, :] = 0
    assert torch.equal(
        module.local(query, key, value)[..., : module.WINDOW, :],
        module.local(query, key, changed)[..., : module.WINDOW, :],
    )


@pytest.mark.parametrize("kind", attention.KINDS)
def test_layer_is_right_and_another_attention_in_it_is_wrong(kind):
    work = attention.layer(FakeDevice(), kind)
    found = work.run()
    assert work.check(found) is True
    assert (work.report(found)["distance"] == 0) == (kind in ("eager", "sdpa"))
    other = attention.layer(FakeDevice(), "local" if kind == "linear" else "linear").run()
    with pytest.raises(Wrong):
        work.check(other)


@pytest.mark.parametrize("kind", attention.KINDS)
def test_growth_is_measured_and_checked(kind):
    work = attention.growth(FakeDevice(), kind)
    slope, found = work.run()
    assert work.once
    assert work.check((slope, found)) is True
    assert work.report((slope, found)) == {"growth": slope}
    with pytest.raises(Wrong):
        work.check((slope, found + 1))


def test_exponent_is_the_power_of_a_power_law():
    assert attention.exponent({n: 3e-9 * n**2 for n in (512, 1024, 4096)}) == pytest.approx(2)
    assert attention.exponent({n: 5e-6 * n for n in (512, 1024)}) == pytest.approx(1)


def test_gpu_variants_are_skipped_without_one():
    with pytest.raises(Skip, match="needs the device cuda"):
        require(attention.cuda_op.__bench_benchmark__.requires, "cpu")


def test_one_back_end_alone_is_used_and_an_unknown_one_skips():
    parts = module.heads(LENGTH)
    found = attention.on_backend(torch, module.sdpa, "MATH")(*parts)
    assert check("eager", found)
    with pytest.raises(Skip, match="no back end NO_SUCH"):
        attention.on_backend(torch, module.sdpa, "NO_SUCH")
