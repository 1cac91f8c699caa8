"""What the page of regressions says: which are shown, their lines, and what is known of one. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo

from bench.history import Answer, ChangePoint, Direction, Event, Regression, State
from bench.metrics import Kind
from bench.night import Story
from bench.proving import question
from bench.reports.format import interval, title
from bench.reports.night import effect, proof, where
from dashboard.markup import Cell, Column, Row, link
from dashboard.wording import ago, clock, plural, short

ANY = "*"
"""The choice that leaves nothing out."""

LIVING = "living"
BAD = "bad"
STATES = {
    LIVING: "open or acknowledged", **{s.value: s.value for s in State}, ANY: "any state",
}  # fmt: skip
DIRECTIONS = {
    BAD: "worse or suspicious", Direction.WORSE.value: "worse", Direction.SUSPICIOUS.value: "suspiciously better",
    Direction.BETTER.value: "better", ANY: "any direction",
}  # fmt: skip
_OF_STATE = {LIVING: (State.OPEN, State.ACKNOWLEDGED), ANY: tuple(State)}
_OF_DIRECTION = {BAD: (Direction.WORSE, Direction.SUSPICIOUS), ANY: tuple(Direction)}

MARKS = {
    Direction.WORSE: ("▼", "bad"), Direction.SUSPICIOUS: ("⚠", "warn"), Direction.BETTER: ("▲", "good")
}  # fmt: skip
"""Mark and tone of each direction; the words stand beside them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which regressions a reader asked for; ANY leaves a matter open."""

    state: str = LIVING
    direction: str = BAD
    cause: str = ANY
    suite: str = ANY
    machine: str = ANY  # a fingerprint

    @property
    def usual(self) -> bool:
        """Whether this is what `bench regressions list` shows."""
        return self == Wanted()


def matching(stories: Sequence[Story], wanted: Wanted) -> list[Story]:
    """Those that were asked for, in the order given."""
    states = _OF_STATE.get(wanted.state) or (State(wanted.state),)
    directions = _OF_DIRECTION.get(wanted.direction) or (Direction(wanted.direction),)
    return [
        s for s in stories
        if s.regression.state in states and s.regression.direction in directions
        and wanted.cause in (ANY, s.regression.cause.value)
        and (wanted.suite == ANY or wanted.suite in suites_of(s))
        and (wanted.machine == ANY or wanted.machine in machines_of(s))
    ]  # fmt: skip


def suites_of(story: Story) -> list[str]:
    """Suites that it moved, the weightiest first."""
    return list(dict.fromkeys(c.series.suite for c in story.changes))


def machines_of(story: Story) -> dict[str, str]:
    """Label by fingerprint of every machine that saw it."""
    return {c.series.machine_fingerprint: c.series.machine_label for c in story.changes}


def headline(shown: Sequence[Story], wanted: Wanted) -> tuple[str, str]:
    """The one-line state and its tone."""
    if not shown:
        return ("No regression is open", "good") if wanted.usual else ("No regression matches", "quiet")
    count = plural(len(shown), "cause")
    if not wanted.usual:
        return f"{count} of changes {'matches' if len(shown) == 1 else 'match'}", "quiet"
    return f"{count} of regressions {'is' if len(shown) == 1 else 'are'} open", "bad"


def regressions_table(shown: Sequence[Story], now: datetime, **filters: str) -> tuple[list[Column], list[Row]]:
    """One line each; its name leads to everything that is known of it, with the same filters to come back to."""
    columns = [
        Column(title="what"), Column(title="effect", number=True, help="95 % interval below"), Column(title="cause"),
        Column(title="where", help="last good commit .. first changed commit"), Column(title="evidence"),
        Column(title="owner"),
    ]  # fmt: skip
    return columns, [_line(story, now, filters) for story in shown]


def _line(story: Story, now: datetime, filters: dict[str, str]) -> Row:
    found, worst = story.regression, story.worst
    what = Cell(
        text="", html=link("regressions", found.title, regression=found.key, **filters),
        sub=f"{short(found.key)}, {standing(found)}, found {ago(found.opened_at, now)}",
    )  # fmt: skip
    owner = Cell(text=found.owner or "nobody", tone="" if found.owner else "quiet")
    if worst is None:
        return Row(cells=(what, Cell(text="—"), Cell(text=found.cause.value), Cell(text="—"), Cell(text="—"), owner))
    return Row(
        cells=(
            what, effect_cell(worst, found.direction), Cell(text=found.cause.value, sub=_why(found, worst)),
            Cell(text=where(worst), sub=f"{worst.first_changed.at:%Y-%m-%d}" if worst.first_changed.commit else ""),
            Cell(text=proof(worst), sub=f"found by {worst.detector}"), owner,
        )
    )  # fmt: skip


def _why(found: Regression, worst: ChangePoint) -> str:
    if found.culprit:
        return f"culprit {found.culprit[:12]}"
    return ", ".join(f"{d.name} {d.before or 'absent'} → {d.after or 'absent'}" for d in worst.environment[:2])


def effect_cell(change: ChangePoint, way: Direction) -> Cell:
    """Mark, word and size; the interval, or why there is none, below."""
    size, _, rest = effect(change).partition(" (")
    mark, tone = MARKS[way]
    word = "suspicious" if way is Direction.SUSPICIOUS else way.value
    return Cell(text=f"{mark} {word}\u00a0{size}", sub=rest.removesuffix(")"), tone=tone)


def standing(found: Regression) -> str:
    """`open`, `expected until 2027-01-31 (pays for the cache)`."""
    until = f" until {found.expires_at:%Y-%m-%d}" if found.state is State.EXPECTED and found.expires_at else ""
    return f"{found.state.value}{until}{f' ({found.reason})' if found.reason else ''}"


def facts(found: Regression, worst: ChangePoint | None, now: datetime) -> list[str]:
    """What stands under the title of one."""
    parts = [f"{found.direction.value}, {standing(found)}", f"cause {found.cause.value}"]
    if worst is not None:
        parts += [where(worst), proof(worst)]
    parts += [f"culprit {found.culprit}"] if found.culprit else []
    return [*parts, f"owner {found.owner or 'nobody'}", f"found {ago(found.opened_at, now)}", short(found.key)]


def commands(found: Regression, worst: ChangePoint) -> list[tuple[str, str]]:
    """(what for, command) that repeats the finding: the proof's own command, else the one a proof would use."""
    steps = []
    asked = question(worst, worst.detected_at)
    compare = worst.proof.command if worst.proof else ""
    if not compare and asked is not None:
        compare = f"bench compare {shlex.join([asked.base, asked.head, asked.selector])}"
    if compare:
        steps.append(("Measure both sides again, launched in pairs.", compare))
    good, bad = worst.last_good.commit, worst.first_changed.commit
    if good and bad and good != bad:
        metric = worst.series.metric
        words = [good, bad, worst.series.variant, "--regression", found.key[:8]]
        words += [] if metric.kind is Kind.TIME else ["--metric", metric.name]
        steps.append(("Find the commit between them, and note it here.", f"bench bisect {shlex.join(words)}"))
    return steps


