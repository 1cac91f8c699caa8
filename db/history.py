"""SqlHistory: bench.ports.History on SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import sqlalchemy as sa

from bench.errors import MissingError, StaleError
from bench.history import (
    LEASE,
    Action,
    ChangePoint,
    Event,
    KeptProfile,
    Point,
    Proof,
    ProofRequest,
    Regression,
    RequestState,
    Series,
    State,
)
from bench.model import Environment
from bench.triage import as_of, fold, merged
from bench.wire import convert, plain
from db import history_queries as queries
from db import tables as t
from db.engine import chunks, reading, upsert, writing
from db.queries import environment


def _now() -> datetime:
    return datetime.now(UTC)


class SqlHistory:
    """Keeps what detection and triage know; see bench.ports.History. One transaction a call."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    def series(self, *, changed: bool = False, machine: str | None = None) -> Sequence[Series]:
        """See bench.ports.History."""
        with reading(self._engine) as connection:
            found = queries.series(connection, changed=changed, machine=machine)
        return sorted(found.values(), key=lambda s: (s.variant, s.metric.name, s.fingerprint))

    def points(self, fingerprints: Sequence[str], *, limit: int | None = None) -> dict[str, list[Point]]:
        """See bench.ports.History."""
        with reading(self._engine) as connection:
            return queries.points(connection, fingerprints, limit)

    def environment(self, fingerprint: str) -> Environment:
        """See bench.ports.History."""
        with reading(self._engine) as connection:
            return environment(connection, fingerprint)

    def changes(
        self, *, series: Sequence[str] | None = None, regression: str | None = None, superseded: bool = False
    ) -> Sequence[ChangePoint]:
        """See bench.ports.History."""
        with reading(self._engine) as connection:
            return queries.changes(connection, series=series, regression=regression, superseded=superseded)

    def record(self, changes: Sequence[ChangePoint], *, seen: Mapping[str, str]) -> None:
        """See bench.ports.History."""
        with writing(self._engine) as connection:
            _keep(connection, changes)
            _mark(connection, seen)

    def regressions(self, *, states: Sequence[State] = ()) -> Sequence[Regression]:
        """See bench.ports.History."""
        with reading(self._engine) as connection:
            return queries.regressions(connection, now=_now(), states=states)

    def regression(self, ref: str) -> Regression:
        """See bench.ports.History."""
        with reading(self._engine) as connection:
            return queries.regression(connection, ref, now=_now())

    def events(self, key: str) -> Sequence[Event]:
        """See bench.ports.History."""
        event = t.regression_event.c
        query = sa.select(event.facts).where(event.regression == key).order_by(event.number)
        with reading(self._engine) as connection:
            found = [convert(facts, Event, "a stored event") for facts in connection.scalars(query)]
        if not found:
            raise queries.no_regression(key)
        return found

    def open_regression(self, regression: Regression, event: Event) -> None:
        """See bench.ports.History."""
        opened = replace(regression, events=0)
        now = fold(opened, [event])
        with writing(self._engine) as connection:
            values = {
                "key": now.key, "opened_at": now.opened_at, "state": now.state.value, "opened": plain(opened),
                "facts": plain(now),
            }  # fmt: skip
            if not _add(connection, t.regression, values):
                raise StaleError(f"regression {now.key[:8]} is open already; read it and append to it.")
            _append(connection, event)

    def append(self, event: Event) -> Regression:
        """See bench.ports.History."""
        regression = t.regression.c
        with writing(self._engine) as connection:
            facts = connection.scalar(
                sa.select(regression.facts).where(regression.key == event.regression).with_for_update()
            )
            if facts is None:
                raise queries.no_regression(event.regression)
            now = fold(convert(facts, Regression, "a stored regression"), [event])
            connection.execute(
                sa.update(t.regression)
                .where(regression.key == event.regression)
                .values(state=now.state.value, facts=plain(now))
            )
            _append(connection, event)
        return as_of(now, _now())

    def request(self, request: ProofRequest) -> bool:
        """See bench.ports.History."""
        values = plain(request) | {"made_at": request.made_at}
        with writing(self._engine) as connection:
            return _add(connection, t.proof_request, values)

    def requests(self, *, states: Sequence[RequestState] = ()) -> Sequence[ProofRequest]:
        """See bench.ports.History."""
        query = queries.REQUESTS
        if states:
            query = query.where(t.proof_request.c.state.in_([state.value for state in states]))
        with reading(self._engine) as connection:
            return [queries.request_from(row) for row in connection.execute(query)]

    def take(self, machine: str) -> ProofRequest | None:
        """See bench.ports.History."""
        request, now = t.proof_request.c, _now()
        forgotten = sa.and_(request.state == RequestState.TAKEN.value, request.taken_at < now - LEASE)
        query = (
            queries.REQUESTS.where(request.machine_fingerprint == machine)
            .where(sa.or_(request.state == RequestState.QUEUED.value, forgotten))
            .limit(1)
            .with_for_update(skip_locked=True)
        )
        with writing(self._engine) as connection:
            row = connection.execute(query).first()
            if row is None:
                return None
            _close(connection, row.key, RequestState.TAKEN, taken_at=now)
            return replace(queries.request_from(row), state=RequestState.TAKEN, taken_at=now)

    def finish(self, request: str, proof: Proof) -> None:
        """See bench.ports.History."""
        with writing(self._engine) as connection:
            change = connection.scalar(sa.select(t.proof_request.c.change).where(t.proof_request.c.key == request))
            if change is None:
                raise MissingError(f"no proof was asked for as {request}.")
            _close(connection, request, RequestState.DONE)
            _amend(connection, [change], {"proof": plain(proof)})

    def keep_profile(self, profile: KeptProfile) -> None:
        """See bench.ports.History."""
        values = {"made_at": profile.made_at, "document": profile.document}
        with writing(self._engine) as connection:
            insert = upsert(connection, t.profile).values(change=profile.change, engine=profile.engine, **values)
            connection.execute(insert.on_conflict_do_update(index_elements=["change", "engine"], set_=values))

    def profiles(self, changes: Sequence[str]) -> Sequence[KeptProfile]:
        """See bench.ports.History."""
        found: list[KeptProfile] = []
        with reading(self._engine) as connection:
            for some in chunks(list(changes)):
                query = sa.select(t.profile).where(t.profile.c.change.in_(some))
                found += [KeptProfile(**row._asdict()) for row in connection.execute(query)]
        return sorted(found, key=lambda p: p.made_at, reverse=True)

    def claim_notice(self, key: str) -> bool:
        """See bench.ports.History."""
        with writing(self._engine) as connection:
            return _add(connection, t.notice, {"key": key, "claimed_at": _now()})

    def release_notice(self, key: str) -> None:
        """See bench.ports.History."""
        with writing(self._engine) as connection:
            connection.execute(sa.delete(t.notice).where(t.notice.c.key == key))


