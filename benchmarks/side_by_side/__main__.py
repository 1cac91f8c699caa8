"""See the package's text."""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.stats.proportions import wilson
from benchmarks.side_by_side.project import PERCENT, make
from benchmarks.side_by_side.tools import TOOLS


def measure(results: Path, hours: float, tools: Sequence[str]) -> None:
    """Compare in turns until the time is over; one line a compare is appended as soon as it is known."""
    end = time.monotonic() + 3600 * hours
    with tempfile.TemporaryDirectory() as place, results.open("a", encoding="utf-8") as lines:
        folder = Path(place)
        make(folder)
        while time.monotonic() < end:
            for tool in tools:
                for head in ("same", "slower"):
                    start = time.monotonic()
                    answers = TOOLS[tool](folder, head)
                    row = {
                        "tool": tool, "head": head, "answers": answers, "seconds": time.monotonic() - start,
                        "load": os.getloadavg()[0],
                    }  # fmt: skip
                    lines.write(json.dumps(row) + "\n")
                    lines.flush()


def report(results: Path) -> str:
    """A Markdown table: per benchmark compared, with Wilson's 95 % intervals."""
    rows = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
    heads = (
        f"| tool | same work called slower | called faster | called same | {PERCENT} % slower found | s a benchmark |"
    )
    lines = [heads, "| --- | --- | --- | --- | --- | --- |"]
    for tool in TOOLS:
        mine = [row for row in rows if row["tool"] == tool]
        same = [word for row in mine if row["head"] == "same" for word in row["answers"].values()]
        slower = [word for row in mine if row["head"] == "slower" for word in row["answers"].values()]
        if not same or not slower:
            continue
        seconds = sum(row["seconds"] for row in mine) / (len(same) + len(slower))
        cells = [_share(same, "slower"), _share(same, "faster"), _share(same, "same"), _share(slower, "slower")]
        lines.append(f"| {tool} | {' | '.join(cells)} | {seconds:.1f} |")
    loads = sorted(row["load"] for row in rows)
    lines.append(
        f"\n{len(rows)} compares; load average {loads[0]:.1f}–{loads[-1]:.1f}, median {loads[len(loads) // 2]:.1f}"
    )
    return "\n".join(lines)


def _share(words: Sequence[str], word: str) -> str:
    hits = sum(w == word for w in words)
    share = wilson(hits, len(words))
    return f"{hits} of {len(words)} ({share.low:.1%}–{share.high:.1%})"


def main() -> None:
    """Parse and do."""
    parser = argparse.ArgumentParser()
    verbs = parser.add_subparsers(dest="verb", required=True)
    measuring = verbs.add_parser("measure")
    measuring.add_argument("results", type=Path)
    measuring.add_argument("--hours", type=float, default=1.0)
    measuring.add_argument("--tool", action="append", choices=tuple(TOOLS))
    showing = verbs.add_parser("report")
    showing.add_argument("results", type=Path)
    options = parser.parse_args()
    if options.verb == "measure":
        measure(options.results, options.hours, options.tool or tuple(TOOLS))
    else:
        print(report(options.results))  # noqa: T201 - the result


if __name__ == "__main__":
    main()
