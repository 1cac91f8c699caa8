"""From a suspicion to a question that a paired experiment answers, and from its verdict to the answer. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime

from bench.compare import ArmComparison
from bench.history import Answer, ChangePoint, Difference, Direction, ProofRequest
from bench.model import Verdict

NOT_PACKAGES = ("python", "system", "driver:", "setting:")
"""Beginnings of the names of differences that no requirement can bring back."""


def question(change: ChangePoint, now: datetime) -> ProofRequest | None:
    """The last good state against the first changed one, on the machine that saw it.

    Two commits are compared as they are in today's environment: a change of theirs is the code's. At
    one commit, the packages that differ are: a change of theirs is the environment's. Null where
    neither differs, or where a difference cannot be brought back: then only more points can tell.
    """
    good, bad = change.last_good.commit, change.first_changed.commit
    if good and bad and good != bad:
        base, head = good, bad
    else:
        pins = requirements(change.environment)
        if not pins:
            return None
        base, head = (" ".join(filter(None, (bad, *side))) for side in zip(*pins, strict=True))
    text = "\n".join((change.key, base, head))
    return ProofRequest(
        key=hashlib.sha256(text.encode()).hexdigest()[:32], change=change.key, base=base, head=head,
        selector=change.series.variant, machine_fingerprint=change.series.machine_fingerprint, made_at=now,
    )  # fmt: skip


def requirements(differences: Sequence[Difference]) -> list[tuple[str, str]]:
    """`name==before` and `name==after` of every package that both sides have."""
    return [
        (f"{d.name}=={d.before}", f"{d.name}=={d.after}")
        for d in differences
        if d.before and d.after and not d.name.startswith(NOT_PACKAGES)
    ]


def answer(change: ChangePoint, found: ArmComparison | None) -> tuple[Answer, Verdict | None, str]:
    """What the gate's comparison of the variant says of the change: answer, verdict on its metric, one sentence."""
    if found is None:
        return Answer.FAILED, None, "the benchmark is not there any more"
    metric = change.series.metric.name
    verdict = next((c.verdict for c in found.comparisons if c.metric.name == metric), None)
    if metric in ("time", "cpu_time", "throughput"):  # the gate decides on time once, whichever clock it rests on
        verdict = found.verdict if found.verdict is not Verdict.TRADE else verdict
    if found.verdict is Verdict.FAILED:
        return Answer.FAILED, found.verdict, found.reason
    if found.verdict is Verdict.UNCHANGED and not found.comparisons:  # the same bytes on both sides
        return Answer.REFUTED, Verdict.UNCHANGED, found.reason
    if verdict is None or verdict is Verdict.INCOMPARABLE:
        return Answer.FAILED, verdict, f"{metric} was not compared"
    same = {Direction.WORSE: Verdict.REGRESSED}.get(change.direction, Verdict.IMPROVED)
    if verdict is same:
        return Answer.CONFIRMED, verdict, found.reason
    if verdict is Verdict.INCONCLUSIVE:
        return Answer.INCONCLUSIVE, verdict, found.reason
    return Answer.REFUTED, verdict, found.reason
