"""What `onnxruntime_perf_test` prints, and the file of single requests that it writes.

The output names no model and the file's name stands for it; the result file names it:
`model,seconds,peak memory,CPU %,request`, one line a request and no header, so raw samples
(PerformanceResult::DumpToFile in onnxruntime/test/perftest).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import PurePath

from bench.errors import FormatError
from bench.formats._record import Imported, Outcome
from bench.formats._upload import Upload
from bench.formats._values import TIME_UNITS, once, quantity, raw_times, scaled, spelled, summarised
from bench.metrics import FIRST_CALL, PEAK_MEMORY, TIME, Better, Kind, Metric, Summary
from bench.model import Measurement, Scalar

NUMBER = r"([-+\d.eE]+)"
LINE = re.compile(rf"\s*([A-Z][A-Za-z0-9 ]*?)\s*:\s*{NUMBER}\s*(s|ms|us|%|bytes)?\s*")
REQUEST = re.compile(rf"([^,]+),{NUMBER},(\d+),{NUMBER},(\d+)")
SETTING = re.compile(r"Setting (\w+) to (\w+)")

SESSION = Metric(
    name="session_creation", unit="ns", better=Better.LOWER, kind=Kind.TIME, summary=Summary.LAUNCH,
    help="wall clock of making the session: loading and optimizing the model",
)  # fmt: skip
CPU_USAGE = quantity("cpu_usage", "%")[0]
RATE = quantity("inferences_per_second", "1/s")[0]

METRICS = {
    "Average inference time cost": summarised(TIME, "mean"),
    "Average inference time cost total": summarised(TIME, "mean"),  # since 1.22
    "P50 Latency": summarised(TIME, "p50"),
    "P90 Latency": summarised(TIME, "p90"),
    "P95 Latency": summarised(TIME, "p95"),
    "P99 Latency": summarised(TIME, "p99"),
    "P999 Latency": summarised(TIME, "p99.9"),
    "Min Latency": summarised(TIME, "min"),
    "Max Latency": summarised(TIME, "max"),
    "Number of inferences per second": RATE,
    "Session creation time cost": SESSION,
    "First inference time cost": FIRST_CALL,
    "Peak working set size": PEAK_MEMORY,
    "Avg CPU usage": CPU_USAGE,
    "Total CPU usage": CPU_USAGE,
}
"""By what stands before the colon."""

SHOWN = {"Session creation time cost", "Total inference requests", "Number of inferences per second"}


class OnnxruntimePerf:
    """One model a file."""

    name = "onnxruntime-perf-test"
    title = "onnxruntime_perf_test output"

    def sniff(self, upload: Upload) -> bool:
        """Three of its lines, or lines of requests that count up from 0 and share model, memory and CPU."""
        found = _Output(upload)
        return found.lines.keys() >= SHOWN or bool(found.requests)

    def read(self, upload: Upload) -> Iterator[Imported]:
        """One run."""
        found = _Output(upload)
        outcome = _from_requests(found.requests) if found.requests else _from_output(upload, found.lines)
        yield Imported(tool="onnxruntime", outcomes=(outcome,))


class _Output:
    """Lines of one file by what they are."""

    def __init__(self, upload: Upload) -> None:
        self._lines = [] if upload.json is not None or upload.documents else [line for line in upload.lines if line]

    @cached_property
    def lines(self) -> dict[str, list[tuple[str, str]]]:
        """(number, unit) by label."""
        found: dict[str, list[tuple[str, str]]] = {}
        for line in self._lines:
            if match := LINE.fullmatch(line):
                found.setdefault(match[1], []).append((match[2], match[3] or ""))
        return found

    @cached_property
    def requests(self) -> list[tuple[str, ...]]:
        """Cells of all lines; none where one of them is no request, or only one is there."""
        found = [match.groups() for line in self._lines if (match := REQUEST.fullmatch(line.strip()))]
        shared = {(model, memory, load) for model, _, memory, load, _ in found}
        counted = [int(place) if len(place) < 10 else -1 for *_, place in found] == list(range(len(found)))
        whole = len(found) == len(self._lines) > 1
        return found if whole and counted and len(shared) == 1 else []


def _from_requests(requests: list[tuple[str, ...]]) -> Outcome:
    model, _, memory, load, _ = requests[0]
    times = tuple(scaled(spelled(time, f"a time of {model}"), 1e9, "a time") for _, time, *_ in requests)
    return Outcome(
        benchmark=model, suite="onnxruntime",
        measurements=(
            raw_times(times), once(PEAK_MEMORY, spelled(memory, "peak memory")), once(CPU_USAGE, spelled(load, "CPU")),
        ),
    )  # fmt: skip


def _from_output(upload: Upload, lines: dict[str, list[tuple[str, str]]]) -> Outcome:
    if len(lines.get("Session creation time cost", ())) > 1:
        raise FormatError("holds several runs of models that it does not name; give each a file of its own")
    found: dict[str, Measurement] = {}
    for label, metric in METRICS.items():
        for value, unit in lines.get(label, [])[:1]:
            factor = TIME_UNITS.get(unit, 1.0) if metric.unit == "ns" else 1.0
            found.setdefault(metric.name, once(metric, scaled(spelled(value, label), factor, label)))
    if not found:
        raise FormatError("holds no line of onnxruntime_perf_test")
    params: dict[str, Scalar] = {match[1]: match[2] for match in SETTING.finditer(upload.text)}
    requests = lines.get("Total inference requests", [("", "")])[0][0]
    return Outcome(
        benchmark=PurePath(upload.file).stem, suite="onnxruntime", params=params,
        measurements=tuple(found.values()), notes={"samples": f"a summary of {requests} requests"},
    )  # fmt: skip


FORMAT = OnnxruntimePerf()
