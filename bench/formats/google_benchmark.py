"""Google Benchmark's `--benchmark_format=json`, of all schema versions.

Repetitions of one benchmark are the samples of one process. Aggregates are computed from them, so
they count only where the repetitions were left out (`--benchmark_report_aggregates_only`). Counters
are metrics; the library knows no direction, so rates improve upwards and the rest downwards.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from bench.errors import FormatError
from bench.formats._record import Imported, Outcome
from bench.formats._upload import Upload
from bench.formats._values import (
    TIME_UNITS,
    keys,
    number,
    once,
    optional_moment,
    optional_number,
    optional_text,
    quantity,
    rows,
    scaled,
    summarised,
    table,
    text,
    texts,
    whole,
)
from bench.metrics import CPU_TIME, TIME, Metric
from bench.model import Conditions, Environment, Failure, FailureKind, Machine, Measurement, Revision

OWN_KEYS = {
    "name", "run_name", "run_type", "repetitions", "repetition_index", "threads", "iterations", "real_time", "cpu_time",
    "time_unit", "family_index", "per_family_instance_index", "aggregate_name", "aggregate_unit", "label",
    "error_occurred", "error_message", "skipped", "skip_message", "big_o", "cpu_coefficient", "real_coefficient", "rms",
}  # fmt: skip
"""Keys of a result that are no counter."""

AGGREGATES = ("mean", "median")
"""Those that are taken where there are no repetitions; spread and complexity are no value of a metric."""


class GoogleBenchmark:
    """One run a file; the suite is the program's name."""

    name = "google-benchmark"
    title = "Google Benchmark JSON"

    def sniff(self, upload: Upload) -> bool:
        """A `context` with the processors, and `benchmarks`."""
        file = upload.json
        return {"context", "benchmarks"} <= keys(file) and {"num_cpus", "date"} <= keys(file["context"])

    def read(self, upload: Upload) -> Iterator[Imported]:
        """One run."""
        context = table(upload.json["context"], "context")
        commit = optional_text(context.get("commit"))  # given with --benchmark_context=commit=…
        load = [optional_number(value) for value in context.get("load_avg") or [None]]
        suite = PurePath(str(context.get("executable") or "google-benchmark")).stem
        yield Imported(
            tool="google-benchmark",
            tool_version=optional_text(context.get("library_version")),
            outcomes=tuple(_outcomes(rows(upload.json["benchmarks"], "benchmarks"), suite)),
            machine=Machine(
                architecture=None, cpu=optional_text(context.get("cpu")), physical_cores=None,
                logical_cores=whole(context.get("num_cpus")), memory_gib=None,
            ),
            environment=Environment(
                python=None, system=None, settings=texts(context, ("library_build_type", "cpu_scaling_enabled")),
            ),
            conditions=Conditions(load_before=load[0]),
            revision=Revision(commit=commit) if commit else None,
            started_at=optional_moment(context.get("date")),
        )  # fmt: skip


def _outcomes(entries: Sequence[Any], suite: str) -> Iterator[Outcome]:
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for entry in entries:
        name = text(table(entry, "a benchmark").get("name"), "a benchmark's name")
        run_name = entry.get("run_name", re.sub(r"_(mean|median|stddev|cv|BigO|RMS)$", "", name))
        place = (entry.get("family_index"), entry.get("per_family_instance_index"))
        groups.setdefault((run_name, *place), []).append(entry)
    for (name, *_), entries_of_it in groups.items():
        yield _outcome(str(name), entries_of_it, suite)


def _outcome(name: str, entries: Sequence[Mapping[str, Any]], suite: str) -> Outcome:
    failed = next((e for e in entries if e.get("error_occurred") or e.get("skipped")), None)
    if failed is not None:
        return Outcome(benchmark=name, suite=suite, failure=_failure(failed))
    repetitions = [entry for entry in entries if not _aggregate(entry)]
    notes = texts(entries[0], ("label",))
    if repetitions:
        return Outcome(benchmark=name, suite=suite, measurements=tuple(_raw(name, repetitions)), notes=notes)
    stated = {_aggregate(entry): entry for entry in entries}
    measurements = [
        once(summarised(metric, statistic), scaled(value, factor, f"{statistic} of {name}"))
        for statistic in AGGREGATES
        if statistic in stated
        for metric, factor, value in _metrics(stated[statistic])
    ]
    if not measurements:
        raise FormatError(f"has neither repetitions nor a mean or median of {name[:100]}")
    return Outcome(
        benchmark=name, suite=suite, measurements=tuple(measurements),
        notes={**notes, "samples": "the file holds aggregates only"},
    )  # fmt: skip


def _failure(entry: Mapping[str, Any]) -> Failure:
    if entry.get("error_occurred"):
        message = str(entry.get("error_message") or "the benchmark reported an error")
        return Failure(kind=FailureKind.RAISED, phase="round", message=message)
    message = str(entry.get("skip_message") or entry.get("error_message") or "the benchmark skips itself")
    kind = FailureKind.RAISED if "ERROR" in str(entry["skipped"]).upper() else FailureKind.SKIPPED
    return Failure(kind=kind, phase="round", message=message)


def _aggregate(entry: Mapping[str, Any]) -> str:
    """`mean`, `median`, …; empty for a repetition. Before 1.5 only the name tells."""
    if "run_type" in entry:
        return str(entry.get("aggregate_name") or "unnamed") if entry["run_type"] == "aggregate" else ""
    found = re.search(r"_(mean|median|stddev|cv|BigO|RMS)$", str(entry["name"]))
    return found[1] if found else ""


def _raw(name: str, repetitions: Sequence[Mapping[str, Any]]) -> Iterator[Measurement]:
    values: dict[Metric, list[int | float]] = {}
    for entry in repetitions:
        for metric, factor, value in _metrics(entry):
            values.setdefault(metric, []).append(scaled(value, factor, f"{metric.name} of {name}"))
    for metric, samples in values.items():
        yield Measurement(metric=metric, launches=(tuple(samples),))


def _metrics(entry: Mapping[str, Any]) -> Iterator[tuple[Metric, float, Any]]:
    """(metric, factor into its unit, value) of everything that an entry states."""
    unit = str(entry.get("time_unit", "ns"))
    if unit not in TIME_UNITS:
        raise FormatError(f"has times in the unit {unit[:40]!r}, which is unknown")
    for metric, key in ((TIME, "real_time"), (CPU_TIME, "cpu_time")):
        if key in entry:
            yield metric, TIME_UNITS[unit], number(entry[key], key)
    for key, value in entry.items():
        if key not in OWN_KEYS and isinstance(value, int | float) and not isinstance(value, bool):
            yield *_counter(key), value


def _counter(name: str) -> tuple[Metric, float]:
    if name == "bytes_per_second":
        return quantity(name, "B/s")
    return quantity(name, "1/s" if name.endswith("_per_second") else "1")


FORMAT = GoogleBenchmark()
