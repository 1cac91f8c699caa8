"""Gungraun and iai-callgrind (its name until 0.17), and iai before them: what Valgrind counts in one execution.

    target/gungraun/PACKAGE/BENCH/GROUP/FUNCTION.ID/summary.json

Summaries of the schema versions 1 to 6, as files or a line each (`--output-format=json`), and what the
terminal shows. Text and summaries name an event alike, by Callgrind's word, so that one series can follow
from the other. Values of an earlier execution, which the tools compare with, are not taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from bench.errors import FormatError
from bench.formats._record import Imported, Outcome
from bench.formats._upload import Upload
from bench.formats._values import keys, number, once, quantity, rows, spelled, table, text, texts
from bench.metrics import Better, Metric
from bench.model import Measurement, Number, Scalar

SUMMARY = {"version", "kind", "project_root", "package_dir", "benchmark_file", "benchmark_exe", "module_path"}
RESULTS = ("profiles", "callgrind_summary", "tool_summaries")

LABELS = {
    "Instructions": "Ir", "L1 Hits": "L1hits", "L2 Hits": "LLhits", "LL Hits": "LLhits", "RAM Hits": "RamHits",
    "Total read+write": "TotalRW", "Estimated Cycles": "EstimatedCycles", "L1 Accesses": "L1hits",
    "L2 Accesses": "LLhits", "RAM Accesses": "RamHits", "Total bytes": "TotalBytes", "Total blocks": "TotalBlocks",
    "At t-gmax bytes": "AtTGmaxBytes", "At t-gmax blocks": "AtTGmaxBlocks", "At t-end bytes": "AtTEndBytes",
    "At t-end blocks": "AtTEndBlocks", "Reads bytes": "ReadsBytes", "Writes bytes": "WritesBytes",
    "Suppressed Errors": "SuppressedErrors", "Suppressed Contexts": "SuppressedContexts",
    "L1 Hit Rate": "L1HitRate", "LL Hit Rate": "LLHitRate", "RAM Hit Rate": "RamHitRate",
}  # fmt: skip
"""Words of the terminal, and of iai, as the summaries have them. Others keep theirs."""

BETTER_HIGHER = {"L1HitRate", "LLHitRate"}

COLOUR = re.compile(r"\x1b\[[\d;]*m")
VALUE = re.compile(r"[\s|]*([A-Z][\w +-]*?):\s+(\d+(?:\.\d+)?)(?:\|.*|\s+\(.*|\s*)")
TOOL = re.compile(r"[\s|]*=======+ ([A-Z]+) =+")
NAME = re.compile(r"([A-Za-z_]\w*(?:::[A-Za-z_]\w*)+)(?: (\S*?):(.*)| (\S+))?")
OLD_NAME = re.compile(r"[A-Za-z_]\w*")
COMPARED = re.compile(r"[\s|]*-Comparison with ")


class Gungraun:
    """The path of a function is the benchmark, the id of its arguments a parameter."""

    name = "gungraun"
    title = "Gungraun (iai-callgrind) results"

    def sniff(self, upload: Upload) -> bool:
        """A summary, or a benchmark's name above what was counted of it, quoted in no documentation."""
        if upload.json is not None or upload.documents:
            return all(_is_summary(file) for file in upload.documents or [upload.json])
        return bool(_Terminal(upload.lines).blocks) and not any(line.startswith("```") for line in upload.lines)

    def read(self, upload: Upload) -> Iterator[Imported]:
        """Summaries below one folder are one run."""
        if upload.json is None and not upload.documents:
            blocks = _Terminal(upload.lines).blocks
            yield Imported(tool="gungraun", outcomes=tuple(block.outcome() for block in blocks))
            return
        summaries = upload.documents or [upload.json]
        part_of = "" if upload.documents else f"gungraun {_root(upload, upload.json)}"
        yield Imported(tool="gungraun", outcomes=tuple(_summarised(file) for file in summaries), part_of=part_of)


def _is_summary(file: Any) -> bool:
    return keys(file) >= SUMMARY and any(name in file for name in RESULTS)


def _root(upload: Upload, file: Mapping[str, Any]) -> PurePath:
    """The folder of all packages, where the summary lies as the tool puts it; else its own."""
    folder = PurePath(upload.folder)
    module = str(file["module_path"]).split("::")
    group = module[1] if len(module) > 1 else ""
    return folder.parents[3] if len(folder.parents) > 3 and group and folder.parent.name == group else folder


# Summaries


