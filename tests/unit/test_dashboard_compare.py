"""The page of comparisons says what `bench compare` prints: tables, figure, and the page itself."""

from dataclasses import replace

import pytest

from bench.compare import compare_runs
from bench.model import Failure, FailureKind, Machine, Target, Verdict
from bench.reports.rows import rows
from bench.reports.text import TextReport
from bench.rereading import comparison_of
from bench.selftest import SOURCE, VARIABLE
from bench.testing import MemoryStore, make_pair, make_run
from dashboard.compare_tables import (
    ANY,
    CHANGED,
    Wanted,
    base_of,
    headline,
    left_out,
    matching,
    metrics_of,
    short_names,
    verdict_choices,
    verdicts_table,
)
from dashboard.forest import forest_figure, forest_legend, lines_of
from dashboard.markup import table
from dashboard.palette import DARK, LIGHT

EVIL = "<script>alert(1)</script>[x](javascript:alert(1))"
GONE = Failure(kind=FailureKind.RAISED, phase="set_up", message=f"ImportError: {EVIL}")


def gate_run(seed=3):
    """A stored `bench compare`: one slower, one faster, one the same, one broken in head."""
    pairs = [
        make_pair(1.3, name="demo.slow"), make_pair(0.8, name="demo.fast"), make_pair(name="other.same"),
        make_pair(name=f"demo.{EVIL}", failure=GONE),
    ]  # fmt: skip
    return replace(make_run(seed=seed), experiments=tuple(pairs))


@pytest.fixture(scope="module")
def judged():
    return comparison_of(gate_run())


def test_the_table_holds_every_line_of_the_terminal(judged):
    written = table(*verdicts_table(judged), "Verdicts") + table(*left_out(judged), "Left out")
    for row in rows(judged, everything=True):
        assert row.values in written
        assert row.word.replace(" ", "\u00a0") in written
        assert row.change.partition(" (")[0] in written
    assert "<script" not in written
    assert headline(judged) == ("4 variants: 1 regressed, 1 failed, 1 improved, 1 unchanged", "bad")


def test_choices_leave_out_what_was_not_asked_for_and_the_worst_stands_first(judged):
    assert [arm.verdict for arm in matching(judged, Wanted()).arms] == [
        Verdict.REGRESSED, Verdict.FAILED, Verdict.IMPROVED, Verdict.UNCHANGED
    ]  # fmt: skip
    assert [arm.name for arm in matching(judged, Wanted(suite="other")).arms] == ["other.same"]
    assert Verdict.UNCHANGED not in {arm.verdict for arm in matching(judged, Wanted(verdict=CHANGED)).arms}
    assert list(verdict_choices(judged)) == [ANY, CHANGED, "regressed", "failed", "improved", "unchanged"]


def test_the_forest_draws_the_ratios_with_their_intervals(judged):
    shown = matching(judged, Wanted())
    lines = lines_of(shown, "time")
    figure = forest_figure(lines, LIGHT)
    assert {trace.name for trace in figure.data} == {"regressed", "improved", "unchanged"}
    (slow,) = (trace for trace in figure.data if trace.name == "regressed")
    change = lines[0][1].change
    assert slow.x[0] == change.value
    assert slow.x[0] + slow.error_x.array[0] == pytest.approx(change.high)
    assert slow.x[0] - slow.error_x.arrayminus[0] == pytest.approx(change.low)
    assert slow.marker.symbol == "triangle-down"
    assert figure.layout.xaxis.type == "log"
    assert 1.0 in figure.layout.xaxis.tickvals
    low, high = (10**end for end in figure.layout.xaxis.range)
    assert low < 0.8
    assert high > 1.3
    texts = [a.text for a in figure.layout.annotations]
    assert any(text.startswith("▼ 1.3") for text in texts)
    assert [name for _, _, name in forest_legend(lines, DARK)] == ["regressed", "improved", "unchanged"]


def test_a_hostile_name_stays_text_in_the_figure():
    judged = comparison_of(replace(make_run(), experiments=(make_pair(name=f"demo.{EVIL}"),)))
    figure = forest_figure(lines_of(judged, "time"), LIGHT)
    assert "<script" not in str(figure.to_plotly_json())


def test_stored_runs_show_every_metric_that_has_a_ratio():
    found = compare_runs(make_run(), make_run(seed=1))
    assert next(iter(metrics_of(found))) == "time"
    assert "agreement" not in metrics_of(found)
    assert len(forest_figure(lines_of(found, "size"), LIGHT).data) == 1  # exact: no interval, all unchanged


