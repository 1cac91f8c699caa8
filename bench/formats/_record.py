"""What a format makes of a file: records in the file's own words, which `_build` turns into runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from bench.model import Conditions, Environment, Failure, Machine, Measurement, Revision, Scalar

UNKNOWN_MACHINE = Machine(architecture=None, cpu=None, physical_cores=None, logical_cores=None, memory_gib=None)
"""A file that does not say where it was measured."""

UNKNOWN_ENVIRONMENT = Environment(python=None, system=None)
"""A file that does not say under what it was measured."""

UNKNOWN_CONDITIONS = Conditions()
"""A file that does not say what else the machine was doing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one variant gave. Several with the same name and parameters are one, if their metrics differ."""

    benchmark: str
    params: dict[str, Scalar] = field(default_factory=dict)
    measurements: tuple[Measurement, ...] = ()
    failure: Failure | None = None
    notes: dict[str, str] = field(default_factory=dict)
    version: str = ""  # of the benchmark, where the tool has such a thing
    suite: str = ""  # default: the benchmark's name up to its first dot
    title: str = ""
    items: float = 1.0  # pieces of work in one call


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """One run as a file tells it; null and empty where it does not tell.

    `machine` holds facts of the hardware only, never a hostname. `requirements` and `variables` are
    what tells this run's series from others of the same benchmarks (asv's matrix); everything else
    that is known of the software belongs into `environment`, which annotates.
    """

    tool: str
    outcomes: tuple[Outcome, ...]
    tool_version: str | None = None
    machine: Machine = UNKNOWN_MACHINE
    environment: Environment = UNKNOWN_ENVIRONMENT
    conditions: Conditions = UNKNOWN_CONDITIONS
    revision: Revision | None = None
    requirements: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)
    started_at: datetime | None = None
    finished_at: datetime | None = None
    problems: tuple[Failure, ...] = ()
    part_of: str = ""  # records of one call with the same text are one run (a file per benchmark)
