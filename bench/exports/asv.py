"""Runs as a folder of asv's results: benchmarks.json, and a folder a machine with machine.json and results.

asv has one number, with statistics, per benchmark and point of its parameters; files are named by commit and
environment. So the time of a benchmark keeps its name, and every other metric is a benchmark below it
(`net.time_first_call`, `net.peakmem_peak_memory`, `net.track_size`). Version 2 of asv's layout
(asv/results.py and asv/benchmarks.py in airspeed-velocity/asv).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import nan, prod
from statistics import median
from typing import Any

from bench.errors import HostError, UsageError
from bench.metrics import PEAK_MEMORY, TIME, Better, Kind, Metric, Summary
from bench.model import ArmResult, Benchmark, ExperimentResult, FailureKind, Machine, Measurement, Run, Target

COLUMNS = ("result", "params", "version", "started_at", "duration", "stats_ci_99_a", "stats_ci_99_b", "stats_q_25",
           "stats_q_75", "stats_number", "stats_repeat", "samples")  # fmt: skip
STATS = ("ci_99_a", "ci_99_b", "q_25", "q_75", "number", "repeat")
MOST = 100_000
"""Combinations of parameters that a benchmark may have: asv has a place for each, measured or not."""

UNITS = {"ns": ("seconds", 1e-9), "B": ("bytes", 1.0), "1": ("unit", 1.0)}
"""asv's unit and the factor into it; others keep their own."""


@dataclass(slots=True)
class AsvResults:
    """Documents by their place in the folder, and what they leave out."""

    documents: dict[str, dict[str, Any]] = field(default_factory=dict)
    left_out: dict[str, None] = field(default_factory=dict)  # in their order, each once


def to_asv(runs: Sequence[Run]) -> AsvResults:
    """All runs, oldest first: of two results of one commit and environment the newer stays.

    Raises UsageError for a run without a commit, HostError without asv_runner, whose statistics these are.
    """
    found = AsvResults()
    described: dict[str, Any] = {"version": 2}
    for run in sorted(runs, key=lambda run: run.started_at):
        groups: dict[tuple[str, str], list[tuple[ExperimentResult, ArmResult]]] = {}
        for experiment, result in run.arms():
            place = (experiment.experiment.benchmark.name, result.arm.target.label)
            groups.setdefault(place, []).append((experiment, result))
        for parts in groups.values():
            _add(found, described, run, parts[0][0], [result for _, result in parts])
    found.documents["benchmarks.json"] = described
    found.left_out["asv keeps one list of samples: which launch a sample is of is left out"] = None
    return found


def _add(
    found: AsvResults, described: dict[str, Any], run: Run, experiment: ExperimentResult, results: list[ArmResult]
) -> None:
    """One benchmark at one target, all its metrics."""
    document = _document(found, run, results[0].arm.target)
    benchmark = experiment.experiment.benchmark
    axes = _axes(results)
    if prod(map(len, axes.values())) > MOST:
        found.left_out[f"{benchmark.name} has too many combinations of parameters for asv"] = None
        return
    started = experiment.launches[0].started_at if experiment.launches else run.started_at
    metrics = {m.metric.name: m.metric for result in results for m in result.measurements} or {TIME.name: TIME}
    for metric in metrics.values():
        name, kind = _name(benchmark, metric)
        if metric.better is Better.HIGHER:
            found.left_out[f"asv takes more for worse, and {metric.name} is better when higher"] = None
        if name in document["results"]:
            found.left_out[f"asv keeps one result a commit and environment: {name} is that of {run.key[:8]}"] = None
        described[name] = {
            "name": name, "type": kind, "unit": UNITS.get(metric.unit, (metric.unit, 1.0))[0], "code": "",
            "params": [list(texts) for texts in axes.values()], "param_names": list(axes),
            "timeout": benchmark.timeout_s, "version": benchmark.version,
            "pretty_name": benchmark.title if name == benchmark.name else "",
        }  # fmt: skip
        cells = _cells(metric, axes, results)
        document["results"][name] = [
            cells["result"], described[name]["params"], benchmark.version, round(started.timestamp() * 1000), None,
            *(cells[column] for column in COLUMNS[5:]),
        ]  # fmt: skip


# What


def _name(benchmark: Benchmark, metric: Metric) -> tuple[str, str]:
    """Asv's name and type of a metric."""
    if metric.name == TIME.name:
        return benchmark.name, "time"
    if metric.name == PEAK_MEMORY.name:
        return f"{benchmark.name}.peakmem_{metric.name}", "peakmemory"
    if metric.kind is Kind.TIME:
        return f"{benchmark.name}.time_{metric.name}", "time"
    return f"{benchmark.name}.track_{metric.name}", "track"


