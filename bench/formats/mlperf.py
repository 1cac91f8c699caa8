"""MLPerf's load generator: `mlperf_log_summary.txt`, with what lies around it in a submission.

    DIVISION/SUBMITTER/systems/SYSTEM.json
    DIVISION/SUBMITTER/results/SYSTEM/MODEL/SCENARIO/performance/run_1/mlperf_log_summary.txt
                                                                      mlperf_log_detail.txt

Scenario and results come from the summary; model and system only from the folders (the submission rules
prescribe them), the processor from the system's description, version and date of the generator from
the detailed log. A result that the generator calls INVALID is a failure. An accuracy run measures no time:
its summary is recognised, and gives no run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

from bench.errors import FormatError
from bench.formats._record import UNKNOWN_MACHINE, Imported, Outcome
from bench.formats._upload import Upload
from bench.formats._values import gib, keys, once, optional_moment, optional_text, quantity, spelled, whole
from bench.metrics import Better, Metric
from bench.model import Accelerator, Environment, Failure, FailureKind, Machine, Measurement, Scalar

NUMBER = r"([-+\d.eE]+)"
LATENCY = re.compile(rf"\s*(.+?)\s*\(ns\)\s*:\s*{NUMBER}\s*")
RATE = re.compile(rf"\s*(\S.* per second(?: \(inferred\))?|QPS w/o? loadgen overhead)\s*:\s*{NUMBER}\s*")
COUNT = re.compile(r"\s*(Samples per query)\s*:\s*(\d+)\s*")
PERCENTILE = re.compile(r"([\d.]+)(?:st|nd|rd|th)? percentile (.+)")
STUB = re.compile(r"(no|\d+) (warnings?|errors?) encountered.*", re.IGNORECASE)
BREACH = re.compile(r"\s*(.+? satisfied)\s*:\s*no\s*", re.IGNORECASE)
VERSION = re.compile(r'(?:\bversion : |"loadgen_version", "value": ")([^"\n]+)')
DATE = re.compile(r'"loadgen_date_time[^"]*", "value": "([^"]+)"|power_begin[^\d]*([\d-]+T[\d:.]+)')
RULE = "=" * 20
MEMORY = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([GT])i?B\s*", re.IGNORECASE)
"""Whose unit is GiB in either spelling: memory comes in powers of two."""

SYSTEM = {"submitter", "division", "system_name", "host_processor_model_name"}
"""Keys of a system's description."""


class Mlperf:
    """One run a summary; five runs of the server scenario are five runs."""

    name = "mlperf"
    title = "MLPerf summary"

    def sniff(self, upload: Upload) -> bool:
        """The heading, or nothing but counts of warnings and errors; and the two files that explain a summary."""
        return _has_heading(upload) or _is_stub(upload) or _explains(upload)

    def read(self, upload: Upload) -> Iterator[Imported]:
        """One run, or none of an accuracy run."""
        if not _has_heading(upload) or "accuracy" in _told(upload).get("Mode", "").lower():
            return
        place = _Place(upload)
        detail = place.detail
        version, date = VERSION.search(detail), DATE.search(detail)
        yield Imported(
            tool="loadgen",
            tool_version=version[1].strip() if version else None,
            outcomes=(_outcome(upload, place),),
            machine=place.machine,
            environment=place.environment,
            started_at=optional_moment(date[1] or date[2]) if date else None,
        )


def _has_heading(upload: Upload) -> bool:
    lines = [line.strip() for line in upload.lines[:8] if line.strip()]
    return len(lines) > 1 and lines[0].startswith(RULE) and lines[1] == "MLPerf Results Summary"


def _is_stub(upload: Upload) -> bool:
    lines = [line.strip() for line in upload.lines[:20] if line.strip()]
    return 0 < len(lines) <= 2 and all(STUB.fullmatch(line) for line in lines)


def _explains(upload: Upload) -> bool:
    if keys(upload.json) >= SYSTEM:
        return True
    first = upload.lines[0] if upload.lines else ""
    return first.startswith(":::MLLOG {") or first.endswith(" : LoadgenVersionInfo:")


def _told(upload: Upload) -> dict[str, str]:
    """Lines of the summary's first section as name and value."""
    found: dict[str, str] = {}
    for line in upload.lines[3:]:
        if line.startswith(RULE):
            break
        name, colon, value = line.partition(":")
        if colon:
            found.setdefault(name.strip(), value.strip())
    return found