def _add(connection: sa.Connection, table: sa.Table, values: Mapping[str, object]) -> bool:
    """Insert a row; false where its key is there already."""
    insert = upsert(connection, table).values(values).on_conflict_do_nothing(index_elements=["key"])
    return connection.execute(insert.returning(table.c.key)).first() is not None


def _keep(connection: sa.Connection, changes: Sequence[ChangePoint]) -> None:
    if not changes:
        return
    known = {change.key: change for change in queries.changes_by_key(connection, [c.key for c in changes], lock=True)}
    ids = queries.series_ids(connection, [change.series.fingerprint for change in changes])
    rows = {}
    for change in changes:
        now = merged(known[change.key], change) if change.key in known else change
        if change.series.fingerprint not in ids:
            raise MissingError(f"the series {change.series.fingerprint} has no point; store its run first.")
        facts = plain(now)
        del facts["series"]
        known[change.key] = now
        rows[change.key] = {
            "key": now.key, "series_id": ids[now.series.fingerprint], "at": now.first_changed.at,
            "last_good": now.last_good.run_key, "first_changed": now.first_changed.run_key,
            "regression": now.regression, "superseded_by": now.superseded_by, "facts": facts,
        }  # fmt: skip
    insert = upsert(connection, t.change_point)
    names = [column.name for column in t.change_point.columns if column.name != "key"]
    connection.execute(
        insert.on_conflict_do_update(index_elements=["key"], set_={name: insert.excluded[name] for name in names}),
        [rows[key] for key in sorted(rows)],
    )


def _mark(connection: sa.Connection, seen: Mapping[str, str]) -> None:
    """A series whose newest point is another one has changed meanwhile: its mark stays where it is."""
    newest = queries.newest(connection, list(seen))
    marks = [
        {"series_id": row.id, "points": row.points}
        for fingerprint, row in sorted(newest.items())
        if row.run_key == seen[fingerprint]
    ]
    if not marks:
        return
    insert = upsert(connection, t.detector_mark)
    connection.execute(
        insert.on_conflict_do_update(index_elements=["series_id"], set_={"points": insert.excluded.points}), marks
    )


def _append(connection: sa.Connection, event: Event) -> None:
    values = {"regression": event.regression, "number": event.number, "facts": plain(event)}
    connection.execute(sa.insert(t.regression_event), values)
    if event.action in (Action.OPENED, Action.GREW):
        _amend(connection, event.changes, {"regression": event.regression})


def _amend(connection: sa.Connection, keys: Sequence[str], values: Mapping[str, object]) -> None:
    """New values of fields of change points; those that are not there are passed over."""
    change = t.change_point.c
    columns = {name: value for name, value in values.items() if name in change}
    for some in chunks(keys):
        query = sa.select(change.key, change.facts).where(change.key.in_(some)).order_by(change.key).with_for_update()
        for key, facts in connection.execute(query).all():
            connection.execute(
                sa.update(t.change_point).where(change.key == key).values(facts={**facts, **values}, **columns)
            )


def _close(connection: sa.Connection, key: str, state: RequestState, **values: object) -> None:
    request = t.proof_request
    connection.execute(sa.update(request).where(request.c.key == key).values(state=state.value, **values))