def _summarised(file: Mapping[str, Any]) -> Outcome:
    module = text(file.get("module_path"), "module_path")
    function = file.get("function_name")
    name = module if not function or module.endswith(f"::{function}") else f"{module}::{function}"
    params: dict[str, Scalar] = {"id": str(file["id"])} if file.get("id") else {}
    found: dict[str, Measurement] = {}
    for tool, events in _events(file):
        for event, value in events.items():
            metric = _metric(tool, event)
            if (taken := _new(value, f"{event} of {name}")) is not None:
                found.setdefault(metric.name, once(metric, taken))
    if not found:
        raise FormatError(f"has no value of {name[:100]} that was measured now")
    return Outcome(
        benchmark=name, suite=module.partition("::")[0], params=params, measurements=tuple(found.values()),
        notes=texts(file, ("details",)),
    )  # fmt: skip


def _events(file: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(tool, events) of the total of every tool; Callgrind first."""
    if "profiles" in file:  # from version 4 on
        for profile in rows(file["profiles"], "profiles"):
            yield from _summary(str(profile["tool"]), profile["summaries"]["total"]["summary"])
        return
    callgrind = file.get("callgrind_summary")
    if callgrind and "callgrind_run" in callgrind:  # version 3
        yield "Callgrind", table(callgrind["callgrind_run"]["total"]["summary"], "the summary")
    elif callgrind and callgrind.get("summaries"):
        yield "Callgrind", table(callgrind["summaries"][0]["events"], "events")
    for other in rows(file.get("tool_summaries") or [], "tool_summaries"):
        if isinstance(other.get("summaries"), dict):  # before version 3 text only
            yield from _summary(str(other["tool"]), other["summaries"]["total"])


def _summary(tool: str, total: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """`{"Callgrind": events}`; the text "None" of tools that count nothing."""
    if isinstance(total, dict):
        for events in total.values():
            yield tool, table(events, f"the summary of {tool}")


def _new(value: Any, what: str) -> Number | None:
    """What was measured now; null where an event has an earlier value only."""
    found = table(value, what)
    if "metrics" in found:
        sides = table(found["metrics"], what)
        found = {"new": sides["Both"][0] if "Both" in sides else sides.get("Left")}
    new = found.get("new")
    if isinstance(new, dict):  # from version 5 on
        new = new["Int"] if "Int" in new else new.get("Float")
    return None if new is None else number(new, what)


def _metric(tool: str, event: str) -> Metric:
    name = event if tool.upper() == "CALLGRIND" else f"{tool.lower()}.{event}"
    unit = "%" if event.endswith("Rate") else "B" if event.endswith("Bytes") else "1"
    return quantity(name, unit, Better.HIGHER if event in BETTER_HIGHER else Better.LOWER)[0]


# Terminal


@dataclass(slots=True)
class _Block:
    """A benchmark and the values below its name."""

    name: str
    id: str = ""
    details: str = ""
    values: dict[tuple[str, str], str] = field(default_factory=dict)  # by tool and event

    def outcome(self) -> Outcome:
        measurements = tuple(
            once(_metric(tool, event), spelled(value, f"{event} of {self.name}"))
            for (tool, event), value in self.values.items()
        )
        return Outcome(
            benchmark=self.name, suite=self.name.partition("::")[0] if "::" in self.name else "iai",
            params={"id": self.id} if self.id else {}, measurements=measurements,
            notes={"details": self.details} if self.details else {},
        )  # fmt: skip


class _Terminal:
    """Lines of the terminal. The total follows the parts of several threads, so the last value counts."""

    def __init__(self, lines: list[str]) -> None:
        self._blocks: list[_Block] = []
        self._block: _Block | None = None
        self._tool = "CALLGRIND"
        self._last = ""
        for line in lines:
            self._line(COLOUR.sub("", line))

    @property
    def blocks(self) -> list[_Block]:
        """Benchmarks with values; none where no instructions were counted, or nothing but them by iai."""
        counted = [block for block in self._blocks if ("CALLGRIND", "Ir") in block.values]
        return [b for b in counted if "::" in b.name or ("CALLGRIND", "EstimatedCycles") in b.values]

    def _line(self, line: str) -> None:
        if found := NAME.fullmatch(line):
            self._begin(_Block(found[1], id=found[2] or found[4] or "", details=found[3] or ""))
        elif COMPARED.match(line):
            self._block = None  # values of another benchmark follow
        elif found := TOOL.fullmatch(line):
            self._tool = found[1]
        elif found := VALUE.fullmatch(line):
            if found[1] == "Instructions" and OLD_NAME.fullmatch(self._last):
                self._begin(_Block(self._last))
            if self._block is not None:
                self._block.values[self._tool, LABELS.get(found[1], found[1])] = found[2]
        self._last = line

    def _begin(self, block: _Block) -> None:
        self._block, self._tool = block, "CALLGRIND"
        self._blocks.append(block)


FORMAT = Gungraun()
