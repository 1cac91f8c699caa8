"""Trends and regressions as a person sees them: the stored values, at the address that was shared."""

import pytest

pytestmark = [pytest.mark.service("chromium"), pytest.mark.slow]

TRACES = """() => document.querySelector('.js-plotly-plot')._fullData.map(
  t => ({name: t.name, x: Array.from(t.x), y: Array.from(t.y), symbol: t.marker?.symbol,
         high: t.error_y?.array ? Array.from(t.error_y.array) : []}))"""


def traces(reader):
    """What is drawn, by name. `_fullData`, since Plotly sends typed arrays."""
    reader.page.wait_for_selector(".js-plotly-plot .scatterlayer .trace", timeout=60_000)
    return {t["name"]: t for t in reader.page.evaluate(TRACES)}


def test_a_trend_shows_the_stored_points_with_their_intervals_and_the_change(visit, history_dashboard, long_history):
    _, series, points, change = long_history
    reader = visit(address=history_dashboard)
    reader.open(f"/trends?series={series.fingerprint}")
    drawn = traces(reader)
    own = drawn[series.variant]
    assert own["x"] == list(range(30))
    assert own["y"] == pytest.approx([p.estimate.value / 1e6 for p in points])
    highs = [y + up for y, up in zip(own["y"], own["high"], strict=True)]
    assert highs == pytest.approx([p.estimate.high / 1e6 for p in points])
    assert drawn[f"changes of {series.variant}"]["x"] == [points.index(change.first_changed)]
    assert "metric=time" in reader.page.url


def test_a_regression_leads_to_its_history_and_hostile_words_do_nothing(visit, history_dashboard, long_history):
    _, series, _, change = long_history
    reader = visit(address=history_dashboard)
    reader.open("/regressions")
    row = reader.page.get_by_role("table", name="Regressions").get_by_role("row").nth(1)
    assert "1.30×" in row.inner_text()
    row.get_by_role("link").click()
    reader.page.wait_for_selector("text=Reproduce it", timeout=60_000)
    assert "regression=ab12cd34" in reader.page.url
    reader.settle()
    text = reader.page.inner_text("[data-testid=stMain]")
    assert f"bench compare {change.last_good.commit} {change.first_changed.commit}" in text
    assert "<script>alert(1)</script>" in text
    assert traces(reader).keys() >= {series.variant, f"changes of {series.variant}"}
    reader.page.get_by_role("link", name="its whole history").click()
    reader.page.wait_for_selector("text=1 change in 30 points", timeout=60_000)
    assert f"series={series.fingerprint}" in reader.page.url
    assert reader.dialogs == []
    assert reader.strangers() == []


@pytest.mark.parametrize(("name", "width", "height"), [("wide", 1280, 900), ("phone", 390, 844)])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages_of_history_fit(visit, history_dashboard, theme, name, width, height):
    reader = visit(theme, width, height, address=history_dashboard)
    for page, path in (
        ("regressions", "/regressions"), ("regression", "/regressions?regression=ab12cd34"), ("trends", "/trends")
    ):  # fmt: skip
        reader.open(path)
        if page != "regressions":
            traces(reader)
        assert reader.page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= width
        reader.shoot(f"{page}-{theme}-{name}")
