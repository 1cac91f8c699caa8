"""What the first page says: the night in one line, the days before it, and the health of machines. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta, tzinfo

from bench.history import Answer, ChangePoint, Direction, Regression, Series, State
from bench.model import Estimate
from bench.night import Night as Told
from bench.night import Story, weight
from bench.ports import RunInfo
from bench.reports.format import title
from bench.reports.night import headline as told
from bench.selftest import SOURCE
from dashboard.markup import Cell, Column, Night, Row, link
from dashboard.regression_tables import effect_cell
from dashboard.tables import tone_of
from dashboard.wording import ago, plural, short

DAYS = 14
"""Days in the strip."""

FRESH = timedelta(days=7)
"""A canary that moved within this is a warning; before, it is history."""

IMPORTED = "imported"
"""Profile of a run that another tool measured (bench.formats)."""

_MARKS = {"worse": ("▼", "bad"), "failed": ("✕", "bad"), "good": ("●", "good"), "none": ("·", "quiet")}
LEGEND = {
    "good": "measured, no regression found", "worse": "a regression was found", "failed": "something failed",
    "none": "nothing was measured",
}  # fmt: skip


def measured(info: RunInfo) -> bool:
    """Whether bench measured it itself, not to test itself."""
    return info.profile != IMPORTED and info.source != SOURCE


def measured_since(infos: Iterable[RunInfo], since: datetime) -> list[RunInfo]:
    """Runs of our own that ended after a moment: neither imports nor self-tests."""
    return [i for i in infos if i.finished_at > since and measured(i)]


def living(stories: Iterable[Story]) -> list[Story]:
    """What is open or acknowledged and no improvement, the weightiest first as given."""
    return [
        s for s in stories
        if s.regression.state in (State.OPEN, State.ACKNOWLEDGED) and s.regression.direction is not Direction.BETTER
    ]  # fmt: skip


def verdict(night: Told, tonight: Sequence[RunInfo], open_: Sequence[Story], unseen: int) -> tuple[str, str]:
    """The night in one line, and its tone. Nothing is called good that was not measured and looked at."""
    new = {s.regression.key for s in (*night.worse, *night.suspicious)}
    older = sum(1 for s in open_ if s.regression.key not in new)
    still = f"; {plural(older, 'older cause')} still open" if older else ""
    if not night.silent:
        return f"Last 24 hours: {told(night)}{still}", "bad" if night.worse else "warn" if night.suspicious else "good"
    if not tonight:
        return f"Nothing was measured in the last 24 hours{still}", "warn"
    broken = sum(1 for info in tonight if tone_of(info) == "bad")
    if broken:
        return (
            f"No regression was found in the last 24 hours, but something failed in {plural(broken, 'run')}{still}",
            "bad",
        )
    if unseen:
        return f"Measured in the last 24 hours, not yet looked at by the detector{still}", "warn"
    return f"No regression was found in the last 24 hours{still}", "warn" if older else "good"


def days(
    infos: Iterable[RunInfo], regressions: Iterable[Regression], today: date, zone: tzinfo, count: int = DAYS
) -> list[tuple[date, str]]:
    """(day, `worse`, `failed`, `good` or `none`) of the last days in the reader's zone, the oldest first."""
    runs: dict[date, set[str]] = {}
    for info in infos:
        if measured(info):
            runs.setdefault(info.finished_at.astimezone(zone).date(), set()).add(tone_of(info))
    worse = {
        r.opened_at.astimezone(zone).date() for r in regressions
        if r.direction is Direction.WORSE and r.state is not State.INVALID
    }  # fmt: skip
    found = []
    for back in range(count - 1, -1, -1):
        day = today - timedelta(days=back)
        tones = runs.get(day, set())
        found.append((day, "worse" if day in worse else "failed" if "bad" in tones else "good" if tones else "none"))
    return found


