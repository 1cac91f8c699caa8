"""A stored gate run, read again: its verdicts, and the command that repeats it. Pure."""

from __future__ import annotations

import re
import shlex

from bench.compare import RunComparison
from bench.gate import verdicts
from bench.model import Run, Target

_SNAPSHOT = re.compile(r"(?:\S+ \([0-9a-f]{7}(?:\+[0-9a-f]{7})?\)|[0-9a-f]{7})(?: |$)")
"""How a target's label begins where it has a revision (bench.targets.revision)."""


def comparison_of(run: Run) -> RunComparison | None:
    """What a stored gate run said, re-derived from its samples; null for a run of another kind.

    A bisection compares more than two targets, so that it has no one base and head.
    """
    pairs = {tuple(a.target.label for a in r.experiment.arms) for r in run.experiments if r.experiment.policy.gate}
    if len(pairs) != 1:
        return None
    ((base, head),) = pairs
    found = verdicts(run.experiments)
    return RunComparison(base=base, head=head, arms=tuple(found), machine=run.machine.label)


def command_of(run: Run) -> str:
    """`bench compare BASE HEAD SELECTOR…` that measures the same again; empty where `comparison_of` is null."""
    gates = [r.experiment for r in run.experiments if r.experiment.policy.gate]
    if comparison_of(run) is None:
        return ""
    base, head = gates[0].arms
    selectors = dict.fromkeys(experiment.benchmark.name for experiment in gates)
    return f"bench compare {shlex.join([side_of(base.target), side_of(head.target), *selectors])}"


def side_of(target: Target) -> str:
    """A target as a person types it. `.` stands for a working tree, whatever has become of it since."""
    label = target.label.removesuffix(" again")
    found = _SNAPSHOT.match(label) if target.revision is not None else None
    if found is None or target.revision is None:
        return label
    first = "." if target.revision.dirty else target.revision.commit[:12]
    return f"{first} {label[found.end() :]}".strip()
