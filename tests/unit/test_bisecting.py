"""What a bisection measures and concludes, on made-up machines: proof of the ends, steps, proof of the change."""

from dataclasses import replace

import pytest

from bench.bisecting import Bisection
from bench.errors import BuildError, Exit, MissingError
from bench.journal import Journal
from bench.metrics import SIZE, TIME
from bench.model import Benchmark, Failure, FailureKind, Measurement, Target, Verdict
from bench.paired import GATE
from bench.reports.bisection import bisection_json, bisection_markdown, bisection_text
from bench.stats.sequential import LOOKS
from bench.suspects import Answer, Question
from bench.targets.history import Change
from bench.testing import make_pair

CHANGES = tuple(Change(name=f"c{i}", parents=(f"c{i - 1}",) if i else (), subject=f"change {i}") for i in range(17))


class MadeUpLab:
    """Changes with a speed each; remembers what it was asked, and can be told to fail."""

    def __init__(self, speeds, *, broken=(), failing=(), same=(), withdrawn=(), noise=0.003, sizes=None):
        self.speeds = speeds
        self.broken, self.failing, self.gone = set(broken), set(failing), set(withdrawn)
        self.same = {frozenset(pair) for pair in same}
        self.noise = noise
        self.sizes = sizes
        self.asked = []
        self.interrupt_after = None

    def compare(self, base, head, *, launches, enough, patient):
        if self.interrupt_after == len(self.asked):
            raise KeyboardInterrupt
        self.build(base)
        self.build(head)
        self.asked.append((base, head))
        looks = sorted({*(n for n in LOOKS if n <= launches), launches}) if enough else []
        for n in looks or [launches]:
            result = self.result(base, head, n)
            if enough and enough(result):
                break
        return result

    def result(self, base, head, launches):
        failure = None
        if head in self.failing:
            failure = Failure(kind=FailureKind.RAISED, phase="set_up", message="no stock")
        effect = self.speeds(head) / self.speeds(base)
        found = make_pair(
            effect, launches=launches, base=Target(label=base), head=Target(label=head), failure=failure,
            noise=self.noise, seed=1000 * len(self.asked) + number(head),
        )  # fmt: skip
        if self.sizes is None:
            return found
        results = [
            replace(r, measurements=(*r.measurements, Measurement(metric=SIZE, launches=((self.sizes(name),),))))
            for r, name in zip(found.results, (base, head), strict=True)
        ]
        benchmark = replace(found.experiment.benchmark, primary="size")
        return replace(found, results=tuple(results), experiment=replace(found.experiment, benchmark=benchmark))

    def identical(self, one, other):
        self.build(one)
        self.build(other)
        return frozenset((one, other)) in self.same

    def build(self, name):
        if name in self.broken:
            raise BuildError(f"building {name} failed: the compiler says no.", said="the compiler says no")

    def withdrawn(self, name):
        return name in self.gone


class Clock:
    """Moves one second a reading."""

    now = 0.0

    def __call__(self):
        self.now += 1.0
        return self.now


@pytest.fixture
def bisect(tmp_path):
    """lab → Outcome; `said` has what was told."""

    def run(lab, *, metric=TIME, budget_s=1e9, restart=False):
        benchmark = Benchmark(name="demo.work", version="v1", suite="demo", source="demo:work", primary=metric.name)
        question = Question(
            changes=CHANGES, variant="demo.work", variant_params={}, benchmark=benchmark, metric=metric, policy=GATE
        )
        journal = Journal(tmp_path, {"metric": metric.name}, Answer)
        if restart:
            journal.forget()
        return Bisection(question, lab, journal, say=run.said.append, budget_s=budget_s, clock=Clock()).run()

    run.said = []
    return run


def number(name):
    return int(name[1:])


def slower_from(first, factor=1.05):
    return lambda name: factor if number(name) >= first else 1.0


def names(outcome):
    return [change.name for change in outcome.suspects]


def test_the_change_is_found_and_proved_against_its_parent(bisect):
    lab = MadeUpLab(slower_from(11))
    found = bisect(lab)
    assert (names(found), found.ended, found.verdict) == (["c11"], "found", Verdict.REGRESSED)
    assert (found.effect.base.name, found.effect.head.name, found.effect.confirmed) == ("c10", "c11", True)
    assert found.effect.change.low < 1.05 < found.effect.change.high
    assert found.whole.low < 1.05 < found.whole.high
    assert lab.asked[0] == lab.asked[1] == ("c0", "c16")
    assert lab.asked[-1] == ("c10", "c11")
    assert {base for base, _ in lab.asked[2:-1]} == {"c0"}  # levels, not neighbours
    assert len(found.steps) == 4
    assert found.exit_code() is Exit.REGRESSION


