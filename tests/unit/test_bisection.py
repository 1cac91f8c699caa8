"""A search on made-up histories: what it names, how many questions it takes, and how often it errs."""

from itertools import pairwise
from math import ceil, log, log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.bisection import History, Levels, Place, Search, level_again, level_of
from bench.stats.location import Interval
from bench.stats.sequential import LOOKS
from benchmarks.bisection_errors import Case
from benchmarks.bisection_errors import search as simulated

NOTHING = Interval(0.0, 0.0, 0.0, 6)
TENTH = Levels(good=NOTHING, bad=Interval(0.1, 0.09, 0.11, 18), slack=0.01)


def around(value, half=0.005):
    return Interval(value, value - half, value + half, 9)


def ask_all(search, place_of, untestable=()):
    """Answer until nothing is asked any more; how many were asked for."""
    asked = 0
    while (name := search.next()) is not None:
        asked += 1
        if name in untestable:
            search.skip(name)
        else:
            place = place_of(name)
            search.answer(name, place, NOTHING if place is Place.GOOD else around(0.1))
    return asked


@given(st.data())
def test_a_line_leads_to_the_first_bad_one_in_the_fewest_questions(data):
    count = data.draw(st.integers(1, 200))
    first = data.draw(st.integers(0, count - 1))
    search = Search(History.line([str(i) for i in range(count)]), TENTH)
    asked = ask_all(search, lambda name: Place.BAD if int(name) >= first else Place.GOOD)
    assert search.suspects == (str(first),)
    assert search.last_good == (str(first - 1) if first and asked else None)
    assert asked <= ceil(log2(count)) if count > 1 else asked == 0


@given(st.data())
def test_what_cannot_be_tested_stays_suspect_and_nothing_else_does(data):
    """The suspects are the first bad one that can be tested and the untestable ones right before it."""
    count = data.draw(st.integers(1, 60))
    first = data.draw(st.integers(0, count - 1))
    names = [str(i) for i in range(count)]
    untestable = data.draw(st.sets(st.sampled_from(names))) - {names[-1]}
    search = Search(History.line(names), TENTH)
    ask_all(search, lambda name: Place.BAD if int(name) >= first else Place.GOOD, untestable)
    last = next(i for i in range(first, count) if names[i] not in untestable)
    begin = next((i + 1 for i in range(first - 1, -1, -1) if names[i] not in untestable), 0)
    assert search.suspects == tuple(names[begin : last + 1])
    assert names[first] in search.suspects


@given(st.data())
def test_a_history_with_branches_leads_to_the_change_that_all_bad_ones_descend_from(data):
    count = data.draw(st.integers(2, 40))
    parents = {"0": ()}
    for i in range(1, count):
        some = st.lists(st.integers(0, i - 1), min_size=1, max_size=2, unique=True)
        parents[str(i)] = tuple(map(str, data.draw(some)))
    ancestors = {}
    for name in parents:
        ancestors[name] = {name}.union(*(ancestors[p] for p in parents[name]))
    names = tuple(n for n in parents if n in ancestors[str(count - 1)])
    culprit = data.draw(st.sampled_from(names))
    search = Search(History(names=names, parents=parents), TENTH)
    ask_all(search, lambda name: Place.BAD if culprit in ancestors[name] else Place.GOOD)
    assert search.suspects == (culprit,)


def test_a_stretch_that_cannot_be_tested_is_left_soon():
    """Half of the history does not build: the questions jump instead of walking through it."""
    names = [str(i) for i in range(256)]
    broken = set(names[64:192])
    search = Search(History.line(names), TENTH)
    asked = ask_all(search, lambda name: Place.BAD if int(name) >= 30 else Place.GOOD, broken)
    assert search.suspects == ("30",)
    assert asked < 16


def test_the_nearer_level_counts_and_an_interval_over_the_middle_tells_nothing():
    assert TENTH.place(around(0.0)) is Place.GOOD
    assert TENTH.place(around(-0.3)) is Place.GOOD
    assert TENTH.place(around(0.1)) is Place.BAD
    assert TENTH.place(around(0.5)) is Place.BAD
    assert TENTH.place(around(0.05, half=0.06)) is None
    assert TENTH.place(Interval(0.1, float("nan"), float("nan"), 1)) is None