def test_names_lose_what_all_share_and_what_does_not_fit():
    assert short_names(["a.b[x=1]", "a.b[x=2]"]) == ["x=1", "x=2"]
    assert short_names(["a.b[x=1]", "a.c"]) == ["a.b[x=1]", "a.c"]
    (one,) = short_names(["suite." + "n" * 80 + "[engine=e1]"])
    assert len(one) <= 44
    assert one.endswith("[engine=e1]")


# The page


def test_without_a_run_it_says_the_first_steps(site):
    assert "bench compare latest~1 latest" in site.html(site.show("compare"))


def test_two_runs_say_what_the_terminal_says(site):
    old, new = make_run(seed=0), make_run(seed=1)
    site.fill(old, new)
    test = site.show("compare", base="latest~1", head="latest")
    text = site.html(test)
    terminal = TextReport(None, False).comparison(compare_runs(old, new))
    assert "3 variants: 3 inconclusive" in terminal
    assert "3 variants: 3 inconclusive" in text
    assert "cannot be paired" in text
    assert f"bench compare {old.key[:8]} {new.key[:8]}" in text
    assert (site.query(test, "base"), site.query(test, "head")) == (old.key, new.key)


def test_at_first_the_newest_run_is_compared_with_the_one_before_of_its_machine(site):
    other = Machine(architecture="arm64", cpu="Other", physical_cores=4, logical_cores=4, memory_gib=8)
    runs = [make_run(seed=0), make_run(seed=1, machine=other), make_run(seed=2)]
    site.fill(*runs)
    test = site.show("compare")
    assert (site.query(test, "base"), site.query(test, "head")) == (runs[0].key, runs[2].key)
    test = site.show("compare", base=runs[1].key, head=runs[2].key)
    assert "measured on different machines" in site.html(test)
    assert "Without a comparison" in [part.value for part in test.subheader]


def test_at_first_a_run_is_compared_with_one_that_measured_the_same_suite():
    store = MemoryStore()
    other = Machine(architecture="arm64", cpu="Other", physical_cores=4, logical_cores=4, memory_gib=8)
    runs = [
        make_run(seed=0, suite="b", machine=other), make_run(seed=1), make_run(seed=2, suite="b"), make_run(seed=3)
    ]  # fmt: skip
    store.add_many(runs)
    infos = store.runs()
    assert base_of(runs[3].key, infos) == runs[1].key
    assert base_of(runs[2].key, infos) == runs[1].key  # none of its suite there: at least of its machine
    assert base_of(runs[1].key, infos) == runs[0].key
    assert base_of(runs[0].key, infos) == runs[0].key
    assert base_of("f" * 32, infos) == runs[3].key


def test_a_gate_run_shows_its_own_sides_verdicts_and_trust(site):
    run = gate_run()
    trial = make_pair(base=Target(label="base0", variables={VARIABLE: "0"}), head=Target(
        label="+0%#0", variables={VARIABLE: "0"}
    ))  # fmt: skip
    site.fill(make_run(), replace(make_run(seed=9), source=SOURCE, experiments=(trial,)), run)
    test = site.show("compare", head=run.key)
    text = site.html(test)
    assert site.query(test, "base") == run.key
    assert "4 variants: 1 regressed, 1 failed, 1 improved, 1 unchanged" in text
    assert "false-alarm rate of this gate on this machine: 0 of 1" in text
    assert "bench compare base head demo.slow demo.fast" in text
    assert "raised in head: ImportError" in text
    assert "on another metric" not in text
    assert "3 verdicts below rest on another metric" in site.text("compare", head=run.key, metric="cpu_time")
    assert "<script" not in text
    test.selectbox[3].select("improved").run()
    assert "demo.fast" in site.html(test)
    assert "3 variants left out" in site.html(test)
    assert site.query(test, "verdict") == "improved"


def test_what_cannot_be_compared_is_a_sentence(site):
    site.fill(make_run())
    key = make_run().key
    for state, words in (({"base": key, "head": key}, "has only one side"), ({"head": "ffffffff"}, "no stored run")):
        text = site.html(site.show("compare", **state))
        assert "cannot be compared" in text
        assert words in text


def test_a_run_leads_here(site):
    site.fill(make_run())
    assert f'href="compare?head={make_run().key}"' in site.html(site.show("runs"))


def test_the_store_gives_what_was_compared(site):
    """From samples alone: nothing of a verdict is stored."""
    run = gate_run()
    site.fill(run)
    with site.store() as store:
        assert comparison_of(store.get(run.key)) == comparison_of(run)
