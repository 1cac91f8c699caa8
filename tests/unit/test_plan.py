"""Selectors and profiles."""

import pytest

from bench.errors import Exit, SelectorError
from bench.model import Benchmark, Policy, Target
from bench.plan import parse, plan, select

QUANT = Benchmark(
    name="quant.net", version="1", suite="quant", source="m:net",
    axes={"precision": ["fp32", "int8", "int4"], "length": [64, 128]}, baseline={"precision": "fp32"},
)  # fmt: skip
SLOW = Benchmark(name="quant.big", version="1", suite="quant", source="m:big", profiles=("full",))
JSON = Benchmark(name="serial.records", version="1", suite="serial", source="m:r", axes={"fast": [True, False]})
ALL = [QUANT, SLOW, JSON]


def names(selectors, profile="quick"):
    return [v.name for variants in select(ALL, selectors, profile) for v in variants]


def test_without_selectors_the_profile_decides():
    assert len(names([])) == 8
    assert "quant.big" in names([], "full")


@pytest.mark.parametrize("selector", ["quant", "quant.net", "q*", "*.net"])
def test_suite_name_and_patterns_select_all_variants(selector):
    assert len(names([selector])) == 6


def test_a_chosen_variant_brings_its_baseline_at_the_same_point():
    assert names(["quant.net[precision=int8,length=64]"]) == [
        "quant.net[precision=fp32,length=64]",
        "quant.net[precision=int8,length=64]",
    ]


def test_booleans_are_spelt_as_they_are_shown():
    assert names(["serial.records[fast=true]"]) == ["serial.records[fast=true]"]


@pytest.mark.parametrize(
    ("selector", "says"),
    [
        ("qaunt.net", "did you mean quant.net"),
        ("net", "did you mean '\\*net\\*'"),
        ("zzz", "bench list"),
        ("quant.net[precision=int2]", "precision: fp32, int8, int4"),
        ("quant.big", "profile full"),
        ("quant.net[int8]", "not a suite"),
        ("quant.net[", "not a suite"),
        (" ", "not a suite"),
    ],
)
def test_a_selector_that_finds_nothing_says_what_to_do(selector, says):
    with pytest.raises(SelectorError, match=says) as caught:
        select(ALL, [selector], "quick")
    assert caught.value.exit_code is Exit.USAGE


def test_each_free_point_is_an_experiment_of_its_own_with_its_baseline():
    experiments = plan(ALL, ["quant.net"], profile="quick", target=Target(), seed=3, launches=2)
    assert [e.name for e in experiments] == ["quant.net[length=64]", "quant.net[length=128]"]
    for experiment in experiments:
        assert [a.variant.baseline for a in experiment.arms] == [True, False, False]
        assert experiment.policy.launches == 2
        assert experiment.baseline_of(experiment.arms[1]) is experiment.arms[0]
        assert experiment.baseline_of(experiment.arms[0]) is None
    assert experiments[0].seed != experiments[1].seed


def test_work_that_is_expensive_to_start_gets_fewer_of_a_profiles_launches_only():
    big = Benchmark(name="a.b", version="1", suite="a", source="m", launches=5)

    def launches(**settings):
        (experiment,) = plan([big], [], target=Target(), seed=0, **settings)
        return experiment.policy.launches

    assert [launches(profile="quick"), launches(profile="full")] == [5, 5]
    assert launches(profile="quick", launches=9) == 9
    assert launches(profile="quick", policy=Policy(launches=4)) == 4


def test_launches_that_somebody_asks_for_have_no_budget():
    for asked, budgets in ((None, {"quick", "full"}), (9, set())):
        found = {
            p: plan(ALL, ["serial"], profile=p, target=Target(), seed=0, launches=asked) for p in ("quick", "full")
        }
        assert {p for p, (e,) in found.items() if e.policy.budget_s is not None} == budgets


def test_without_a_baseline_all_variants_are_one_experiment():
    (experiment,) = plan(ALL, ["serial"], profile="quick", target=Target(), seed=0)
    assert len(experiment.arms) == 2
    assert experiment.name == "serial.records"


def test_parse_keeps_axes_in_any_order():
    assert parse("a.b[x=1, y=2]").axes == {"x": "1", "y": "2"}


def test_values_may_hold_commas_and_brackets():
    assert parse("a.b[graph=Erdos (100, 0.5), kind=[1, 2]]").axes == {"graph": "Erdos (100, 0.5)", "kind": "[1, 2]"}


def test_quotes_of_an_asv_parameter_may_be_left_out():
    quoted = Benchmark(name="a.b", version="1", suite="a", source="m", axes={"g": ["'x (1, 2)'", "'y'"]})
    for text in ("a.b[g=x (1, 2)]", "a.b[g='x (1, 2)']"):
        assert [v.params["g"] for v in select([quoted], [text], None)[0]] == ["'x (1, 2)'"]


def test_a_value_may_look_like_another_axis():
    made = Benchmark(name="a.b", version="1", suite="a", source="m", axes={"g": ["'T (1, seed=4)'", "'T (2, seed=4)'"]})
    found = select([made], ["a.b[g=T (1, seed=4)]"], None)
    assert [v.params["g"] for v in found[0]] == ["'T (1, seed=4)'"]
