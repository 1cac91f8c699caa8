"""Measured in pairs, then what looks regressed again: on made-up experiments."""

from dataclasses import replace
from datetime import date

import pytest

from bench import paired
from bench.gate import enough, verdicts
from bench.model import Benchmark, Failure, FailureKind, Target, Verdict
from bench.paired import GATE, measure_pairs, plan_pairs
from bench.policy import Rule
from bench.rereading import comparison_of
from bench.stats.sequential import CONFIRMATION_LAUNCHES
from bench.testing import SilentProgress, as_confirmation, make_pair, make_run

V = Verdict


class Machine:
    """Stands for `run_experiments`: answers with what was made up, in order, and remembers what it was asked."""

    def __init__(self, *rounds, interrupted=()):
        self.rounds = list(rounds)
        self.interrupted = interrupted
        self.asked = []

    def __call__(self, experiments, *, device, path, progress, finished, enough=None):
        call = len(self.asked)
        self.asked.append((list(experiments), enough))
        results = tuple(self.rounds[call])
        for index, result in enumerate(results):
            finished(index, result)
        return results, call in self.interrupted


@pytest.fixture
def measure(monkeypatch):
    """(Paired, Machine, what was kept, what was said)"""

    def make(*rounds, interrupted=()):
        machine, progress, kept = Machine(*rounds, interrupted=interrupted), SilentProgress(), []
        monkeypatch.setattr(paired, "run_experiments", machine)
        found = measure_pairs(
            [result.experiment for result in rounds[0]], device="d:D", path=(), progress=progress,
            keep=lambda index, result: kept.append(index),
        )  # fmt: skip
        return found, machine, kept, progress.messages

    return make


def test_a_suspect_alone_is_measured_again_with_fresh_launches_and_another_seed(measure):
    first = [make_pair(name="s.same"), make_pair(1.1, name="s.slow"), make_pair(0.8, name="s.fast")]
    found, machine, kept, said = measure(first, [as_confirmation(make_pair(1.1, name="s.slow", seed=7))])
    assert [c.verdict for c in found.comparisons] == [V.UNCHANGED, V.REGRESSED, V.IMPROVED]
    assert [c.confirmed for c in found.comparisons] == [None, True, None]
    (asked, looks), (again, early) = machine.asked
    assert [looks(make_pair(1.5, launches=n)) for n in (8, 9)] == [False, True]
    fresh = [as_confirmation(make_pair(slower, name="s.slow", launches=n)) for slower, n in ((2, 6), (2, 7), (1.01, 6))]
    assert [early(result) for result in fresh] == [True, False, False]
    assert [e.name for e in again] == ["s.slow"]
    assert again[0].policy.launches == CONFIRMATION_LAUNCHES
    assert again[0].policy.budget_s is None
    assert again[0].seed != asked[1].seed
    assert kept == [0, 1, 2, 3]  # the confirmation is stored beside what it confirms
    assert len(found.results) == 4
    assert said == ["measuring again with fresh launches: s.slow"]


def test_a_regression_that_is_clear_again_needs_few_fresh_launches(measure):
    found, *_ = measure([make_pair(2.0)], [as_confirmation(make_pair(2.0, seed=7, launches=6))])
    (answer,) = found.comparisons
    assert (answer.verdict, answer.confirmed) == (V.REGRESSED, True)
    assert "6 fresh launches" in answer.reason


def test_what_does_not_repeat_is_taken_back(measure):
    found, *_ = measure([make_pair(1.1)], [as_confirmation(make_pair(1.0, seed=7))])
    (answer,) = found.comparisons
    assert (answer.verdict, answer.confirmed) == (V.INCONCLUSIVE, False)
    assert "regressed at first, not confirmed" in answer.reason


def test_without_a_suspect_or_without_confirmation_nothing_is_measured_again(measure):
    for found, machine, *_ in (measure([make_pair(0.8), make_pair()]), measure(family(make_pair(1.1)))):
        assert len(machine.asked) == 1
        assert all(c.confirmed is None for c in found.comparisons)
    assert found.comparisons[0].verdict is V.REGRESSED


def family(*results, size=None):
    """Experiments that no confirmation follows."""
    size = size or len(results)
    return [
        replace(r, experiment=replace(r.experiment, policy=replace(r.experiment.policy, family=size))) for r in results
    ]


def test_without_confirmation_changes_are_judged_together_and_a_weak_one_is_taken_back(measure):
    """Regressed alone at 1 %; among forty variants of which nothing else changed, that is what chance brings."""
    weak, sure = make_pair(1.02, launches=6, noise=0.003, name="s.weak", seed=4), make_pair(1.5, name="s.sure")
    same = [make_pair(name=f"s.n{k}", seed=k) for k in range(38)]
    (alone,) = measure(family(weak))[0].comparisons
    assert (alone.verdict, alone.reason) == (V.REGRESSED, "")
    found = measure(family(weak, sure, *same))[0].comparisons
    assert [c.verdict for c in found[:2]] == [V.INCONCLUSIVE, V.REGRESSED]
    assert found[0].reason.startswith("regressed alone (p = 0.0")
    assert found[0].reason.endswith("), not among 40 variants")
    assert "of 40 variants together, at most 1 % of the changes are false (Benjamini-Hochberg)" in found[0].rule
    assert {c.verdict for c in found[2:]} == {V.UNCHANGED}


