"""What a bisection is asked and what it answers, as values; and where it measures, as a Protocol."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol

from bench.errors import Exit
from bench.experiment import Enough
from bench.metrics import Metric, Summary
from bench.model import Benchmark, Estimate, ExperimentResult, Policy, Scalar, Verdict
from bench.targets.history import Change

EXACT = (Summary.EXACT, Summary.ITEMS)
"""Summaries of metrics that one launch tells for good: the same code has the same value."""


Ended = Literal["found", "narrowed", "budget", "interrupted", "unchanged"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one experiment said of two changes.

    values: by metric, a value a launch in the metric's unit per call: of the base, of the head.
    problem: why there are none. same: the change whose bytes the head has, so that nothing was measured.
    """

    base: str
    head: str
    launches: int = 0
    seconds: float = 0.0
    values: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = field(default_factory=dict)
    verdict: Verdict = Verdict.FAILED
    basis: str = ""
    reason: str = ""
    computing: bool = False
    problem: str = ""
    same: str = ""


class Lab(Protocol):
    """Where changes are built and measured."""

    def compare(self, base: str, head: str, *, launches: int, enough: Enough | None, patient: bool) -> ExperimentResult:
        """Launch the benchmark at both, side by side, at most so often; `patient`: however long that takes.

        Raises BuildError when one cannot be built, KeyboardInterrupt when a person wants it to end.
        """
        ...

    def identical(self, one: str, other: str) -> bool:
        """Whether both run the same bytes. Raises BuildError."""
        ...

    def withdrawn(self, name: str) -> bool:
        """Whether the change is no candidate after all, as a release without a wheel."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is to be found out. `changes`: GOOD, then what lies after it up to BAD, oldest first.

    metric: what the benchmark is judged on; for `time` the gate chooses between wall and CPU time.
    """

    changes: tuple[Change, ...]
    variant: str
    variant_params: dict[str, Scalar]
    benchmark: Benchmark
    metric: Metric
    policy: Policy

    @property
    def good(self) -> Change:
        """The change that is taken for good."""
        return self.changes[0]

    @property
    def bad(self) -> Change:
        """The change that differs."""
        return self.changes[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One candidate. place: good, bad, between, inconclusive, or untestable."""

    change: Change
    place: str
    level: Estimate | None = None  # candidate / good; candidate − good for exact metrics
    launches: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """A change measured directly against the one before it, with launches of its own."""

    base: Change
    head: Change
    change: Estimate
    confirmed: bool
    launches: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a bisection found.

    verdict: of BAD against GOOD, after its confirmation; what is neither regressed nor improved was
    not searched. suspects: one of them made the difference, oldest first. ended: found, narrowed (no
    more can be told), budget or interrupted (the same command goes on), or unchanged.
    """

    question: Question
    metric: Metric
    verdict: Verdict
    ended: Ended
    reason: str = ""
    whole: Estimate | None = None  # BAD / GOOD
    suspects: tuple[Change, ...] = ()
    effect: Effect | None = None
    steps: tuple[Step, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def relative(self) -> bool:
        """Whether levels and effects are ratios; of exact metrics they are differences."""
        return self.metric.summary not in EXACT

    def exit_code(self, *, strict: bool = False) -> Exit:
        """The first that applies: interrupted, a regression, inconclusive."""
        if self.ended == "interrupted":
            return Exit.FAILED
        if self.verdict is Verdict.REGRESSED:
            return Exit.REGRESSION
        if strict and (self.verdict is Verdict.INCONCLUSIVE or self.ended == "budget"):
            return Exit.INCONCLUSIVE
        return Exit.OK
