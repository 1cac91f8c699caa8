"""Reports of a comparison: what is shown, in which order, and that no name breaks out of its format."""

import json
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from bench.compare import ArmComparison, RunComparison
from bench.metrics import CPU_TIME, PEAK_MEMORY, SIZE, TIME, Better, Kind, Metric, Summary
from bench.model import Comparison, Estimate, Verdict
from bench.reports.github import comparison_github
from bench.reports.json import JsonReport
from bench.reports.junit import comparison_junit
from bench.reports.markdown import MARKER, MOST, comparison_markdown
from bench.reports.rows import ORDER, counts, rows
from bench.reports.text import TextReport

V = Verdict
MARKDOWN = MarkdownIt("gfm-like", {"linkify": False})
NOISY = (V.REGRESSED, V.TRADE, V.FAILED, V.INCOMPARABLE, V.INCONCLUSIVE, V.IMPROVED)


def metric(kind=TIME, verdict=V.REGRESSED, ratio=1.2, reason="", n=9):
    return Comparison(
        metric=kind, base=Estimate(value=1e6), head=Estimate(value=ratio * 1e6), relative=True, paired=True,
        change=Estimate(value=ratio, low=ratio * 0.99, high=ratio * 1.01, n=n), verdict=verdict, reason=reason,
    )  # fmt: skip


def arm(name="s.b[n=1]", verdict=V.REGRESSED, *, reason="", comparisons=None):
    if comparisons is None:
        comparisons = () if verdict is V.FAILED else (metric(verdict=verdict),)
    return ArmComparison(
        name=name, verdict=verdict, reason=reason, comparisons=tuple(comparisons), launches=9, basis="time"
    )


def comparison(*arms, **facts):
    return RunComparison(**{"base": "main", "head": ".", "arms": arms, "machine": "A machine", **facts})


def trade(name="s.trade"):
    return arm(
        name, V.TRADE, comparisons=[metric(verdict=V.IMPROVED, ratio=0.5), metric(PEAK_MEMORY, V.REGRESSED, 1.5)]
    )


def test_what_needs_a_person_comes_first_and_the_unchanged_are_only_counted():
    arms = [arm(f"s.{v.value}", v) for v in reversed(ORDER)]
    found = rows(comparison(*arms))
    assert [row.variant for row in found] == [f"s.{v.value}" for v in NOISY]
    assert counts(comparison(*arms)) == (
        "7 variants: 1 regressed, 1 trade, 1 failed, 1 incomparable, 1 inconclusive, 1 improved, 1 unchanged"
    )
    text = TextReport().comparison(comparison(*arms))
    assert "s.unchanged" not in text
    assert [text.index(f" s.{v.value} ") for v in NOISY] == sorted(text.index(f" s.{v.value} ") for v in NOISY)


def test_variants_of_one_verdict_keep_their_order():
    assert [r.variant for r in rows(comparison(arm("s.b"), arm("s.a"), arm("s.c")))] == ["s.b", "s.a", "s.c"]


@pytest.mark.parametrize(("arms", "said"), [((), "0 variants: nothing compared"), ((arm(),), "1 variant: 1 regressed")])
def test_counts_of_none_and_of_one(arms, said):
    assert counts(comparison(*arms)) == said


def test_a_variant_has_a_line_for_each_metric_that_moved_and_always_one_for_what_it_is_measured_for():
    size = metric(SIZE, V.REGRESSED, 2.0)
    quiet = metric(CPU_TIME, V.UNCHANGED, 1.0)
    both = arm(comparisons=[metric(verdict=V.INCONCLUSIVE), quiet, size], reason="too noisy")
    first, second = rows(comparison(both))
    assert (first.metric, first.verdict, first.reason) == ("size", V.REGRESSED, "")
    assert (second.metric, second.verdict, second.reason) == ("latency", V.INCONCLUSIVE, "too noisy")


def test_a_failure_has_its_reason_and_never_a_ratio():
    (row,) = rows(comparison(arm(verdict=V.FAILED, reason="raised in base: no")))
    assert (row.reason, row.metric, row.values, row.change, row.behind) == ("raised in base: no", "", "", "", "")
    assert "×" not in TextReport().comparison(comparison(arm(verdict=V.FAILED, reason="raised in base: no")))


