"""Tables and words of the dashboard: the terminal's numbers, aligned; failures in words; nothing unescaped."""

import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import dashboard
from bench.metrics import SIZE, TIME, Better, Kind, Metric, Summary
from bench.model import Conditions, Estimate, Failure, FailureKind, Revision, RunStatus, Verdict
from bench.reports.format import times
from bench.runs import run_info
from bench.testing import make_run
from bench.tradeoffs import speedup, tradeoffs
from dashboard.markup import Cell, Column, Row, failure, link, table
from dashboard.tables import failures_of, finding, headline, machines_table, runs_table, tone_of, variant_table
from dashboard.wording import ago, busy_with, conditions_line, database_name, scale_of

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
WRONG = Failure(kind=FailureKind.WRONG, phase="check", message="37 of 64 images differ", detail="max 4.81")
SKIPPED = Failure(kind=FailureKind.SKIPPED, phase="set_up", message="openvino is not installed")


def cells(variants, title, **kwargs):
    """Cells of the column of that title, top down."""
    columns, rows = variant_table(variants, **kwargs)
    place = next(i for i, c in enumerate(columns) if title in (c.title, c.label))
    return columns[place], [row.cells[place] for row in rows if row.note is None]


def summaries(**kwargs):
    return tradeoffs(make_run(**kwargs).experiments[0])


@pytest.mark.parametrize(
    ("title", "name", "divisor"), [("latency", "time", 1e6), ("peak memory", "peak_memory", 2**20)]
)
def test_a_column_shows_the_estimates_in_one_unit_with_aligned_decimals(title, name, divisor):
    found = summaries(speedups=(1.0, 2.0, 9.0))
    column, shown = cells(found, title)
    assert column.unit in ("ms", "MiB")
    decimals = {len(cell.text.partition(".")[2]) for cell in shown}
    assert len(decimals) == 1
    half = 0.5000001 * 10.0 ** -decimals.pop()
    for variant, cell in zip(found, shown, strict=True):
        estimate = variant.estimates[name]
        low, high = (float(part) for part in cell.sub.split(" – "))
        assert float(cell.text) == pytest.approx(estimate.value / divisor, abs=half)
        assert low == pytest.approx(estimate.low / divisor, abs=half)
        assert high == pytest.approx(estimate.high / divisor, abs=half)


def test_speedups_are_the_terminals_with_interval_and_verdict_in_words():
    found = summaries(speedups=(1.0, 2.0, 0.5))
    _, shown = cells(found, "speedup")
    assert shown[0].text == ""
    for variant, cell, word in zip(found[1:], shown[1:], ("faster", "slower"), strict=True):
        expected = speedup(variant.comparisons["time"])
        assert cell.text.endswith(f"{word}\u00a0{times(expected.value)}×")
        assert cell.sub == f"{times(expected.low)} – {times(expected.high)}"


def test_a_change_of_a_share_is_in_percentage_points_with_sign_and_interval():
    found = summaries(seed=4)
    column, shown = cells(found, "change of agreement")
    change = found[2].comparisons["agreement"].change
    assert column.unit == "pp"
    assert shown[2].text.endswith(f"{change.value * 100:.1f}".replace("-", "−"))
    assert shown[2].sub.startswith(f"{change.low * 100:.1f}".replace("-", "−"))


def test_where_there_is_no_interval_the_reason_stands_there():
    _, sizes = cells(summaries(), "size")
    assert [cell.sub for cell in sizes] == ["exact", "exact, 0.50×", "exact, 0.33×"]
    _, latencies = cells(summaries(launches=1), "latency")
    assert all("too few launches" in cell.sub for cell in latencies)


def test_a_failed_variant_has_its_row_with_the_word_and_no_numbers():
    _, rows = variant_table(summaries(failure=WRONG))
    assert rows[2].note is not None
    assert "WRONG" in rows[2].note.text
    assert rows[2].note.tone == "bad"
    assert variant_table(summaries(failure=SKIPPED))[1][2].note.tone == "warn"


def test_what_the_first_table_leaves_out_is_in_the_rest():
    found = summaries()
    extra = replace(TIME, name="first_call", summary=Summary.LAUNCH)
    found = [replace(v, metrics={**v.metrics, "first_call": extra},
                     estimates={**v.estimates, "first_call": Estimate(value=5e6)}) for v in found]  # fmt: skip
    assert "first call" not in [c.title for c in variant_table(found)[0]]
    assert "first call" in [c.title for c in variant_table(found, rest=True)[0]]


def test_tiny_errors_are_written_with_exponents():
    error = Metric(name="error", unit="1", better=Better.LOWER, kind=Kind.ACCURACY, summary=Summary.EXACT)
    scale = scale_of(error, [Estimate(value=1.5e-7), Estimate(value=0.0)])
    assert scale.number(1.5e-7) == "1.50e-07"
    assert scale.number(0.0) == "0"


@pytest.mark.parametrize(
    ("unit", "value", "text"), [("ns", 850.0, "850 ns"), ("ns", 2.5e9, "2.50 s"), ("B", 1536.0, "1.50 KiB")]
)  # fmt: skip
def test_units_follow_the_largest_value(unit, value, text):
    metric = replace(TIME if unit == "ns" else SIZE)
    scale = scale_of(metric, [Estimate(value=value)])
    assert f"{scale.number(value)} {scale.unit}" == text


