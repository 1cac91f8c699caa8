"""Result folders of airspeed velocity: one file per commit and environment, in the versions 1 and 2 of its layout.

    benchmarks.json                  types, units and names of parameters
    MACHINE/machine.json             the processor
    MACHINE/COMMIT-ENVIRONMENT.json  results

Version 1 has a mapping of benchmarks to a value or to params, result, stats and samples; version 2 packs
them into rows under `result_columns` and leaves trailing columns out (asv/results.py in airspeed-velocity/asv).

asv states the median of its samples, and keeps the samples only with `--record-samples`. Early results
state a number without saying which: they are the metric `time_result`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from math import isnan, prod
from typing import Any

from bench.errors import FormatError
from bench.formats._record import Imported, Outcome
from bench.formats._upload import Upload
from bench.formats._values import (
    gib,
    keys,
    moment,
    nanoseconds,
    number,
    once,
    optional_moment,
    optional_number,
    optional_text,
    raw_times,
    rows,
    summarised,
    table,
    text,
    whole,
)
from bench.loaders.asv_words import OBJECT_SIZE, axes, tracked
from bench.metrics import PEAK_MEMORY, TIME
from bench.model import Environment, Failure, FailureKind, Machine, Measurement, Revision, Scalar

MACHINE_KEYS = {"arch", "cpu", "machine", "num_cpu", "os", "ram", "version"}

STATS = {"ci_99_a": "stats_ci_99_a", "ci_99_b": "stats_ci_99_b", "q_25": "stats_q_25", "q_75": "stats_q_75",
         "number": "stats_number", "repeat": "stats_repeat"}  # fmt: skip
"""Statistics by their name in version 1 and their column in version 2."""

MOST = 100_000
"""Combinations of parameters that a benchmark may have."""

UNITS_OF_RAM = {"": 1.0, "k": 2.0**10, "m": 2.0**20, "g": 2.0**30, "t": 2.0**40}


class Asv:
    """The environment (Python, requirements, variables) tells series apart, as it does in asv."""

    name = "asv"
    title = "asv results"

    def sniff(self, upload: Upload) -> bool:
        """Results, and the two files that explain them."""
        file = upload.json
        return _is_results(file) or _is_machine(file) or _is_benchmarks(file)

    def read(self, upload: Upload) -> Iterator[Imported]:
        """One run of a file of results."""
        file = upload.json
        if not _is_results(file):
            return
        params = table(file["params"], "params")
        told = params | _machine_beside(upload, params)
        starts = _starts(file)
        version = whole(file.get("version")) or 1
        described = upload.beside("../benchmarks.json")
        known = described.json if described is not None and _is_benchmarks(described.json) else {}
        committed_at = optional_moment(file.get("date"), unit=1e-3)
        yield Imported(
            tool="asv",
            tool_version=f"results {version}",
            outcomes=tuple(_outcomes(file, known)),
            machine=_machine(told),
            environment=_environment(file, told),
            revision=Revision(commit=text(file["commit_hash"], "commit_hash"), committed_at=committed_at),
            requirements=_requirements(file),
            variables={name: str(value) for name, value in (file.get("env_vars") or {}).items()},
            started_at=min(starts, default=None),
            finished_at=max(starts, default=None),
        )


def _is_results(file: Any) -> bool:
    return {"commit_hash", "params", "results", "version"} <= keys(file)


def _is_machine(file: Any) -> bool:
    return {"machine", "version"} <= keys(file) <= MACHINE_KEYS


def _is_benchmarks(file: Any) -> bool:
    return any(
        {"name", "type", "unit", "params", "param_names"} <= keys(entry) for entry in keys(file) and file.values()
    )


# Where


def _machine_beside(upload: Upload, params: Mapping[str, Any]) -> dict[str, Any]:
    beside = upload.beside("machine.json")
    if beside is None or not _is_machine(beside.json):
        return {}
    there = beside.json["machine"]
    if params.get("machine", there) != there:
        raise FormatError(f"was measured on {params['machine']!r}, but lies in the folder of {there!r}")
    return {name: value for name, value in beside.json.items() if name not in ("version", *params)}


def _machine(told: Mapping[str, Any]) -> Machine:
    cpu = optional_text(told.get("cpu"))
    cores = whole(told.get("num_cpu"))
    counted = re.search(r"\s*\((\d+) cores?\)$", cpu or "")  # how early versions say it
    if cpu is not None and counted:
        cpu, cores = cpu[: counted.start()], cores or whole(counted[1])
    return Machine(
        architecture=optional_text(told.get("arch")), cpu=cpu, physical_cores=None, logical_cores=cores,
        memory_gib=_memory(told.get("ram")),
    )  # fmt: skip


def _memory(ram: Any) -> int | None:
    """`8.2G`; kB as in /proc/meminfo; bytes as sysctl has it. What could be both is kB below 4 Ti."""
    if isinstance(ram, str):
        found = re.fullmatch(r"\s*(\d{1,18}(?:\.\d{1,9})?)\s*([kmgtKMGT]?)i?[bB]?\s*", ram)
        if found is None:
            return None
        ram = float(found[1])
        if found[2]:
            return gib(ram, UNITS_OF_RAM[found[2].lower()])
    size = optional_number(ram)
    return None if size is None else gib(size, 1.0 if size >= 2**32 else 2.0**10)


def _environment(file: Mapping[str, Any], told: Mapping[str, Any]) -> Environment:
    versions = {_package(n): str(v) for n, v in (file.get("requirements") or {}).items() if v}
    settings = {"env_name": str(file["env_name"])} if file.get("env_name") else {}
    return Environment(
        python=optional_text(file.get("python")), system=optional_text(told.get("os")), packages=versions,
        settings=settings,
    )  # fmt: skip


def _requirements(file: Mapping[str, Any]) -> tuple[str, ...]:
    python = optional_text(file.get("python"))
    wanted = {"python": python} if python else {}
    wanted |= {_package(name): version for name, version in (file.get("requirements") or {}).items()}
    return tuple(f"{name}=={version}" if version else name for name, version in wanted.items())


def _package(name: str) -> str:
    return name.removeprefix("pip+")


def _starts(file: Mapping[str, Any]) -> list[datetime]:
    columns = file.get("result_columns")
    if columns is None:
        return [m for v in (file.get("started_at") or {}).values() if (m := optional_moment(v, unit=1e-3))]
    if "started_at" not in columns:
        return []
    place = columns.index("started_at")
    found = (row[place] for row in file["results"].values() if row and len(row) > place)
    return [moment(value, "started_at", unit=1e-3) for value in found if value is not None]


# What


def _outcomes(file: Mapping[str, Any], known: Mapping[str, Any]) -> Iterator[Outcome]:
    columns = file.get("result_columns")
    versions = file.get("benchmark_version") or {}
    for name, row in table(file["results"], "results").items():
        found = _row(row, columns)
        about = table(known.get(name) or {}, f"{name} in benchmarks.json")
        version = str(found.get("version") or versions.get(name) or "")
        yield from _variants(name, about, found, version)


def _row(row: Any, columns: list[str] | None) -> dict[str, Any]:
    """`result`, `params`, `samples` and the columns of statistics, each a list over the combinations of parameters."""
    if columns is not None:
        return dict(zip(columns, rows(row or [None], "a row of results"), strict=False))
    if not isinstance(row, dict):
        return {"result": [row], "params": []}
    stats = row.get("stats") or []
    packed = {column: [(entry or {}).get(key) for entry in stats] for key, column in STATS.items()} if stats else {}
    return {"result": row.get("result"), "params": row.get("params"), "samples": row.get("samples"), **packed}


def _variants(name: str, about: Mapping[str, Any], found: Mapping[str, Any], version: str) -> Iterator[Outcome]:
    params = found.get("params") or []
    count = prod(len(rows(texts, f"params of {name}")) for texts in params)
    names = about.get("param_names") or []
    if len(names) != len(params):
        names = [f"param{place + 1}" for place in range(len(params))]
    results = found.get("result")
    if not isinstance(results, list):
        results = [results] * min(count, MOST)
    if len(results) != count:
        raise FormatError(f"has {len(results)} results of {name[:100]} for {count} combinations of its parameters")
    by_axis = axes(names, params)
    points: list[dict[str, Scalar]] = [
        dict(zip(by_axis, point, strict=True)) for point in itertools.product(*by_axis.values())
    ]
    for place, (point, result) in enumerate(zip(points, results, strict=True)):
        at = {key: values[place] for key, values in found.items() if isinstance(values, list) and place < len(values)}
        yield _outcome(name, about, point, result, at, version)


def _outcome(
    name: str, about: Mapping[str, Any], point: dict[str, Scalar], result: Any, at: Mapping[str, Any], version: str
) -> Outcome:
    failure = None
    measurements: list[Measurement] = []
    notes: dict[str, str] = {}
    if result is None:
        failure = Failure(kind=FailureKind.RAISED, phase="round", message="asv noted a failure")
    elif isinstance(result, float) and isnan(result):
        failure = Failure(kind=FailureKind.SKIPPED, phase="set_up", message="asv noted that it does not apply")
    else:
        measurements = _measurements(name, about, number(result, name), at, notes)
    return Outcome(
        benchmark=name, params=point, suite=_suite(name), title=_title(about), version=version, failure=failure,
        measurements=tuple(measurements), notes=notes,
    )  # fmt: skip


def _measurements(
    name: str, about: Mapping[str, Any], result: int | float, at: Mapping[str, Any], notes: dict[str, str]
) -> list[Measurement]:
    kind = about.get("type") or _kind(name)
    if kind == "memory":
        return [once(OBJECT_SIZE, result)]
    if kind == "peakmemory":
        return [once(PEAK_MEMORY, result)]
    if kind != "time":
        metric, factor = tracked(str(about.get("unit", "unit")))
        if not about:
            notes["value"] = "benchmarks.json is not there, so its unit is unknown"
        return [once(metric, result * factor if factor != 1.0 else result)]
    stated = summarised(TIME, "median" if at.get("stats_repeat") is not None else "result")
    found = [once(stated, result * 1e9)]
    if at.get("samples"):
        found.insert(0, raw_times(nanoseconds(rows(at["samples"], f"samples of {name}"), 1e9, f"a sample of {name}")))
    notes.update(_spread(stated.name, at))
    return found


def _spread(metric: str, at: Mapping[str, Any]) -> dict[str, str]:
    """What else asv says of the distribution, in its own seconds."""
    parts = []
    for words, low, high in (("quartiles", "stats_q_25", "stats_q_75"), ("99 %", "stats_ci_99_a", "stats_ci_99_b")):
        left, right = optional_number(at.get(low)), optional_number(at.get(high))
        if left is not None and right is not None:
            parts.append(f"{words} {left}–{right} s")
    if at.get("stats_repeat") is not None:
        parts.append(f"{at['stats_repeat']} × {at.get('stats_number')} calls")
    return {metric: ", ".join(parts)} if parts else {}


def _kind(name: str) -> str:
    """By asv's rule for names, where benchmarks.json is not there."""
    function = name.rpartition(".")[2].lower()
    for beginning, kind in (("time", "time"), ("mem", "memory"), ("peakmem", "peakmemory"), ("track", "track")):
        if function.startswith(beginning):
            return kind
    raise FormatError(f"has {name[:100]}, of which only benchmarks.json could say what it measures; it is not there")


def _suite(name: str) -> str:
    """The module, as our own source of asv suites names it."""
    parts = name.split(".")[:-1]
    if len(parts) > 1 and parts[-1][:1].isupper():
        parts.pop()
    return ".".join(parts) or name


def _title(about: Mapping[str, Any]) -> str:
    return str(about.get("pretty_name") or "")


FORMAT = Asv()