def test_markdown_is_empty_when_all_is_unchanged_and_only_then():
    assert comparison_markdown(comparison(arm(verdict=V.UNCHANGED), arm(verdict=V.UNCHANGED))) == ""
    assert comparison_markdown(comparison(arm(verdict=V.UNCHANGED), arm(verdict=V.INCONCLUSIVE))) != ""
    assert "nothing compared" in comparison_markdown(comparison())


@pytest.mark.parametrize("many", [MOST - 1, MOST, MOST + 1, 3 * MOST])
def test_markdown_folds_what_is_beyond_twenty_rows(many):
    text = comparison_markdown(comparison(*(arm(f"s.n{k}") for k in range(many))))
    outside, fold, inside = text.partition("<details>")
    assert outside.count("| ▼ regressed |") == min(many, MOST)
    assert inside.count("| ▼ regressed |") == max(0, many - MOST)
    assert bool(fold) == (many > MOST)
    if fold:
        assert f"<summary>{many - MOST} more</summary>" in inside
        assert "</details>" in inside
    assert text.startswith(f"{MARKER}\n**bench:** {many} variants: {many} regressed\n")


def test_junit_counts_its_cases_and_keeps_the_verdicts_apart():
    arms = [arm(f"s.{v.value}[n=1]", v, reason="because") for v in ORDER]
    suite = ElementTree.fromstring(comparison_junit(comparison(*arms)))
    assert (suite.get("tests"), suite.get("failures")) == ("7", "2")
    found = {case.get("classname"): [child.tag for child in case] for case in suite}
    assert found == {
        "s.regressed": ["failure"], "s.failed": ["failure"], "s.trade": ["system-out"], "s.improved": ["system-out"],
        "s.inconclusive": ["skipped"], "s.incomparable": ["skipped"], "s.unchanged": [],
    }  # fmt: skip
    assert all(case.get("name") == "[n=1]" for case in suite)


def test_every_report_states_its_notes_and_by_which_rule_it_was_judged():
    """The measured false-alarm rate is such a note: whoever reads a verdict sees how far to believe it."""
    arms = [replace(arm(f"s.{n}"), rule="judged twice") for n in "ab"] + [replace(arm("s.c"), rule="judged once")]
    found = comparison(*arms, notes=("1 of 40 alarms were false",))
    reports = (TextReport().comparison, comparison_markdown, comparison_junit, comparison_github)
    for report in reports:
        text = report(found).replace("\\", "")
        assert "1 of 40 alarms were false" in text
        assert "rule of 2 variants: judged twice" in text
        assert "rule of 1 variant: judged once" in text
    document = json.loads(JsonReport().comparison(found, exit_code=3))
    assert document["notes"] == ["1 of 40 alarms were false"]
    assert [v["rule"] for v in document["variants"]] == ["judged twice", "judged twice", "judged once"]
    assert "rule: judged once" in TextReport().comparison(comparison(arms[2]))


def test_github_annotates_what_needs_a_person_and_a_trade_is_a_warning():
    """The exit code of a trade is 0 unless asked for: an error beside a green job would contradict it."""
    arms = [*(arm(f"s.{v.value}", v) for v in ORDER if v is not V.TRADE), trade()]
    lines = comparison_github(comparison(*arms)).splitlines()
    assert [line.split("::")[1].split(",")[0] for line in lines] == [
        "error title=regressed%3A s.regressed", "warning title=regressed%3A s.trade", "error title=failed%3A s.failed",
        "warning title=incomparable%3A s.incomparable", "notice title=bench compare",
    ]  # fmt: skip


def test_json_has_every_metric_of_every_variant_and_the_exit_code():
    size = metric(SIZE, V.UNCHANGED, 1.0)
    document = json.loads(JsonReport().comparison(comparison(arm(comparisons=[metric(), size])), exit_code=3))
    (variant,) = document["variants"]
    assert (document["exit_code"], set(variant["metrics"]), variant["verdict"]) == (3, {"time", "size"}, "regressed")
    assert variant["metrics"]["time"]["change"] == {
        "value": 1.2, "low": 1.2 * 0.99, "high": 1.2 * 1.01, "n": 9, "note": "",
    }  # fmt: skip


KEY = "0123456789abcdef" * 2


def test_a_run_is_called_by_the_beginning_of_its_key_for_a_person_and_by_all_of_it_for_a_machine():
    found = comparison(arm(), base=KEY)
    assert f"base {KEY[:8]}  head ." in TextReport().comparison(found)
    assert f"base `{KEY[:8]}`, head `.`" in comparison_markdown(found)
    assert json.loads(JsonReport().comparison(found, exit_code=0))["base"] == KEY


