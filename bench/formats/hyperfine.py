"""hyperfine's `--export-json`: commands timed from start to end, one fresh process a sample."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench.errors import FormatError
from bench.formats._record import Imported, Outcome
from bench.formats._upload import Upload
from bench.formats._values import keys, nanoseconds, number, once, rows, scaled, summarised, table, text
from bench.metrics import CPU_TIME, PEAK_MEMORY, TIME
from bench.model import Failure, FailureKind, Measurement, Scalar

SECOND = 1e9


class Hyperfine:
    """The name of a command is its command line, less its parameters, or what `--command-name` gave."""

    name = "hyperfine"
    title = "hyperfine JSON"

    def sniff(self, upload: Upload) -> bool:
        """`results`, each with a command, mean and exit codes."""
        results = upload.json.get("results") if keys(upload.json) == {"results"} else None
        return isinstance(results, list) and bool(results) and {"command", "mean", "exit_codes"} <= keys(results[0])

    def read(self, upload: Upload) -> Iterator[Imported]:
        """One run."""
        outcomes = tuple(_outcome(table(entry, "a result")) for entry in rows(upload.json["results"], "results"))
        yield Imported(tool="hyperfine", outcomes=outcomes)


def _outcome(entry: dict[str, Any]) -> Outcome:
    command = text(entry.get("command"), "a command")
    params: dict[str, Scalar] = {name: str(value) for name, value in (entry.get("parameters") or {}).items()}
    codes = [code for code in entry.get("exit_codes") or [] if code != 0]
    failure = None
    if codes:
        message = f"the command ended with exit code {codes[0]}"
        failure = Failure(kind=FailureKind.RAISED, phase="round", message=message)
    notes = {}
    if codes:
        notes["exit codes"] = f"{len(codes)} runs did not end with 0"
    measurements = [_time(entry, notes), *_memory(entry)]
    if {"user", "system"} <= entry.keys():
        used = number(entry["user"], "user") + number(entry["system"], "system")
        measurements.append(once(summarised(CPU_TIME, "mean"), used * SECOND))
    return Outcome(
        benchmark=command, params=params, suite="hyperfine", measurements=tuple(measurements), failure=failure,
        notes=notes,
    )  # fmt: skip


def _time(entry: dict[str, Any], notes: dict[str, str]) -> Measurement:
    times = entry.get("times")
    if times:
        samples = nanoseconds(rows(times, "times"), SECOND, "a time")
        return Measurement(metric=TIME, launches=tuple((sample,) for sample in samples))
    if "mean" not in entry:
        raise FormatError("has a command without times and without a mean")
    notes["time_mean"] = "the file holds the mean only, no samples"
    return once(summarised(TIME, "mean"), scaled(entry["mean"], SECOND, "mean"))


def _memory(entry: dict[str, Any]) -> list[Measurement]:
    """`memory_usage_byte`, from 1.19 on: the peak of every run."""
    peaks = entry.get("memory_usage_byte")
    if not peaks:
        return []
    launches = tuple((number(peak, "memory_usage_byte"),) for peak in rows(peaks, "memory_usage_byte"))
    return [Measurement(metric=PEAK_MEMORY, launches=launches)]


FORMAT = Hyperfine()
