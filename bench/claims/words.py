"""What a claim is, what was read for it, and the words of its answer. No I/O."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from bench.model import Estimate


class Finding(StrEnum):
    """The answer to a claim. The rule is in bench.claims.judging."""

    REPRODUCED = "reproduced"
    EXCEEDED = "exceeded"
    PARTLY = "partly"
    NOT_REPRODUCED = "not reproduced"
    INCONCLUSIVE = "inconclusive"  # measured, but the interval holds the figure and less than half of it
    WRONG = "wrong"  # a fact or a unit that its source, or a count, shows to be false
    CONFIRMED = "confirmed"  # a fact that its source, or a count, shows to be true
    NOT_MEASURABLE = "not measurable here"
    NOT_MEASURED = "not measured yet"


JUDGED = (Finding.EXCEEDED, Finding.REPRODUCED, Finding.PARTLY, Finding.NOT_REPRODUCED)
"""Findings that rest on a stored run, the best first."""

REACHED = (Finding.EXCEEDED, Finding.REPRODUCED)


class Kind(StrEnum):
    """How a claim is answered."""

    MEASURED = "measured"  # by variants of our suites
    COUNTED = "counted"  # by a function that counts, from the definition of the network
    FACT = "fact"  # by a document
    HARDWARE = "hardware"  # by nothing that we have: `needs` says which hardware would


class Relation(StrEnum):
    """How a figure is stated."""

    ABOUT = "about"  # one number, which stands for ± TOLERANCE
    BETWEEN = "between"
    AT_LEAST = "at_least"
    AT_MOST = "at_most"


class Beyond(StrEnum):
    """Which way a measurement exceeds a figure."""

    MORE = "more"
    LESS = "less"
    NEITHER = "neither"


class Take(StrEnum):
    """How the measured value is taken from a metric of one or two variants."""

    SPEEDUP = "speedup"  # base / head
    RATIO = "ratio"  # head / base
    CUT = "cut"  # (1 − head / base) in %
    DIFFERENCE = "difference"  # head − base: of shares in percentage points, of anything else in its unit
    VALUE = "value"  # head alone


NEUTRAL = {Take.SPEEDUP: 1.0, Take.RATIO: 1.0, Take.CUT: 0.0, Take.DIFFERENCE: 0.0}
"""The value that means no effect; a plain value knows none."""

TOLERANCE = 0.15
"""A single stated number stands for the range of ± this share around it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """A figure as a range, ends included, in `unit`: × % 1, or a unit of bench.claims.evidence.UNITS."""

    metric: str
    take: Take
    relation: Relation
    low: float  # −inf: no lower end
    high: float  # inf: no upper end
    unit: str
    beyond: Beyond


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One measurement that tests a claim."""

    head: str  # variant name
    base: str | None  # variant name; null: the declared baseline of the head's experiment
    label: str
    stated: Stated
    judged: bool = True  # false: shown beside the others, counts for no verdict

    @property
    def variants(self) -> tuple[str, ...]:
        """Every variant that is named."""
        return (self.head,) if self.base is None else (self.base, self.head)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The document behind a fact: title with publisher, date, and whether it was read for this claim."""

    title: str
    date: str
    looked_up: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A figure of the literature in our words, and how it is tested."""

    id: str  # A1, B21c: article, row, letter where a row holds several
    en: str
    zh: str
    figure: str  # as stated, for a person
    kind: Kind
    note: str  # what is wrong in it, or how to read the answer
    probes: tuple[Probe, ...] = ()
    some: bool = False  # true: one probe that holds is enough ("not always"); else all must
    count: str | None = None  # module:function of a count, which is compared with `stated`
    stated: Stated | None = None  # of a count
    holds: bool | None = None  # of a fact: whether its source confirms it
    source: Source | None = None
    needs: str = ""  # hardware or software without which it cannot be measured

    @property
    def row(self) -> str:
        """The row of the list that it belongs to: B21 of B21c."""
        return self.id.rstrip("abcdefghijklmnopqrstuvwxyz")


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The stored run behind a reading."""

    run: str  # its key
    at: datetime
    machine: str  # label
    profile: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one probe, or a count, gave."""

    label: str
    finding: Finding
    found: Estimate | None = None  # in the unit of what was stated
    unit: str = ""
    detail: str = ""  # the values behind a ratio
    reason: str = ""  # why there is no value
    origin: Origin | None = None
    experiment: str = ""  # its name in that run
    judged: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A claim with its verdict and everything that the verdict rests on."""

    claim: Claim
    finding: Finding
    readings: tuple[Reading, ...] = ()
    reason: str = ""  # one sentence where the readings do not say it

    @property
    def origins(self) -> tuple[Origin, ...]:
        """The runs behind it, each once."""
        return tuple(dict.fromkeys(r.origin for r in self.readings if r.origin is not None))


def counts(answers: Iterable[Answer]) -> dict[Finding, int]:
    """How many claims have each finding; only those that occur, in the order of Finding."""
    found = [answer.finding for answer in answers]
    return {finding: found.count(finding) for finding in Finding if finding in found}
