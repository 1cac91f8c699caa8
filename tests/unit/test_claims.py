"""The file of claims against the list and the suites; runs to answers; reports and the verb."""

import json
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench.claims.document import claims_of, read
from bench.claims.evidence import answers, answers_from
from bench.claims.words import Finding, Kind, Take, counts
from bench.cli import bench as cli
from bench.errors import ConfigError, UsageError
from bench.metrics import SIZE, Summary
from bench.model import Failure, FailureKind, Measurement, Target
from bench.reports.claims import claims_json, claims_markdown, claims_text, value
from bench.sources.native import NativeSource
from bench.testing import make_run
from bench.tradeoffs import speedup, tradeoffs
from db.store import open_store

ROOT = Path(__file__).parents[2]
ROWS = [*(f"A{n}" for n in range(1, 12)), *(f"B{n}" for n in range(1, 23))]
"""Rows of the list of figures that the product was created from."""


# The file


@pytest.fixture(scope="module")
def claims():
    return claims_of(["suites"], ROOT)


def test_every_row_of_the_list_has_a_claim_and_no_other(claims):
    assert sorted({claim.row for claim in claims}) == sorted(ROWS)
    for claim in claims:
        assert re.fullmatch(r"[AB]\d+[a-z]?", claim.id)


def test_every_claim_is_stated_in_both_languages_and_says_how_to_read_it(claims):
    for claim in claims:
        assert re.search(r"[一-鿿]", claim.zh), claim.id
        assert not re.search(r"[一-鿿]", claim.en), claim.id
        assert claim.figure, claim.id
        assert claim.note.endswith((".", "!")), claim.id


def test_every_selector_names_a_variant_that_is_there(claims):
    found = NativeSource([str(ROOT / "suites")]).discover(Target())
    there = {variant.name: benchmark for benchmark in found.benchmarks for variant in benchmark.variants()}
    own = {name: {m.name for m in benchmark.metrics} for name, benchmark in there.items()}
    wrong = [
        f"{claim.id}: {name}"
        for claim in claims
        for probe in claim.probes
        for name in probe.variants
        if name not in there
    ]
    assert not wrong
    harness = {"time", "cpu_time", "throughput", "size", "set_up", "first_call", "peak_memory", "p50", "p99"}
    for claim in claims:
        for probe in claim.probes:
            assert probe.stated.metric in harness | own[probe.head], (claim.id, probe.head)
            compares = probe.stated.take in (Take.SPEEDUP, Take.RATIO, Take.CUT, Take.DIFFERENCE)
            if compares and probe.base is None:
                assert there[probe.head].baseline, (claim.id, "has nothing to compare with")


def test_every_measured_claim_has_an_experiment_but_advice(claims):
    without = [c.id for c in claims if c.kind is Kind.MEASURED and not any(probe.judged for probe in c.probes)]
    assert without == ["B22"]


def test_every_fact_cites_its_source_and_every_count_is_made_by_code(claims):
    for claim in claims:
        if claim.kind is Kind.FACT:
            assert claim.source.title, claim.id
            assert re.search(r"\d{4}", claim.source.date), claim.id
        if claim.kind is Kind.COUNTED:
            assert claim.count.startswith("suites.models.counts:"), claim.id


def test_the_counts_are_those_of_the_published_networks():
    from suites.models import counts as count

    assert count.bert_base_parameters() == 109_482_240  # as transformers counts them
    assert count.bert_large_parameters() == 335_141_888
    assert count.resnet152_parameters() == 60_192_808  # as torchvision counts them
    assert count.bert_large_flops() == pytest.approx(79e9, rel=0.01)
    assert count.attention_dot_products() == 1024**2


