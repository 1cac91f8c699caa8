"""Naming and summarising stored runs: what every Store shares. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from bench.errors import MissingError
from bench.model import Run
from bench.ports import RunInfo


def run_info(run: Run) -> RunInfo:
    """The one-line summary of a run."""
    failures: dict[str, int] = {}
    arms = 0
    for _, result in run.arms():
        arms += 1
        if result.failure is not None:
            failures[result.failure.kind.value] = failures.get(result.failure.kind.value, 0) + 1
    return RunInfo(
        key=run.key, started_at=run.started_at, finished_at=run.finished_at, status=run.status, profile=run.profile,
        source=run.source, machine_fingerprint=run.machine.fingerprint, machine_label=run.machine.label,
        environment_fingerprint=run.environment.fingerprint, arms=arms, failures=failures, problems=len(run.problems),
        commit=run.revision.commit if run.revision else None, dirty=bool(run.revision and run.revision.dirty),
        branch=run.revision.branch if run.revision else None,
        suites=tuple(dict.fromkeys(e.experiment.benchmark.suite for e in run.experiments)),
    )  # fmt: skip


def find_key(newest_first: Sequence[str], ref: str) -> str:
    """Resolve `latest`, `latest~N` or a unique beginning of a key. Raises MissingError."""
    name, _, back = ref.partition("~")
    if name == "latest" and (back.isdigit() or "~" not in ref):
        steps = int(back or 0)
        if steps < len(newest_first):
            return newest_first[steps]
        raise MissingError(f"{ref}: only {len(newest_first)} runs are stored.")
    matches = [key for key in newest_first if key.startswith(ref)] if len(ref) >= 4 else []
    if len(matches) == 1:
        return matches[0]
    why = f"{len(matches)} runs begin with it" if matches else "no stored run has that key"
    raise MissingError(f"run {ref!r}: {why}; `bench show --list` lists the runs.")