def changes_table(changes: Sequence[ChangePoint]) -> tuple[list[Column], list[Row]]:
    """One line a change point, which leads to its series."""
    columns = [
        Column(title="series"), Column(title="metric"), Column(title="effect", number=True, help="95 % interval below"),
        Column(title="before → after"), Column(title="where"), Column(title="machine"), Column(title="evidence"),
    ]  # fmt: skip
    rows = []
    for change in changes:
        series, metric = change.series, change.series.metric
        gone = "superseded: " if change.superseded_by is not None else ""
        rows.append(
            Row(
                cells=(
                    Cell(text="", html=link("trends", series.variant, series=series.fingerprint), sub=series.target),
                    Cell(text=title(metric)),
                    effect_cell(change, change.direction),
                    Cell(text=interval(change.before, metric), sub=f"→ {interval(change.after, metric)}"),
                    Cell(text=where(change)), Cell(text=series.machine_label, sub=short(series.machine_fingerprint)),
                    Cell(text=f"{gone}{proof(change)}", sub=f"found by {change.detector}"),
                )
            )
        )  # fmt: skip
    return columns, rows


def differences_table(changes: Sequence[ChangePoint]) -> tuple[list[Column], list[Row]]:
    """What the environments before and after do not share; none where they are the same or unknown."""
    columns = [Column(title="what"), Column(title="before"), Column(title="after"), Column(title="change points")]
    counts: dict[tuple[str, str, str], int] = {}
    for change in changes:
        for d in change.environment:
            place = (d.name, d.before or "absent", d.after or "absent")
            counts[place] = counts.get(place, 0) + 1
    return columns, [
        Row(cells=(*(Cell(text=text) for text in place), Cell(text=f"{count} of {len(changes)}")))
        for place, count in counts.items()
    ]


_ANSWERS = {
    Answer.CONFIRMED: "bad", Answer.REFUTED: "good", Answer.INCONCLUSIVE: "warn", Answer.FAILED: "warn"
}  # fmt: skip


def proofs_table(changes: Sequence[ChangePoint], zone: tzinfo) -> tuple[list[Column], list[Row]]:
    """One line a paired experiment."""
    columns = [
        Column(title="answer"), Column(title="series"), Column(title="what it said"), Column(title="when"),
        Column(title="run"),
    ]  # fmt: skip
    rows = []
    for change in changes:
        made = change.proof
        if made is None:
            continue
        verdict = made.verdict.value if made.verdict else "no verdict"
        run = Cell(text="", html=link("tradeoffs", short(made.run_key), run=made.run_key)) if made.run_key else None
        rows.append(
            Row(
                cells=(
                    Cell(text=proof(change), tone=_ANSWERS[made.answer]),
                    Cell(text=change.series.variant, sub=title(change.series.metric)),
                    Cell(text=made.message or verdict, sub=verdict if made.message else ""),
                    Cell(text=clock(made.at, zone)), run or Cell(text="none"),
                )
            )
        )  # fmt: skip
    return columns, rows


def events_table(events: Sequence[Event], zone: tzinfo) -> tuple[list[Column], list[Row]]:
    """One line an event, in order."""
    columns = [Column(title="event"), Column(title="when"), Column(title="who"), Column(title="text")]
    rows = []
    for event in events:
        until = f"until {event.expires_at:%Y-%m-%d}" if event.expires_at else ""
        more = plural(len(event.changes), "change point") if event.changes else ""
        rows.append(
            Row(
                cells=(
                    Cell(text=f"{event.number}. {event.action.value}", sub=", ".join(filter(None, (until, more)))),
                    Cell(text=clock(event.at, zone)), Cell(text=event.who), Cell(text=event.text),
                )
            )
        )  # fmt: skip
    return columns, rows