def test_ends_that_differ_clearly_need_few_fresh_launches(bisect):
    clear, small = (
        bisect(MadeUpLab(slower_from(11, 1.5))),
        bisect(MadeUpLab(slower_from(11, 1.05), noise=0.04), restart=True),
    )
    assert (clear.whole.n, small.whole.n) == (LOOKS[0], 18)
    assert clear.effect.launches == 18  # the figure that is reported is measured in full


def test_an_improvement_is_found_and_is_no_failure(bisect):
    found = bisect(MadeUpLab(slower_from(6, factor=0.7)))
    assert (names(found), found.verdict, found.exit_code(strict=True)) == (["c6"], Verdict.IMPROVED, Exit.OK)
    assert found.effect.change.high < 0.75


def test_ends_that_do_not_differ_are_not_searched(bisect):
    lab = MadeUpLab(lambda name: 1.0)
    found = bisect(lab)
    assert (found.verdict, found.ended, found.suspects) == (Verdict.UNCHANGED, "unchanged", ())
    assert len(lab.asked) == 1
    assert found.exit_code(strict=True) is Exit.OK
    assert "does not differ" in bisection_text(found)


def test_ends_of_the_same_bytes_are_not_measured(bisect):
    lab = MadeUpLab(lambda name: 1.0, same=[("c0", "c16")])
    assert bisect(lab).reason == "both run the same bytes"
    assert lab.asked == []


def test_ends_that_cannot_be_told_apart_are_inconclusive(bisect):
    found = bisect(MadeUpLab(slower_from(11, 1.03), noise=0.4))
    assert (found.verdict, found.suspects) == (Verdict.INCONCLUSIVE, ())
    assert (found.exit_code(), found.exit_code(strict=True)) == (Exit.OK, Exit.INCONCLUSIVE)


def test_an_end_without_a_value_leaves_nothing_to_search(bisect):
    with pytest.raises(MissingError, match=r"demo\.work: raised in head: no stock"):
        bisect(MadeUpLab(slower_from(11), failing=["c16"]))
    with pytest.raises(BuildError, match="the compiler says no"):
        bisect(MadeUpLab(slower_from(11), broken=["c0"]))


def test_what_does_not_build_or_run_is_passed_over(bisect):
    found = bisect(MadeUpLab(slower_from(11), broken=["c8", "c9"], failing=["c12"]))
    assert names(found) == ["c11"]
    reasons = {s.change.name: s.reason for s in found.steps if s.place == "untestable"}
    assert reasons["c8"] == "not built: the compiler says no"
    assert found.effect.confirmed


def test_untestable_changes_beside_the_first_bad_one_are_suspects_too(bisect):
    found = bisect(MadeUpLab(slower_from(11), broken=["c10"], failing=["c11"]))
    assert (names(found), found.ended) == (["c10", "c11", "c12"], "narrowed")
    assert (found.effect.base.name, found.effect.head.name) == ("c9", "c12")
    assert "one of these 3 changes (the others could not be tested)" in bisection_text(found)
    assert found.exit_code() is Exit.REGRESSION


def test_a_change_that_runs_the_bytes_of_another_is_not_measured(bisect):
    lab = MadeUpLab(slower_from(11), same=[("c0", "c8"), ("c16", "c12")])
    found = bisect(lab)
    assert names(found) == ["c11"]
    assert {"c8", "c12"}.isdisjoint(head for _, head in lab.asked)
    assert {s.reason for s in found.steps if not s.launches} == {"the same bytes as c0", "the same bytes as c16"}


def test_a_step_that_is_undecided_is_measured_again_and_then_left_out(bisect):
    """The ends were told apart by luck of many launches; one candidate is far noisier."""

    class Noisy(MadeUpLab):
        def result(self, base, head, launches):
            self.noise = 0.9 if head == "c8" else 0.003
            return super().result(base, head, launches)

    lab = Noisy(slower_from(11))
    found = bisect(lab)
    assert lab.asked.count(("c0", "c8")) == 2
    (step,) = (s for s in found.steps if s.change.name == "c8")
    assert (step.place, step.launches) == ("inconclusive", 100)
    assert names(found) == ["c11"]


