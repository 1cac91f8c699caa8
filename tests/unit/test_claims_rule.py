"""The rule of verdicts against literal cases."""

import pytest

from bench.claims.judging import combine, half_effect, judge, range_of
from bench.claims.words import Beyond, Finding, Relation, Stated, Take
from bench.model import Estimate


def stated(take="speedup", beyond="more", **numbers):
    relation = numbers.pop("relation", "between" if "low" in numbers else "about")
    low, high = range_of(Relation(relation), **numbers)
    return Stated(
        metric="time", take=Take(take), relation=Relation(relation), low=low, high=high, unit="×", beyond=Beyond(beyond)
    )


def seen(value, low=None, high=None):
    return Estimate(value=value, low=low, high=high)


@pytest.mark.parametrize(
    ("found", "figure", "expected"),
    [
        # 2–4×, more is better; half of 2× is √2
        (seen(3.0, 2.9, 3.1), stated(low=2, high=4), Finding.REPRODUCED),
        (seen(2.1, 1.5, 2.8), stated(low=2, high=4), Finding.REPRODUCED),
        (seen(2.1, 1.3, 3.5), stated(low=2, high=4), Finding.PARTLY),  # less than half cannot be ruled out
        (seen(2.1, 0.9, 4.5), stated(low=2, high=4), Finding.INCONCLUSIVE),  # neither the figure nor no effect
        (seen(1.3, 0.5, 3.0), stated(low=2, high=4), Finding.INCONCLUSIVE),
        (seen(1.3, 0.5, 1.9), stated(low=2, high=4), Finding.NOT_REPRODUCED),
        (seen(5.0, 4.5, 5.5), stated(low=2, high=4), Finding.EXCEEDED),
        (seen(5.0, 3.9, 6.4), stated(low=2, high=4), Finding.REPRODUCED),  # beyond, but not for sure
        (seen(1.8, 1.7, 1.9), stated(low=2, high=4), Finding.PARTLY),
        (seen(1.3, 1.2, 1.4), stated(low=2, high=4), Finding.NOT_REPRODUCED),
        (seen(0.5, 0.4, 0.6), stated(low=2, high=4), Finding.NOT_REPRODUCED),
        # one number stands for ± 15 %: 3.4× is 2.89–3.91
        (seen(2.9, 2.8, 3.0), stated(value=3.4), Finding.REPRODUCED),
        (seen(2.8, 2.7, 2.9), stated(value=3.4), Finding.PARTLY),
        (seen(4.8, 4.6, 5.0), stated(value=3.4), Finding.EXCEEDED),
        (seen(3.98), stated(value=4), Finding.REPRODUCED),  # exact: no interval
        (seen(2.4), stated(value=4), Finding.PARTLY),
        # −25…−35 %: half is 12.5 %, and of a loss nothing is left
        (seen(28, 20, 36), stated("cut", low=25, high=35), Finding.REPRODUCED),
        (seen(15, 13, 17), stated("cut", low=25, high=35), Finding.PARTLY),
        (seen(71, 69, 73), stated("cut", low=25, high=35), Finding.EXCEEDED),
        (seen(-195, -200, -190), stated("cut", low=25, high=35), Finding.NOT_REPRODUCED),
        # less is beyond: "not faster", at most 1×
        (seen(0.75, 0.7, 0.8), stated(beyond="less", relation="at_most", value=1), Finding.REPRODUCED),
        (seen(1.2, 1.1, 1.3), stated(beyond="less", relation="at_most", value=1), Finding.NOT_REPRODUCED),
        (seen(0.98, 0.9, 1.06), stated(beyond="less", relation="at_most", value=1), Finding.INCONCLUSIVE),
        # a plain value knows no neutral one, so nothing is partly: an exponent of growth
        (seen(1.02, 0.99, 1.05), stated("value", "less", value=1), Finding.REPRODUCED),
        (seen(0.7, 0.6, 0.8), stated("value", "less", value=1), Finding.EXCEEDED),
        (seen(1.9, 1.8, 2.0), stated("value", "less", value=1), Finding.NOT_REPRODUCED),
        # no better side: in the range, reaching into it, or neither
        (seen(6.5, 6.1, 6.9), stated("value", "neither", value=6), Finding.REPRODUCED),
        (seen(7.5, 6.5, 8.5), stated("value", "neither", value=6), Finding.INCONCLUSIVE),
        (seen(24.0, 22.0, 26.0), stated("value", "neither", value=6), Finding.NOT_REPRODUCED),
        # accuracy may lose one point
        (seen(0.0, -0.4, 0.4), stated("difference", "more", relation="at_least", value=-1), Finding.REPRODUCED),
        (
            seen(-80.0, -83.0, -77.0),
            stated("difference", "more", relation="at_least", value=-1),
            Finding.NOT_REPRODUCED,
        ),
    ],
)
def test_an_interval_is_judged_against_the_stated_range(found, figure, expected):
    assert judge(found, figure) is expected


