"""What makes launches of the same code differ: one workload under several settings, side by side, beside hogs.

    python -m benchmarks.spread OUT.json [SELECTOR ...] [--launches 15] [--settings default,retain] [--hogs 3,2]

Every setting has the same code on both sides of a pair (A/A). Launches go round-robin over the settings,
so that all of them see the same minutes. Printed for each: the SD of log(head / base) of CPU and wall
time (and a robust one: 1.4826 · MAD), page faults a call, and the CPU time a call against the first
setting, since what cuts the spread may cost time. Selectors are of benchmarks/spread_suite, default two
networks, each in eager PyTorch and in ONNX Runtime.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from math import exp, log
from pathlib import Path
from statistics import mean, median, stdev

from bench.compare import launch_values, log_ratios
from bench.experiment import run_experiments
from bench.metrics import CPU_TIME, TIME
from bench.model import ExperimentResult, Target
from bench.paired import GATE, plan_pairs
from bench.plan import select
from bench.reports.progress import LineProgress
from bench.sources.native import NativeSource
from benchmarks.collect_launches import DEVICE, write_pools
from benchmarks.hogs import hogs

SITE = str(Path(__file__).with_name("spread_site"))

RETAIN = {"MALLOC_MMAP_THRESHOLD_": "33554432", "MALLOC_TRIM_THRESHOLD_": "1073741824"}
"""glibc gives freed memory back to the kernel and faults it in again at the next call; with these it keeps it."""

SETTINGS: dict[str, dict[str, str]] = {
    "default": {},
    "retain": RETAIN,
    "one-arena": {"MALLOC_ARENA_MAX": "1"},
    "huge-pages": {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1", "THP_MEM_ALLOC_ENABLE": "1"},
    "retain-huge-pages": {**RETAIN, "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1", "THP_MEM_ALLOC_ENABLE": "1"},
    "no-collector": {"SPREAD": "no-collector"},
    "fixed-layout": {"SPREAD": "fixed-layout"},
    "flush-denormals": {"SPREAD": "flush-denormals"},
    "alternating": {},
}

POLICIES: dict[str, dict[str, int]] = {"alternating": {"rounds": 40, "samples": 1}}
"""Settings that change how launches are made: both sides take turns sample by sample, not ten by ten."""

ROOT = Path(__file__).parents[1]

SUITE = str(Path(__file__).with_name("spread_suite"))


def target(name: str, side: str, ordinary: bool) -> Target:
    """One side of a pair under a setting."""
    variables = {**SETTINGS[name], "PYTHONPATH": f"{SITE}:{ROOT}"}
    if ordinary:
        variables["SPREAD"] = f"{variables.get('SPREAD', '')} ordinary".strip()
    return Target(label=f"{name} {side}", variables=variables)


def faults(result: ExperimentResult) -> float:
    """Minor page faults a call, over all rounds."""
    times = result.results[0].measurement(TIME.name)
    if times is None:
        return 0.0
    calls = 2 * times.loops * sum(len(row) for row in times.launches)
    return sum(r.minor_faults or 0 for launch in result.launches for r in launch.rounds) / calls


def robust(values: Sequence[float]) -> float:
    """1.4826 · MAD: the SD of normal values, whatever a few others do."""
    centre = median(values)
    return 1.4826 * median(abs(v - centre) for v in values)


def cpu_ns(result: ExperimentResult) -> float:
    """Geometric mean of both sides' CPU time a call."""
    both = [m for r in result.results if (m := r.measurement(CPU_TIME.name)) is not None]
    return exp(mean(log(v) for m in both for v in launch_values(m)))


def workload(result: ExperimentResult) -> str:
    """What was measured."""
    return result.experiment.arms[0].variant.name


def setting(result: ExperimentResult) -> str:
    """Under which setting."""
    return result.experiment.arms[0].target.label.rpartition(" ")[0]


def table(results: Sequence[ExperimentResult]) -> str:
    """A line a workload and setting."""
    first: dict[str, float] = {}
    lines = [f"{'workload':42} {'setting':18} {'n':>3}  CPU SD (robust)   wall SD (robust)  faults/call  CPU time"]
    for result in results:
        if any(r.failure is not None for r in result.results) or len(result.launches) < 3:
            continue
        cpu, wall = log_ratios(result, CPU_TIME.name), log_ratios(result, TIME.name)
        level = cpu_ns(result) / first.setdefault(workload(result), cpu_ns(result))
        lines.append(
            f"{workload(result):42} {setting(result):18} {len(cpu):3}  {stdev(cpu):6.2%} ({robust(cpu):6.2%})  "
            f"{stdev(wall):6.2%} ({robust(wall):6.2%})  {faults(result):10.1f}  {level:8.3f}×"
        )
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and write the log ratios."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("selectors", nargs="*", default=["nets"])
    parser.add_argument("--settings", default=",".join(SETTINGS))
    parser.add_argument("--launches", type=int, default=15)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--suite", default=SUITE)
    parser.add_argument("--hogs", default="3,2", help="how many take the processor, how many copy memory; 0,0: none")
    parser.add_argument("--priority", action="store_true", help="keep the real-time class where it is granted")
    options = parser.parse_args(arguments)
    source = NativeSource([options.suite])
    found = source.discover(Target())
    chosen = select(found.benchmarks, options.selectors, None)
    policy = replace(GATE, launches=options.launches, budget_s=None)
    experiments = [
        e
        for name in options.settings.split(",")
        for e in plan_pairs(
            found.benchmarks, chosen, *(target(name, side, not options.priority) for side in ("base", "head")),
            policy=replace(policy, **POLICIES.get(name, {})), seed=options.seed,
        )
    ]  # fmt: skip
    with hogs(*map(int, options.hogs.split(","))):
        results, _ = run_experiments(
            experiments, device=DEVICE, path=source.path, progress=LineProgress(), finished=lambda index, result: None
        )
    results = tuple(sorted(results, key=workload))
    sys.stdout.write(table(results))
    write_pools(options.out, {f"{workload(r)} {setting(r)}": r for r in results})
    return 0


if __name__ == "__main__":
    sys.exit(main())