def _axes(results: Sequence[ArmResult]) -> dict[str, dict[str, None]]:
    """Texts of the values of every parameter, in asv's way: as Python writes them."""
    names = dict.fromkeys(name for result in results for name in result.arm.variant.params)
    return {name: dict.fromkeys(_text(result, name) for result in results) for name in names}


def _text(result: ArmResult, name: str) -> str:
    return repr(result.arm.variant.params.get(name))


def _cells(metric: Metric, axes: Mapping[str, Mapping[str, None]], results: Sequence[ArmResult]) -> dict[str, Any]:
    """A list over all combinations of parameters for every column; NaN is what asv writes for "does not apply"."""
    by_point = {tuple(_text(result, name) for name in axes): result for result in results}
    cells: dict[str, list[Any]] = {column: [] for column in ("result", *COLUMNS[5:])}
    for point in product(*axes.values()):
        result = by_point.get(point)
        measurement = result.measurement(metric.name) if result else None
        value, told = _statistics(measurement) if measurement else (_nothing(result), {})
        cells["result"].append(value)
        for column in COLUMNS[5:]:
            cells[column].append(told.get(column))
    return {
        column: values if column == "result" or any(value is not None for value in values) else None
        for column, values in cells.items()
    }


def _nothing(result: ArmResult | None) -> float | None:
    """Null where it failed."""
    failure = result.failure if result else None
    return nan if failure is None or failure.kind in (FailureKind.SKIPPED, FailureKind.UNMEASURED) else None


def _statistics(measurement: Measurement) -> tuple[float, dict[str, Any]]:
    """Asv's own statistics of times; of everything else the median, or the share of ones."""
    factor = UNITS.get(measurement.metric.unit, ("", 1.0))[1] / measurement.loops
    values = [value * factor for row in measurement.launches for value in row]
    if measurement.metric.summary is Summary.ITEMS:
        return sum(values) / len(values), {}
    if measurement.metric.kind is not Kind.TIME:
        return median(values), {}
    try:
        from asv_runner.statistics import compute_stats
    except ImportError:
        raise HostError("asv's results need asv_runner: pip install 'inference-bench[asv]'.") from None
    result, stats = compute_stats(values, measurement.loops)
    return result, {**{f"stats_{name}": stats[name] for name in STATS}, "samples": values}


# Where


def _document(found: AsvResults, run: Run, target: Target) -> dict[str, Any]:
    """The file of a commit and environment, made where it is not there."""
    revision = target.revision or run.revision
    if revision is None:
        raise UsageError(f"run {run.key[:8]} has no commit, by which asv files its results; export it as json or csv.")
    machine = _machine(run.machine)
    found.documents[f"{machine['machine']}/machine.json"] = {**machine, "version": 1}
    python = _python(run)
    requirements = dict(_requirements(target))
    parts = ["bench", f"py{python}", *(f"{name}{version}" for name, version in requirements.items())]
    parts += [f"{name}{value}" for name, value in target.variables.items()]
    environment = "-".join(_slug(part) for part in parts)
    if revision.dirty:
        found.left_out[f"asv knows no changes beside a commit, and {revision.commit[:8]} had some"] = None
    date = revision.committed_at or run.started_at
    return found.documents.setdefault(f"{machine['machine']}/{revision.commit[:8]}-{environment[:150]}.json", {
        "commit_hash": revision.commit, "env_name": environment[:150], "date": round(date.timestamp() * 1000),
        "params": {**machine, "python": python, **requirements}, "python": python, "requirements": requirements,
        "env_vars": dict(target.variables), "result_columns": list(COLUMNS), "results": {}, "durations": {},
        "version": 2,
    })  # fmt: skip


def _machine(machine: Machine) -> dict[str, str]:
    name = f"{_slug(machine.named or machine.cpu or 'unknown')[:60]}-{machine.fingerprint[:8]}"
    return {
        "machine": name, "arch": machine.architecture or "", "cpu": machine.cpu or machine.named or "", "os": "",
        "num_cpu": str(machine.logical_cores or ""), "ram": f"{machine.memory_gib}G" if machine.memory_gib else "",
    }  # fmt: skip


def _python(run: Run) -> str:
    """`3.12`, as asv names environments."""
    found = re.search(r"\d+\.\d+", run.environment.python or "")
    return found[0] if found else "unknown"


def _requirements(target: Target) -> Iterator[tuple[str, str]]:
    """`numpy==2.0` as name and version."""
    for text in target.requirements:
        name, _, version = text.partition("==")
        if name != "python":
            yield name.strip(), version.strip()


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._]+", "_", text).strip("_.") or "_"