def test_no_negative_zero_and_thousands_are_grouped():
    scale = replace(scale_of(SIZE, []), decimals=1)
    assert scale.number(-0.001) == "0.0"
    assert scale.number(12345.6) == "12,345.6"


def test_finding_names_the_fastest_and_what_it_costs():
    found = summaries(speedups=(1.0, 2.0, 3.0))
    text = finding(found)
    assert text.startswith("e2 is 3.0")
    assert "as fast as e0" in text
    assert "agreement" in text
    assert " pp (" in text


def test_finding_names_the_answers_that_got_worse_before_those_that_did_not():
    one, two, three = summaries(speedups=(1.0, 2.0, 3.0))
    agreement = three.comparisons["agreement"]
    fine = replace(agreement, metric=replace(agreement.metric, name="recall"), verdict=Verdict.UNCHANGED)
    bad = replace(agreement, verdict=Verdict.REGRESSED)
    text = finding((one, two, replace(three, comparisons={"recall": fine, **three.comparisons, "agreement": bad})))
    assert "agreement" in text
    assert "recall" not in text


def test_finding_never_claims_what_the_intervals_do_not_show():
    assert finding(summaries(speedups=(1.0, 1.0))) == "No variant is clearly faster than e0"
    assert finding(summaries(speedups=(1.0, 0.5))) == "Every variant is slower than e0"
    assert "baseline e0 failed" in finding(summaries(speedups=(1.0,), failure=WRONG))


def info(**kwargs):
    changes = kwargs.pop("changes", {})
    return run_info(replace(make_run(**kwargs), **changes))


def test_headline_says_when_and_how_it_went():
    seen = info(failure=SKIPPED, started_at=NOW - timedelta(minutes=13))
    assert headline(seen, NOW) == "Last run 12 min ago: 2 variants measured, 1 skipped, 0 wrong"
    seen = info(failure=WRONG, started_at=NOW - timedelta(minutes=13), changes={"status": RunStatus.INTERRUPTED})
    assert headline(seen, NOW) == "Last run 12 min ago, interrupted: 2 variants measured, 1 wrong"


@pytest.mark.parametrize(("kind", "tone"), [(None, "good"), (SKIPPED, "warn"), (WRONG, "bad")])
def test_tone_follows_the_worst(kind, tone):
    assert tone_of(info(failure=kind)) == tone


def test_runs_table_links_failures_and_tradeoffs_of_each_run():
    infos = [info(seed=1, failure=WRONG, changes={"revision": Revision(commit="a" * 40, dirty=True, branch="main")})]
    columns, rows = runs_table(infos, NOW, UTC)
    html = table(columns, rows, "Runs")
    assert f'href="runs?run={infos[0].key}"' in html
    assert f'href="tradeoffs?run={infos[0].key}"' in html
    assert "1 WRONG answer" in html
    assert "main, with changes" in html
    assert "2 of 3" in html


def test_machines_are_listed_once_each_with_their_runs():
    infos = [info(seed=k) for k in (3, 2, 1)]
    _, rows = machines_table(infos, NOW)
    assert [row.cells[2].text for row in rows] == ["3"]


EVIL = ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "[x](javascript:alert(1))", "a&b")


@pytest.mark.parametrize("evil", EVIL)
def test_every_text_from_results_is_escaped(evil):
    what = Failure(kind=FailureKind.RAISED, phase=evil, message=evil, detail=evil)
    row = Row(cells=(Cell(text=evil, sub=evil), Cell(text=evil)))
    html = failure(evil, what) + table([Column(title=evil, unit=evil, help=evil, label=evil)] * 2, [row], evil)
    html += link("tradeoffs", evil, run=evil)
    assert "<script" not in html
    assert "<img" not in html
    assert 'href="javascript' not in html
    assert "a&b" not in html


def test_a_database_is_named_without_its_password():
    assert database_name("postgresql+psycopg://me:secret@db.example/bench") == "bench on db.example"
    assert database_name("sqlite:////var/lib/b.db") == "/var/lib/b.db"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(5, "just now"), (720, "12 min ago"), (7200, "2 h ago"), (3 * 86400, "3 days ago"),
     (-600, "in the future (a clock is wrong)")],
)  # fmt: skip
def test_ago(seconds, text):
    assert ago(NOW - timedelta(seconds=seconds), NOW) == text


def test_a_busy_machine_is_said_first_and_nothing_recorded_is_said_too():
    assert busy_with(Conditions(foreign_cpu=0.3), 2)
    assert busy_with(Conditions(foreign_cpu=0.01, load_before=0.1), 2) is False
    assert busy_with(Conditions(), 2) is None
    assert conditions_line(True, ["load 5"]) == "Busy machine: load 5."
    assert "not recorded" in conditions_line(None, [])


def test_failures_count_problems_too():
    assert failures_of(info(failure=WRONG, changes={"problems": (WRONG,)})) == "1 WRONG answer, 1 unreadable suite"


def test_no_module_hides_a_package_when_this_folder_is_first_on_the_path():
    own = {path.stem for path in Path(dashboard.__file__).parent.iterdir() if path.suffix == ".py" or path.is_dir()}
    taken = set(sys.stdlib_module_names) | {"bench", "db", "suites", "runners", "plotly", "streamlit", "numpy"}
    assert not (own - {"__init__", "__pycache__"}) & taken
