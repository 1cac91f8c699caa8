"""What a suite author may and may not write."""

import pytest

from bench.api import HIGHER, LOWER, MARK, Items, Metric, Work, benchmark, fingerprint


def test_a_declaration_becomes_a_description():
    @benchmark(axes={"n": (1, 2)}, baseline={"n": 1}, metrics=(Metric("error", unit="1", better=LOWER),))
    def thing(device, n):
        """One sentence
        over two lines.

        More.
        """
        return Work(run=lambda: n)

    found = getattr(thing, MARK)
    assert found.name == "test_api.thing"
    assert found.title == "One sentence over two lines."
    assert [v.params for v in found.variants()] == [{"n": 1}, {"n": 2}]
    assert thing(None, n=2).run() == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"axes": {"n": ()}}, "needs one or more"),
        ({"axes": {"n": (1, 1)}}, "different"),
        ({"axes": {"n": (1,)}, "baseline": {"n": 2}}, "n=2"),
        ({"axes": {"n": (1,)}, "baseline": {"m": 1}}, "m=1"),
        ({"axes": {"n": (1,)}, "metrics": (Metric("time", unit="ns", better=LOWER),)}, "time"),
        ({"axes": {"n": (1,)}, "launches": 2}, "launches=2"),
        ({"axes": {"other": (1,)}}, "must take"),
        ({"axes": {"n": (1,)}, "requires": ("service:redis",)}, "service:redis"),
    ],
)
def test_a_contradiction_is_refused_at_once(arguments, says):
    with pytest.raises(ValueError, match=says):

        @benchmark(**arguments)
        def thing(device, n):
            return Work(run=int)


def _one(device):
    """Doc."""
    return 1  # comment


def _same(device):

    return 1


def _other(device):
    return 2


def test_the_version_ignores_comments_layout_and_docstring_but_not_code():
    def renamed(function):
        function.__name__ = "f"
        return fingerprint(function)

    one = fingerprint(_one).removeprefix("")
    assert fingerprint(_one) == one
    assert fingerprint(_one, "settings") != one
    assert renamed(_one) != renamed(_other)


def test_items_keep_right_and_wrong_one_by_one():
    assert Items([True, 0, "x"]) == (1, 0, 1)


def test_direction_is_part_of_a_metric():
    assert Metric("accuracy", unit="1", better=HIGHER).better is HIGHER
