"""Measure what a bisection asks for: prove that the ends differ, search, and prove what was found.

A question is one experiment of two changes of the history. Its answer is kept in a journal under its
name, and everything else is derived from answers: an interrupted search, asked again, repeats itself
without measuring until it comes to a question that has no answer yet.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import exp, isnan, log, log1p
from typing import Literal

from bench import gate
from bench.bisection import History, Levels, Place, Search, level_again, level_of
from bench.compare import launch_values
from bench.errors import BuildError, MissingError
from bench.experiment import Enough
from bench.journal import Journal
from bench.metrics import CPU_TIME, TIME, Better, Metric, Summary
from bench.model import Estimate, ExperimentResult, FailureKind, Measurement, Verdict
from bench.stats.location import Interval, trimmed_interval
from bench.stats.sequential import CONFIRMATION_LAUNCHES, EARLY_CONFIRMATIONS, LOOKS, State, confirm
from bench.suspects import EXACT, Answer, Effect, Ended, Lab, Outcome, Question, Step
from bench.targets.history import Change
from bench.thresholds import floor_of

SAME = "the same bytes as "


class Bisection:
    """One search. `say` is told every step; no question is begun after `budget_s` seconds."""

    def __init__(
        self,
        question: Question,
        lab: Lab,
        journal: Journal[Answer],
        *,
        say: Callable[[str], None],
        budget_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._question = question
        self._lab = lab
        self._journal = journal
        self._say = say
        self._clock = clock
        self._deadline = clock() + budget_s
        self._changes = {change.name: change for change in question.changes}
        self._metric = question.metric
        self._exact = question.metric.summary in EXACT
        self._steps: list[Step] = []
        self._places: dict[str, tuple[Place, Interval]] = {}
        self._notes: list[str] = []
        self._withdrawn: set[str] = set()

    def run(self) -> Outcome:
        """Search until one change is left, no more can be told, or the budget is spent.

        Raises MissingError when the benchmark gives no value at GOOD or at BAD, BuildError when one of
        them cannot be built.
        """
        question = self._question
        outcome = Outcome(question=question, metric=self._metric, verdict=Verdict.INCONCLUSIVE, ended="interrupted")
        search: Search | None = None
        ended: Ended = "interrupted"
        effect: Effect | None = None
        try:
            outcome = self._verify()
            if outcome.whole is None or outcome.verdict not in (Verdict.REGRESSED, Verdict.IMPROVED):
                return outcome
            search = Search(self._history(), self._levels())
            ended = self._narrow(search)
            effect = self._prove(search, outcome.verdict)
            if ended == "found" and effect is not None:
                self._compare_with_whole(effect, outcome.whole)
        except KeyboardInterrupt:
            ended = "interrupted"
        if search is None:
            return outcome
        return replace(
            outcome, metric=self._metric, ended=ended, effect=effect, steps=tuple(self._steps),
            suspects=tuple(self._changes[name] for name in search.suspects), notes=tuple(self._notes),
        )  # fmt: skip

    # The two ends

    def _verify(self) -> Outcome:
        """Whether GOOD and BAD differ: the gate's answer, then fresh launches."""
        question = self._question
        good, bad = question.good.name, question.bad.name
        outcome = Outcome(question=question, metric=self._metric, verdict=Verdict.UNCHANGED, ended="unchanged")
        if self._lab.identical(good, bad):
            return replace(outcome, reason="both run the same bytes")
        self._say(f"does {question.bad.short} differ from {question.good.short}?")
        first = self._measured("check", good, bad, enough=gate.enough)
        if first.verdict is Verdict.FAILED or first.problem:
            raise MissingError(f"{question.variant}: {first.problem or first.reason}; there is nothing to search for.")
        if first.basis:
            self._metric = _metric_of(question, first.basis)
        verdict = first.verdict
        if verdict not in (Verdict.REGRESSED, Verdict.IMPROVED):
            whole = self._estimate(self._differences(first))
            return replace(outcome, metric=self._metric, verdict=verdict, reason=first.reason, whole=whole)
        fresh = first
        if not self._exact:
            self._say(f"it does; measuring again with up to {CONFIRMATION_LAUNCHES} fresh launches")
            fresh = self._measured(
                "again", good, bad, launches=CONFIRMATION_LAUNCHES, patient=True,
                enough=lambda result: self._confirmed_early(result, verdict),
            )  # fmt: skip
            if fresh.problem:
                raise MissingError(f"{question.variant}: {fresh.problem}; there is nothing to search for.")
            if not self._confirmed(fresh, verdict):
                reason = f"{verdict.value} at first, not confirmed by fresh launches"
                whole = self._estimate(self._differences(fresh))
                return replace(outcome, metric=self._metric, verdict=Verdict.INCONCLUSIVE, reason=reason, whole=whole)
            self._choose_time(fresh, verdict)
        whole = self._estimate(self._differences(fresh))
        return replace(outcome, metric=self._metric, verdict=verdict, ended="found", whole=whole, reason=first.reason)

    def _choose_time(self, fresh: Answer, verdict: Verdict) -> None:
        """Search on CPU time where it shows the same difference with less noise: work that computes all the time."""
        if self._metric.name != TIME.name or not fresh.computing:
            return
        wall, cpu = (trimmed_interval(self._differences(fresh, m)) for m in (TIME.name, CPU_TIME.name))
        agree = cpu.low <= wall.value <= cpu.high or wall.low <= cpu.value <= wall.high
        if agree and cpu.high - cpu.low < wall.high - wall.low:
            self._metric = CPU_TIME
            if not self._confirmed(fresh, verdict):
                self._metric = TIME

    def _levels(self) -> Levels:
        kind = "check" if self._exact else "again"
        answer = self._journal[_name(kind, self._question.good.name, self._question.bad.name)]
        values = self._differences(answer)
        bad = self._interval(values)
        slack = 0.0 if self._exact else log1p(self._floor)
        return Levels(good=Interval(0.0, 0.0, 0.0, len(values)), bad=bad, slack=slack)

    def _history(self) -> History:
        after = self._question.changes[1:]
        return History(names=tuple(c.name for c in after), parents={c.name: c.parents for c in after})

    # The search

    def _narrow(self, search: Search) -> Ended:
        while (name := search.next()) is not None:
            if self._clock() >= self._deadline and not self._known(name):
                return "budget"
            change, known = self._changes[name], self._known(name)
            if not known:
                left = search.questions_left
                self._say(f"{change.short}, one of {len(search.suspects)} suspects, about {left} to ask")
            if not known and self._lab.withdrawn(name):
                search.drop(name)
                self._withdrawn.add(name)
                continue
            step = self._step(search, change)
            self._steps.append(step)
            if not known:
                self._say(f"{change.short}: {step.place}{f' ({step.reason})' if step.reason else ''}")
        return "found" if len(search.suspects) == 1 else "narrowed"

    def _known(self, name: str) -> bool:
        return _name("step", self._question.good.name, name) in self._journal

    def _step(self, search: Search, change: Change) -> Step:
        """Ask for one candidate and tell the search."""
        answer = self._asked(change.name, search)
        if answer.problem:
            search.skip(change.name)
            return Step(change=change, place="untestable", launches=answer.launches, reason=answer.problem)
        reason, launches = "", answer.launches
        place: Place | None
        if answer.same:
            place, seen = self._place_of(answer.same, search)
            reason = f"{SAME}{self._changes[answer.same].short}"
        else:
            place, seen, launches = self._measured_place(answer, change, search)
        level = self._estimate_of(seen)
        if place is None:
            search.skip(change.name)
            reason = f"{launches} launches cannot tell on which side of the middle it lies"
            return Step(change=change, place="inconclusive", level=level, launches=launches, reason=reason)
        self._places[change.name] = (place, seen)
        side = search.answer(change.name, place, seen)
        if place is Place.BETWEEN:
            reason = f"counted as {side.value}: the other part is the larger"
            self._notes.append(
                f"there are several changes: at {change.short} a part of the difference is there; "
                "the search went on in the larger part"
            )
        return Step(change=change, place=place.value, level=level, launches=launches, reason=reason)

    def _measured_place(self, answer: Answer, change: Change, search: Search) -> tuple[Place | None, Interval, int]:
        """Place, level and launches; measured again, once, where the first launches leave it open."""
        values, launches = self._differences(answer), answer.launches
        seen, place = self._judge(values, search)
        if place is not None or self._exact:
            return place, seen, launches
        good = self._question.good.name
        if _name("step again", good, change.name) not in self._journal:
            self._say(f"{change.short} is undecided after {launches} launches; measuring it again")
        fresh = self._measured("step again", good, change.name)
        seen, place = level_again(values, self._differences(fresh), search.levels, alpha=self._question.policy.alpha)
        return place, seen, launches + fresh.launches

    def _place_of(self, name: str, search: Search) -> tuple[Place, Interval]:
        if name == self._question.good.name:
            return Place.GOOD, Interval(0.0, 0.0, 0.0, 0)
        if name == self._question.bad.name:
            return Place.BAD, search.levels.bad
        place, seen = self._places[name]
        return search.levels.place(seen) or place, seen

    def _judge(self, values: Sequence[float], search: Search) -> tuple[Interval, Place | None]:
        if not self._exact:
            return level_of(values, search.levels, alpha=self._question.policy.alpha, final=True)
        seen = self._interval(values)
        return seen, search.levels.place(seen)

    def _asked(self, name: str, search: Search) -> Answer:
        """The answer of one candidate against GOOD, without measuring where it runs the bytes of another."""
        good, key = self._question.good.name, _name("step", self._question.good.name, name)
        if key in self._journal:
            return self._journal[key]
        try:
            for other in (good, self._question.bad.name, *reversed(self._places)):
                if self._lab.identical(other, name):
                    self._journal.keep(key, Answer(base=good, head=name, same=other))
                    return self._journal[key]
        except BuildError as error:
            self._journal.keep(key, Answer(base=good, head=name, problem=f"not built: {error.said}"))
            return self._journal[key]

        def enough(result: ExperimentResult) -> bool:
            if any(r.failure is not None and r.failure.kind is not FailureKind.UNMEASURED for r in result.results):
                return True
            values = self._differences(_answer(result, good, name, 0.0))
            return len(values) in LOOKS and self._judge(values, search)[1] is not None

        return self._measured("step", good, name, enough=enough)

    # The proof

    def _prove(self, search: Search, verdict: Verdict) -> Effect | None:
        """The first bad one against its parent; where several are left, the last of them against the last good one."""
        suspects = search.suspects
        head = self._changes[suspects[-1]]
        parents = head.parents if len(suspects) == 1 else ()
        before = parents[0] if parents else search.last_good or self._question.good.name
        while before in self._withdrawn:
            before = self._changes[before].parents[0]
        base = self._changes.get(before, Change(name=before))
        kind = "proof"
        if (base.name, head.name) == (self._question.good.name, self._question.bad.name):
            kind = "check" if self._exact else "again"
        else:
            self._say(f"measuring {head.short} against {base.short}")
        most = max([CONFIRMATION_LAUNCHES, *(s.launches for s in self._steps if s.launches <= LOOKS[-1])])
        try:
            answer = self._measured(kind, base.name, head.name, launches=most, patient=True)
        except BuildError as error:
            self._notes.append(
                f"{base.short} could not be built, so that {head.short} has no effect of its own: {error}"
            )
            return None
        estimate = self._estimate(self._differences(answer))
        if estimate is None:
            why = answer.problem or "no launch was finished"
            self._notes.append(f"{head.short} could not be measured against {base.short}: {why}")
            return None
        confirmed = self._confirmed(answer, verdict)
        if not confirmed:
            self._notes.append(
                f"measured directly, {head.short} does not differ from {base.short} as the search says: "
                "search again with --restart, and with a larger --budget"
            )
        return Effect(base=base, head=head, change=estimate, confirmed=confirmed, launches=answer.launches)

    def _compare_with_whole(self, effect: Effect, whole: Estimate) -> None:
        """Say so where the change explains a part of the difference only."""
        part, total = effect.change, whole
        if part.low is None or part.high is None or total.low is None or total.high is None:
            apart = part.value != total.value
        else:
            apart = part.high < total.low or total.high < part.low
        if apart and effect.confirmed:
            self._notes.append(
                f"{effect.head.short} is not the whole difference between the ends: other changes add to it, "
                "or take from it"
            )

    # Questions and answers

    def _confirmed_early(self, result: ExperimentResult, verdict: Verdict) -> bool:
        """Whether fewer fresh launches than planned are clear already (bench.stats.sequential.confirm)."""
        if len(result.launches) not in EARLY_CONFIRMATIONS:
            return False
        return self._confirmed(_answer(result, "", "", 0.0), verdict)

    def _measured(
        self,
        kind: str,
        base: str,
        head: str,
        *,
        launches: int | None = None,
        enough: Enough | None = None,
        patient: bool = False,
    ) -> Answer:
        key = _name(kind, base, head)
        if key in self._journal:
            return self._journal[key]
        start = self._clock()
        most = 1 if self._exact else launches or self._question.policy.launches
        result = self._lab.compare(base, head, launches=most, enough=enough, patient=patient)
        answer = _answer(result, base, head, self._clock() - start)
        self._journal.keep(key, answer)
        return answer

    def _differences(self, answer: Answer, metric: str | None = None) -> list[float]:
        """log(head / base) a launch; head − base of an exact metric."""
        base, head = answer.values.get(metric or self._metric.name, ((), ()))
        if self._exact:
            return [h - b for b, h in zip(base, head, strict=False)]
        return [log(h / b) for b, h in zip(base, head, strict=False) if b > 0 and h > 0]

    def _interval(self, values: Sequence[float]) -> Interval:
        if self._exact:
            value = values[0]
            return Interval(value, value, value, 1)
        return trimmed_interval(values)

    def _estimate(self, values: Sequence[float]) -> Estimate | None:
        return self._estimate_of(self._interval(values)) if values else None

    def _estimate_of(self, seen: Interval) -> Estimate:
        if self._exact:
            return Estimate(value=seen.value, note="exact")
        if isnan(seen.low):
            return Estimate(value=exp(seen.value), n=seen.n, note="too few launches for an interval")
        return Estimate(value=exp(seen.value), low=exp(seen.low), high=exp(seen.high), n=seen.n)

    @property
    def _floor(self) -> float:
        return floor_of(self._question.policy, self._metric)

    def _confirmed(self, answer: Answer, verdict: Verdict) -> bool:
        values = self._differences(answer)
        sign = -1 if self._metric.better is Better.LOWER else 1
        if self._exact:
            return bool(values) and values[0] != 0 and (sign * values[0] > 0) == (verdict is Verdict.IMPROVED)
        suspect: Literal[State.REGRESSED, State.IMPROVED] = (
            State.REGRESSED if verdict is Verdict.REGRESSED else State.IMPROVED
        )
        return confirm(values, better_sign=sign, suspect=suspect, floor=self._floor).confirmed