def test_half_of_an_effect_is_what_people_mean():
    assert half_effect(stated(low=4, high=5)) == pytest.approx(2)
    assert half_effect(stated("cut", low=30, high=40)) == pytest.approx(15)
    assert half_effect(stated(relation="at_least", value=1)) == 1  # no effect was stated
    assert half_effect(stated("ratio", "less", low=0.2, high=0.25)) == pytest.approx(0.5)


@pytest.mark.parametrize(
    "numbers",
    [
        {"relation": "between", "low": 4, "high": 2},
        {"relation": "between", "value": 2},
        {"relation": "about"},
        {"relation": "at_least", "low": 1},
    ],
)
def test_a_range_that_makes_no_sense_is_refused(numbers):
    with pytest.raises(ValueError, match="takes"):
        stated(**numbers)


@pytest.mark.parametrize(
    ("findings", "some", "expected"),
    [
        ("REPRODUCED REPRODUCED", False, "REPRODUCED"),
        ("EXCEEDED EXCEEDED", False, "EXCEEDED"),
        ("EXCEEDED REPRODUCED", False, "REPRODUCED"),
        ("EXCEEDED NOT_REPRODUCED", False, "PARTLY"),
        ("PARTLY NOT_REPRODUCED", False, "PARTLY"),
        ("NOT_REPRODUCED NOT_REPRODUCED", False, "NOT_REPRODUCED"),
        ("EXCEEDED NOT_REPRODUCED", True, "EXCEEDED"),
        ("PARTLY NOT_REPRODUCED", True, "PARTLY"),
        ("REPRODUCED NOT_MEASURABLE", False, "REPRODUCED"),
        ("REPRODUCED NOT_MEASURED", False, "NOT_MEASURED"),  # what is missing could still turn it
        ("REPRODUCED INCONCLUSIVE", False, "INCONCLUSIVE"),
        ("NOT_REPRODUCED NOT_MEASURED", False, "NOT_MEASURED"),
        ("REPRODUCED NOT_REPRODUCED NOT_MEASURED", False, "PARTLY"),  # it could not
        ("PARTLY INCONCLUSIVE", False, "PARTLY"),
        ("REPRODUCED NOT_MEASURED", True, "REPRODUCED"),
        ("NOT_REPRODUCED NOT_MEASURED", True, "NOT_MEASURED"),
        ("INCONCLUSIVE NOT_MEASURED", False, "INCONCLUSIVE"),
        ("NOT_MEASURED NOT_MEASURABLE", False, "NOT_MEASURED"),
        ("NOT_MEASURABLE NOT_MEASURABLE", False, "NOT_MEASURABLE"),
        ("", False, "NOT_MEASURED"),
    ],
)
def test_several_measurements_make_one_finding(findings, some, expected):
    assert combine([Finding[name] for name in findings.split()], some=some) is Finding[expected]
