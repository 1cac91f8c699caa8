"""Rules for benchmarks: which one applies, when it ends, and what a wrong one says."""

from dataclasses import replace
from datetime import date

import pytest

from bench.config import load_config
from bench.errors import ConfigError
from bench.metrics import ALLOCATION_PEAK, CPU_TIME, FIRST_CALL, INSTRUCTIONS, PEAK_MEMORY, SIZE, TIME
from bench.model import Policy, Threshold
from bench.policy import Rule, apply, expired, read_rules
from bench.thresholds import INSTRUCTION_FLOOR, floor_of, margin_of

TODAY = date(2026, 11, 30)
WIDE = Rule(match="*", reason="all", floor=0.02)
SUITE = Rule(match="io", reason="disk", floor=0.1, margin=0.2)
EXACT = Rule(match="io.read[n=1]", reason="one", floor=0.3)


@pytest.mark.parametrize(
    ("variant", "floor", "margin"),
    [("cpu.x", 0.02, 0.02), ("io.read[n=2]", 0.1, 0.2), ("io.read[n=1]", 0.3, 0.2), ("iox.read", 0.02, 0.02)],
)
def test_each_setting_comes_from_the_nearest_rule_that_has_it(variant, floor, margin):
    for rules in ((WIDE, SUITE, EXACT), (EXACT, SUITE, WIDE)):
        policy = apply(rules, variant, Policy(), TODAY)
        assert (policy.floor, policy.margin) == (floor, margin)


def test_of_equally_near_rules_the_later_wins():
    rules = (Rule(match="a.*", reason="1", floor=0.1), Rule(match="a.?", reason="2", floor=0.2))
    assert apply(rules, "a.b", Policy(), TODAY).floor == 0.2


def test_a_rule_ends_after_its_day():
    rule = Rule(match="*", reason="until fixed", floor=0.5, expires=TODAY)
    assert apply([rule], "a.b", Policy(), TODAY).floor == 0.5
    assert expired([rule], TODAY) == []
    assert apply([rule], "a.b", Policy(), date(2026, 12, 1)).floor == Policy().floor
    assert expired([rule], date(2026, 12, 1)) == [rule]


@pytest.mark.parametrize(
    ("item", "says"),
    [
        ({"match": "*"}, "needs reason"),
        ({"reason": "x"}, "needs match"),
        ({"match": "*", "reason": "x", "flor": 1}, "unknown setting 'flor'"),
        ({"match": "*", "reason": "x", "floor": "5%"}, "floor must be a number"),
        ({"match": "*", "reason": "x", "floor": 0}, "over 0"),
        ({"match": "*", "reason": "x", "floor": True}, "floor must be a number"),
        ({"match": "*", "reason": "x", "expires": "soon"}, "must be a date"),
    ],
)
def test_a_wrong_rule_is_one_sentence_with_its_number(item, says):
    with pytest.raises(ConfigError, match=says) as caught:
        read_rules([{"match": "*", "reason": "fine"}, item], "pyproject.toml")
    assert "policy 2" in str(caught.value)


def test_rules_are_read_from_pyproject(tmp_path):
    (tmp_path / "pyproject.toml").write_text(
        "[[tool.bench.policy]]\nmatch='a.*'\nreason='r'\nfloor=0.05\nexpires=2027-01-31\n"
    )
    (rule,) = load_config(cwd=tmp_path, environ={}).policy
    assert rule == Rule(match="a.*", reason="r", floor=0.05, expires=date(2027, 1, 31))
    (tmp_path / "pyproject.toml").write_text("[tool.bench]\npolicy='x'\n")
    with pytest.raises(ConfigError, match="must be written as"):
        load_config(cwd=tmp_path, environ={})


def test_a_rule_that_names_a_metric_is_about_that_metric_alone():
    rules = (
        Rule(match="*", reason="all", floor=0.03),
        Rule(match="search", metric="p99", reason="people wait", floor=0.1),
        Rule(match="search.*", metric="p99", reason="nearer", margin=0.3),
        Rule(match="search", metric="instructions", reason="counted", floor=0.01),
    )
    policy = apply(rules, "search.net", Policy(), TODAY)
    assert policy.floor == 0.03
    assert policy.thresholds == (
        Threshold(metric="p99", floor=0.1, margin=0.3), Threshold(metric="instructions", floor=0.01),
    )  # fmt: skip
    assert apply(rules, "other.net", Policy(), TODAY).thresholds == ()


@pytest.mark.parametrize(
    ("item", "says"),
    [
        ({"metric": 99}, "metric must be the name of one, like p99, not 99"),
        ({"metric": " "}, "metric must be the name of one"),
        ({"metric": "p99", "alpha": 0.1}, "alpha is not one metric's; give it in a rule without metric"),
        ({"metric": "peak_memory", "memory_floor": 0.1}, "memory_floor is not one metric's"),
    ],
)
def test_a_wrong_rule_about_a_metric_is_one_sentence(item, says):
    with pytest.raises(ConfigError, match=says):
        read_rules([{"match": "*", "reason": "x", **item}], "pyproject.toml")


def test_floors_go_by_kind_unless_the_metric_is_named():
    policy = Policy(floor=0.02, margin=0.05, memory_floor=0.1)
    assert [floor_of(policy, m) for m in (TIME, FIRST_CALL, PEAK_MEMORY, ALLOCATION_PEAK)] == [0.02, 0.02, 0.1, 0.1]
    assert floor_of(policy, INSTRUCTIONS) == INSTRUCTION_FLOOR
    assert floor_of(policy, SIZE) == 0.0, "any difference of a size is a change"
    rules = Threshold(metric="peak_memory", floor=0.3), Threshold(metric="time", margin=0.5)
    named = replace(policy, thresholds=rules)
    assert (floor_of(named, PEAK_MEMORY), margin_of(named, PEAK_MEMORY)) == (0.3, 0.3)
    assert (floor_of(named, TIME), margin_of(named, TIME)) == (0.02, 0.5)
    assert margin_of(named, CPU_TIME) == 0.05
