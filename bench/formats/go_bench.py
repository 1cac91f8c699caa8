"""`go test -bench`, as text or as events (`-json`), with the configuration lines of benchstat.

The syntax is that of golang.org/design/14313-benchmark-format: `key: value` lines hold for what comes
after them, `Unit` lines say which way a unit is better, `name=value` parts of a name are parameters and
`-N` at its end is GOMAXPROCS. Repeated lines (`-count`) are the samples of one process. Wherever the
configuration changes a new run begins; `pkg` alone only tells whose benchmarks follow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from bench.errors import FormatError
from bench.formats._record import Imported, Outcome
from bench.formats._upload import Upload
from bench.formats._values import keys, number, optional_moment, optional_text, quantity
from bench.metrics import TIME, Better, Kind, Metric, Summary
from bench.model import Environment, Failure, FailureKind, Machine, Measurement, Number, Revision, Scalar

RESULT = re.compile(r"Benchmark(\S*)\s+(\d{1,18})((?:\s+[-+.\d]\S*\s+\S+)+)\s*")
CONFIG = re.compile(r"([a-z][^\sA-Z:]*):(?:\s+(.*))?")
UNIT = re.compile(r"Unit\s+(\S+)\s+(.*)")
FAILED = re.compile(r"\s*--- (FAIL|SKIP): Benchmark(\S+)")

COMMIT = ("commit", "git-commit", "vcs-commit")
COMMITTED_AT = ("commit-time", "commit-date", "committed-at")
TOOLCHAIN = ("toolchain", "go", "go-version", "goversion")
"""Configuration keys that people use for what the tool itself does not tell."""

METRICS = {
    "ns/op": (TIME, 1.0),
    "B/op": (Metric(name="allocated", unit="B", better=Better.LOWER, kind=Kind.MEMORY, summary=Summary.QUARTILE,
                    help="bytes allocated by one operation"), 1.0),
    "allocs/op": (Metric(name="allocations", unit="1", better=Better.LOWER, kind=Kind.COUNT, summary=Summary.QUARTILE,
                         help="allocations of one operation"), 1.0),
    "MB/s": (Metric(name="bandwidth", unit="B/s", better=Better.HIGHER, kind=Kind.THROUGHPUT, summary=Summary.QUARTILE,
                    help="bytes processed per second, as set with SetBytes"), 1e6),
}  # fmt: skip
"""Units of the testing package: metric and factor. Others are metrics by their own name."""


class GoBench:
    """The package is the suite."""

    name = "go-bench"
    title = "go test -bench output"

    def sniff(self, upload: Upload) -> bool:
        """A line with a count and pairs of value and unit, or events that print one."""
        return any(RESULT.fullmatch(line) for line in _lines(upload))

    def read(self, upload: Upload) -> Iterator[Imported]:
        """A run for every configuration."""
        parser = _Parser()
        for line in _lines(upload):
            parser.line(line)
        for config, block in parser.blocks.items():
            yield _imported(dict(config), list(block.values()), parser.units)


def _lines(upload: Upload) -> list[str]:
    if not all({"Action", "Package"} <= keys(event) for event in upload.documents[:1] or [{}]):
        return [] if upload.documents or upload.json is not None else upload.lines
    said: dict[str, list[str]] = {}
    for event in upload.documents:
        if event.get("Action") == "output":
            said.setdefault(str(event.get("Package")), []).append(str(event.get("Output", "")))
    return [line for parts in said.values() for line in "".join(parts).splitlines()]


@dataclass(slots=True)
class _Series:
    """What lines of one benchmark said."""

    suite: str
    name: str
    params: dict[str, Scalar]
    values: dict[str, list[Number]] = field(default_factory=dict)  # by unit
    failure: Failure | None = None


class _Parser:
    """Reads line by line; `blocks` holds what was measured under each configuration."""

    def __init__(self) -> None:
        self.blocks: dict[tuple[tuple[str, str], ...], dict[str, _Series]] = {}
        self._config: dict[str, str] = {}
        self.units: dict[str, dict[str, str]] = {}

    def line(self, line: str) -> None:
        """Anything that is no line of the format is what a benchmark printed."""
        if found := RESULT.fullmatch(line):
            series = self._series(found[1])
            pairs = found[3].split()
            for value, unit in zip(pairs[::2], pairs[1::2], strict=True):
                series.values.setdefault(unit, []).append(_number(value, found[1]))
        elif found := FAILED.match(line):
            kind = FailureKind.RAISED if found[1] == "FAIL" else FailureKind.SKIPPED
            message = "the benchmark failed" if found[1] == "FAIL" else "the benchmark skips itself"
            self._series(found[2]).failure = Failure(kind=kind, phase="round", message=message)
        elif found := UNIT.fullmatch(line):
            told = dict(pair.split("=", 1) for pair in found[2].split() if "=" in pair)
            self.units.setdefault(found[1], {}).update(told)
        elif found := CONFIG.fullmatch(line):
            self._config[found[1]] = (found[2] or "").strip()

    def _series(self, label: str) -> _Series:
        config = tuple(sorted((key, value) for key, value in self._config.items() if key != "pkg" and value))
        block = self.blocks.setdefault(config, {})
        package = self._config.get("pkg", "")
        key = f"{package} {label}"
        if key not in block:
            name, params = _split(label)
            block[key] = _Series(package or "go", f"{package}.{name}" if package else name, params)
        return block[key]


def _number(value: str, name: str) -> Number:
    try:
        return number(float(value), f"a value of {name}")
    except ValueError:
        raise FormatError(f"has {value[:40]!r} of {name[:100]} where a number was expected") from None


def _split(label: str) -> tuple[str, dict[str, Scalar]]:
    """Name and parameters of `CRC32/poly=IEEE/size=15-8`."""
    found = re.fullmatch(r"(.*)-(\d{1,6})", label)
    path, processors = (found[1], int(found[2])) if found else (label, None)
    base, *parts = path.split("/")
    params: dict[str, Scalar] = {}
    for part in parts:
        name, equals, value = part.partition("=")
        if equals and name and name not in params:
            params[name] = value
        else:
            base = f"{base}/{part}"
    if processors is not None:
        params["gomaxprocs"] = processors
    return base, params


def _imported(config: Mapping[str, str], block: list[_Series], units: Mapping[str, Mapping[str, str]]) -> Imported:
    def told(names: tuple[str, ...]) -> str | None:
        return next((config[name] for name in names if name in config), None)

    commit = told(COMMIT)
    kept = {"goos", "goarch", "cpu", "branch", *COMMIT, *COMMITTED_AT, *TOOLCHAIN}
    return Imported(
        tool="go",
        tool_version=told(TOOLCHAIN),
        outcomes=tuple(_outcome(series, units) for series in block),
        machine=Machine(
            architecture=optional_text(config.get("goarch")), cpu=optional_text(config.get("cpu")),
            physical_cores=None, logical_cores=None, memory_gib=None,
        ),
        environment=Environment(
            python=None, system=optional_text(config.get("goos")),
            settings={name: value for name, value in config.items() if name not in kept},
        ),
        revision=Revision(
            commit=commit, branch=config.get("branch"), committed_at=optional_moment(told(COMMITTED_AT))
        ) if commit else None,
    )  # fmt: skip


def _outcome(series: _Series, units: Mapping[str, Mapping[str, str]]) -> Outcome:
    measurements = []
    for unit, values in series.values.items():
        metric, factor = _metric(unit, units.get(unit, {}), len(set(values)) == 1)
        samples = values if factor == 1.0 else [value * factor for value in values]
        kept = samples[:1] if metric.summary is Summary.EXACT else samples
        measurements.append(Measurement(metric=metric, launches=(tuple(kept),)))
    return Outcome(
        benchmark=series.name, suite=series.suite, params=series.params, measurements=tuple(measurements),
        failure=series.failure,
    )  # fmt: skip


def _metric(unit: str, told: Mapping[str, str], constant: bool) -> tuple[Metric, float]:
    if unit in METRICS:
        return METRICS[unit]
    better = Better(told["better"]) if told.get("better") in ("lower", "higher") else None
    metric, factor = quantity(unit, unit, better)
    exact = told.get("assume") == "exact" and constant
    return replace(metric, summary=Summary.EXACT if exact else Summary.QUARTILE), factor


FORMAT = GoBench()
