"""Figures of the dashboard: their numbers are those of bench.tradeoffs, their texts are harmless."""

from dataclasses import replace

import pytest

from bench.metrics import TIME
from bench.model import Estimate, Failure, FailureKind
from bench.testing import make_run
from bench.tradeoffs import tradeoffs
from dashboard.charts import labels, points, tradeoff_figure, y_choices
from dashboard.palette import DARK, LIGHT, palette

WRONG = Failure(kind=FailureKind.WRONG, phase="check", message="not the reference's answer")


def variants(**kwargs):
    return tradeoffs(make_run(**kwargs).experiments[0])


def traces(figure):
    return {t.name: t for t in figure.data}


def with_estimates(variant, **values):
    """The variant with other estimates by metric name: (value, low, high)."""
    given = {n: Estimate(value=v, low=low, high=high) for n, (v, low, high) in values.items()}
    return replace(variant, estimates={**variant.estimates, **given})


def test_points_and_bars_are_the_summaries_estimates():
    found = variants(seed=1)
    figure = tradeoff_figure(found, "agreement", LIGHT)
    drawn = {c[0]: (x, y, t) for t in figure.data for c, x, y in zip(t.customdata, t.x, t.y, strict=True)}
    assert set(drawn) == {"e0", "e1", "e2"}
    for variant in found:
        x, y, trace = drawn[variant.label]
        time, agreement = variant.estimates["time"], variant.estimates["agreement"]
        assert x == pytest.approx(time.value / 1e6)
        assert y == pytest.approx(agreement.value * 100)
        place = [c[0] for c in trace.customdata].index(variant.label)
        assert x + trace.error_x.array[place] == pytest.approx(time.high / 1e6)
        assert x - trace.error_x.arrayminus[place] == pytest.approx(time.low / 1e6)
        assert y + trace.error_y.array[place] == pytest.approx(agreement.high * 100)
        assert y - trace.error_y.arrayminus[place] == pytest.approx(agreement.low * 100)


def test_units_and_directions_stand_on_the_axes():
    figure = tradeoff_figure(variants(), "agreement", LIGHT)
    assert "ms" in figure.layout.xaxis.title.text
    assert "lower is better" in figure.layout.xaxis.title.text
    assert "%" in figure.layout.yaxis.title.text
    assert "higher is better" in figure.layout.yaxis.title.text


def test_the_baseline_is_told_by_shape_and_word():
    figure = tradeoff_figure(variants(), "agreement", LIGHT)
    baseline = traces(figure)["baseline"]
    assert baseline.marker.symbol == "diamond"
    assert list(baseline.text) == ["e0 (baseline)"]
    assert all(t.marker.symbol != "diamond" for t in figure.data if t is not baseline)


def test_failed_variants_are_not_drawn():
    figure = tradeoff_figure(variants(failure=WRONG), "agreement", LIGHT)
    assert "e2" not in {c[0] for t in figure.data for c in t.customdata}


def test_a_variant_beaten_in_both_beyond_the_intervals_is_hollow_and_says_by_whom():
    one, two, three = variants(seed=2)
    two = with_estimates(two, time=(1e6, 0.9e6, 1.1e6), agreement=(0.9, 0.88, 0.92))
    three = with_estimates(three, time=(3e6, 2.9e6, 3.1e6), agreement=(0.5, 0.4, 0.6))
    found = {p.label: p.beaten_by for p in points((one, two, three), "agreement")}
    assert found["e2"] != ""
    assert found["e1"] == ""
    trace = traces(tradeoff_figure((one, two, three), "agreement", LIGHT))["beaten in both beyond the intervals"]
    assert trace.marker.color == LIGHT.ground  # hollow
    assert trace.marker.line.width > 0
    assert trace.customdata[0][0] == "e2"


def test_overlapping_intervals_beat_nobody():
    one, two, _ = variants(seed=2)
    two = with_estimates(two, time=(1e6, 0.9e6, 1.1e6), agreement=(0.90, 0.85, 0.95))
    one = with_estimates(one, time=(2e6, 1.9e6, 2.1e6), agreement=(0.89, 0.84, 0.94))
    assert [p.beaten_by for p in points((one, two), "agreement")] == ["", ""]


