"""The page of claims: its tables as values, and the page against a real database, run by Streamlit's own AppTest."""

import pytest

from bench.claims.document import read
from bench.claims.evidence import answers
from bench.claims.words import Finding
from bench.testing import make_run
from dashboard.claim_tables import Wanted, claims_table, facts, headline, matching, readings_table

EVIL = "<script>alert(1)</script>"

CLAIMS = """
[[claim]]
id = "A1"
en = "twice as fast"
zh = "快两倍"
figure = "2×"
kind = "measured"
note = "A note."
stated = { metric = "time", take = "speedup", relation = "about", value = 2, unit = "×" }
probes = [{ head = "demo.net[engine=e1]", label = "the network" }, { head = "demo.net[engine=e2]", label = "slow", judged = false }]

[[claim]]
id = "B1"
en = "AOE <script>alert(1)</script>"
zh = "异步操作执行"
figure = "no figure"
kind = "fact"
holds = false
source = { title = "The manual", date = "2026", looked_up = false }
note = "It is a tuner."
"""  # noqa: E501 - an inline table of TOML stands on one line


@pytest.fixture
def claimed(site, monkeypatch):
    """A site without a database yet, beside a folder of suites with two claims."""
    own = site.file.parent / "own"
    own.mkdir()
    (own / "claims.toml").write_text(CLAIMS, encoding="utf-8")
    monkeypatch.setenv("BENCH_SUITES", str(own))
    return site


@pytest.fixture
def answered():
    run = make_run(speedups=(1.0, 2.0, 0.8))
    return run, answers(read(CLAIMS, "claims.toml"), [run])


def test_a_line_has_the_claim_its_value_its_verdict_and_its_run(answered):
    run, found = answered
    columns, (first, second) = claims_table(found, "both", {"machine": "abc"})
    assert len(columns) == len(first.cells)
    name, stated, measured, verdict, origin = first.cells
    assert (stated.text, verdict.text, verdict.sub, verdict.tone) == ("2×", "✓\u00a0REPRODUCED", "已复现", "good")
    assert '<small><span lang="zh-Hans">快两倍</span></small>' in name.html
    assert "claim=A1&amp;machine=abc" in name.html
    assert measured.text.startswith(("1.9", "2.0"))
    assert f"run={run.key}" in origin.html
    assert "benchmark=demo.net" in origin.html
    assert EVIL not in second.cells[0].html
    assert second.cells[3].text == "✗\u00a0WRONG"


def test_the_language_chooses_statement_and_verdict(answered):
    _, found = answered
    _, (first, _) = claims_table(found, "zh", {})
    assert "快两倍" in first.cells[0].html
    assert "twice" not in first.cells[0].html
    assert first.cells[3].text == "✓\u00a0已复现"


def test_filters_leave_out_and_the_headline_counts_all(answered):
    _, found = answered
    assert [a.claim.id for a in matching(found, Wanted(finding=Finding.WRONG.value))] == ["B1"]
    assert [a.claim.id for a in matching(found, Wanted(article="A"))] == ["A1"]
    assert len(matching(found, Wanted())) == 2
    assert headline(found) == "Of 2 claims 1 hold, 0 partly, 1 do not, 0 unanswered"


def test_one_claim_has_every_experiment_and_what_its_source_says(answered):
    _, (first, second) = answered
    _, rows = readings_table(first)
    assert [row.cells[0].text for row in rows] == ["the network", "slow"]
    assert "–" in rows[0].cells[1].sub
    assert rows[1].cells[3].text == "for comparison"
    assert any("The manual, 2026 (from memory, not looked up)" in line for line in facts(second))


def test_without_a_run_facts_are_answered_and_the_rest_says_so(claimed):
    text = claimed.text("claims")
    assert "Of 2 claims 0 hold, 0 partly, 1 do not, 1 unanswered" in text
    assert "bench run --profile full" in text
    assert "NOT\u00a0MEASURED\u00a0YET" in text
    assert EVIL not in text


def test_the_page_shows_what_the_runs_say_and_the_url_chooses(claimed):
    claimed.fill(make_run(speedups=(1.0, 2.0, 0.8)))
    text = claimed.text("claims")
    assert "REPRODUCED" in text
    assert "已复现" in text
    text = claimed.text("claims", finding="wrong")
    assert "twice as fast" not in text
    assert "1 other claim left out" in text
    text = claimed.text("claims", claim="A1")
    assert "A1  REPRODUCED" in text
    assert "the network" in text
    assert "Read from run" in text


def test_a_claim_that_is_not_there_and_suites_without_claims_give_a_sentence(claimed, monkeypatch):
    assert "There is no claim Z9" in claimed.text("claims", claim="Z9")
    monkeypatch.setenv("BENCH_SUITES", str(claimed.file.parent))
    text = claimed.text("claims")
    assert "cannot be shown" in text
    assert "there is no claims.toml" in text


def test_a_database_that_cannot_be_opened_gives_a_sentence(claimed):
    claimed.file.write_bytes(b"this is no database at all" * 100)
    text = claimed.text("claims")
    assert "cannot be shown" in text
    assert "Traceback" not in text
