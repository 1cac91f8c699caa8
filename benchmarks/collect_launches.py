"""Record launches of the same code on both sides, for benchmarks.operating_characteristics.

    python -m benchmarks.collect_launches POOL.json [--launches 25] [--metric time] [WORKLOAD ...]

Workloads are those of suites/selftest.py. The machine is measured as it is found: whatever else runs
on it belongs to what is recorded. Nothing is stored in a database.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from math import log
from pathlib import Path

from bench.compare import launch_values
from bench.experiment import run_experiments
from bench.metrics import CPU_TIME, TIME
from bench.model import ExperimentResult, Target
from bench.paired import GATE, plan_pairs
from bench.plan import select
from bench.reports.progress import LineProgress
from bench.selftest import PROFILE, target
from bench.sources.native import NativeSource
from benchmarks.operating_characteristics import FORMAT

DEVICE = "runners.devices.cpu:Cpu"


def log_ratios(result: ExperimentResult, metric: str) -> list[float]:
    """log(head / base) of every launch; empty for an arm that failed."""
    base, head = (r.measurement(metric) for r in result.results)
    if base is None or head is None:
        return []
    return [log(h / b) for b, h in zip(launch_values(base), launch_values(head), strict=True)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, then write one pool a metric: POOL.json holds wall time, POOL.cpu.json CPU time."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("pool", type=Path)
    parser.add_argument("workloads", nargs="*", default=["selftest"])
    parser.add_argument("--launches", type=int, default=25)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    source = NativeSource(["suites"])
    found = source.discover(Target())
    policy = replace(GATE, launches=options.launches, budget_s=None)
    experiments = plan_pairs(
        found.benchmarks, select(found.benchmarks, options.workloads, PROFILE), target(0, "base"), target(0, "head"),
        policy=policy, seed=options.seed,
    )  # fmt: skip
    results, _ = run_experiments(
        experiments, device=DEVICE, path=source.path, progress=LineProgress(), finished=lambda index, result: None
    )
    for metric, path in ((TIME, options.pool), (CPU_TIME, options.pool.with_suffix(".cpu.json"))):
        pools = {r.experiment.name: ratios for r in results if (ratios := log_ratios(r, metric.name))}
        path.write_text(json.dumps({"format": FORMAT, "workloads": pools}), encoding="utf-8")
        sys.stdout.write(f"wrote {path}: {', '.join(f'{name} {len(p)}' for name, p in pools.items())}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
