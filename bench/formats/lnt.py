"""Reports for LNT, LLVM's server, in the versions 0 to 2 of its format.

Version 2 has a record a test with a value or list of values a metric; before it a test's name ended in its
metric (`nts.NAME.exec`), and what is known of machine and run stood under `Info`. Metrics are those of
LNT's schemas `nts` and `compile`; those of other schemas are numbers of unknown unit and direction. A
status that is not 0 is a failure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bench.errors import FormatError
from bench.formats._record import Imported, Outcome
from bench.formats._upload import Upload
from bench.formats._values import (
    keys,
    number,
    optional_moment,
    optional_number,
    optional_text,
    quantity,
    rows,
    scaled,
    spelled,
    table,
    text,
    whole,
)
from bench.metrics import PEAK_MEMORY, TIME, Better, Kind, Metric, Summary
from bench.model import Environment, Failure, FailureKind, Machine, Measurement, Number, Revision

COMPILE_TIME = Metric(
    name="compile_time", unit="ns", better=Better.LOWER, kind=Kind.TIME, summary=Summary.LAUNCH,
    help="time to compile the program",
)  # fmt: skip
CODE_SIZE = Metric(
    name="code_size", unit="B", better=Better.LOWER, kind=Kind.SIZE, summary=Summary.LAUNCH,
    help="size of the text segment",
)  # fmt: skip

METRICS = {
    "execution_time": (TIME, 1e9),
    "compile_time": (COMPILE_TIME, 1e9),
    "score": (quantity("score", "1", Better.HIGHER)[0], 1.0),
    "mem_bytes": (PEAK_MEMORY, 1.0),
    "code_size": (CODE_SIZE, 1.0),
    "size_bytes": (CODE_SIZE, 1.0),
    "wall_time": (TIME, 1e9),
    "user_time": (quantity("user_time", "ns")[0], 1e9),
    "sys_time": (quantity("system_time", "ns")[0], 1e9),
}
"""Metric and factor by the name in version 2."""

OLD = {"exec": "execution_time", "compile": "compile_time", "mem": "mem_bytes", "size": "size_bytes",
       "wall": "wall_time", "user": "user_time", "sys": "sys_time"}  # fmt: skip
"""Ends of a test's name before version 2, and their names since."""

TOLD = {"hash", "profile"}
STATUS = "_status"
PASSED = (0, 2)
"""2 is a failure that was expected."""

ORDER = ("llvm_project_revision", "git_sha", "commit", "run_order")
PROCESSOR = ("cpu", "CPU", "cpu_model_name", "machdep.cpu.brand_string", "model name")
CORES = ("cores", "num_cpus", "hw.ncpu", "machdep.cpu.core_count")


class Lnt:
    """The server's name of a machine is a label that people chose, so it is a tag."""

    name = "lnt"
    title = "LNT report"

    def sniff(self, upload: Upload) -> bool:
        """Machine, run and tests; version 2 says so, and what the server hands out says that it did."""
        file = upload.json
        if {"Machine", "Run", "Tests"} <= keys(file):
            return "Name" in keys(file["Machine"]) and "Info" in keys(file["Run"])
        marked = "format_version" in keys(file) or str(keys(file) and file.get("generated_by")).startswith("LNT ")
        return marked and {"machine", "run", "tests"} <= keys(file) and "name" in keys(file["machine"])

    def read(self, upload: Upload) -> Iterator[Imported]:
        """One run."""
        file = upload.json if "tests" in upload.json else _renewed(upload.json)
        run, machine = table(file["run"], "run"), table(file["machine"], "machine")
        version = optional_text(run.get("cc_version_number"))
        yield Imported(
            tool="lnt",
            tool_version=optional_text(file.get("generated_by")) or f"report {file.get('format_version')}",
            outcomes=tuple(_outcomes(rows(file["tests"], "tests"), optional_text(run.get("tag")))),
            machine=_machine(machine),
            environment=Environment(
                python=None, system=optional_text(machine.get("os")) or optional_text(machine.get("os_version")),
                packages={str(run.get("cc_name") or "cc"): version} if version else {},
            ),
            revision=_revision(run),
            started_at=optional_moment(run.get("start_time")),
            finished_at=optional_moment(run.get("end_time")),
        )  # fmt: skip


