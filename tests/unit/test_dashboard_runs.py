"""One run: its raw samples launch by launch, its environment, and the files of `bench export`."""

from dataclasses import replace
from datetime import UTC

import pytest

from bench.compare import estimate, launch_values
from bench.exports.table import to_csv
from bench.model import Conditions, Environment, Failure, FailureKind, Measurement, RunStatus
from bench.testing import make_pair, make_run
from bench.wire import decode_run
from dashboard import data
from dashboard.markup import table
from dashboard.palette import LIGHT
from dashboard.run_tables import environment_table, packages_table, run_facts, run_headline
from dashboard.sample_charts import has_launches, names_of, samples_figure, samples_legend, samples_of

EVIL = "<script>alert(1)</script>[x](javascript:alert(1))"
RAISED = Failure(kind=FailureKind.RAISED, phase="round", message=EVIL, detail=EVIL)


def measurement(name="time", run=None):
    return (run or make_run()).experiments[0].results[1].measurement(name)


def test_the_figure_holds_every_sample_in_its_launch_and_what_stands_for_it():
    found = measurement()
    figure = samples_figure(samples_of(found), LIGHT)
    samples, launches = figure.data
    assert len(samples.x) == sum(map(len, found.launches)) == 280
    assert samples.y[:40] == pytest.approx([v / 1e3 for v in found.launches[0]])
    assert {round(x) for x in samples.x[40:80]} == {2}
    assert list(launches.y) == pytest.approx([v / 1e3 for v in launch_values(found)])
    (band,) = (s for s in figure.layout.shapes if s.type == "rect")
    assert band.y0 == pytest.approx(estimate(found).low / 1e3)
    assert len(samples_legend(samples_of(found), LIGHT)) == 3


def test_many_samples_are_thinned_and_loops_divided():
    found = samples_of(replace(measurement(), loops=10), most=100)
    assert (found.every, found.count) == (3, 280)
    assert len(found.launches[0]) == 14
    assert found.launches[0][1] == measurement().launches[0][3] / 10


def test_a_launch_without_samples_and_one_launch_alone_can_be_drawn():
    found = measurement()
    gap = replace(found, launches=(found.launches[0], (), *found.launches[2:]))
    assert list(samples_figure(samples_of(gap), LIGHT).data[1].x) == [1, 3, 4, 5, 6, 7]
    one = samples_of(Measurement(metric=found.metric, launches=found.launches[:1]))
    assert not [s for s in samples_figure(one, LIGHT).layout.shapes if s.type == "rect"]
    assert len(samples_legend(one, LIGHT)) == 2


def test_only_what_varies_from_launch_to_launch_is_offered():
    assert [name for name in ("time", "peak_memory", "size", "agreement") if has_launches(measurement(name))] == [
        "time", "peak_memory"
    ]  # fmt: skip


def test_both_sides_and_a_confirmation_are_told_apart():
    pair = make_pair()
    run = replace(make_run(), experiments=(pair, pair))
    assert names_of(list(run.arms())) == [
        "demo.work @ base", "demo.work @ head", "demo.work @ base (2)", "demo.work @ head (2)"
    ]  # fmt: skip


def test_the_headline_counts_and_the_facts_name_the_commit():
    run = data.view_of(replace(make_run(failure=RAISED), status=RunStatus.INTERRUPTED))
    assert run_headline(run) == (f"Run {run.key[:8]}: 2 of 3 variants measured, 1 failed, interrupted", "bad")
    assert run_headline(data.view_of(make_run()))[1] == "good"
    assert "no commit" in run_facts(run, UTC)


def test_an_environment_is_listed_and_escaped():
    made = Environment(python="3.11", system=EVIL, packages={"numpy": "2.4"}, drivers={"cuda": "13"})
    text = table(*environment_table(made, make_run().machine), "Environment")
    assert "driver cuda" in text
    assert "<script" not in text
    assert "numpy" in table(*packages_table(made), "Packages")


# The page


def test_a_run_shows_conditions_failures_samples_and_environment(site):
    run = replace(make_run(seed=1, failure=RAISED, suite=EVIL), conditions=Conditions(foreign_cpu=0.3))
    site.fill(make_run(), run)
    test = site.show("runs", run=run.key[:8], metric="peak_memory")
    text = site.html(test)
    assert "2 of 3 variants measured, 1 failed" in text
    assert "Busy machine" in text
    assert "raised an error" in text
    assert "7 samples in 7 launches" in text
    assert "Linux 6.1" in text
    assert "<script" not in text
    assert [box.value for box in test.selectbox][1] == "peak_memory"
    assert site.query(test, "variant") == run.experiments[0].results[0].arm.variant.name


@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_a_download_is_what_bench_export_writes(site, form):
    run = make_run()
    site.fill(run)
    found = data.exported(run.key, form)
    if form == "csv":
        assert found.decode() == to_csv([run])
    elif form == "json":
        assert decode_run(found, "x") == run
    else:
        pytest.importorskip("pyarrow")
        assert found[:4] == b"PAR1"
    assert len(site.show("runs", run="latest").get("download_button")) == 3


def test_a_run_without_samples_says_so(site):
    site.fill(replace(make_run(), experiments=()))
    assert "nothing was measured" in site.text("runs", run="latest")


def test_the_list_leads_to_every_run(site):
    runs = [make_run(seed=k) for k in range(23)]
    site.fill(*runs)
    test = site.show("runs")
    text = site.html(test)
    assert all(f'href="runs?run={run.key}"' in text for run in runs)
    assert test.expander[0].label == "3 more"
    assert "cannot be shown" in site.text("runs", run="ffffffff")
