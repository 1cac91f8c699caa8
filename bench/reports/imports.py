"""What an import brought: counted while it runs, told at its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from bench.formats._read import Reading, Refusal
from bench.reports.text import escape

SCHEMA = "bench-import"
VERSION = 1

SHOWN = 10
"""Refused files that are named in the text; the JSON names all."""

SUPPLY = {
    "commit": "--commit",
    "machine": "--machine",
    "tool version": "--tool-version",
}
"""What a run may lack, and the option that supplies it."""


@dataclass(slots=True, kw_only=True)
class ImportTally:
    """Runs, series and machines of one call."""

    dry_run: bool = False
    runs: list[dict[str, Any]] = field(default_factory=list)
    machines: dict[str, str] = field(default_factory=dict)  # fingerprint → label
    series: set[tuple[str, ...]] = field(default_factory=set)
    refused: list[Refusal] = field(default_factory=list)
    stray: int = 0  # commits that the given checkout does not have

    def add(self, reading: Reading, *, known: bool) -> None:
        """Count one run; `known`: it was stored before."""
        run, machine, variants = reading.run, reading.run.machine.fingerprint, 0
        self.machines[machine] = run.machine.label
        for part, result in run.arms():
            variants += 1
            arm = result.arm
            where = (part.experiment.benchmark.version, arm.variant.name, *arm.target.requirements)
            where = (*where, *arm.target.variables.values(), machine)
            self.series.update((*where, m.metric.name, m.metric.unit) for m in result.measurements)
        self.runs.append({
            "key": run.key, "files": list(reading.files), "format": reading.format, "known": known,
            "commit": run.revision.commit if run.revision else None, "started_at": run.started_at.isoformat(),
            "machine": machine, "variants": variants, "quarantine": list(run.quarantine),
        })  # fmt: skip

    @property
    def broken(self) -> list[Refusal]:
        """Files of ours that could not be imported."""
        return [refusal for refusal in self.refused if not refusal.foreign]

    def document(self) -> dict[str, Any]:
        """The whole import as plain values."""
        return {
            "schema": SCHEMA, "version": VERSION, "dry_run": self.dry_run, "runs": self.runs,
            "series": len(self.series),
            "machines": [{"fingerprint": found, "label": label} for found, label in self.machines.items()],
            "refused": [{"file": r.file, "reason": r.reason, "foreign": r.foreign} for r in self.refused],
        }  # fmt: skip

    def text(self) -> str:
        """A few lines for a person."""
        return "\n".join(escape(line) for line in self._lines())

    def _lines(self) -> Iterable[str]:
        new = [run for run in self.runs if not run["known"]]
        verb = "would import" if self.dry_run else "imported"
        commits = len({run["commit"] for run in self.runs} - {None})
        forms = ", ".join(f"{n} {name}" for name, n in Counter(run["format"] for run in self.runs).items())
        yield f"{verb} {_count(len(new), 'run')} ({forms}): {_count(len(self.series), 'series', 'series')}, " \
            f"{_count(commits, 'commit')}, {_count(len(self.machines), 'machine')}"  # fmt: skip
        if len(new) < len(self.runs):
            known = len(self.runs) - len(new)
            yield f"{_count(known, 'run')} {'was' if known == 1 else 'were'} there before, with the same results"
        for fingerprint, label in self.machines.items():
            yield f"  machine {fingerprint[:8]}  {label}"
        lacking = Counter(name for run in self.runs for name in run["quarantine"])
        if lacking:
            count = sum(bool(run["quarantine"]) for run in self.runs)
            told = ", ".join(f"{n} without {name} ({SUPPLY[name]})" for name, n in lacking.items())
            yield f"quarantined, kept out of history: {_count(count, 'run')}: {told}"
        if self.stray:
            yield f"{_count(self.stray, 'commit')} not in the repository"
        yield from self._refused()

    def _refused(self) -> Iterable[str]:
        for refusal in self.broken[:SHOWN]:
            yield f"✗ {refusal.file} {refusal.reason}"
        if len(self.broken) > SHOWN:
            yield f"✗ and {len(self.broken) - SHOWN} more that could not be imported (--json names all)"
        foreign = [refusal for refusal in self.refused if refusal.foreign]
        if foreign:
            names = ", ".join(refusal.file.rpartition("/")[2] for refusal in foreign[:SHOWN])
            more = ", …" if len(foreign) > SHOWN else ""
            yield f"left alone: {_count(len(foreign), 'file')} of no known format ({names}{more})"


def _count(number: int, one: str, several: str = "") -> str:
    return f"{number} {one if number == 1 else several or one + 's'}"