def nights(found: Sequence[tuple[date, str]]) -> list[Night]:
    """The same for `dashboard.markup.strip`."""
    return [
        Night(mark=_MARKS[kind][0], tone=_MARKS[kind][1], day=f"{day:%a} {day.day}", words=f"{day}: {LEGEND[kind]}")
        for day, kind in found
    ]


def marks() -> list[tuple[str, str, str]]:
    """(mark, tone, what it means) of every kind of day."""
    return [(*_MARKS[kind], words) for kind, words in LEGEND.items()]


def last_good(found: Sequence[tuple[date, str]]) -> str:
    """How long ago the last day was on which something was measured and nothing regressed or failed."""
    good = [place for place, (_, kind) in enumerate(reversed(found)) if kind == "good"]
    if not good:
        return f"no good day among the last {len(found)}"
    return {0: "last good day: today", 1: "last good day: yesterday"}.get(
        good[0], f"last good day: {found[-1 - good[0]][0]}, {good[0]} days ago"
    )


def newest_move(series: Sequence[Series], changes: Iterable[ChangePoint]) -> dict[str, ChangePoint | None]:
    """The newest change of the canary by machine, the weightiest of several; refuted ones are none."""
    found: dict[str, ChangePoint | None] = {s.machine_fingerprint: None for s in series}
    for change in changes:
        if change.proof is not None and change.proof.answer is Answer.REFUTED:
            continue
        machine = change.series.machine_fingerprint
        before = found.get(machine)
        if before is None or _order(change) > _order(before):
            found[machine] = change
    return found


def _order(change: ChangePoint) -> tuple[datetime, float]:
    return change.first_changed.measured_at, weight(change)


def health_table(
    infos: Sequence[RunInfo], canary: Mapping[str, ChangePoint | None], alarms: Mapping[str, Estimate | None],
    now: datetime,
) -> tuple[list[Column], list[Row]]:  # fmt: skip
    """One row a machine of our own, the one seen last first."""
    columns = [
        Column(title="machine"), Column(title="last run"),
        Column(title="canary", help="fixed work beside every run: where it moves, the machine moved"),
        Column(title="false alarms of the gate", help="the same code called slower, in its newest self-tests"),
    ]  # fmt: skip
    rows = []
    own = [i for i in infos if i.profile != IMPORTED]
    for fingerprint in dict.fromkeys(i.machine_fingerprint for i in own):
        newest = next(i for i in own if i.machine_fingerprint == fingerprint)
        head = Cell(text=newest.machine_label, sub=short(fingerprint))
        rows.append(
            Row(
                cells=(
                    head,
                    Cell(text=ago(newest.finished_at, now)),
                    _canary_cell(fingerprint, canary, now),
                    _alarm_cell(alarms.get(fingerprint)),
                )
            )
        )
    return columns, rows


def _canary_cell(machine: str, canary: Mapping[str, ChangePoint | None], now: datetime) -> Cell:
    if machine not in canary:
        return Cell(text="never measured", sub="bench run measures it", tone="quiet")
    change = canary[machine]
    if change is None:
        return Cell(text="● steady", sub="it has not moved", tone="good")
    at = change.first_changed.measured_at
    seen = effect_cell(change, change.direction)
    work = change.series.variant.partition("[")[2].removesuffix("]") or change.series.variant
    what = f"{work}, {title(change.series.metric)}, {ago(at, now)}"
    if now - at > FRESH:
        return Cell(text="● steady since", sub=f"{at:%Y-%m-%d}: {seen.text}, {what}", tone="good")
    return Cell(
        text="", html=link("trends", f"moved: {seen.text}", series=change.series.fingerprint), sub=what, tone="warn"
    )


def _alarm_cell(share: Estimate | None) -> Cell:
    if share is None or share.high is None:
        return Cell(text="not measured", sub="bench selftest measures it", tone="quiet")
    alarms = round(share.value * share.n)
    return Cell(text=f"{alarms} of {share.n}", sub=f"95 %: at most {share.high:.1%}")
