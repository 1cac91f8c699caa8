"""pytest-benchmark's `--benchmark-json` and its storage, from version 2 on.

Names are those of our own source of such tests: module, class and function, with the case as a
parameter. Raw data are there with `--benchmark-save-data` and `--benchmark-json`; a time covers one
call, since the plugin divides by the iterations of a round. Before 3.1 no processor is named.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from bench.errors import FormatError
from bench.formats._record import Imported, Outcome
from bench.formats._upload import Upload
from bench.formats._values import (
    keys,
    nanoseconds,
    once,
    optional_moment,
    optional_text,
    raw_times,
    rows,
    scaled,
    summarised,
    table,
    text,
    texts,
    whole,
)
from bench.metrics import CPU_TIME, TIME
from bench.model import Environment, Machine, Revision, Scalar

NO_COMMIT = ("unversioned", "unknown", "")

STATED = ("rounds", "iterations", "min", "mean", "stddev", "q1", "q3", "outliers")
"""Statistics kept as a note where there are no samples."""


class PytestBenchmark:
    """One run a file."""

    name = "pytest-benchmark"
    title = "pytest-benchmark JSON"

    def sniff(self, upload: Upload) -> bool:
        """`machine_info`, `commit_info` and `benchmarks`."""
        return {"machine_info", "commit_info", "benchmarks", "version"} <= keys(upload.json)

    def read(self, upload: Upload) -> Iterator[Imported]:
        """One run."""
        file = upload.json
        machine = table(file["machine_info"], "machine_info")
        yield Imported(
            tool="pytest-benchmark",
            tool_version=optional_text(file["version"]),
            outcomes=tuple(_outcome(table(entry, "a benchmark")) for entry in rows(file["benchmarks"], "benchmarks")),
            machine=_machine(machine),
            environment=_environment(machine),
            revision=_revision(file["commit_info"] or {}),
            started_at=optional_moment(file.get("datetime")),
        )


def _machine(told: Mapping[str, Any]) -> Machine:
    cpu = told.get("cpu") or {}
    return Machine(
        architecture=optional_text(told.get("machine")),
        cpu=optional_text(cpu.get("brand_raw")) or optional_text(cpu.get("brand")),
        physical_cores=None, logical_cores=whole(cpu.get("count")), memory_gib=None,
    )  # fmt: skip


def _environment(told: Mapping[str, Any]) -> Environment:
    python = (optional_text(told.get("python_implementation")), optional_text(told.get("python_version")))
    system = (optional_text(told.get("system")), optional_text(told.get("release")))
    return Environment(
        python=" ".join(filter(None, python)) or None, system=" ".join(filter(None, system)) or None,
        settings=texts(told, ("python_compiler",)),
    )  # fmt: skip


def _revision(told: Mapping[str, Any]) -> Revision | None:
    commit = optional_text(told.get("id"))
    if commit is None or commit in NO_COMMIT:
        return None
    branch = optional_text(told.get("branch"))
    return Revision(
        commit=commit, dirty=bool(told.get("dirty")), committed_at=optional_moment(told.get("time")),
        branch=None if branch is None or branch.startswith("(") else branch,
    )  # fmt: skip


def _outcome(entry: Mapping[str, Any]) -> Outcome:
    name, suite, params = _name(text(entry.get("fullname") or entry.get("name"), "a benchmark's name"))
    stats = table(entry.get("stats"), f"stats of {name}")
    options = entry.get("options") or {}
    metric = CPU_TIME if "process_time" in str(options.get("timer")) else TIME
    notes = {"group": str(entry["group"])} if entry.get("group") else {}
    notes |= {str(key): str(value) for key, value in (entry.get("extra_info") or {}).items()}
    if stats.get("data"):
        measurement = raw_times(nanoseconds(rows(stats["data"], f"data of {name}"), 1e9, f"a time of {name}"), metric)
    else:
        measurement = once(summarised(metric, "median"), scaled(stats.get("median"), 1e9, f"median of {name}"))
        stated = ", ".join(f"{key} {value}" for key, value in texts(stats, STATED).items())
        notes[measurement.metric.name] = f"no samples in the file; in seconds: {stated}"
    return Outcome(benchmark=name, suite=suite, params=params, measurements=(measurement,), notes=notes)


def _name(full: str) -> tuple[str, str, dict[str, Scalar]]:
    """(benchmark, suite, parameters) of `folder/test_x.py::Class::test_y[case]`."""
    tail, bracket, case = full.partition("[")
    if bracket and not case.endswith("]"):
        raise FormatError(f"has the name {full[:100]!r}, whose case has no end")
    place, colons, function = tail.partition("::")
    suite = ".".join(PurePosixPath(place).with_suffix("").parts) if colons else "tests"
    name = f"{suite}.{function.replace('::', '.')}" if colons else place
    return name, suite, {"case": case[:-1]} if bracket else {}


FORMAT = PytestBenchmark()
