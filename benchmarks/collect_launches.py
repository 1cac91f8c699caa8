"""Record launches of the same code on both sides, for benchmarks.operating_characteristics.

    python -m benchmarks.collect_launches POOL.json [--launches 25] [--percent 0] [WORKLOAD ...]
    python -m benchmarks.collect_launches POOL.json --suites benchmarks/inference_suite --hogs inference

Workloads are those of suites/selftest.py, or of another folder whose benchmarks heed
BENCH_SELFTEST_PERCENT. The machine is measured as it is found: whatever else runs on it belongs to
what is recorded; --hogs adds neighbours that take processor and memory in bursts. With --percent head
has that much more work, so that the estimate can be held to the truth. Nothing is stored in a database.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from bench.compare import log_ratios
from bench.experiment import run_experiments
from bench.metrics import CPU_TIME, TIME
from bench.model import ExperimentResult, Target
from bench.paired import GATE, plan_pairs
from bench.plan import select
from bench.reports.progress import LineProgress
from bench.selftest import PROFILE, target
from bench.sources.native import NativeSource
from benchmarks.hogs import hogs
from benchmarks.operating_characteristics import FORMAT

DEVICE = "runners.devices.cpu:Cpu"


def write_pools(path: Path, results: Mapping[str, ExperimentResult]) -> None:
    """Wall time into `path`, CPU time beside it, by name of the workload; arms that failed give nothing."""
    for metric, place in ((TIME, path), (CPU_TIME, path.with_suffix(".cpu.json"))):
        pools = {name: ratios for name, r in results.items() if (ratios := log_ratios(r, metric.name))}
        place.write_text(json.dumps({"format": FORMAT, "workloads": pools}), encoding="utf-8")
        sys.stdout.write(f"wrote {place}: {', '.join(f'{name} {len(p)}' for name, p in pools.items())}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, then write one pool a metric: POOL.json holds wall time, POOL.cpu.json CPU time."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("pool", type=Path)
    parser.add_argument("workloads", nargs="*", default=["selftest"])
    parser.add_argument("--launches", type=int, default=25)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--suites", default="suites")
    parser.add_argument("--percent", type=int, default=0)
    parser.add_argument("--hogs", action="store_true")
    options = parser.parse_args(arguments)
    source = NativeSource([options.suites])
    found = source.discover(Target())
    policy = replace(GATE, launches=options.launches, budget_s=None)
    chosen = select(found.benchmarks, options.workloads, PROFILE)
    experiments = plan_pairs(
        found.benchmarks, chosen, target(0, "base"), target(options.percent, "head"),
        policy=policy, seed=options.seed,
    )  # fmt: skip
    with hogs() if options.hogs else nullcontext():
        results, _ = run_experiments(
            experiments, device=DEVICE, path=source.path, progress=LineProgress(), finished=lambda index, result: None
        )
    write_pools(options.pool, {result.experiment.arms[0].variant.name: result for result in results})
    return 0


if __name__ == "__main__":
    sys.exit(main())