def test_what_is_clearly_away_from_both_ends_lies_between():
    assert TENTH.place(around(0.03)) is Place.BETWEEN
    assert TENTH.place(around(0.05)) is Place.BETWEEN
    assert TENTH.place(around(0.014)) is Place.GOOD  # within the slack
    assert TENTH.place(around(0.078)) is Place.BAD  # the end is known to 0.09 only


@given(st.floats(-1, 1), st.floats(0.001, 0.2))
def test_improvements_are_the_same_search_upside_down(value, half):
    down = Levels(good=NOTHING, bad=Interval(-0.1, -0.11, -0.09, 18), slack=0.01)
    assert down.place(around(-value, half)) is TENTH.place(around(value, half))


@pytest.mark.parametrize("sign", [1, -1])
def test_between_two_changes_the_search_goes_on_in_the_larger_part(sign):
    """3 at the tenth, 7 at the thirtieth, of forty: the thirtieth is found, and a part at the tenth was seen."""
    levels = Levels(good=NOTHING, bad=Interval(sign * 0.1, *sorted((sign * 0.099, sign * 0.101)), 18), slack=0.01)
    search = Search(History.line([str(i) for i in range(40)]), levels)
    between = []
    while (name := search.next()) is not None:
        level = sign * (0.03 * (int(name) >= 10) + 0.07 * (int(name) >= 30))
        place = search.levels.place(around(level))
        between += [name] if place is Place.BETWEEN else []
        search.answer(name, place, around(level))
    assert search.suspects == ("30",)
    assert between
    assert search.levels.good == around(sign * 0.03)


def test_a_candidate_that_is_none_is_no_suspect():
    search = Search(History.line(["1", "2", "3", "4"]), TENTH)
    search.drop("2")
    ask_all(search, lambda name: Place.BAD if name != "1" else Place.GOOD)
    assert search.suspects == ("3",)


def test_a_level_is_judged_at_looks_and_at_the_end_alone():
    values = [0.1 + 0.001 * (-1) ** i for i in range(20)]
    for n in range(1, 20):
        assert (level_of(values[:n], TENTH)[1] is Place.BAD) == (n in LOOKS)
        assert (level_of(values[:n], TENTH, final=True)[1] is Place.BAD) == (n >= LOOKS[0])


def test_measured_again_all_launches_count():
    noisy = [0.1 + 0.1 * (-1) ** i for i in range(50)]
    assert level_of(noisy, TENTH, final=True)[1] is None
    assert level_again(noisy, [0.1] * 50, TENTH)[1] is Place.BAD


def test_questions_left_shrink_to_none():
    search = Search(History.line([str(i) for i in range(64)]), TENTH)
    left = [search.questions_left]
    while (name := search.next()) is not None:
        search.answer(name, Place.BAD, around(0.1))
        left.append(search.questions_left)
    assert left == sorted(left, reverse=True)
    assert (left[0], left[-1]) == (6, 0)
    assert all(a > b for a, b in pairwise(left))


@pytest.mark.parametrize(
    "case",
    [
        Case(name="small", effects=(0.03,)),
        Case(name="noisy", effects=(0.1,), spread=0.05, noise="contaminated"),
        Case(name="broken", effects=(0.05,), broken=0.2),
    ],
    ids=lambda case: case.name,
)
def test_noise_rarely_leads_to_a_wrong_change(case):
    """Two hundred searches: with a true rate of 0.5 % more than six mistakes would be a matter of 1 in 10,000."""
    rng = np.random.default_rng(1)
    ends = [simulated(case, rng)[0] for _ in range(200)]
    assert ends.count("wrong") <= 6
    assert ends.count("right") > 100


def test_the_simulation_would_see_a_search_that_errs():
    """An effect that is lost in the noise is not found: the launches tell nothing."""
    rng = np.random.default_rng(1)
    ends = [simulated(Case(name="none", effects=(log(1.001),), spread=0.3), rng)[0] for _ in range(50)]
    assert ends.count("right") < 25
