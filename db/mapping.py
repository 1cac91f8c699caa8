"""A Run as rows, and back. Pure: no connection here.

JSON columns hold the plain values of `bench.wire`, in their order, so that the run that comes back
is equal to the one that went in, names of variants included.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from math import isfinite
from typing import Any, NamedTuple

from bench.errors import StoreError
from bench.metrics import Metric
from bench.model import ArmResult, Estimate, ExperimentResult, Measurement, Run
from bench.points import is_pair, is_shown, point_at, series_fingerprint, target_text
from bench.wire import VERSION, canonical_sha, convert, plain
from db import codec

Values = dict[str, Any]
ESTIMATE = ("value", "low", "high", "n", "note")
"""Columns of an estimate."""

Estimated = tuple[float | None, float | None, float | None, int | None, str | None]
"""Those columns. Rows of which there are many are tuples: a dict each would double the time."""

Sampled = tuple[int, int, str, bytes]
"""Columns arm, position, codec, data."""


class Measured(NamedTuple):
    """One measurement; the fingerprints stand for ids."""

    arm: int
    position: int
    series_fp: str
    metric_fp: str
    loops: int
    at: datetime | None
    estimate: Estimated


Summarise = Callable[[ArmResult], Mapping[str, Estimate]]
"""Estimates of one arm by metric name (bench.compare does it; the store may not know statistics)."""


@dataclass(slots=True, kw_only=True)
class Rows:
    """Rows of one run. Shared rows are keyed by fingerprint; the others hold fingerprints where the
    tables want ids, under the same name with `_id` replaced by `_fp`.
    """

    run: Values
    machine: dict[str, Values]
    environment: dict[str, Values]
    benchmark: dict[str, Values] = field(default_factory=dict)
    metric: dict[str, Values] = field(default_factory=dict)
    series: dict[str, Values] = field(default_factory=dict)
    experiments: list[Values] = field(default_factory=list)
    arms: list[Values] = field(default_factory=list)
    measurements: list[Measured] = field(default_factory=list)
    samples: list[Sampled] = field(default_factory=list)
    unshown: set[int] = field(default_factory=set)  # positions of arms whose values are never a series' latest


def rows_of(run: Run, summarise: Summarise | None = None, branches: Collection[str] = ()) -> Rows:
    """Take a canonical run (bench.wire.canonical) apart. Raises StoreError where its parts disagree.

    `branches`: those whose runs are history (bench.points.point_at).
    """
    facts = plain(run.machine)
    tags = facts.pop("tags")
    machine_fp, environment_fp = run.machine.fingerprint, run.environment.fingerprint
    revision = run.revision
    rows = Rows(
        machine={machine_fp: {"label": run.machine.label, "facts": facts}},
        environment={environment_fp: {"facts": plain(run.environment)}},
        run={
            "run_key": run.key, "payload_sha": canonical_sha(run), "wire_version": VERSION,
            "stored_at": datetime.now(UTC), "started_at": run.started_at, "finished_at": run.finished_at,
            "status": run.status.value, "profile": run.profile, "source": run.source,
            "bench_version": run.bench_version, "machine_fp": machine_fp, "tags": tags,
            "environment_fp": environment_fp,
            "commit_id": revision.commit if revision else None, "dirty": revision.dirty if revision else None,
            "branch": revision.branch if revision else None,
            "committed_at": revision.committed_at if revision else None,
            "conditions": plain(run.conditions), "problems": plain(run.problems),
            "quarantine": list(run.quarantine) or None, "reduced_sha": canonical_sha(run) if run.reduced else None,
        },
    )  # fmt: skip
    for position, part in enumerate(run.experiments):
        experiment = part.experiment
        if tuple(result.arm for result in part.results) != experiment.arms:
            raise StoreError(
                f"run {run.key}: the results of {experiment.benchmark.name} do not match its arms; "
                "a run has one result for each arm, in their order."
            )
        paired, description = is_pair(experiment), plain(experiment.benchmark)
        benchmark_fp = _fingerprint(description)
        rows.benchmark[benchmark_fp] = {
            "name": experiment.benchmark.name, "version": experiment.benchmark.version,
            "suite": experiment.benchmark.suite, "description": description,
        }  # fmt: skip
        rows.experiments.append({
            "position": position, "benchmark_fp": benchmark_fp, "seed": str(experiment.seed),
            "policy": plain(experiment.policy), "launches": plain(part.launches), "paired": paired,
        })  # fmt: skip
        for result in part.results:
            at = point_at(run, result, paired=paired, branches=branches)
            _add_arm(rows, run, position, result, at, estimates_of(result, summarise))
    return rows


def _add_arm(
    rows: Rows, run: Run, position: int, result: ArmResult, at: datetime | None, estimates: Mapping[str, Estimated]
) -> None:
    benchmark, paired = run.experiments[position].experiment.benchmark, rows.experiments[position]["paired"]
    arm, number = result.arm, len(rows.arms)
    variant, target, machine_fp = arm.variant.name, target_text(arm.target), rows.run["machine_fp"]
    revision = arm.target.revision or run.revision
    rows.arms.append({
        "position": number, "experiment": position, "benchmark": arm.variant.benchmark, "variant": variant,
        "params": plain(arm.variant.params), "is_baseline": arm.variant.baseline, "target": plain(arm.target),
        "commit_id": revision.commit if revision else None, "items": result.items, "notes": plain(result.notes),
        "absent": plain(result.absent) or None,
        "failure_kind": result.failure.kind.value if result.failure else None,
        "failure": plain(result.failure) if result.failure else None,
    })  # fmt: skip
    reduced = {(r.arm, r.metric): r.samples for r in run.reduced}
    if not is_shown(run, result, paired=paired):
        rows.unshown.add(number)
    for place, measurement in enumerate(result.measurements):
        metric = measurement.metric
        metric_fp, values = metric_row(metric)
        rows.metric[metric_fp] = values
        series_fp = series_fingerprint(benchmark.version, variant, target, metric.name, metric.unit, machine_fp)
        rows.series[series_fp] = {
            "benchmark_version": benchmark.version, "variant": variant, "target": target, "metric": metric.name,
            "unit": metric.unit, "benchmark": arm.variant.benchmark, "suite": benchmark.suite, "machine_fp": machine_fp,
        }  # fmt: skip
        estimate = estimates.get(metric.name, NO_ESTIMATE)
        rows.measurements.append(Measured(number, place, series_fp, metric_fp, measurement.loops, at, estimate))
        rows.samples.append((number, place, *_encoded(measurement, reduced.get((number, metric.name)))))


def _encoded(measurement: Measurement, reduced: tuple[int, ...] | None) -> tuple[str, bytes]:
    if reduced is None:
        return codec.encode(measurement.launches)
    return codec.encode_reduced(measurement.launches, reduced)


NO_ESTIMATE: Estimated = (None, None, None, None, None)


def estimates_of(result: ArmResult, summarise: Summarise | None) -> dict[str, Estimated]:
    """Estimate columns by metric name. What cannot be summarised has none: it must not stop a run from being kept."""
    if summarise is None:
        return {}
    try:
        found = summarise(result)
    except (ArithmeticError, LookupError, ValueError):
        return {}
    return {
        name: (e.value, _finite(e.low), _finite(e.high), e.n, e.note) for name, e in found.items() if isfinite(e.value)
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) else None


def estimate_from(row: Mapping[str, Any]) -> Estimate | None:
    """The estimate in columns value, low, high, n, note; null where none was kept."""
    if row["value"] is None:
        return None
    return Estimate(value=row["value"], low=row["low"], high=row["high"], n=row["n"], note=row["note"])


METRIC = ("name", "unit", "better", "kind", "summary", "help")


@lru_cache(maxsize=4096)
def metric_row(metric: Metric) -> tuple[str, Values]:
    """Fingerprint and columns."""
    values: Values = plain(metric)
    return _fingerprint(values), values


def metric_from(row: Mapping[str, Any]) -> Metric:
    """A metric out of its columns, prefixed with `metric_`."""
    return convert({name: row[f"metric_{name}"] for name in METRIC}, Metric, "a stored metric")


def run_from(
    head: Mapping[str, Any],
    experiments: Iterable[Mapping[str, Any]],
    arms: Iterable[Mapping[str, Any]],
    measurements: Iterable[Mapping[str, Any]],
) -> Run:
    """Put a run together. All but `head` in the order of their positions; columns as db.store selects them."""
    parts = [_part(row) for row in experiments]
    results: list[Values] = []
    reduced: list[Values] = []
    for row in arms:
        results.append(_add_result(parts[row["experiment"]], row))
    for row in measurements:
        results[row["arm"]]["measurements"].append(_measured(row))
        counts = codec.counts(row["codec"], row["data"])
        if counts is not None:
            reduced.append({"arm": row["arm"], "metric": row["name"], "samples": counts})
    revision = None
    if head["commit_id"] is not None:
        revision = {
            "commit": head["commit_id"], "dirty": head["dirty"], "branch": head["branch"],
            "committed_at": head["committed_at"],
        }  # fmt: skip
    document = {
        "key": head["run_key"], "started_at": head["started_at"], "finished_at": head["finished_at"],
        "status": head["status"], "profile": head["profile"],
        "machine": {**head["machine_facts"], "tags": head["tags"]},
        "environment": head["environment_facts"], "experiments": parts, "conditions": head["conditions"],
        "revision": revision, "problems": head["problems"], "source": head["source"],
        "bench_version": head["bench_version"], "quarantine": head["quarantine"] or [],
        "reduced": reduced,
    }  # fmt: skip
    return convert(document, Run, f"the stored run {head['run_key']}")


def experiment_from(
    experiment: Mapping[str, Any], arms: Iterable[Mapping[str, Any]], measurements: Iterable[Mapping[str, Any]]
) -> ExperimentResult:
    """Put one experiment together, rows as for `run_from`."""
    part = _part(experiment)
    results = {row["position"]: _add_result(part, row) for row in arms}
    for row in measurements:
        results[row["arm"]]["measurements"].append(_measured(row))
    return convert(part, ExperimentResult, f"a stored experiment of {experiment['description']['name']}")


def _part(row: Mapping[str, Any]) -> Values:
    experiment = {"benchmark": row["description"], "arms": [], "policy": row["policy"], "seed": int(row["seed"])}
    return {"experiment": experiment, "results": [], "launches": row["launches"]}


def _add_result(part: Values, row: Mapping[str, Any]) -> Values:
    variant = {"benchmark": row["benchmark"], "params": row["params"], "baseline": row["is_baseline"]}
    arm = {"variant": variant, "target": row["target"]}
    result = {
        "arm": arm, "measurements": [], "failure": row["failure"], "items": row["items"], "notes": row["notes"],
        "absent": row["absent"] or {},
    }  # fmt: skip
    part["experiment"]["arms"].append(arm)
    part["results"].append(result)
    return result


def _measured(row: Mapping[str, Any]) -> Values:
    metric = {name: row[name] for name in METRIC}
    return {"metric": metric, "launches": codec.decode(row["codec"], row["data"]), "loops": row["loops"]}


def _fingerprint(value: object) -> str:
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
