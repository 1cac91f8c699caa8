"""Import what public projects keep: how fast, how many, and whether any file is taken for what it is not.

    python3 benchmarks/import_public.py FOLDER

FOLDER holds checkouts named OWNER+NAME of the projects below; one that is missing is left out. Nothing is
stored beside a temporary database. For benchzoo every file that is claimed must be claimed by the
format that its folder names.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import click

from bench.cli import run as bench

PLACES = {
    "airspeed-velocity+asv": "test/example_results",
    "apache+otava": "tests/resources",
    "benchmark-action+github-action-benchmark": "test/data",
    "bheisler+criterion.rs": "book/src/user_guide/html_report",
    "golang+perf": "cmd/benchstat/testdata",
    "ionelmc+pytest-benchmark": "tests/test_storage",
    "kedro-org+kedro-benchmark-results": ".asv/results",
    "llvm+llvm-lnt": "tests",
    "mlcommons+inference_results_v0.5": "closed",
    "numba+numba-benchmark": "results",
    "nyrkio+benchzoo": "tests/data",
    "psf+pyperf": "pyperf/tests",
}

OURS = {
    "asv-output": "asv", "go-test-bench-output": "go-bench", "google-benchmark-output": "google-benchmark",
    "hyperfine-output": "hyperfine", "jmh-output": "jmh", "pytest-benchmark-output": "pytest-benchmark",
    "custom-json-output": "github-action-benchmark",
}  # fmt: skip
"""Folders of benchzoo whose files may be claimed, and by which format."""


def imported(place: Path) -> tuple[float, int, dict[str, Any]]:
    """Seconds, exit code and document of one import."""
    said = StringIO()
    with tempfile.TemporaryDirectory() as scratch, redirect_stdout(said):
        start = time.perf_counter()
        code = bench(["import", str(place), "--json", "--database", str(Path(scratch) / "bench.db")])
        seconds = time.perf_counter() - start
    return seconds, code, json.loads(said.getvalue())


def main() -> int:
    """One line a project; 1 where a file was taken for what it is not."""
    wrong = []
    for name, inside in PLACES.items():
        place = Path(sys.argv[1]) / name / inside
        if not place.is_dir():
            click.echo(f"{name}: not there")
            continue
        seconds, code, found = imported(place)
        damaged = [refused for refused in found["refused"] if not refused["foreign"]]
        lacking = sum(bool(run["quarantine"]) for run in found["runs"])
        click.echo(
            f"{name}: {len(found['runs'])} runs, {found['series']} series, {len(found['machines'])} machines, "
            f"{lacking} quarantined, {len(damaged)} damaged, exit {code}, {seconds:.1f} s"
        )
        if name == "nyrkio+benchzoo":
            wrong = [run for run in found["runs"] if OURS.get(Path(run["files"][0]).parent.name) != run["format"]]
    for run in wrong:
        click.echo(f"wrong: {run['files'][0]} taken for {run['format']}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
