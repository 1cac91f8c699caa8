"""Rows of PyTorch's benchmark database in its version 3: one benchmark, model and metric a row.

A file is a list of rows, one row, or a row a line. Rows of one job are one run. The name of a metric says its
unit, in brackets or at its end, and its direction by the words of `HIGHER`; other metrics improve downwards.
What a runner is called is a label, and its processor the machine.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from bench.errors import FormatError
from bench.formats._record import UNKNOWN_MACHINE, Imported, Outcome
from bench.formats._upload import Upload
from bench.formats._values import (
    TIME_UNITS,
    gib,
    keys,
    optional_moment,
    optional_text,
    quantity,
    rows,
    scaled,
    table,
    text,
    whole,
)
from bench.metrics import Better, Metric
from bench.model import Accelerator, Environment, Failure, FailureKind, Machine, Measurement, Revision, Scalar

PARTS = {"benchmark", "model", "metric"}
OF_JOB = ("repo", "head_branch", "head_sha", "workflow_id", "run_attempt", "job_id", "timestamp", "runners",
          "dependencies")  # fmt: skip

HIGHER = ("throughput", "speedup", "per_sec", "per second", "/s", "tps", "accuracy", "flops", "utilization",
          "bandwidth", "compression_ratio", "pass_rate", "passrate")  # fmt: skip
"""Words in the name of a metric of which more is better."""

IN_BRACKETS = re.compile(r"(.*?)\s*\(([^()]+)\)\s*")
AT_END = re.compile(r"(.+)(?<!per)_(ns|us|ms|sec|seconds|bytes|kb|mb|gb|kib|mib|gib)", re.IGNORECASE)
LONGEST = 200
"""Characters of further information that still is a parameter; a longer text describes."""


class PytorchHud:
    """A model belongs to a benchmark of the database, which is the suite."""

    name = "pytorch-hud"
    title = "PyTorch benchmark rows (version 3)"

    def sniff(self, upload: Upload) -> bool:
        """Benchmark, model and metric with values in every row."""
        found = _rows(upload)
        return bool(found) and all(_is_row(row) for row in found)

    def read(self, upload: Upload) -> Iterator[Imported]:
        """A run a job."""
        jobs: dict[str, list[Mapping[str, Any]]] = {}
        for row in _rows(upload):
            told = {name: row[name] for name in OF_JOB if name in table(row, "a row")}
            jobs.setdefault(json.dumps(told, sort_keys=True), []).append(row)
        for found in jobs.values():
            yield _imported(found)


def _rows(upload: Upload) -> list[Any]:
    if upload.documents:
        return upload.documents
    return upload.json if isinstance(upload.json, list) else [upload.json]


def _is_row(row: Any) -> bool:
    return (
        keys(row) >= PARTS and "name" in keys(row["benchmark"]) and {"name", "benchmark_values"} <= keys(row["metric"])
    )


def _imported(found: list[Mapping[str, Any]]) -> Imported:
    told = found[0]
    runners = rows(told.get("runners") or [], "runners")
    commit = optional_text(told.get("head_sha"))
    return Imported(
        tool="pytorch-hud",
        tool_version=optional_text(told.get("schema_version")),
        outcomes=tuple(_outcome(row) for row in found),
        machine=_machine(table(runners[0], "a runner")) if runners else UNKNOWN_MACHINE,
        environment=Environment(
            python=None, system=_system(runners), packages=_packages(told.get("dependencies") or {}),
            settings={"repository": str(told["repo"])} if told.get("repo") else {},
        ),
        revision=Revision(commit=commit, branch=optional_text(told.get("head_branch"))) if commit else None,
        started_at=optional_moment(told.get("timestamp")),
    )  # fmt: skip


def _machine(runner: Mapping[str, Any]) -> Machine:
    """All processors of one runner; memory that is available is no fact of the machine."""
    model = optional_text(runner.get("gpu_info"))
    count = min(whole(runner.get("gpu_count")) or 1, 64) if model else 0
    label = optional_text(runner.get("name"))
    return Machine(
        architecture=None, cpu=optional_text(runner.get("cpu_info")), physical_cores=None,
        logical_cores=whole(runner.get("cpu_count")), memory_gib=gib(runner.get("total_mem_in_gb"), 2.0**30),
        accelerators=(Accelerator(kind="gpu", model=model or ""),) * count, tags=(label,) if label else (),
    )  # fmt: skip


def _system(runners: list[Any]) -> str | None:
    return optional_text(runners[0].get("type")) if runners else None


def _packages(dependencies: Any) -> dict[str, str]:
    """Commit of every repository that was built against."""
    told = table(dependencies, "dependencies").items()
    return {name: str(about["sha"]) for name, about in told if "sha" in keys(about)}


def _outcome(row: Mapping[str, Any]) -> Outcome:
    benchmark, metric = table(row["benchmark"], "benchmark"), table(row["metric"], "metric")
    model = row["model"] if isinstance(row["model"], dict) else {"name": row["model"]}
    suite = text(benchmark.get("name"), "a benchmark's name")
    name = ".".join(filter(None, (suite, optional_text(model.get("name")))))
    params, notes = _params(benchmark, model, metric)
    values = rows(metric["benchmark_values"], f"benchmark_values of {name}")
    if not values:
        failure = Failure(kind=FailureKind.UNMEASURED, phase="report", message="the row has no values")
        return Outcome(benchmark=name, suite=suite, params=params, failure=failure, notes=notes)
    known, factor = _metric(text(metric["name"], "a metric's name"))
    samples = tuple(scaled(value, factor, f"{known.name} of {name}") for value in values)
    return Outcome(
        benchmark=name, suite=suite, params=params, notes=notes,
        measurements=(Measurement(metric=known, launches=(samples,)),),
    )  # fmt: skip


def _params(*parts: Mapping[str, Any]) -> tuple[dict[str, Scalar], dict[str, str]]:
    """What tells variants apart, and what only describes them: lists, objects and long texts."""
    benchmark, model, _ = parts
    told = {"mode": benchmark.get("mode"), "dtype": benchmark.get("dtype"), "backend": model.get("backend")}
    for part in parts:
        told |= table(part.get("extra_info") or {}, "extra_info")
    params: dict[str, Scalar] = {}
    notes: dict[str, str] = {}
    for name, value in told.items():
        if isinstance(value, str | bool | int | float) and value != "" and len(str(value)) <= LONGEST:
            params[name] = value
        elif value:
            notes[name] = json.dumps(value)
    return params, notes


def _metric(name: str) -> tuple[Metric, float]:
    said = IN_BRACKETS.fullmatch(name) or AT_END.fullmatch(name)
    label, unit = (said[1], said[2]) if said else (name, "")
    if not label:
        raise FormatError(f"has the metric {name[:40]!r}, which is only a unit")
    if unit not in TIME_UNITS:
        unit = unit.lower()
    higher = any(word in name.lower() for word in HIGHER)
    return quantity(label, unit, Better.HIGHER if higher else None)


FORMAT = PytorchHud()