# Names come from pull requests of strangers: they must stay text.

PIECES = (
    "<script>alert(1)</script>", "|", "`", "``", "\\", "\\|", "\\`", "@user", "\n", "\r\n", "\r", "\n\n# title\n",
    "::error::gone", "\n::error title=x::gone", "%0A::error::gone", "</details>", "<!--", "-->", "]]>", "&amp;",
    "&#124;", "![x](http://x)", "[x](http://x)", "\x00", "\x1b[31m", "\ud800", "\ufffe", "🤖", "\u2028", "\x85",
    "<img src=x>",
    "[bold]", "[/]", '"', "'", "]", " ", "s.b", "**", "~~", "\t", ",", ":",
)  # fmt: skip
hostile = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=6).map("".join)


def poisoned(text):
    """The text everywhere where foreign text can come in, a plain variant beside it."""
    foreign = Metric(name=text, unit=text, better=Better.LOWER, kind=Kind.COUNT, summary=Summary.EXACT)
    moved = replace(metric(foreign), reason=text, change=Estimate(value=1.5, note=text))
    failed = arm(f"{text}[n=1]", V.FAILED, reason=text)
    regressed = replace(arm(f"s.{text}", comparisons=[moved], reason=text), basis=text)
    skipped = arm(f"t.{text}", V.INCONCLUSIVE, reason=text)
    plain = arm("plain.name")
    return comparison(failed, regressed, skipped, plain, base=text, head=text, machine=text, notes=(text,))


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.seen = []
        self.comments = 0

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)

    def handle_comment(self, data):
        self.comments += 1


@given(hostile)
@example("`x` | y")
@example("`<script>alert(1)</script>")
@example("a\\|b\nc")
@example("\\")
@example("_:")
@example("_a_ *b* ~c~")
@example("https://evil.example/x www.evil.example")
def test_no_name_breaks_out_of_markdown(text):
    """Read by a real GFM parser: one table, seven cells a row, and no element that we did not write."""
    out = comparison_markdown(poisoned(text))
    tags = Tags()
    tags.feed(MARKDOWN.render(out))
    assert set(tags.seen) <= {"p", "strong", "table", "thead", "tbody", "tr", "th", "td", "code", "br"}
    assert (tags.seen.count("table"), tags.comments) == (1, 1)
    assert tags.seen.count("td") == 4 * 7
    assert tags.seen.count("br") == 1
    assert tags.seen.count("strong") == 1
    for token in MARKDOWN.parse(out):
        for child in token.children or ():
            assert child.type != "text" or "@user" not in child.content


@given(hostile)
@example("\x00[")
@example("\ud800")
def test_no_name_breaks_junit_and_what_xml_can_hold_is_kept(text):
    out = comparison_junit(poisoned(text))
    out.encode()
    suite = ElementTree.fromstring(out)
    assert [child.tag for child in suite] == ["properties", *["testcase"] * 4]
    cases = suite.findall("testcase")
    assert all([child.tag for child in case] in (["failure"], ["skipped"]) for case in cases)
    assert cases[3].get("classname") == "plain.name"
    if text.isprintable() and "[" not in text:
        assert cases[1].get("classname") == f"s.{text}"


@given(hostile)
@example("\n::error::gone")
def test_no_name_makes_a_workflow_command_of_its_own(text):
    """A runner reads a command at the beginning of a line: every line is one of ours."""
    lines = comparison_github(poisoned(text)).replace("\r", "\n").split("\n")
    assert lines.pop() == ""
    assert [line.split(" ")[0] for line in lines] == ["::error"] * 3 + ["::notice"]
    for line in lines:
        properties = line.removeprefix("::error title=").removeprefix("::notice title=").partition("::")[0]
        assert ":" not in properties
        assert "," not in properties


@given(hostile)
def test_no_name_is_markup_in_a_terminal_and_json_keeps_it_as_it_is(text):
    TextReport().comparison(poisoned(text))  # rich raises on markup that does not close
    document = json.loads(JsonReport().comparison(poisoned(text), exit_code=0))
    assert document["variants"][0]["name"] == f"{text}[n=1]"
    assert document["notes"] == [text]


def test_markup_in_a_name_is_shown_in_a_terminal():
    text = TextReport().comparison(comparison(arm("s.[bold red]x[/]"), machine="[red]m", notes=("[/]",)))
    for shown in ("s.[bold red]x[/]", "([red]m)", "note: [/]"):
        assert shown in text
