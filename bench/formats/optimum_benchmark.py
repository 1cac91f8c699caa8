"""optimum-benchmark: `benchmark.json`, `benchmark_report.json` beside its `benchmark_config.json`, and the same as CSV.

A report has a part for every phase (load_model, prefill, decode, per_token, …) with latency, memory, throughput,
energy and efficiency. Every phase is a benchmark; its raw latencies are samples of one process. In CSV the
keys are joined by dots. `gpu_vram_mb` holds bytes, as NVML gives them (get_gpu_vram_mb in its
system_utils.py), and only a size that could be no number of bytes is read as what the name says.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping
from io import StringIO
from typing import Any

from bench.errors import FormatError
from bench.formats._record import Imported, Outcome
from bench.formats._upload import MAX_BYTES, Upload
from bench.formats._values import (
    TIME_UNITS,
    gib,
    keys,
    nanoseconds,
    once,
    optional_number,
    optional_text,
    quantity,
    raw_times,
    rows,
    scaled,
    summarised,
    table,
    whole,
)
from bench.metrics import TIME, Better, Kind, Metric, Summary
from bench.model import Accelerator, Environment, Machine, Measurement, Scalar

CONFIG = {"name", "backend", "scenario", "launcher", "environment"}
PHASE = {"memory", "latency", "throughput", "energy", "efficiency"}
BYTES_FROM = 10_000_000
"""A size of memory in MB from here on is one in bytes: 10 TB of one accelerator do not exist."""

STATISTICS = ("mean", "p50", "p90", "p95", "p99")
OF_BACKEND = (
    "name",
    "model",
    "device",
    "device_ids",
    "torch_dtype",
    "dtype",
    "quantization_scheme",
    "attn_implementation",
)
JOULES = {"kwh": 3.6e6, "wh": 3.6e3, "j": 1.0}


class OptimumBenchmark:
    """The configuration's name with a phase is a benchmark; model, backend and shapes are parameters."""

    name = "optimum-benchmark"
    title = "optimum-benchmark report"

    def sniff(self, upload: Upload) -> bool:
        """Configuration and report, one of the two, or a table with columns of both."""
        file = upload.json
        if {"config", "report"} <= keys(file):
            return _is_config(file["config"]) and _is_report(file["report"])
        if file is not None:
            return _is_config(file) or _is_report(file)
        head = upload.lines[0] if upload.lines else ""
        return "config.backend." in head and "report." in head and "config.name" in head

    def read(self, upload: Upload) -> Iterator[Imported]:
        """One run, or one a row; none of a configuration alone."""
        file = upload.json
        if {"config", "report"} <= keys(file):
            yield _imported(file["config"], file["report"])
        elif file is None:
            for row in _rows(upload):
                yield _imported(table(row.get("config"), "config"), table(row.get("report"), "report"))
        elif _is_report(file):
            beside = upload.beside("benchmark_config.json")
            if beside is None or not _is_config(beside.json):
                raise FormatError("does not say what it measured; put benchmark_config.json beside it")
            yield _imported(beside.json, file)


def _is_config(file: Any) -> bool:
    return keys(file) >= CONFIG and "cpu_ram_mb" in keys(file["environment"])


def _is_report(file: Any) -> bool:
    """Every part has the metrics of a phase and nothing else, and one has a latency or memory with its unit."""
    parts = list(file.values()) if isinstance(file, dict) else []
    if not parts or not all(part is None or (keys(part) and keys(part) <= PHASE) for part in parts):
        return False
    return any("unit" in keys(part.get(name)) for part in parts if part for name in PHASE)


def _rows(upload: Upload) -> Iterator[dict[str, Any]]:
    """Rows of the table as nested objects, empty cells left out."""
    csv.field_size_limit(MAX_BYTES)  # a list of latencies is one cell
    reader = csv.DictReader(StringIO(upload.text, newline=""), strict=True)
    try:
        for cells in reader:
            row: dict[str, Any] = {}
            for name, cell in cells.items():
                if isinstance(name, str) and isinstance(cell, str) and cell != "":
                    _put(row, name.split("."), _value(cell))
            yield row
    except csv.Error as error:
        raise FormatError(f"is no CSV ({error} in line {reader.line_num})") from None


def _put(row: dict[str, Any], path: list[str], value: Any) -> None:
    for part in path[:-1]:
        row = row.setdefault(part, {})
        if not isinstance(row, dict):
            raise FormatError(f"has the column {'.'.join(path)[:60]} below another that holds a value")
    row[path[-1]] = value


def _value(cell: str) -> Any:
    """Numbers, lists of numbers or of names, and empty objects; everything else is text."""
    if not (cell[0].isdigit() or cell[0] in "-[{"):
        return cell
    try:
        return json.loads(cell)
    except (ValueError, RecursionError):
        return re.findall(r"'([^']*)'", cell) if cell.startswith("['") else cell


