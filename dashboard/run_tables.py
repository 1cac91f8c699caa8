"""What the page of one run says beside its numbers: where, with what, under which conditions. Pure."""

from __future__ import annotations

from datetime import tzinfo

from bench.model import Environment, Machine, RunStatus
from bench.reports.format import duration
from dashboard.data import RunView
from dashboard.markup import Cell, Column, Row
from dashboard.wording import clock, plural, short


def run_headline(run: RunView) -> tuple[str, str]:
    """The one-line state and its tone."""
    variants = [v for e in run.experiments for v in e.variants]
    failures = run.failures()
    serious = [f for _, f in failures if f.kind.value not in ("skipped", "unmeasured")]
    good = sum(1 for v in variants if v.failure is None)
    text = f"Run {short(run.key)}: {good} of {plural(len(variants), 'variant')} measured"
    if serious:
        text += f", {len(serious)} failed"
    if skipped := len(failures) - len(serious):
        text += f", {skipped} skipped or not measured"
    if run.status is RunStatus.INTERRUPTED:
        text += ", interrupted"
    tone = "bad" if serious else "warn" if failures or run.status is RunStatus.INTERRUPTED else "good"
    return text, tone


def run_facts(run: RunView, zone: tzinfo) -> str:
    """When, how long, by what, of which commit, on which machine."""
    commit = "no commit"
    if run.revision is not None:
        branch = f" of {run.revision.branch}" if run.revision.branch else ""
        commit = f"commit {short(run.revision.commit)}{branch}{' with changes' * run.revision.dirty}"
    made = run.source if run.source != "native" else f"bench {run.bench_version}".strip()
    took = duration((run.finished_at - run.started_at).total_seconds())
    return " · ".join(
        [clock(run.started_at, zone), f"took {took}", f"{run.profile} profile", commit, run.machine, made]
    )


def environment_table(environment: Environment, machine: Machine) -> tuple[list[Column], list[Row]]:
    """Hardware, interpreter, system, drivers and settings; packages stand apart."""
    unknown = "not recorded"
    facts = {
        "processor": machine.cpu or unknown,
        "architecture": machine.architecture or unknown,
        "cores": f"{machine.logical_cores or '?'} logical, {machine.physical_cores or '?'} physical",
        "memory": f"{machine.memory_gib} GiB" if machine.memory_gib is not None else unknown,
        "instruction sets": ", ".join(machine.isa) or unknown,
        **{f"{a.kind} {k}": ", ".join(filter(None, (a.model, a.driver and f"driver {a.driver}")))
           for k, a in enumerate(machine.accelerators, 1)},
        "virtual": machine.virtual or "no, or not recorded",
        "tags": ", ".join(machine.tags) or "none",
        "machine's fingerprint": machine.fingerprint,
        "python": environment.python or unknown,
        "system": environment.system or unknown,
        **{f"driver {name}": text for name, text in sorted(environment.drivers.items())},
        **{f"setting {name}": text for name, text in sorted(environment.settings.items())},
    }  # fmt: skip
    return _pairs("what", facts)


def packages_table(environment: Environment) -> tuple[list[Column], list[Row]]:
    """Package and version, by name."""
    return _pairs("package", dict(sorted(environment.packages.items())))


def _pairs(first: str, facts: dict[str, str]) -> tuple[list[Column], list[Row]]:
    columns = [Column(title=first), Column(title="recorded")]
    return columns, [Row(cells=(Cell(text=name), Cell(text=text))) for name, text in facts.items()]
