"""criterion.rs: the folder `target/criterion`, or the messages of `cargo criterion --message-format=json`.

    GROUP/FUNCTION/VALUE/new/benchmark.json   names and throughput
                             sample.json      iterations and time of every sample, in ns
                             estimates.json   what was estimated from them, in ns
                             tukey.json       fences of outliers

A folder is one run. `base` is what `new` was compared with, often a copy of it, so it counts only where
there is no `new`. The layout is criterion's own and undocumented; early versions
capitalised the estimates' names and wrote a sample as two lists.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from bench.errors import FormatError
from bench.formats._record import Imported, Outcome
from bench.formats._upload import Upload
from bench.formats._values import TIME_UNITS, keys, number, once, optional_number, rows, scaled, summarised, table, text
from bench.metrics import TIME
from bench.model import Measurement, Scalar

NAMES = {"group_id", "function_id", "value_str", "full_id", "directory_name"}
SAMPLE = {"iters", "times"}


class Criterion:
    """Groups are benchmarks; function and value are their parameters."""

    name = "criterion"
    title = "criterion results"

    def sniff(self, upload: Upload) -> bool:
        """The three files of a benchmark, the change between two, or messages."""
        file = upload.json
        if _is_names(upload) or _messages(upload):
            return True
        if not _estimates(file) and _sample(file) is None and upload.file != "tukey.json":
            return False
        return _is_names(upload.beside("benchmark.json") or upload.beside("../new/benchmark.json"))

    def read(self, upload: Upload) -> Iterator[Imported]:
        """A benchmark of the folder's run, or all messages."""
        if messages := _messages(upload):
            yield Imported(tool="criterion", outcomes=tuple(_from_message(m) for m in messages))
        elif _is_names(upload) and not _superseded(upload):
            names = table(upload.json, "benchmark.json")
            depth = len(PurePath(str(names["directory_name"])).parts)
            above = PurePath(upload.folder).parents
            root = above[depth] if depth < len(above) else upload.folder
            yield Imported(tool="criterion", outcomes=(_from_files(upload, names),), part_of=f"criterion {root}")


def _is_names(upload: Upload | None) -> bool:
    return upload is not None and keys(upload.json) >= NAMES


def _estimates(file: Any) -> dict[str, Any]:
    """Estimates by name in lower case; none where it is another file."""
    found = {name.lower(): value for name, value in file.items()} if keys(file) else {}
    return found if {"mean", "median"} <= found.keys() and "point_estimate" in keys(found["median"]) else {}


def _sample(file: Any) -> tuple[Any, Any] | None:
    """(times, iterations); null where it is another file."""
    if SAMPLE <= keys(file) <= {"sampling_mode", *SAMPLE}:
        return file["times"], file["iters"]
    two_lists = isinstance(file, list) and len(file) == 2 and all(isinstance(part, list) for part in file)
    return (file[1], file[0]) if two_lists else None


def _superseded(upload: Upload) -> bool:
    return PurePath(upload.folder).name != "new" and _is_names(upload.beside("../new/benchmark.json"))


def _messages(upload: Upload) -> list[dict[str, Any]]:
    documents = upload.documents or ([upload.json] if upload.json is not None else [])
    found = [m for m in documents if keys(m) >= {"reason", "id", "measured_values", "iteration_count"}]
    return [m for m in found if m["reason"] == "benchmark-complete"]


def _from_files(upload: Upload, names: Mapping[str, Any]) -> Outcome:
    group = text(names["group_id"], "group_id")
    params: dict[str, Scalar] = {
        axis: str(names[key]) for axis, key in (("function", "function_id"), ("value", "value_str")) if names[key]
    }
    beside = {name: upload.beside(f"{name}.json") for name in ("sample", "estimates")}
    files = {name: found.json for name, found in beside.items() if found is not None}
    items, notes = _throughput(names.get("throughput"))
    if (sample := _sample(files.get("sample"))) is not None:
        measurement = _raw(*sample, 1.0, group)
    elif estimates := _estimates(files.get("estimates")):
        median = estimates["median"]["point_estimate"]
        measurement = once(summarised(TIME, "median"), number(median, f"median of {group}"))
        notes["samples"] = "sample.json is not there"
    else:
        raise FormatError("has neither sample.json nor estimates.json beside it")
    return Outcome(
        benchmark=group, suite="criterion", params=params, measurements=(measurement,), items=items, notes=notes,
        title=str(names.get("title") or ""),
    )  # fmt: skip


def _from_message(message: Mapping[str, Any]) -> Outcome:
    name = text(message["id"], "id")
    unit = str(message.get("unit", "ns"))
    if unit not in TIME_UNITS:
        raise FormatError(f"has {name[:100]} in {unit[:40]!r}, which is no unit of time")
    measurement = _raw(message["measured_values"], message["iteration_count"], TIME_UNITS[unit], name)
    rates = message.get("throughput") or []
    items, notes = _throughput({r["unit"].capitalize(): r["per_iteration"] for r in rates})
    return Outcome(benchmark=name, suite="criterion", measurements=(measurement,), items=items, notes=notes)


def _raw(times: Any, counts: Any, factor: float, name: str) -> Measurement:
    """A sample is the mean of its iterations, of which every sample has its own number."""
    if len(rows(times, f"times of {name}")) != len(rows(counts, f"iterations of {name}")):
        raise FormatError(f"has {len(times)} times of {name[:100]} for {len(counts)} counts of iterations")
    samples: Sequence[int | float] = [
        scaled(time, factor, f"a time of {name}") / number(count, f"iterations of {name}")
        for time, count in zip(times, counts, strict=True)
    ]
    return Measurement(metric=TIME, launches=(tuple(samples),))


def _throughput(told: Any) -> tuple[float, dict[str, str]]:
    """(items of one call, notes): elements are items, bytes are told."""
    if not isinstance(told, dict):
        return 1.0, {}
    elements = optional_number(told.get("Elements"))
    notes = {f"{unit.lower()} per call": str(value) for unit, value in told.items() if unit != "Elements"}
    return float(elements) if elements and elements > 0 else 1.0, notes


FORMAT = Criterion()
