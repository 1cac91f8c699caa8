"""github-action-benchmark: `data.js` with the history that it keeps, and the JSON that its custom tools hand in.

    window.BENCHMARK_DATA = {"entries": {SUITE: [{"commit": …, "date": …, "tool": …, "benches": […]}]}}
    [{"name": …, "unit": …, "value": …}]

Every entry of every suite is a run. The tool says what a time is (a median, a mean) and which way is
better (`biggerIsBetter` in its src/write.ts); a rate improves upwards whatever the tool.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.formats._record import Imported, Outcome
from bench.formats._upload import Upload, parse
from bench.formats._values import (
    TIME_UNITS,
    keys,
    number,
    optional_moment,
    quantity,
    rows,
    scaled,
    spelled,
    summarised,
    table,
    text,
    texts,
)
from bench.metrics import TIME, Better, Kind, Metric
from bench.model import Environment, Failure, FailureKind, Measurement, Number, Revision

PREFIX = re.compile(r"\s*window\.BENCHMARK_DATA\s*=\s*")

STATISTICS = {"cargo": "median", "julia": "median", "go": "mean", "googlecpp": "mean", "catch2": "mean", "jmh": "mean",
              "benchmarkdotnet": "mean"}  # fmt: skip
"""What a time of a tool is; of the others it is not known."""

HIGHER = {"benchmarkjs", "pytest", "customBiggerIsBetter"}

CUSTOM = {"name", "unit", "value"}
CUSTOM_TOO = {"range", "extra"}


class GithubActionBenchmark:
    """A machine is nowhere named, and the tool's version neither."""

    name = "github-action-benchmark"
    title = "github-action-benchmark data"

    def sniff(self, upload: Upload) -> bool:
        """The assignment, or a list of nothing but names, units and values."""
        return bool(PREFIX.match(upload.text)) or _is_custom(upload.json)

    def read(self, upload: Upload) -> Iterator[Imported]:
        """A run for every entry."""
        if not (assigned := PREFIX.match(upload.text)):
            yield Imported(tool="github-action-benchmark", outcomes=_outcomes("", "custom", upload.json))
            return
        file = table(parse(upload.text[assigned.end() :].rstrip().removesuffix(";")), "BENCHMARK_DATA")
        for suite, entries in table(file.get("entries"), "entries").items():
            for entry in rows(entries, f"entries of {suite}"):
                yield _imported(suite, table(entry, f"an entry of {suite}"), texts(file, ("repoUrl",)))


def _is_custom(file: Any) -> bool:
    return isinstance(file, list) and bool(file) and all(CUSTOM <= keys(e) <= CUSTOM | CUSTOM_TOO for e in file)


def _imported(suite: str, entry: Mapping[str, Any], settings: dict[str, str]) -> Imported:
    commit = table(entry.get("commit"), f"the commit of an entry of {suite}")
    tool = text(entry.get("tool"), f"the tool of an entry of {suite}")
    return Imported(
        tool=tool,
        outcomes=_outcomes(suite, tool, rows(entry.get("benches"), f"benches of {suite}")),
        environment=Environment(python=None, system=None, settings=settings),
        revision=Revision(
            commit=text(commit.get("id"), "a commit's id"), committed_at=optional_moment(commit.get("timestamp")),
        ),
        started_at=optional_moment(entry.get("date"), unit=1e-3),
    )  # fmt: skip


def _outcomes(suite: str, tool: str, entries: Sequence[Any]) -> tuple[Outcome, ...]:
    """`go test -count` gives a name several times: those are samples of one benchmark."""
    named: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for entry in entries:
        name = text(table(entry, "a bench").get("name"), "a bench's name")
        named.setdefault((name, str(entry.get("unit") or "")), []).append(entry)
    return tuple(_outcome(suite, tool, name, unit, found) for (name, unit), found in named.items())


def _outcome(suite: str, tool: str, name: str, unit: str, entries: Sequence[Mapping[str, Any]]) -> Outcome:
    notes = texts(entries[0], ("range", "extra"))
    suite = suite or "github-action-benchmark"
    values = [value for entry in entries if (value := entry.get("value")) is not None]
    if not values:
        failure = Failure(kind=FailureKind.UNMEASURED, phase="report", message="the file states no value")
        return Outcome(benchmark=name, suite=suite, failure=failure, notes=notes)
    metric, factor = _metric(tool, unit)
    samples = tuple(scaled(_value(value, name), factor, f"value of {name}") for value in values)
    return Outcome(
        benchmark=name, suite=suite, notes=notes, measurements=(Measurement(metric=metric, launches=(samples,)),)
    )


def _value(value: Any, name: str) -> Number:
    """The action itself takes text for a number."""
    return spelled(value, f"value of {name}") if isinstance(value, str) else number(value, f"value of {name}")


def _metric(tool: str, unit: str) -> tuple[Metric, float]:
    over, _, under = unit.partition("/")
    if over in TIME_UNITS and under in ("", "iter", "op"):
        return summarised(TIME, STATISTICS.get(tool, "result")), TIME_UNITS[over]
    if over in ("iter", "ops", "op", "runs") and TIME_UNITS.get(under):
        return quantity("throughput", "1/s")[0], 1e9 / TIME_UNITS[under]
    metric, factor = quantity("value", unit)
    better = Better.HIGHER if tool in HIGHER or metric.kind is Kind.THROUGHPUT else Better.LOWER
    return quantity("value", unit, better)[0], factor


FORMAT = GithubActionBenchmark()