def _imported(config: Mapping[str, Any], report: Mapping[str, Any]) -> Imported:
    told = table(config.get("environment"), "environment")
    packages = {
        name.removesuffix("_version"): str(value)
        for name, value in told.items()
        if name.endswith("_version") and value and name not in ("python_version", "optimum_benchmark_version")
    }
    commits = {name: str(value) for name, value in told.items() if name.endswith("_commit") and value}
    outcomes = tuple(
        _outcome(str(config.get("name") or "unnamed"), phase, table(part, phase), _params(config))
        for phase, part in table(report, "report").items()
        if part and any(table(part, phase).values())
    )
    return Imported(
        tool="optimum-benchmark",
        tool_version=optional_text(told.get("optimum_benchmark_version")),
        outcomes=outcomes,
        machine=_machine(told),
        environment=Environment(
            python=optional_text(told.get("python_version")), system=optional_text(told.get("platform")),
            packages=packages, settings=commits,
        ),
    )  # fmt: skip


def _machine(told: Mapping[str, Any]) -> Machine:
    models = told.get("gpu") if isinstance(told.get("gpu"), list) else [told["gpu"]] if told.get("gpu") else []
    sizes = told.get("gpu_vram_mb") if isinstance(told.get("gpu_vram_mb"), list) else []
    sizes = [*(sizes or []), *[None] * len(models or [])]
    return Machine(
        architecture=optional_text(told.get("machine")), cpu=optional_text(told.get("cpu")), physical_cores=None,
        logical_cores=whole(told.get("cpu_count")), memory_gib=gib(told.get("cpu_ram_mb"), 1e6),
        accelerators=tuple(
            Accelerator(kind="gpu", model=str(model), memory_bytes=_bytes(size))
            for model, size in zip(models or [], sizes, strict=False)
        ),
    )  # fmt: skip


def _bytes(size: Any) -> int | None:
    found = optional_number(size)
    if found is None or found <= 0:
        return None
    return int(found if found >= BYTES_FROM else found * 1e6)


def _params(config: Mapping[str, Any]) -> dict[str, Scalar]:
    """Names of what runs, and every number of its input's shape."""
    backend, scenario = table(config.get("backend"), "backend"), table(config.get("scenario"), "scenario")
    found: dict[str, Any] = {name: backend.get(name) for name in OF_BACKEND}
    found = {"backend" if name == "name" else name: value for name, value in found.items()}
    for part in ("input_shapes", "generate_kwargs", "call_kwargs"):
        found |= {name: v for name, v in (scenario.get(part) or {}).items() if isinstance(v, int | float)}
    return {name: value for name, value in found.items() if isinstance(value, str | int | float) and value != ""}


def _outcome(name: str, phase: str, part: Mapping[str, Any], params: dict[str, Scalar]) -> Outcome:
    notes: dict[str, str] = {}
    measurements = [
        *_latency(part.get("latency"), phase, notes), *_memory(part.get("memory"), phase),
        *_rates(part.get("throughput"), "throughput"), *_energy(part.get("energy")),
        *_rates(part.get("efficiency"), "efficiency"),
    ]  # fmt: skip
    return Outcome(
        benchmark=f"{name}.{phase}", suite="optimum-benchmark", params=params, measurements=tuple(measurements),
        notes=notes,
    )  # fmt: skip


def _latency(told: Any, phase: str, notes: dict[str, str]) -> Iterator[Measurement]:
    if not told:
        return
    unit = str(table(told, f"latency of {phase}").get("unit"))
    if unit not in TIME_UNITS:
        raise FormatError(f"has the latency of {phase[:40]} in {unit[:40]!r}, which is no unit of time")
    if told.get("values"):
        values = rows(told["values"], f"latencies of {phase}")
        yield raw_times(nanoseconds(values, TIME_UNITS[unit], f"a latency of {phase}"))
        return
    notes["samples"] = "the file holds a summary only"
    for statistic in STATISTICS:
        if told.get(statistic) is not None:
            yield once(summarised(TIME, statistic), scaled(told[statistic], TIME_UNITS[unit], statistic))


def _memory(told: Any, phase: str) -> Iterator[Measurement]:
    if not told:
        return
    unit = str(table(told, f"memory of {phase}").get("unit"))
    for name, value in told.items():
        if name != "unit" and value is not None:
            metric, factor = quantity(name, unit, Better.LOWER)
            if metric.kind is not Kind.MEMORY:
                raise FormatError(f"has the memory of {phase[:40]} in {unit[:40]!r}, which is no unit of size")
            yield once(metric, scaled(value, factor, f"{name} of {phase}"))


def _rates(told: Any, name: str) -> Iterator[Measurement]:
    if told and table(told, name).get("value") is not None:
        metric = quantity(name, str(told.get("unit")), Better.HIGHER)[0]
        yield once(metric, scaled(told["value"], 1.0, name))


def _energy(told: Any) -> Iterator[Measurement]:
    if not told:
        return
    unit = str(table(told, "energy").get("unit"))
    if unit.lower() not in JOULES:
        raise FormatError(f"has energy in {unit[:40]!r}; kWh, Wh and J are known")
    for name in ("total", "cpu", "gpu", "ram"):
        if told.get(name) is not None:
            metric = Metric(
                name=f"energy_{name}", unit="J", better=Better.LOWER, kind=Kind.ENERGY, summary=Summary.LAUNCH,
                help=f"energy that codecarbon attributes to {name}",
            )  # fmt: skip
            yield once(metric, scaled(told[name], JOULES[unit.lower()], f"energy of {name}"))


FORMAT = OptimumBenchmark()