class _Place:
    """What the folders and files around a summary tell; nothing outside a submission."""

    def __init__(self, upload: Upload) -> None:
        self._upload = upload
        parts = PurePath(upload.folder).parts
        marks = [index for index, part in enumerate(parts) if part in ("results", "audit", "compliance")]
        self._inside = parts[marks[-1] + 1 :] if marks else ()
        self._system = self._description() if self.model else {}

    @property
    def model(self) -> str | None:
        """The folder above the scenario."""
        return self._inside[1] if len(self._inside) >= 4 else None

    @property
    def audit(self) -> str | None:
        """The compliance test, which measures otherwise than a result."""
        return next((part for part in self._inside if part.startswith("TEST")), None)

    @property
    def detail(self) -> str:
        """The detailed log; empty where it is not there, or too large to be read for its first lines."""
        try:
            beside = self._upload.beside("mlperf_log_detail.txt")
        except FormatError:
            return ""
        return beside.text[:100_000] if beside else ""

    def _description(self) -> Mapping[str, Any]:
        up = "../" * (len(self._inside) + 1)
        found = self._upload.beside(f"{up}systems/{self._inside[0]}.json")
        return found.json if found is not None and isinstance(found.json, dict) else {}

    @property
    def machine(self) -> Machine:
        """The host's processor with what accelerates it."""
        told = self._system
        if not told:
            return UNKNOWN_MACHINE
        model = optional_text(told.get("accelerator_model_name"))
        known = model is not None and model.lower() not in ("n/a", "none", "-")
        count = min(whole(told.get("accelerators_per_node")) or 0, 64) if known else 0
        cores = whole(told.get("host_processor_core_count"))
        return Machine(
            architecture=None, cpu=optional_text(told.get("host_processor_model_name")),
            physical_cores=cores * (whole(told.get("host_processors_per_node")) or 1) if cores else None,
            logical_cores=None, memory_gib=_memory(told.get("host_memory_capacity")),
            accelerators=(Accelerator(kind="accelerator", model=model or ""),) * count,
        )  # fmt: skip

    @property
    def environment(self) -> Environment:
        """Software of the system's description, as one text each."""
        told = {
            name: value
            for name in ("framework", "other_software_stack")
            if (value := optional_text(self._system.get(name)))
        }
        system = optional_text(self._system.get("operating_system"))
        return Environment(python=None, system=system, settings=told)


def _memory(told: Any) -> int | None:
    found = MEMORY.fullmatch(told) if isinstance(told, str) else None
    return gib(float(found[1]), 2.0**30 if found[2].upper() == "G" else 2.0**40) if found else None


def _outcome(upload: Upload, place: _Place) -> Outcome:
    told = _told(upload)
    result = told.get("Result is")
    scenario = re.sub(r"[\s_-]", "", told.get("Scenario", ""))
    if not scenario or result is None:
        raise FormatError("has no scenario, or no line `Result is`; it is damaged or cut short")
    params: dict[str, Scalar] = {"scenario": scenario}
    if place.audit:
        params["audit"] = place.audit
    measurements = _measurements(upload)
    if not measurements:
        raise FormatError(f"has no latency and no rate of its scenario {scenario[:40]}")
    return Outcome(
        benchmark=place.model or told.get("SUT name") or "unnamed", suite="mlperf", params=params,
        measurements=measurements, failure=None if result.upper() == "VALID" else _failure(upload, result),
        notes={name: told[name] for name in ("SUT name", "Mode") if told.get(name)},
    )  # fmt: skip


def _failure(upload: Upload, result: str) -> Failure:
    breaches = [found[1] for line in upload.lines if (found := BREACH.fullmatch(line))]
    advice = [line.strip(" *") for line in upload.lines if line.startswith(" *")]
    reasons = f": not {', not '.join(breaches)}" if breaches else ""
    message = f"the load generator calls the result {result[:40] or 'nothing'}{reasons}"
    return Failure(kind=FailureKind.WRONG, phase="check", message=message, detail="\n".join(advice))


def _measurements(upload: Upload) -> tuple[Measurement, ...]:
    """Headline first. Latencies of queries and of samples have the same labels under headings of their own."""
    found: dict[str, Measurement] = {}
    prefix = ""
    for line in upload.lines:
        if "Test Parameters Used" in line:
            break
        if heading := re.match(r"(Per-query|Per-sample) latency:", line):
            prefix = heading[1].lower().replace("-", "_") + "_"
        for pattern, make in ((LATENCY, _latency), (RATE, _rate), (COUNT, _count)):
            if match := pattern.fullmatch(line):
                metric = make(match[1], prefix)
                found.setdefault(metric.name, once(metric, spelled(match[2], match[1])))
    return tuple(found.values())


def _latency(label: str, prefix: str) -> Metric:
    percentile = PERCENTILE.fullmatch(label)
    name = _slug(f"{percentile[2]} p{float(percentile[1]):g}" if percentile else label)
    return quantity(prefix + name, "ns")[0]


def _rate(label: str, prefix: str) -> Metric:
    return quantity(_slug(label), "1/s")[0]


def _count(label: str, prefix: str) -> Metric:
    """Streams that were served in time: the multi-stream scenario's result."""
    return quantity(_slug(label), "1", Better.HIGHER)[0]


def _slug(label: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "_", label.lower().replace("w/o", "without").replace("w/", "with")).strip("_")


FORMAT = Mlperf()