CLAIM = """
[[claim]]
id = "B1"
en = "twice as fast"
zh = "快两倍"
figure = "2×"
kind = "measured"
note = "A note."
stated = { metric = "time", take = "speedup", relation = "about", value = 2, unit = "×" }
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (CLAIM.replace('note = "A note."\n', ""), "claim B1: 'note' is missing"),
        (CLAIM + "colour = 1\n", "colour is no key here"),
        (CLAIM.replace('"measured"', '"guessed"'), "'guessed' is not a valid Kind"),
        (CLAIM.replace('"measured"', '"fact"'), "a fact has `holds` and a `source`"),
        (CLAIM.replace('"measured"', '"counted"'), "a counted claim, and no other, has a `count`"),
        (CLAIM.replace('"measured"', '"hardware"'), "says what it `needs`"),
        (CLAIM + 'probes = [{ head = "a.b", label = "x", heads = [] }]\n', "heads is no key here"),
        (CLAIM + CLAIM, "B1 is there twice"),
        ("[[claim", "cannot be read"),
    ],
)
def test_a_mistake_in_the_file_is_named(text, said):
    with pytest.raises(ConfigError, match=re.escape(said)):
        read(text, "claims.toml")


def test_a_place_without_claims_says_so(tmp_path):
    with pytest.raises(ConfigError, match=r"no claims\.toml"):
        claims_of([str(tmp_path)], tmp_path)


def test_the_example_of_the_documentation_is_a_claim(claims):
    page = (ROOT / "docs" / "how-to-extend.md").read_text(encoding="utf-8")
    (example,) = read(re.search(r"```toml\n(\[\[claim\]\].*?)```", page, flags=re.S)[1], "how-to-extend.md")
    assert example.figure == next(claim for claim in claims if claim.id == example.id).figure


# Runs to answers


def claim_of(probes, **changes):
    keys = "".join(f"{name} = {json.dumps(text)}\n" for name, text in changes.items())
    return read(CLAIM + keys + f"probes = [{probes}]\n", "claims.toml")


def variants(run):
    return [arm.arm.variant.name for _, arm in run.arms()]


def test_a_ratio_is_the_one_that_bench_show_prints():
    run = make_run(speedups=(1.0, 2.1))
    head = variants(run)[1]
    (answer,) = answers(claim_of(f'{{ head = "{head}", label = "it" }}'), [run])
    (reading,) = answer.readings
    expected = speedup(tradeoffs(run.experiments[0])[1].comparisons["time"])
    assert reading.found == expected
    assert (reading.finding, answer.finding) == (Finding.REPRODUCED, Finding.REPRODUCED)
    assert reading.origin.run == run.key
    assert "→" in reading.detail


def test_the_newest_run_that_holds_the_variants_answers_and_older_ones_are_not_read():
    new = make_run(seed=1, speedups=(1.0, 3.0))
    old = make_run(seed=2, speedups=(1.0, 2.0))
    head = variants(new)[1]

    def runs():
        yield make_run(seed=9, suite="other")
        yield new
        yield old
        pytest.fail("read on although everything was found")

    (answer,) = answers(claim_of(f'{{ head = "{head}", label = "it" }}'), runs())
    assert [o.run for o in answer.origins] == [new.key]
    assert answer.finding is Finding.EXCEEDED


def test_without_a_run_there_is_no_verdict():
    (answer,) = answers(claim_of('{ head = "a.b[c=1]", label = "it" }'), [])
    assert answer.finding is Finding.NOT_MEASURED
    (answer,) = answers(claim_of('{ head = "a.b[c=1]", label = "it" }', needs="an NPU"), [])
    assert (answer.finding, answer.reason) == (Finding.NOT_MEASURABLE, "needs an NPU")
    (answer,) = answers(claim_of(""), [make_run()])
    assert (answer.finding, answer.reason) == (Finding.NOT_MEASURED, "no experiment of the suites tests it")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [(FailureKind.SKIPPED, Finding.NOT_MEASURABLE), (FailureKind.WRONG, Finding.NOT_MEASURED)],
)
def test_a_variant_that_failed_gives_its_reason_and_no_verdict(kind, expected):
    run = make_run(failure=Failure(kind=kind, phase="set_up", message="there is no such device"))
    failed = next(arm.arm.variant.name for _, arm in run.arms() if arm.failure)
    (answer,) = answers(claim_of(f'{{ head = "{failed}", label = "it" }}'), [run])
    assert answer.finding is expected
    assert "there is no such device" in answer.readings[0].reason


def test_what_had_no_turn_is_looked_for_in_older_runs():
    old = make_run(seed=1, speedups=(1.0, 2.0))
    none = Failure(kind=FailureKind.UNMEASURED, phase="launch", message="the run ended before its turn")
    new = make_run(seed=2, speedups=(1.0, 2.0), failure=none)
    late = next(arm.arm.variant.name for _, arm in new.arms() if arm.failure)
    (answer,) = answers(claim_of(f'{{ head = "{late}", label = "it" }}'), [new, old])
    assert [o.run for o in answer.origins] == [old.key]


@pytest.mark.parametrize("launches", [1, 7])
def test_what_was_skipped_or_cut_short_is_looked_for_in_older_runs(launches):
    old = make_run(seed=1, speedups=(1.0, 2.0))
    skip = Failure(kind=FailureKind.SKIPPED, phase="set_up", message="no server") if launches == 7 else None
    new = make_run(seed=2, speedups=(1.0, 2.0), launches=launches, failure=skip)
    (answer,) = answers(claim_of(f'{{ head = "{variants(old)[1]}", label = "it" }}'), [new, old])
    assert [o.run for o in answer.origins] == [old.key]
    assert answer.finding is Finding.REPRODUCED


def test_a_ratio_of_exact_values_may_be_zero():
    run = make_run(speedups=(1.0, 2.0))
    (experiment,) = run.experiments
    head = experiment.results[1]
    kept = [m for m in head.measurements if m.metric is not SIZE]
    nothing = replace(head, measurements=(*kept, Measurement(metric=SIZE, launches=((0,),))))
    run = replace(run, experiments=(replace(experiment, results=(experiment.results[0], nothing)),))
    figure = (
        'stated = { metric = "size", take = "ratio", relation = "at_most", value = 0.5, unit = "×", beyond = "less" }'
    )
    (answer,) = answers(claim_of(f'{{ head = "{variants(run)[1]}", label = "it", {figure} }}'), [run])
    assert (answer.finding, answer.readings[0].found.value) == (Finding.REPRODUCED, 0.0)


def test_too_few_launches_are_no_measurement():
    run = make_run(launches=1, speedups=(1.0, 2.0))
    (answer,) = answers(claim_of(f'{{ head = "{variants(run)[1]}", label = "it" }}'), [run])
    assert answer.finding is Finding.NOT_MEASURED
    assert "too few launches" in answer.readings[0].reason


def test_every_take_says_what_it_says():
    run = make_run(speedups=(1.0, 2.0))
    base, head = variants(run)[:2]
    found = tradeoffs(run.experiments[0])
    change = found[1].comparisons["time"].change

    def reading(take, unit, metric="time", **more):
        table = {"metric": metric, "take": take, "relation": "at_least", "value": 0, "unit": unit}
        text = ", ".join(f"{k} = {json.dumps(v, ensure_ascii=False)}" for k, v in table.items())
        keys = "".join(f", {k} = {json.dumps(v)}" for k, v in more.items())
        (answer,) = answers(claim_of(f'{{ head = "{head}", label = "it", stated = {{ {text} }}{keys} }}'), [run])
        return answer.readings[0]

    assert reading("ratio", "×").found == change
    cut = reading("cut", "%").found
    assert (cut.value, cut.low, cut.high) == pytest.approx(
        (100 * (1 - change.value), 100 * (1 - change.high), 100 * (1 - change.low))
    )
    time = found[1].estimates["time"]
    assert reading("value", "ms").found.value == pytest.approx(time.value / 1e6)
    assert reading("ratio", "×", base=base).found == change
    items = next(m for m in found[1].metrics.values() if m.summary is Summary.ITEMS)
    points = reading("difference", "pp", metric=items.name).found
    assert points.value == pytest.approx(100 * found[1].comparisons[items.name].change.value)
    assert "has no energy" in reading("value", "1", metric="energy").reason


def test_a_fact_is_settled_by_its_source_whatever_is_measured_beside_it():
    run = make_run(speedups=(1.0, 2.0))
    text = (
        CLAIM.replace('"measured"', '"fact"')
        + 'holds = false\nsource = { title = "A", date = "2026", looked_up = true }\n'
    )
    (claim,) = read(text + f'probes = [{{ head = "{variants(run)[1]}", label = "it" }}]\n', "claims.toml")
    (answer,) = answers([claim], [run])
    assert answer.finding is Finding.WRONG
    assert answer.readings[0].found is not None
    assert not answer.readings[0].judged


# Reports and the verb


@pytest.fixture(scope="module")
def some(claims):
    return answers(claims, [])


def test_the_reports_name_every_claim_and_say_the_same(claims, some):
    text, page = claims_text(some, "both"), claims_markdown(some, "both")
    document = json.loads(claims_json(some, "abc"))
    assert [c["id"] for c in document["claims"]] == [claim.id for claim in claims]
    assert sum(document["counts"].values()) == len(claims)
    for claim in claims:
        assert f"\n## {claim.id}\n" in page
        assert claim.zh in text
    assert "Generated by" in page.splitlines()[0]
    assert claims[0].zh not in claims_text(some, "en")
    assert claims[0].en not in claims_text(some, "zh")
    assert counts(some)[Finding.WRONG] >= 5


def test_a_value_is_written_with_its_unit_and_interval():
    run = make_run(speedups=(1.0, 2.0))
    (answer,) = answers(claim_of(f'{{ head = "{variants(run)[1]}", label = "it" }}'), [run])
    assert re.fullmatch(r"\d\.\d\d× \(\d\.\d\d–\d\.\d\d\)", value(answer.readings[0]))


def invoke(tmp_path, *arguments):
    return CliRunner().invoke(cli, ["claims", *arguments, "--database", str(tmp_path / "bench.db")])


def test_the_verb_answers_from_the_store_and_writes_a_page(tmp_path):
    here = make_run()
    with open_store(f"sqlite:///{tmp_path / 'bench.db'}", create=True) as store:
        store.add(replace(here, started_at=here.started_at - timedelta(days=1)))
    done = invoke(tmp_path, "A7", "B1", "--format", "markdown", "--output", str(tmp_path / "claims.md"))
    assert done.exit_code == 0, done.output
    page = (tmp_path / "claims.md").read_text(encoding="utf-8")
    assert "Ascend Optimization Engine" in page
    assert "## B1c" in page
    assert "## B13" not in page
    document = json.loads(invoke(tmp_path, "b21", "--json").output)
    assert [c["id"] for c in document["claims"]] == [f"B21{c}" for c in "abcdefgh"]
    missing = invoke(tmp_path, "C1")
    assert isinstance(missing.exception, UsageError)
    assert "no claim C1" in str(missing.exception)


def test_a_stored_run_is_read_only_while_something_waits_for_its_suite(tmp_path, monkeypatch):
    store = open_store(f"sqlite:///{tmp_path / 'bench.db'}", create=True)
    mine, other = make_run(seed=1, speedups=(1.0, 2.0)), make_run(seed=2, suite="other")
    store.add(mine)
    store.add(other)
    read_keys = []
    monkeypatch.setattr(store, "get", lambda key, get=store.get: read_keys.append(key) or get(key))
    machine = mine.machine.fingerprint
    (answer,) = answers_from(store, machine[:6], claim_of(f'{{ head = "{variants(mine)[1]}", label = "it" }}'))
    assert answer.finding is Finding.REPRODUCED
    assert read_keys == [mine.key]
    (answer,) = answers_from(store, "0" * 16, claim_of(f'{{ head = "{variants(mine)[1]}", label = "it" }}'))
    assert answer.finding is Finding.NOT_MEASURED
    store.close()