def _name(kind: str, base: str, head: str) -> str:
    return f"{kind} {base} {head}"


def _metric_of(question: Question, name: str) -> Metric:
    return next(m for m in (TIME, CPU_TIME, question.metric) if m.name == name)


def _answer(result: ExperimentResult, base_name: str, head_name: str, seconds: float) -> Answer:
    """The values of a result, and what the gate says of the metric that it decides on."""
    base, head = result.results
    judged = gate.judge(result)
    found = next((c for c in judged.comparisons if c.metric.name == (judged.basis or TIME.name)), None)
    values = {}
    for measurement in head.measurements:
        other = base.measurement(measurement.metric.name)
        if other is not None and measurement.launches and other.launches:
            values[measurement.metric.name] = (_per_launch(other), _per_launch(measurement))
    failed = judged.verdict is Verdict.FAILED or found is None
    return Answer(
        base=base_name, head=head_name, launches=len(result.launches), seconds=seconds,
        values={} if failed else values, basis=judged.basis, reason=judged.reason,
        verdict=judged.verdict if found is None else found.verdict,
        computing=not failed and gate.cpu_bound(result),
        problem=judged.reason if failed else "",
    )  # fmt: skip


def _per_launch(measurement: Measurement) -> tuple[float, ...]:
    """A value a launch; of exact metrics and items the one value."""
    if measurement.metric.summary is Summary.ITEMS:
        items = measurement.launches[0]
        return (sum(items) / len(items),)
    return tuple(launch_values(measurement))