def test_several_changes_are_told_and_the_larger_one_is_found(bisect):
    found = bisect(MadeUpLab(lambda name: 1 + 0.05 * (number(name) >= 3) + 0.12 * (number(name) >= 13), noise=0.001))
    assert names(found) == ["c13"]
    assert any("several changes" in note for note in found.notes)
    assert any("not the whole difference" in note for note in found.notes)
    assert "between" in {step.place for step in found.steps}


def test_an_interrupted_search_goes_on_without_asking_again(bisect):
    lab = MadeUpLab(slower_from(11))
    lab.interrupt_after = 4
    stopped = bisect(lab)
    assert (stopped.ended, stopped.exit_code()) == ("interrupted", Exit.FAILED)
    assert "c11" in names(stopped)
    before = list(lab.asked)
    lab.interrupt_after = None
    found = bisect(lab)
    assert names(found) == ["c11"]
    assert len(set(lab.asked[2:])) == len(lab.asked[2:])
    assert lab.asked[: len(before)] == before
    after = len(lab.asked)
    again = bisect(lab)
    assert (again.effect, again.steps, len(lab.asked)) == (found.effect, found.steps, after)
    bisect(lab, restart=True)
    assert len(lab.asked) == 2 * after


def test_interrupted_before_anything_is_known_names_nothing(bisect):
    lab = MadeUpLab(slower_from(11))
    lab.interrupt_after = 0
    found = bisect(lab)
    assert (found.ended, found.suspects, found.exit_code()) == ("interrupted", (), Exit.FAILED)
    assert "interrupted before it was known" in bisection_text(found)


def test_a_spent_budget_leaves_suspects_and_their_proof(bisect):
    found = bisect(MadeUpLab(slower_from(11)), budget_s=10)
    assert found.ended == "budget"
    assert "c11" in names(found)
    assert len(found.suspects) > 1
    assert found.effect.confirmed  # of all of them together
    assert found.exit_code() is Exit.REGRESSION
    assert names(bisect(MadeUpLab(slower_from(11)))) == ["c11"]


def test_a_release_without_a_wheel_is_no_candidate(bisect):
    lab = MadeUpLab(slower_from(11), withdrawn=["c10", "c8"])
    found = bisect(lab)
    assert names(found) == ["c11"]
    assert found.effect.base.name == "c9"
    assert {"c10", "c8"}.isdisjoint(head for _, head in lab.asked)


def test_an_exact_metric_needs_one_launch_and_no_statistics(bisect):
    lab = MadeUpLab(lambda name: 1.0, sizes=lambda name: 100 + 7 * (number(name) >= 5) + (number(name) >= 2))
    found = bisect(lab, metric=SIZE)
    assert names(found) == ["c5"]
    assert (found.effect.change.value, found.effect.change.note, found.effect.confirmed) == (7.0, "exact", True)
    assert all(step.launches == 1 for step in found.steps)
    assert any("several changes" in note for note in found.notes)
    assert "+7.00 B from c4 to c5, confirmed\n" in bisection_text(found)


def test_what_the_search_names_must_stand_on_its_own(bisect):
    """A lab whose machine lies while it searches: the direct measurement does not confirm what was named."""

    class Liar(MadeUpLab):
        def compare(self, base, head, **more):
            self.speeds = slower_from(11) if base == "c0" else (lambda name: 1.0)
            return super().compare(base, head, **more)

    found = bisect(Liar(slower_from(11)))
    assert names(found) == ["c11"]
    assert not found.effect.confirmed
    assert any("--restart" in note for note in found.notes)
    assert "NOT confirmed" in bisection_text(found)


def test_every_format_names_change_effect_and_steps(bisect):
    found = bisect(MadeUpLab(slower_from(11), broken=["c8"]))
    text, markdown = bisection_text(found), bisection_markdown(found)
    for report in (text, markdown):
        assert "change 11" in report
        assert "the compiler says no" in report
        assert "confirmed by 18 fresh launches" in report
    assert "| ✗ untestable | `c8` |" in markdown
    assert '"ended": "found"' in bisection_json(found, exit_code=3)


def test_a_damaged_journal_is_no_answer(tmp_path):
    journal = Journal(tmp_path, {"q": 1}, Answer)
    journal.keep("a", Answer(base="x", head="y", values={"time": ((1.0,), (2.0,))}))
    assert Journal(tmp_path, {"q": 1}, Answer)["a"].values == {"time": ((1.0,), (2.0,))}
    assert "a" not in Journal(tmp_path, {"q": 2}, Answer)
    journal.file.write_bytes(b"{")
    assert len(Journal(tmp_path, {"q": 1}, Answer)) == 0
