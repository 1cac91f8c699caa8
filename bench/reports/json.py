"""The same numbers for machines: `bench-report` version 1. Values are in the metric's unit per call."""

from __future__ import annotations

import json
from typing import Any

from bench.compare import RunComparison
from bench.model import Comparison, Estimate, ExperimentResult, Run
from bench.tradeoffs import VariantSummary, speedup, tradeoffs
from bench.wire import plain

SCHEMA = "bench-report"
VERSION = 1


class JsonReport:
    """See bench.ports.Report."""

    name = "json"

    def run(self, run: Run) -> str:
        """One run: every variant with every metric; raw samples are in `bench export`."""
        document = {
            "schema": SCHEMA,
            "version": VERSION,
            "run": {
                "key": run.key,
                "started_at": run.started_at.isoformat(),
                "finished_at": run.finished_at.isoformat(),
                "status": run.status.value,
                "profile": run.profile,
                "machine": {**plain(run.machine), "fingerprint": run.machine.fingerprint},
                "environment": {**plain(run.environment), "fingerprint": run.environment.fingerprint},
                "conditions": plain(run.conditions),
                "revision": plain(run.revision),
                "quarantine": list(run.quarantine),
                "reduced": len(run.reduced),
            },
            "experiments": [_experiment(result) for result in run.experiments],
            "problems": plain(run.problems),
        }
        return json.dumps(document, indent=2, ensure_ascii=False)

    def comparison(self, comparison: RunComparison, *, exit_code: int) -> str:
        """Two runs: every variant with its verdict and every metric."""
        document = {
            "schema": SCHEMA,
            "version": VERSION,
            "base": comparison.base,
            "head": comparison.head,
            "machine": comparison.machine,
            "run": comparison.run or None,
            "exit_code": exit_code,
            "notes": list(comparison.notes),
            "variants": [
                {
                    "name": arm.name,
                    "verdict": arm.verdict.value,
                    "reason": arm.reason,
                    "launches": arm.launches,
                    "basis": arm.basis,
                    "confirmed": arm.confirmed,
                    "rule": arm.rule,
                    "metrics": {c.metric.name: _comparison(c) for c in arm.comparisons},
                }
                for arm in comparison.arms
            ],
        }
        return json.dumps(document, indent=2, ensure_ascii=False)


def _experiment(result: ExperimentResult) -> dict[str, Any]:
    benchmark = result.experiment.benchmark
    return {
        "name": result.experiment.name,
        "suite": benchmark.suite,
        "benchmark": benchmark.name,
        "benchmark_version": benchmark.version,
        "title": benchmark.title,
        "launches": len(result.launches),
        "variants": [_variant(summary) for summary in tradeoffs(result)],
    }


def _variant(summary: VariantSummary) -> dict[str, Any]:
    metrics = {}
    for name, estimate in summary.estimates.items():
        metric = summary.metrics[name]
        entry: dict[str, Any] = {**_estimate(estimate), "unit": metric.unit, "better": metric.better.value}
        if comparison := summary.comparisons.get(name):
            entry["against_baseline"] = {
                "verdict": comparison.verdict.value,
                "kind": "ratio" if comparison.relative else "difference",
                **_estimate(comparison.change),
            }
        metrics[name] = entry
    for name, reason in summary.absent.items():
        metrics[name] = {"value": None, "low": None, "high": None, "n": 0, "note": reason}
    time = summary.comparisons.get("time")
    return {
        "name": summary.arm.variant.name,
        "params": summary.arm.variant.params,
        "baseline": summary.baseline,
        "failure": plain(summary.failure),
        "speedup": _estimate(speedup(time)) if time else None,
        "metrics": metrics,
        "notes": summary.notes,
    }


def _comparison(found: Comparison) -> dict[str, Any]:
    return {
        "verdict": found.verdict.value,
        "reason": found.reason,
        "unit": found.metric.unit,
        "better": found.metric.better.value,
        "kind": "ratio" if found.relative else "difference",
        "paired": found.paired,
        "base": _estimate(found.base),
        "head": _estimate(found.head),
        "change": _estimate(found.change),
    }


def _estimate(estimate: Estimate) -> dict[str, Any]:
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high, "n": estimate.n, "note": estimate.note}
