"""Retention: raw samples of old runs are reduced to one value a launch, where nothing rests on them.

What an estimate is derived from (the lower quartile of each launch) stays, with the count of the
samples; what is lost is their spread inside a launch. Estimates and states are not touched. These
keep their raw samples for ever: experiments that asked for a difference, whose verdicts are derived
from samples; calls that were timed alone, which tails are derived from; points at a change point and
their neighbours; and whatever has one value a launch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from bench.metrics import Summary
from bench.model import ArmResult, Measurement, Number, Run
from bench.points import is_pair
from bench.wire import canonical, canonical_sha
from db import codec
from db import tables as t
from db.engine import reading, writing
from db.loading import load

NEIGHBOURS = 10
"""Points on each side of a change point that keep their samples."""

Launches = tuple[tuple[Number, ...], ...]
Reduce = Callable[[ArmResult, Measurement], Launches | None]
"""What is left of the launches of a measurement: one value of each, or null where something else rests on them.
The store may not know statistics."""

Place = tuple[int, int]
"""Of a measurement in its run: arm, position."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """What `prune` did, or would do. Bytes are those of the samples, not of the file."""

    runs: int  # looked at: measured before the moment, and not before this
    reduced: int  # measurements
    bytes_before: int
    bytes_after: int


def prune(engine: sa.Engine, before: datetime, reduce: Reduce, *, dry_run: bool = False) -> Pruned:
    """Reduce the samples of runs measured before a moment. One transaction a run; safe to repeat and to interrupt."""
    run = t.run.c
    wanted = sa.select(run.id, run.run_key).where(run.started_at < before, run.reduced_sha.is_(None)).order_by(run.id)
    with reading(engine) as connection:
        runs = [(row.id, row.run_key) for row in connection.execute(wanted)]
        kept = _kept(connection)
    done = []
    for run_id, key in runs:
        with reading(engine) if dry_run else writing(engine) as connection:
            found = _reduced(connection, run_id, load(connection, key), kept.get(run_id, set()), reduce)
            sizes = _sizes(connection, run_id, found)
            if not dry_run:
                _write(connection, run_id, key, found)
        done.append((len(found), sizes, sum(len(data) for _, data in found.values())))
    return Pruned(
        runs=len(done), reduced=sum(count for count, _, _ in done), bytes_before=sum(size for _, size, _ in done),
        bytes_after=sum(size for _, _, size in done),
    )  # fmt: skip


def _kept(connection: sa.Connection) -> dict[int, set[Place]]:
    """Points at change points and their neighbours, by run. Superseded change points count too: they were shown."""
    measured, change = t.measurement.c, t.change_point.c
    kept: dict[int, set[Place]] = {}
    for series_id, at in connection.execute(sa.select(change.series_id, change.at).distinct()).all():
        points = sa.select(measured.run_id, measured.arm, measured.position).where(measured.series_id == series_id)
        for side in (
            points.where(measured.at < at).order_by(measured.at.desc()),
            points.where(measured.at >= at).order_by(measured.at),
        ):
            for run_id, arm, position in connection.execute(side.limit(NEIGHBOURS)):
                kept.setdefault(run_id, set()).add((arm, position))
    return kept


def _reduced(
    connection: sa.Connection, run_id: int, run: Run, kept: Collection[Place], reduce: Reduce
) -> dict[Place, tuple[str, bytes]]:
    """New codec and data of the measurements that may be reduced; one may not whose estimate has to come yet."""
    measured = t.measurement.c
    estimated = sa.select(measured.arm, measured.position).where(measured.run_id == run_id, measured.value.is_not(None))
    places = {(arm, position) for arm, position in connection.execute(estimated)} - set(kept)
    found = {}
    for arm, (part, result) in enumerate(run.arms()):
        if is_pair(part.experiment):
            continue
        for position, measurement in enumerate(result.measurements):
            if (arm, position) not in places or not _has_spread(measurement):
                continue
            left = reduce(result, measurement)
            if left is not None:
                found[arm, position] = codec.encode_reduced(left, [len(samples) for samples in measurement.launches])
    return found


def _has_spread(measurement: Measurement) -> bool:
    return measurement.metric.summary is Summary.QUARTILE and any(len(samples) > 1 for samples in measurement.launches)


def _sizes(connection: sa.Connection, run_id: int, places: Collection[Place]) -> int:
    sample = t.sample.c
    query = sa.select(sample.arm, sample.position, sa.func.length(sample.data)).where(sample.run_id == run_id)
    return sum(size for arm, position, size in connection.execute(query) if (arm, position) in places)


def _write(connection: sa.Connection, run_id: int, key: str, found: Mapping[Place, tuple[str, bytes]]) -> None:
    sample = t.sample.c
    if found:
        connection.execute(
            sa.update(t.sample)
            .where(
                sample.run_id == run_id, sample.arm == sa.bindparam("of_arm"),
                sample.position == sa.bindparam("of_position"),
            )
            .values(codec=sa.bindparam("name"), data=sa.bindparam("blob")),
            [{"of_arm": arm, "of_position": position, "name": name, "blob": data}
             for (arm, position), (name, data) in found.items()],
        )  # fmt: skip
    sha = canonical_sha(canonical(load(connection, key)))
    connection.execute(sa.update(t.run).where(t.run.c.id == run_id).values(reduced_sha=sha))
