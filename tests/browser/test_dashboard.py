"""What a person sees: the stored figures, at the address that was shared, in both themes, and nothing leaves."""

import re
import signal
import socket
import urllib.request
from zoneinfo import ZoneInfo

import pytest

from bench.tradeoffs import tradeoffs

pytestmark = [pytest.mark.service("chromium"), pytest.mark.slow]


def experiment_of(run, suite):
    return next(e for e in run.experiments if e.experiment.benchmark.suite == suite)


def test_the_chart_shows_the_stored_figures_at_a_deep_link(visit, runs):
    reader = visit()
    reader.open(f"/tradeoffs?run={runs[1].key}&suite=attention&y=size")
    expected = {
        v.label: (v.estimates["time"].value / 1e6, v.estimates["size"].value / 2**20)
        for v in tradeoffs(experiment_of(runs[1], "attention"))
        if v.failure is None
    }
    drawn = {label: (x, y) for label, x, y in reader.points()}
    assert drawn.keys() == expected.keys()
    for label, (x, y) in expected.items():
        assert drawn[label] == (pytest.approx(x), pytest.approx(y))
    text = reader.page.inner_text("[data-testid=stMain]")
    assert "openvino is not installed" in text
    assert "benchmark=attention.net" in reader.page.url


def test_choosing_another_suite_changes_chart_and_address_and_back_returns(visit, runs):
    reader = visit()
    reader.open(f"/tradeoffs?run={runs[0].key}&suite=attention")
    assert len(reader.points()) == 2
    box = reader.page.get_by_role("combobox", name="Suite")
    box.click()
    reader.page.get_by_role("option", name="quantization").click()
    reader.page.wait_for_function(
        "document.querySelector('.js-plotly-plot')?._fullData?.reduce((n, t) => n + t.x.length, 0) == 4"
    )
    reader.settle()
    assert "suite=quantization" in reader.page.url
    assert "benchmark=quantization.net" in reader.page.url
    assert "WRONG answer" in reader.page.inner_text("[data-testid=stMain]")
    for _ in range(4):  # one step for each parameter that followed
        if "suite=attention" in reader.page.url:
            break
        reader.page.go_back()
        reader.page.wait_for_timeout(300)
    assert "suite=attention" in reader.page.url
    reader.page.wait_for_selector("text=openvino is not installed", timeout=60_000)


def test_runs_lead_from_a_failure_to_its_message_and_on_to_the_tradeoffs(visit, runs):
    reader = visit()
    reader.open("/runs")
    text = reader.page.inner_text("[data-testid=stMain]")
    assert re.search(r"Last run \d+ min ago: 9 variants measured, 1 skipped, 1 wrong", text)
    assert "37 of 64 images" in text
    table = reader.page.get_by_role("table", name="Newest runs")
    assert table.get_by_role("row").count() == 1 + len(runs)
    table.get_by_role("row").nth(5).get_by_role("link", name="raised an error").click()
    reader.page.wait_for_selector("text=RuntimeError", timeout=60_000)
    assert f"run={runs[4].key}" in reader.page.url
    reader.settle()
    reader.open("/runs")
    reader.page.get_by_role("table", name="Newest runs").get_by_role("link", name="Tradeoffs").nth(1).click()
    reader.page.wait_for_selector(".js-plotly-plot", timeout=60_000)
    assert f"tradeoffs?run={runs[1].key}" in reader.page.url


def test_times_are_in_the_readers_zone(visit, runs):
    reader = visit(zone="Asia/Tokyo")
    reader.open("/runs")
    here = runs[0].started_at.astimezone(ZoneInfo("Asia/Tokyo"))
    text = reader.page.get_by_role("table", name="Newest runs").inner_text()
    assert f"{here:%Y-%m-%d %H:%M}" in text
    assert "Asia/Tokyo" in reader.page.inner_text("[data-testid=stMain]")


def test_hostile_names_do_nothing(visit, runs):
    reader = visit()
    for path in (f"/runs?run={runs[4].key}", f"/tradeoffs?run={runs[4].key}&suite=%3Cscript%3Ealert(1)%3C%2Fscript%3E"):
        reader.open(path)
        assert "<script>alert(1)</script>" in reader.page.inner_text("[data-testid=stMain]")
        links = reader.page.eval_on_selector_all("a", "found => found.map(a => a.href)")
        assert not [link for link in links if not link.startswith(reader.address)]
        assert reader.page.locator("[data-testid=stMain] script").count() == 0
    assert reader.dialogs == []


@pytest.mark.parametrize(("name", "width", "height"), [("wide", 1280, 900), ("phone", 390, 844)])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_page_fits_and_talks_to_nobody_else(visit, trap, runs, theme, name, width, height):
    reader = visit(theme, width, height)
    pages = {"runs": "/runs", "tradeoffs": f"/tradeoffs?run={runs[0].key}&suite=quantization", "claims": "/claims"}
    for page, path in pages.items():
        reader.open(path)
        if page == "tradeoffs":
            reader.points()
        wide = reader.page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth")
        assert wide <= width
        ground = reader.page.evaluate("getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor")
        assert ground == ("rgb(255, 255, 255)" if theme == "light" else "rgb(17, 21, 26)")
        reader.shoot(f"{page}-{theme}-{name}")
    assert reader.requests
    assert reader.strangers() == []
    with pytest.raises(BlockingIOError):
        trap.accept()  # nor did the server ask anyone


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_and_frees_the_port(start_dashboard, how):
    process, address = start_dashboard()
    port = int(address.rpartition(":")[2])
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(address) as answer:
        assert answer.status == 200
    process.send_signal(how)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 0, said
    assert "Traceback" not in said
    with socket.socket() as probe, pytest.raises(ConnectionRefusedError):
        probe.connect(("127.0.0.1", port))
