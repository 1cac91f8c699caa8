"""Where people decide: the numbers of the terminal in the browser, at two sizes and in both themes."""

from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bench.model import Failure, FailureKind, Revision, Target
from bench.rereading import comparison_of
from bench.testing import make_pair, make_run

pytestmark = [pytest.mark.service("chromium"), pytest.mark.slow]

EVIL = "<script>alert(1)</script>"
SIZES = [("wide", 1280, 900), ("phone", 390, 844)]
FOREST = """() => document.querySelector('.js-plotly-plot')._fullData.flatMap(
  t => Array.from(t.x, (x, i) => [t.customdata[i][0], [t.name, x, t.error_x.array[i], t.error_x.arrayminus[i]]]))"""


def fits(reader, width):
    assert reader.page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= width
    assert reader.dialogs == []
    assert reader.strangers() == []


@pytest.fixture(scope="module")
def gate_run():
    """A pull request as `bench compare` stores it: slower, faster, the same, undecided, broken."""
    base = Target(label="main (3a65fa9)", revision=Revision(commit="3a65fa9c1d2e44b7a8e05f60718293a4b5c6d7e8"))
    head = Target(label="b81c0de", revision=Revision(commit="b81c0de75f1e44b7a8e05f60718293a4b5c6d7e8"))
    gone = Failure(kind=FailureKind.RAISED, phase="set_up", message=f"ImportError: {EVIL} [x](javascript:alert(1))")
    sides = {"base": base, "head": head}
    pairs = [
        make_pair(1.34, name="quantization.minilm", **sides), make_pair(1.04, name="attention.flash", seed=1, **sides),
        make_pair(0.62, name="caching.embedding", seed=2, **sides),
        make_pair(name="serialization.json", seed=3, **sides),
        make_pair(1.02, name="fusion.conv_bn_relu_block_of_resnet50_at_batch_32", noise=0.08, seed=4, **sides),
        make_pair(name=f"fusion.{EVIL}", failure=gone, **sides),
    ]  # fmt: skip
    start_ = datetime.now(UTC) - timedelta(minutes=40)
    return replace(
        make_run(seed=77), experiments=tuple(pairs), started_at=start_, finished_at=start_ + timedelta(minutes=9),
        revision=head.revision,
    )  # fmt: skip


@pytest.fixture(scope="module")
def gate_dashboard(tmp_path_factory, gate_run, serve):
    """Address of a dashboard with that run and two of the night before."""
    from db.store import open_store

    file = tmp_path_factory.mktemp("gate") / "bench.db"
    with closing(open_store(f"sqlite:///{file}")) as store:
        for day in (2, 1):
            before = datetime.now(UTC) - timedelta(days=day)
            store.add(make_run(seed=day, started_at=before, speedups=(1.0, 2.0, 0.8, 1.7)))
        store.add(gate_run)
    return serve(file)


def test_the_forest_draws_the_gates_ratios_and_filters_by_verdict(visit, gate_dashboard, gate_run):
    reader = visit(address=gate_dashboard)
    reader.open(f"/compare?head={gate_run.key[:8]}")
    reader.page.wait_for_selector(".js-plotly-plot .scatterlayer .trace", timeout=60_000)
    judged = comparison_of(gate_run)
    drawn = dict(reader.page.evaluate(FOREST))
    expected = {arm.name: next(c for c in arm.comparisons if c.metric.name == "time")
                for arm in judged.arms if arm.comparisons}  # fmt: skip
    assert drawn.keys() == expected.keys()
    for name, c in expected.items():
        change = c.change
        assert drawn[name] == [c.verdict.value, pytest.approx(change.value), pytest.approx(change.high - change.value),
                               pytest.approx(change.value - change.low)]  # fmt: skip
    text = reader.page.inner_text("[data-testid=stMain]")
    assert "6 variants: 2 regressed, 1 failed, 1 inconclusive, 1 improved, 1 unchanged" in text
    assert "bench compare 3a65fa9c1d2e b81c0de75f1e quantization.minilm" in text
    reader.page.get_by_role("combobox", name="Verdict").click()
    reader.page.get_by_role("option", name="improved").click()
    reader.page.wait_for_selector("text=5 variants left out", timeout=60_000)
    assert "verdict=improved" in reader.page.url


@pytest.mark.parametrize(("name", "width", "height"), SIZES)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_comparisons_fit(visit, gate_dashboard, gate_run, theme, name, width, height):
    reader = visit(theme, width, height, address=gate_dashboard)
    for page, path in (
        ("compare-gate", f"/compare?head={gate_run.key}"), ("compare-runs", "/compare?base=latest~2&head=latest~1")
    ):  # fmt: skip
        reader.open(path)
        reader.page.wait_for_selector(".js-plotly-plot .scatterlayer .trace", timeout=60_000)
        fits(reader, width)
        reader.shoot(f"{page}-{theme}-{name}")
