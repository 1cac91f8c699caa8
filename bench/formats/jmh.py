"""JMH's `-rf json`: forks are processes, and the mode says which way is better.

`thrpt` counts operations per time (more is better); `avgt`, `sample` and `ss` take the time of an
operation (less is better). `sample` keeps a histogram in place of samples: its mean and percentiles
are metrics of their own. Secondary metrics come from profilers (`-prof gc`) and counters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bench.errors import FormatError
from bench.formats._record import Imported, Outcome
from bench.formats._upload import Upload
from bench.formats._values import (
    TIME_UNITS,
    keys,
    once,
    optional_number,
    optional_text,
    quantity,
    rows,
    scaled,
    summarised,
    table,
    text,
    texts,
)
from bench.metrics import TIME, Better, Kind, Metric, Summary
from bench.model import Environment, Measurement, Scalar

THROUGHPUT = Metric(
    name="throughput", unit="1/s", better=Better.HIGHER, kind=Kind.THROUGHPUT, summary=Summary.QUARTILE,
    help="operations per second, as JMH counted them",
)  # fmt: skip

SETTINGS = ("jvm", "vmName", "vmVersion", "forks", "warmupIterations", "measurementIterations", "measurementTime")


class Jmh:
    """One run a file; modes and threads of one benchmark are told apart by metric and parameter."""

    name = "jmh"
    title = "JMH JSON"

    def sniff(self, upload: Upload) -> bool:
        """A list of results with mode and primary metric."""
        file = upload.json
        return isinstance(file, list) and bool(file) and {"benchmark", "mode", "primaryMetric"} <= keys(file[0])

    def read(self, upload: Upload) -> Iterator[Imported]:
        """One run."""
        entries = [table(entry, "a result") for entry in upload.json]
        told = entries[0]
        yield Imported(
            tool="jmh",
            tool_version=optional_text(told.get("jmhVersion")),
            outcomes=tuple(_outcome(entry) for entry in entries),
            environment=Environment(
                python=None, system=None, settings=texts(told, SETTINGS),
                packages={"jdk": str(told["jdkVersion"])} if told.get("jdkVersion") else {},
            ),
        )  # fmt: skip


def _outcome(entry: Mapping[str, Any]) -> Outcome:
    name = text(entry["benchmark"], "a benchmark's name")
    params: dict[str, Scalar] = {key: str(value) for key, value in (entry.get("params") or {}).items()}
    if entry.get("threads", 1) != 1:
        params["threads"] = int(entry["threads"])
    notes: dict[str, str] = {}
    measurements = [*_primary(name, entry, notes), *_secondary(name, entry.get("secondaryMetrics") or {})]
    return Outcome(
        benchmark=name, suite=name.rpartition(".")[0] or "jmh", params=params, measurements=tuple(measurements),
        notes=notes,
    )  # fmt: skip


def _primary(name: str, entry: Mapping[str, Any], notes: dict[str, str]) -> Iterator[Measurement]:
    score = table(entry["primaryMetric"], f"primaryMetric of {name}")
    metric, factor = _metric(str(entry["mode"]), str(score.get("scoreUnit")))
    if score.get("rawData"):
        yield Measurement(metric=metric, launches=_launches(score["rawData"], factor, name))
        return
    notes["samples"] = "the file holds a summary only"
    yield once(summarised(metric, "mean"), scaled(score.get("score"), factor, f"score of {name}"))
    for percentile in ("50.0", "99.0"):
        value = (score.get("scorePercentiles") or {}).get(percentile)
        if optional_number(value) is not None:
            yield once(summarised(metric, f"p{float(percentile):g}"), scaled(value, factor, f"p{percentile} of {name}"))


def _metric(mode: str, unit: str) -> tuple[Metric, float]:
    over, _, under = unit.partition("/")
    if mode == "thrpt" and over == "ops" and under in TIME_UNITS:
        return THROUGHPUT, 1e9 / TIME_UNITS[under]
    if mode in ("avgt", "sample", "ss") and over in TIME_UNITS:
        return TIME, TIME_UNITS[over]
    raise FormatError(f"has a result of mode {mode[:20]!r} in {unit[:20]!r}; JMH has thrpt, avgt, sample and ss")


def _secondary(name: str, entries: Mapping[str, Any]) -> Iterator[Measurement]:
    for key, score in entries.items():
        label = key.lstrip("·")
        better = Better.LOWER if label.startswith("gc.") else None
        metric, factor = quantity(label, str(score.get("scoreUnit") or ""), better)
        if score.get("rawData"):
            yield Measurement(metric=metric, launches=_launches(score["rawData"], factor, name))
        elif optional_number(score.get("score")) is not None:
            yield once(metric, scaled(score["score"], factor, f"{label} of {name}"))


def _launches(raw: Any, factor: float, name: str) -> tuple[tuple[int | float, ...], ...]:
    forks = (rows(fork, f"rawData of {name}") for fork in rows(raw, f"rawData of {name}"))
    return tuple(tuple(scaled(value, factor, f"a value of {name}") for value in fork) for fork in forks)


FORMAT = Jmh()
