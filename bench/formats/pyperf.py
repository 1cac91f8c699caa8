"""pyperf's JSON (and that of perf, as it was called up to 1.6): every run is a fresh process.

Values are seconds, bytes or integers of one call; warm-ups and calibration are no samples. Metadata
of the file, a benchmark and a run stand above each other (pyperf's documentation, "JSON format").
Its dates have no time zone and are taken for UTC.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from bench.errors import FormatError
from bench.formats._record import Imported, Outcome
from bench.formats._upload import Upload
from bench.formats._values import (
    keys,
    number,
    optional_moment,
    optional_number,
    optional_text,
    rows,
    scaled,
    table,
    text,
    texts,
    whole,
)
from bench.metrics import PEAK_MEMORY, TIME, Better, Kind, Metric, Summary
from bench.model import Conditions, Environment, Machine, Measurement, Revision

UNITS = {
    "second": (TIME, 1e9),
    "byte": (Metric(name="memory", unit="B", better=Better.LOWER, kind=Kind.MEMORY, summary=Summary.QUARTILE,
                    help="memory as pyperf tracked it"), 1.0),
    "integer": (Metric(name="value", unit="1", better=Better.LOWER, kind=Kind.COUNT, summary=Summary.QUARTILE,
                       help="a number; pyperf reads more as worse"), 1.0),
}  # fmt: skip
"""Metric and factor of pyperf's units."""

SETTINGS = ("aslr", "cpu_affinity", "cpu_config", "timer", "python_cflags", "python_compiler", "python_hash_seed")


class Pyperf:
    """One run a file; its benchmarks differ in metadata of their own only."""

    name = "pyperf"
    title = "pyperf JSON"

    def sniff(self, upload: Upload) -> bool:
        """`benchmarks` that hold `runs`."""
        benchmarks = upload.json.get("benchmarks") if {"benchmarks", "version"} <= keys(upload.json) else None
        return isinstance(benchmarks, list) and bool(benchmarks) and "runs" in keys(benchmarks[0])

    def read(self, upload: Upload) -> Iterator[Imported]:
        """One run."""
        file = upload.json
        shared = file.get("metadata") or file.get("common_metadata") or {}
        parts = [(table(part, "a benchmark"), {**shared, **_metadata(part)}) for part in file["benchmarks"]]
        told = parts[0][1]
        first = {**_metadata(parts[0][0]["runs"][0]), **told}
        dates = [d for part, _ in parts for run in part["runs"] if (d := optional_moment(_metadata(run).get("date")))]
        platform = optional_text(told.get("platform"))
        yield Imported(
            tool="pyperf",
            tool_version=optional_text(told.get("pyperf_version")) or optional_text(told.get("perf_version")),
            outcomes=tuple(_outcome(part, known) for part, known in parts),
            machine=Machine(
                architecture=_architecture(platform), cpu=optional_text(told.get("cpu_model_name")),
                physical_cores=None, logical_cores=whole(told.get("cpu_count")), memory_gib=None,
            ),
            environment=Environment(
                python=_python(told), system=platform, settings=texts(told, SETTINGS),
                packages={"pyperformance": str(told["performance_version"])} if told.get("performance_version") else {},
            ),
            conditions=Conditions(load_before=optional_number(first.get("load_avg_1min"))),
            revision=_revision(told),
            started_at=min(dates, default=None),
            finished_at=max(dates, default=None),
        )  # fmt: skip


def _metadata(part: Mapping[str, Any]) -> dict[str, Any]:
    return part.get("metadata") or {}


def _architecture(platform: str | None) -> str | None:
    found = re.search(r"x86_64|AMD64|aarch64|arm64|armv\dl|i[36]86|ppc64le|s390x|riscv64", platform or "")
    return found[0] if found else None


def _python(told: Mapping[str, Any]) -> str | None:
    names = {"cpython": "CPython", "pypy": "PyPy"}
    implementation = optional_text(told.get("python_implementation"))
    parts = (names.get(implementation or "", implementation), optional_text(told.get("python_version")))
    return " ".join(filter(None, parts)) or None


def _revision(told: Mapping[str, Any]) -> Revision | None:
    commit = optional_text(told.get("commit_id"))
    if commit is None:
        return None
    return Revision(
        commit=commit, branch=optional_text(told.get("commit_branch")),
        committed_at=optional_moment(told.get("commit_date")),
    )  # fmt: skip


def _outcome(part: Mapping[str, Any], told: Mapping[str, Any]) -> Outcome:
    name = text(told.get("name", "unnamed"), "a benchmark's name")
    unit = told.get("unit", "second")
    if unit not in UNITS:
        raise FormatError(f"has {name[:100]} in the unit {unit!r}; pyperf has {', '.join(UNITS)}")
    metric, factor = UNITS[unit]
    launches, memory = [], []
    for run in rows(part["runs"], f"runs of {name}"):
        values = run.get("values") or run.get("samples")
        if not values:  # calibration
            continue
        launches.append(tuple(scaled(value, factor, f"a value of {name}") for value in values))
        if (peak := _metadata(run).get("mem_max_rss")) is not None:
            memory.append((number(peak, "mem_max_rss"),))
    if not launches:
        raise FormatError(f"has no values of {name[:100]}, only warm-ups")
    measurements = [Measurement(metric=metric, launches=tuple(launches))]
    if len(memory) == len(launches):
        measurements.append(Measurement(metric=PEAK_MEMORY, launches=tuple(memory)))
    return Outcome(
        benchmark=name, suite="pyperformance" if told.get("performance_version") else "pyperf",
        title=str(told.get("description") or ""), measurements=tuple(measurements),
    )  # fmt: skip


FORMAT = Pyperf()