def _renewed(file: Mapping[str, Any]) -> dict[str, Any]:
    """A report of version 0 or 1 in the shape of version 2."""
    machine, run = table(file["Machine"], "Machine"), table(file["Run"], "Run")
    info = table(run.get("Info"), "Run.Info")
    tests: dict[str, dict[str, Any]] = {}
    for test in rows(file["Tests"], "Tests"):
        full = text(table(test, "a test").get("Name"), "a test's name")
        name, metric = _old_name(full.removeprefix(f"{info.get('tag')}."))
        entry = tests.setdefault(name, {"name": name})
        entry.setdefault(metric, []).extend(rows(test.get("Data"), f"Data of {full}"))
    return {
        "format_version": info.get("__report_version__", "0"),
        "machine": {**table(machine.get("Info") or {}, "Machine.Info"), "name": machine["Name"]},
        "run": {**info, "start_time": run.get("Start Time"), "end_time": run.get("End Time")},
        "tests": list(tests.values()),
    }


def _old_name(name: str) -> tuple[str, str]:
    test, dot, metric = name.removesuffix(".status").rpartition(".")
    if not dot or not test:
        raise FormatError(f"has the test {name[:100]}, whose name does not end in its metric")
    metric = OLD.get(metric, metric)
    return test, f"{metric.removesuffix('_time')}{STATUS}" if name.endswith(".status") else metric


def _machine(told: Mapping[str, Any]) -> Machine:
    def first(names: tuple[str, ...]) -> Any:
        return next((told[name] for name in names if told.get(name)), None)

    return Machine(
        architecture=optional_text(told.get("arch")) or optional_text(told.get("hw.machine")),
        cpu=optional_text(first(PROCESSOR)), physical_cores=None, logical_cores=whole(first(CORES)), memory_gib=None,
        tags=(text(told["name"], "the machine's name"),),
    )  # fmt: skip


def _revision(run: Mapping[str, Any]) -> Revision | None:
    commit = next((str(run[name]).strip() for name in ORDER if run.get(name)), "")
    return Revision(commit=commit, branch=optional_text(run.get("branch"))) if commit else None


def _outcomes(tests: list[Any], tag: str | None) -> Iterator[Outcome]:
    """The server takes several records of one test for its samples."""
    named: dict[str, list[Mapping[str, Any]]] = {}
    for test in tests:
        named.setdefault(text(table(test, "a test").get("name"), "a test's name"), []).append(test)
    for name, records in named.items():
        yield _outcome(name, records, tag or "lnt")


def _outcome(name: str, records: list[Mapping[str, Any]], suite: str) -> Outcome:
    found: dict[str, list[Any]] = {}
    for record in records:
        for key, value in record.items():
            if key != "name" and value is not None:
                found.setdefault(key, []).extend(value if isinstance(value, list) else [value])
    failed = [key for key, values in found.items() if key.endswith(STATUS) and any(map(_failed, values))]
    failure = None
    if failed:
        message = f"LNT noted a failure: {', '.join(failed)}"
        failure = Failure(kind=FailureKind.RAISED, phase="round", message=message)
    measurements = [m for key, values in found.items() if (m := _measurement(key, values, name)) is not None]
    notes = {key: str(values[0]) for key, values in found.items() if isinstance(values[0], str) and key not in METRICS}
    return Outcome(
        benchmark=name, suite=suite, measurements=tuple(sorted(measurements, key=_rank)), failure=failure,
        notes={key: note for key, note in notes.items() if not key.endswith(STATUS)},
    )  # fmt: skip


def _failed(status: Any) -> bool:
    known = {"PASS": 0, "FAIL": 1, "XFAIL": 2}.get(status) if isinstance(status, str) else optional_number(status)
    return (whole(status) or 0 if known is None else known) not in PASSED


def _measurement(key: str, values: list[Any], name: str) -> Measurement | None:
    """A value is one execution of the program; text is no metric unless it has the name of one."""
    if key.endswith(STATUS) or key in TOLD or not values:
        return None
    if key not in METRICS and isinstance(values[0], str):
        return None
    metric, factor = METRICS.get(key) or quantity(key, "")
    what = f"{key} of {name}"
    return Measurement(metric=metric, launches=tuple((scaled(_number(v, what), factor, what),) for v in values))


def _number(value: Any, what: str) -> Number:
    return spelled(value, what) if isinstance(value, str) else number(value, what)


def _rank(measurement: Measurement) -> int:
    """Execution before compilation, whatever the order in the file."""
    known = [metric.name for metric, _ in METRICS.values()]
    return known.index(measurement.metric.name) if measurement.metric.name in known else len(known)


FORMAT = Lnt()
