"""One row per raw sample: as CSV, and as Parquet where pyarrow is installed."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from bench.errors import HostError

if TYPE_CHECKING:
    from bench.model import Run

COLUMNS = (
    "run", "started_at", "commit", "machine", "environment", "benchmark", "version", "variant", "target", "metric",
    "unit", "better", "loops", "launch", "sample", "value",
)  # fmt: skip

INTEGERS = ("loops", "launch", "sample")
CHUNK = 100_000
"""Rows of one group in a Parquet file: so many are in memory at once."""


def rows(runs: Sequence[Run]) -> Iterator[tuple[Any, ...]]:
    """Cells in the order of COLUMNS; `value` is what was read for `loops` calls, in `unit`."""
    for run in runs:
        for experiment, result in run.arms():
            revision = result.arm.target.revision or run.revision
            benchmark = experiment.experiment.benchmark
            head = (
                run.key, run.started_at, revision.commit if revision else "", run.machine.fingerprint,
                run.environment.fingerprint, benchmark.name, benchmark.version, result.arm.variant.name,
                result.arm.target.label,
            )  # fmt: skip
            for measurement in result.measurements:
                metric = measurement.metric
                row = (*head, metric.name, metric.unit, metric.better.value, measurement.loops)
                for launch, samples in enumerate(measurement.launches):
                    for index, value in enumerate(samples):
                        yield (*row, launch, index, value)


def left_out(runs: Sequence[Run]) -> list[str]:
    """What a table of samples does not hold."""
    empty = sum(not result.measurements for run in runs for _, result in run.arms())
    return [f"{empty} arms have no samples and so no rows; `bench show` says why"] if empty else []


def to_csv(runs: Sequence[Run]) -> str:
    """A header and the rows; moments in ISO 8601."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for run, started_at, *rest in rows(runs):
        writer.writerow((run, started_at.isoformat(), *rest))
    return text.getvalue()


def to_parquet(runs: Sequence[Run]) -> bytes:
    """The same columns with types: `value` is a double, moments are UTC in µs. Raises HostError without pyarrow."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise HostError("Parquet needs pyarrow: pip install 'inference-bench[parquet]'.") from None
    kinds = {name: pyarrow.string() for name in COLUMNS} | {name: pyarrow.int64() for name in INTEGERS}
    kinds |= {"started_at": pyarrow.timestamp("us", tz="UTC"), "value": pyarrow.float64()}
    schema = pyarrow.schema(list(kinds.items()))
    sink = io.BytesIO()
    with parquet.ParquetWriter(sink, schema, compression="zstd") as writer:
        for chunk in _chunks(rows(runs)):
            columns = [list(column) for column in zip(*chunk, strict=True)]
            columns[-1] = [float(value) for value in columns[-1]]
            writer.write_table(pyarrow.Table.from_arrays(
                [pyarrow.array(column, kind) for column, kind in zip(columns, kinds.values(), strict=True)],
                schema=schema,
            ))  # fmt: skip
    return sink.getvalue()


def _chunks(found: Iterator[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    chunk: list[tuple[Any, ...]] = []
    for row in found:
        chunk.append(row)
        if len(chunk) == CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