def test_an_exactly_equal_second_metric_leaves_the_first_to_decide():
    one, two, _ = variants(seed=2)
    one = with_estimates(one, time=(2e6, 1.9e6, 2.1e6), agreement=(1.0, 0.99, 1.0))
    two = with_estimates(two, time=(1e6, 0.9e6, 1.1e6), agreement=(1.0, 0.99, 1.0))
    assert [p.beaten_by for p in points((one, two), "agreement")] == ["e1", ""]


@pytest.mark.parametrize(("speedups", "kind"), [((1.0, 1.5, 0.8), None), ((1.0, 20.0, 0.5), "log")])
def test_wide_spans_get_a_logarithmic_axis(speedups, kind):
    figure = tradeoff_figure(variants(speedups=speedups), "agreement", LIGHT)
    assert figure.layout.xaxis.type == kind


def test_noise_alone_does_not_fill_the_picture():
    figure = tradeoff_figure(variants(speedups=(1.0, 1.001, 0.999)), "agreement", LIGHT)
    low, high = figure.layout.xaxis.range
    assert (high - low) / high > 0.09


def test_every_point_and_bar_is_inside_the_axes():
    for speedups in ((1.0, 2.0), (1.0, 30.0, 0.3), (1.0, 1.0)):
        found = variants(speedups=speedups)
        figure = tradeoff_figure(found, "agreement", LIGHT)
        low, high = figure.layout.xaxis.range
        if figure.layout.xaxis.type == "log":
            low, high = 10**low, 10**high
        for variant in found:
            assert low < variant.estimates["time"].low / 1e6 < variant.estimates["time"].high / 1e6 < high


def test_an_axis_of_zeros_shows_no_negative_numbers_to_speak_of():
    found = [with_estimates(v, agreement=(0.0, None, None)) for v in variants()]
    low, high = tradeoff_figure(found, "agreement", LIGHT).layout.yaxis.range
    assert low < 0 < high
    assert -low < high / 5


def test_labels_of_two_points_at_one_spot_go_to_different_sides():
    one, two, _ = variants(seed=3)
    same = {"time": (1e6, 0.9e6, 1.1e6), "agreement": (0.9, 0.89, 0.91)}
    figure = tradeoff_figure((with_estimates(one, **same), with_estimates(two, **same)), "agreement", LIGHT)
    sides = [side for t in figure.data for side in t.textposition]
    assert len(set(sides)) == 2


def test_labels_are_the_axis_values_that_differ():
    found = variants()
    arms = [replace(v.arm, variant=replace(v.arm.variant, params={**v.arm.variant.params, "n": 4})) for v in found]
    assert list(labels([replace(v, arm=a) for v, a in zip(found, arms, strict=True)]).values()) == ["e0", "e1", "e2"]


def test_answers_come_first_among_the_metrics_to_choose_and_latency_is_not_among_them():
    choices = y_choices(variants())
    assert choices[0] == "agreement"
    assert not {TIME.name, "throughput"} & set(choices)
    assert {"peak_memory", "size", "cpu_time"} <= set(choices)


def test_names_cannot_become_links_or_markup_in_a_figure():
    found = variants()
    evil = '<a href="https://example.org">x</a><b>%{x}</b>'
    arms = [
        replace(v.arm, variant=replace(v.arm.variant, params={"engine": f"{evil}{i}"})) for i, v in enumerate(found)
    ]
    text = str(tradeoff_figure([replace(v, arm=a) for v, a in zip(found, arms, strict=True)], "size", LIGHT).to_dict())
    assert "<a" not in text
    assert "&lt;a" in text
    templates = {t.hovertemplate for t in tradeoff_figure(found, "size", LIGHT).data}
    assert all("example.org" not in t for t in templates)


def contrast(one, other):
    """WCAG 2.1 contrast ratio of two #RRGGBB colours."""

    def luminance(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        r, g, b = (p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colours", [LIGHT, DARK])
@pytest.mark.parametrize("name", ["text", "quiet", "link", "accent", "good", "bad", "warn"])
def test_every_text_colour_is_legible_on_its_ground(colours, name):
    assert contrast(getattr(colours, name), colours.ground) >= 4.5


@pytest.mark.parametrize("colours", [LIGHT, DARK])
def test_every_colour_of_a_series_is_legible_on_its_ground(colours):
    assert len(set(colours.series)) == len(colours.series)
    assert all(contrast(colour, colours.ground) >= 4.5 for colour in colours.series)


def test_a_browser_that_tells_no_theme_gets_the_light_one():
    assert palette(None) is LIGHT
    assert palette("dark") is DARK
