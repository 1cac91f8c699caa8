"""A run as pyperf's JSON, version 1.0 ("JSON format" in pyperf's documentation).

pyperf knows seconds, bytes and integers, all above 0, of which less is better. A launch is one of its runs with
the values of single calls; peak memory is metadata of it. Another metric is a benchmark of its own.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from bench.errors import UsageError
from bench.metrics import PEAK_MEMORY, Better, Metric, Summary
from bench.model import ArmResult, Launch, Measurement, Run

UNITS = {"ns": ("second", 1e-9), "B": ("byte", 1.0), "1": ("integer", 1.0)}
"""pyperf's unit and the factor into it."""


def to_pyperf(runs: Sequence[Run]) -> tuple[str, list[str]]:
    """(document, what it leaves out). Raises UsageError for several runs and for one without a value to give."""
    if len(runs) != 1:
        raise UsageError(f"pyperf's format holds one run a file, and {len(runs)} were named; export each by itself.")
    run = runs[0]
    refused: Counter[str] = Counter()
    benchmarks = [part for result, launches in _arms(run) for part in _benchmarks(run, result, launches, refused)]
    if not benchmarks:
        raise UsageError(f"run {run.key[:8]} has no value that pyperf's format could hold.")
    document = {"version": "1.0", "metadata": _told(run), "benchmarks": benchmarks}
    return json.dumps(document, indent=1) + "\n", [f"left out of {reason}: {n}" for reason, n in refused.items()]


def _arms(run: Run) -> Iterator[tuple[ArmResult, tuple[Launch, ...]]]:
    for experiment in run.experiments:
        for result in experiment.results:
            yield result, experiment.launches


def _told(run: Run) -> dict[str, Any]:
    """Facts of machine and commit under pyperf's names; the interpreter as `CPython 3.12.1` or its version alone."""
    machine, python = run.machine, (run.environment.python or "").split()
    found = {
        "cpu_model_name": machine.cpu or machine.named,
        "cpu_count": machine.logical_cores,
        "platform": "-".join(filter(None, (run.environment.system, machine.architecture))),
        "python_version": python[-1] if python else None,
        "python_implementation": python[0].lower() if len(python) > 1 else None,
        "commit_id": run.revision.commit if run.revision else None,
        "commit_branch": run.revision.branch if run.revision else None,
        "commit_date": str(run.revision.committed_at) if run.revision and run.revision.committed_at else None,
        "bench_run": run.key,
        "bench_version": run.bench_version,
    }
    return {name: value for name, value in found.items() if value}


def _benchmarks(
    run: Run, result: ArmResult, launches: Sequence[Launch], refused: Counter[str]
) -> Iterator[dict[str, Any]]:
    several = len({other.arm.target.label for _, other in run.arms()}) > 1
    name = result.arm.key if several else result.arm.variant.name
    if not result.measurements:
        refused["pyperf, which has no place for failures, arms"] += 1
        return
    first, *others = result.measurements
    peaks = _peaks(result, len(first.launches))
    for measurement in (first, *others):
        if peaks and measurement.metric.name == PEAK_MEMORY.name and measurement is not first:
            continue
        if reason := _unfit(measurement):
            refused[reason] += 1
            continue
        own = name if measurement is first else f"{name} {measurement.metric.name}"
        yield _benchmark(run, own, measurement, launches, peaks if measurement is first else [])


def _unfit(measurement: Measurement) -> str:
    """Why pyperf cannot hold a measurement; empty where it can."""
    metric = measurement.metric
    values = [value for row in measurement.launches for value in row]
    if metric.better is Better.HIGHER or metric.summary is Summary.ITEMS:
        return f"pyperf, which takes more for worse, measurements of {metric.name}"
    if metric.unit not in UNITS or (metric.unit == "1" and any(value != int(value) for value in values)):
        return f"pyperf, which has seconds, bytes and integers, measurements of {metric.name}"
    if any(value <= 0 for value in values):
        return f"pyperf, whose values are above 0, measurements of {metric.name}"
    return ""


def _peaks(result: ArmResult, launches: int) -> list[int]:
    """Bytes of every launch, where there is one value for each."""
    found = result.measurement(PEAK_MEMORY.name)
    peaks = [round(row[0]) for row in found.launches if row] if found else []
    return peaks if len(peaks) == launches else []


def _benchmark(
    run: Run, name: str, measurement: Measurement, launches: Sequence[Launch], peaks: Sequence[int]
) -> dict[str, Any]:
    unit, factor = UNITS[measurement.metric.unit]
    runs = []
    for index, samples in enumerate(measurement.launches):
        if not samples:
            continue
        started = launches[index].started_at if index < len(launches) else run.started_at
        metadata: dict[str, Any] = {"date": str(started.replace(tzinfo=None)), "loops": measurement.loops}
        if peaks:
            metadata["mem_max_rss"] = peaks[index]
        runs.append({"metadata": metadata, "values": [_call(value, measurement, factor) for value in samples]})
    return {"metadata": {"name": name, "unit": unit, **_described(measurement.metric)}, "runs": runs}


def _call(value: float, measurement: Measurement, factor: float) -> int | float:
    """The value of one call; whole numbers stay whole where nothing is divided."""
    if factor == 1.0 and measurement.loops == 1:
        return int(value) if value == int(value) else value
    return value / measurement.loops * factor


def _described(metric: Metric) -> dict[str, str]:
    return {"description": metric.help} if metric.help else {}