def test_benjamini_and_hochberg_keep_among_many_changes_what_they_would_not_keep_among_few():
    """Where most variants changed, a weak change is believed more: the definition, and not Bonferroni's."""
    weak = make_pair(1.02, launches=6, noise=0.003, name="s.weak", seed=4)
    changed = [make_pair(1.5, name=f"s.n{k}", seed=k) for k in range(39)]
    kept = verdicts(family(weak, *changed))
    assert [c.verdict for c in kept] == [V.REGRESSED] * 40
    assert verdicts(family(weak, size=40))[0].verdict is V.INCONCLUSIVE


def test_among_many_a_change_is_measured_until_it_stands_among_them():
    weak = make_pair(1.02, launches=6, noise=0.003, seed=4)
    assert [enough(family(weak, size=n)[0]) for n in (1, 40)] == [True, False]
    assert enough(family(make_pair(1.5, launches=18), size=40)[0])
    assert enough(family(make_pair(1.0, launches=18), size=40)[0])  # unchanged needs no correction


def test_a_plan_without_confirmation_is_one_family():
    benchmarks = [Benchmark(name=f"s.{n}", version="1", suite="s", source=f"s:{n}") for n in "abc"]
    for confirm, size in ((True, 0), (False, 3)):
        planned = plan_pairs(
            benchmarks, [list(b.variants()) for b in benchmarks], Target(label="x"), Target(label="y"), policy=GATE,
            seed=0, confirm=confirm,
        )  # fmt: skip
        assert {e.policy.family for e in planned} == {size}


def test_after_an_interruption_nothing_more_is_measured(measure):
    found, machine, *_ = measure([make_pair(1.1)], interrupted=(0,))
    assert found.interrupted
    assert len(machine.asked) == 1
    assert found.comparisons[0].verdict is V.REGRESSED


@pytest.mark.parametrize("launches", [0, 3, 17])
def test_a_confirmation_that_was_interrupted_decides_nothing_now_and_when_shown_again(measure, launches):
    """Whatever its launches say: they are fewer than the test was planned for."""
    found, _, kept, _ = measure(
        [make_pair(1.1)], [as_confirmation(make_pair(1.0, launches=launches))], interrupted=(1,)
    )
    assert found.interrupted
    (answer,) = found.comparisons
    assert (answer.verdict, answer.confirmed) == (V.REGRESSED, None)
    assert answer.reason == f"the confirmation was interrupted after {launches} of 18 launches"
    assert comparison_of(replace(make_run(), experiments=found.results)).arms == found.comparisons
    assert kept == [0, 1]


def test_a_head_that_fails_is_named_and_not_the_base_that_was_not_launched(measure):
    gone = Failure(kind=FailureKind.RAISED, phase="set_up", message="ImportError: no shop")
    found, machine, *_ = measure([make_pair(failure=gone)])
    (answer,) = found.comparisons
    assert (answer.verdict, answer.reason) == (V.FAILED, "raised in head: ImportError: no shop")
    assert answer.comparisons == ()
    assert len(machine.asked) == 1


def test_a_rule_changes_the_policy_of_what_it_matches_until_it_expires():
    benchmarks = [Benchmark(name=f"s.{n}", version="1", suite="s", source=f"s:{n}") for n in "ab"]
    rule = Rule(match="s.a", reason="noisy disk", floor=0.2, expires=date(2026, 6, 1))
    for today, floors in ((date(2026, 5, 1), [0.2, GATE.floor]), (date(2026, 7, 1), [GATE.floor, GATE.floor])):
        planned = plan_pairs(
            benchmarks, [list(b.variants()) for b in benchmarks], Target(label="x"), Target(label="y"), policy=GATE,
            seed=0, rules=[rule], today=today,
        )  # fmt: skip
        assert [e.policy.floor for e in planned] == floors


def test_a_stored_gate_run_says_again_what_it_said(measure):
    """From samples alone, confirmation included."""
    first = [make_pair(1.1, name="s.slow"), make_pair(name="s.same"), make_pair(1.1, name="s.false")]
    fresh = [as_confirmation(make_pair(1.1, name="s.slow", seed=7)), as_confirmation(make_pair(name="s.false", seed=8))]
    found, *_ = measure(first, fresh)
    again = comparison_of(replace(make_run(), experiments=found.results))
    assert again.arms == found.comparisons
    assert (again.base, again.head) == ("base", "head")


def test_a_run_of_another_kind_is_no_comparison():
    assert comparison_of(make_run()) is None
