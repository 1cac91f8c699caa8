"""Where the time went between the two sides of a change: the frames of a kept profile. Pure."""

from __future__ import annotations

from bench.metrics import TIME
from bench.profiles import FrameDifference, ProfileDifference
from bench.reports.format import digits, quantity, ratio
from bench.reports.profile import change_of
from dashboard.markup import Cell, Column, Row
from dashboard.wording import plural


def frames_table(found: ProfileDifference) -> tuple[list[Column], list[Row]]:
    """One line a frame that differs, the largest difference first."""
    columns = [
        Column(title="frame"),
        Column(title="self, base", unit="% of base's call", number=True, help="time in the frame itself"),
        Column(title="self, head", unit="% of base's call", number=True, help="time in the frame itself"),
        Column(title="difference", unit="95 % interval", number=True),
        Column(title="calls", unit="base → head", number=True, help="how often one call of the work calls it"),
    ]
    return columns, [_row(frame) for frame in found.frames]


def summary(found: ProfileDifference) -> str:
    """How large the whole difference is, with and without the profiler."""
    quiet = plural(found.quiet, "frame")
    return (
        f"{found.variant} by {found.engine}, {found.repetitions} repetitions: "
        f"a call takes {quantity(found.real_ns, TIME)} of CPU time in base, head / base {ratio(found.real, 3)}; "
        f"under the profiler {ratio(found.total, 3)}. {quiet} more did not differ by more than the repetitions do."
    )


def _row(frame: FrameDifference) -> Row:
    worse = frame.change.value > 0
    change = Cell(text=("▼ " if worse else "▲ ") + change_of(frame.change), tone="bad" if worse else "good")
    return Row(
        cells=(
            Cell(text=frame.name), _share(frame.base.value), _share(frame.head.value), change,
            Cell(text=f"{digits(frame.base_count)} → {digits(frame.head_count)}"),
        )
    )  # fmt: skip


def _share(share: float) -> Cell:
    return Cell(text=f"{share * 100:.1f}" if share else "—")
