"""Where people decide: the numbers of the terminal in the browser, at two sizes and in both themes."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bench.commands._shared import estimates
from bench.detect import SENSITIVITIES
from bench.exports.table import to_csv
from bench.history import Action
from bench.model import Failure, FailureKind, Revision, Target
from bench.rereading import comparison_of
from bench.selftest import SOURCE, VARIABLE
from bench.sweep import sweep
from bench.testing import make_change, make_event, make_pair, make_regression, make_run
from db.store import open_store

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


@pytest.fixture
def triage_dashboard(tmp_path, long_history, serve):
    """(address, file) of one that lets everybody decide, on a database of its own."""
    file = tmp_path / "bench.db"
    with closing(sqlite3.connect(long_history[0])) as source, closing(sqlite3.connect(file)) as copy:
        source.backup(copy)
    return serve(file, "--allow-triage"), file


def decide(reader, word, text, button):
    """Choose what becomes of it, say why, press the button, and wait for the answer."""
    reader.page.get_by_role("radio", name=word, exact=True).click()
    reader.settle()
    reader.page.locator("[data-testid=stForm] input").first.fill(text)
    reader.page.get_by_role("button", name=button, exact=True).click()
    reader.page.wait_for_selector("[role=status]", timeout=60_000)
    reader.settle()
    return reader.page.inner_text("[role=status]")


def test_two_people_decide_at_once_and_nothing_is_lost(visit, triage_dashboard):
    address, file = triage_dashboard
    ada, grace = visit(address=address), visit("dark", address=address)
    for reader in (ada, grace):
        reader.open("/regressions?regression=ab12cd34")
        reader.page.wait_for_selector("[data-testid=stForm]", timeout=60_000)
    assert "Written down: it is expected" in decide(ada, "Expected", f"pays for the cache {EVIL}", "Mark as expected")
    assert "Somebody decided meanwhile" in decide(grace, "Acknowledge", "I look into it", "Acknowledge")
    grace.shoot("triage-late-dark-wide")
    assert grace.page.locator("[data-testid=stForm] input").first.input_value() == "I look into it"
    assert "pays for the cache" in grace.page.get_by_role("table", name="What happened").inner_text()
    assert "Written down: the note is added" in decide(grace, "Note", "seen by both", "Add the note")
    with closing(open_store(f"sqlite:///{file}")) as store:
        events = store.history.events("ab12cd34" * 4)
    assert [e.action for e in events] == [Action.OPENED, Action.EXPECTED, Action.NOTED]
    assert events[1].text == f"pays for the cache {EVIL}"
    assert ada.dialogs == grace.dialogs == []


@pytest.mark.parametrize(("name", "width", "height"), SIZES)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_form_fits(visit, triage_dashboard, theme, name, width, height):
    reader = visit(theme, width, height, address=triage_dashboard[0])
    reader.open("/regressions?regression=ab12cd34")
    reader.page.get_by_role("radio", name="Expected", exact=True).click()
    reader.page.wait_for_selector("text=Mark as expected", timeout=60_000)
    fits(reader, width)
    reader.shoot(f"triage-{theme}-{name}")


@pytest.fixture(scope="module")
def night_dashboard(tmp_path_factory, serve):
    """Address of one after two weeks of nights: a regression last night, a canary that moved, two self-tests."""
    file = tmp_path_factory.mktemp("night") / "bench.db"
    now = datetime.now(UTC)
    with closing(open_store(f"sqlite:///{file}", summarise=estimates)) as store:
        for day in range(14, -1, -1):
            if day in (9, 3):
                continue
            slow = 1.3 if day == 0 else 1.0
            begun = now - timedelta(days=day, hours=5)
            gone = Failure(kind=FailureKind.DIED, phase="round", message="killed by signal 9") if day == 6 else None
            one = make_run(seed=day, speedups=(1.0, 2.0 / slow, 0.8), started_at=begun, failure=gone)
            two = make_run(seed=day + 100, suite="canary", speedups=(1.0 / (1.09 if day < 2 else 1.0), 1.5))
            store.add(replace(one, experiments=one.experiments + two.experiments,
                              revision=Revision(commit=f"{day:x}a65fa9" + "0" * 33, branch="main")))  # fmt: skip
        target = Target(label="base0", variables={VARIABLE: "0"}), Target(label="+0%#0", variables={VARIABLE: "0"})
        pairs = [make_pair(name=f"selftest.w{k}", base=target[0], head=target[1], seed=k) for k in range(12)]
        store.add(
            replace(make_run(seed=500, started_at=now - timedelta(days=4)), source=SOURCE, experiments=tuple(pairs))
        )
        sweep(store.history, now=now, sensitivity=SENSITIVITIES[0], minimum=lambda series: 0.01)
        history, key = store.history, "ab12cd34" * 4
        series = {s.variant: s for s in history.series() if s.metric.name == "time"}
        slower = replace(make_change(1.3, regression=key), series=series["demo.net[engine=e1]"])
        moved = replace(make_change(1.09, variant="canary"), series=series["canary.net[engine=e0]"])
        moved = replace(moved, first_changed=replace(moved.first_changed, measured_at=now - timedelta(days=1)))
        history.record([slower, moved], seen={})
        found = replace(make_regression(key, title="demo.net[engine=e1] latency 1.3×", changes=[slower]), events=1,
                        opened_at=now)  # fmt: skip
        history.open_regression(found, replace(make_event(key, 1, Action.OPENED), at=now, changes=(slower.key,)))
    return serve(file)


def test_the_morning_is_read_in_one_line_and_leads_to_the_cause(visit, night_dashboard):
    reader = visit(address=night_dashboard)
    reader.open("/")
    text = reader.page.inner_text("[data-testid=stMain]")
    assert "1 cause of regressions; worst: demo.net[engine=e1] latency 1.30×" in text
    assert "0 of 12" in text
    assert "moved: ▼ worse" in text
    assert reader.page.get_by_role("list", name="The last days").get_by_role("listitem").count() == 14
    reader.page.get_by_role("table", name="Open regressions").get_by_role("link").first.click()
    reader.page.wait_for_selector("text=Around the change", timeout=60_000)
    assert "regression=ab12cd34" in reader.page.url


@pytest.mark.parametrize(("name", "width", "height"), SIZES)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_morning_fits(visit, night_dashboard, theme, name, width, height):
    reader = visit(theme, width, height, address=night_dashboard)
    reader.open("/")
    fits(reader, width)
    reader.shoot(f"today-{theme}-{name}")


@pytest.mark.parametrize(("name", "width", "height"), SIZES)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_run_shows_its_samples_and_fits(visit, runs, theme, name, width, height):
    reader = visit(theme, width, height)
    variant = "quantization.net[engine=e1]"
    reader.open(f"/runs?run={runs[0].key[:8]}&variant={variant}")
    reader.page.wait_for_selector(".js-plotly-plot .scatterlayer .trace", timeout=60_000)
    result = next(r for _, r in runs[0].arms() if r.arm.variant.name == variant)
    stored = [v / 1e3 for row in result.measurement("time").launches for v in row]
    drawn = reader.page.evaluate("Array.from(document.querySelector('.js-plotly-plot')._fullData[0].y)")
    assert drawn == pytest.approx(stored)  # in µs, as the axis says
    fits(reader, width)
    reader.shoot(f"run-{theme}-{name}")
    if (theme, name) == ("light", "wide"):
        with reader.page.expect_download(timeout=60_000) as waiting:
            reader.page.get_by_role("button", name="CSV").click()
        assert Path(waiting.value.path()).read_text(encoding="utf-8") == to_csv([runs[0]])
