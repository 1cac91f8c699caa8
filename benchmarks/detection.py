"""What the change detection finds and how often it errs, on marked histories or on made-up ones.

    python -m benchmarks.detection                       made-up histories with known steps
    python -m benchmarks.detection --histories FILE      real ones, marked by a person

Made-up: 300 points of Student t noise (3 degrees of freedom), first-order memory of 0.1, at most one
step. Shares with 95 % Wilson intervals. Marked histories are JSON, indices from 0:

    {"series": [{"values": [1.02, …], "change_points": [40], "ignore": [[90, 120]]}]}

`change_points` are the first values of new levels; a change found inside an `ignore` stretch
(first, last), where two people could disagree, is not counted. A whole-series change is right within 5
points, each mark once. Point by point (bench.watch.Watch): within 10 points, after 30 of warm-up; the
delay counts points from the first changed one.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import log1p
from pathlib import Path

import numpy as np

from bench.detect import NEAR, SENSITIVITIES, Sensitivity, change_points
from bench.errors import BenchError, WireError
from bench.stats.noise import Values
from bench.stats.proportions import wilson
from bench.watch import Watch

MARGIN = 5
WARM_UP = 30
LENGTH = 300
RATIOS = (0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
"""Steps in standard deviations of the noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """One history with its marks."""

    values: Values
    change_points: tuple[int, ...] = ()
    ignore: tuple[tuple[int, int], ...] = ()

    def doubtful(self, at: int, margin: int) -> bool:
        """Whether two people could disagree there."""
        return any(first - margin <= at <= last + margin for first, last in self.ignore)


@dataclass(slots=True)
class Score:
    """Right, wrong and missed changes over many series."""

    right: int = 0
    wrong: int = 0
    missed: int = 0
    points: int = 0
    delays: list[int] = field(default_factory=list)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        total = 2 * self.right + self.wrong + self.missed
        return 2 * self.right / total if total else 1.0

    def line(self, name: str) -> str:
        """One row of the table."""
        precision, recall = (self.right / max(1, self.right + x) for x in (self.wrong, self.missed))
        delay = f"{np.median(self.delays):5.0f} points" if self.delays else ""
        false = 1000 * self.wrong / max(1, self.points)
        return f"{name:34} {precision:6.3f} {recall:6.3f} {self.f1:6.3f} {false:8.2f} {delay}"


def read(path: Path) -> list[Marked]:
    """Marked histories of one file. Raises WireError where it holds something else."""
    try:
        return [
            Marked(
                values=np.asarray(s["values"], dtype=np.float64),
                change_points=tuple(int(i) for i in s["change_points"]),
                ignore=tuple((int(a), int(b)) for a, b in s.get("ignore", ())),
            )
            for s in json.loads(path.read_text(encoding="utf-8"))["series"]
        ]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise WireError(
            f"{path} holds no marked histories ({type(error).__name__}: {error}); see benchmarks/detection.py"
        ) from None


def matched(marks: Iterable[int], found: Iterable[int], margin: int) -> dict[int, int]:
    """Mark → found index, one-to-one, nearest pairs first."""
    pairs: dict[int, int] = {}
    for _, mark, at in sorted((abs(m - f), m, f) for m in marks for f in found if abs(m - f) <= margin):
        if mark not in pairs and at not in pairs.values():
            pairs[mark] = at
    return pairs


def whole(series: Iterable[Marked], sensitivity: Sensitivity) -> Score:
    """Each series at once."""
    score = Score()
    for one in series:
        found = change_points(one.values, sensitivity)
        pairs = matched(one.change_points, found, MARGIN)
        extra = set(found) - set(pairs.values())
        score.right += len(pairs)
        score.missed += len(one.change_points) - len(pairs)
        score.wrong += sum(not one.doubtful(at, MARGIN) for at in extra)
        score.points += len(one.values)
    return score


def point_by_point(series: Iterable[Marked], sensitivity: Sensitivity) -> Score:
    """Each series as a service sees it: an alarm is the first sight of a change."""
    score = Score()
    for one in series:
        watch, alarms = Watch(sensitivity), list[tuple[int, int]]()
        for when, value in enumerate(one.values):
            for at in watch.update(float(value)):
                if when >= WARM_UP and all(abs(at - seen) > NEAR for _, seen in alarms):
                    alarms.append((when, at))
        marks = [m for m in one.change_points if m >= WARM_UP]
        pairs = matched(marks, [at for when, at in alarms], NEAR)
        first = {at: when for when, at in alarms}
        extra = [(when, at) for when, at in alarms if at not in pairs.values()]
        score.delays += [first[at] - mark for mark, at in pairs.items()]
        score.right += len(pairs)
        score.missed += len(marks) - len(pairs)
        score.wrong += sum(at > WARM_UP and not one.doubtful(at, NEAR) and not one.doubtful(w, NEAR) for w, at in extra)
        score.points += max(0, len(one.values) - WARM_UP)
    return score


def made(ratio: float, rng: np.random.Generator, noise: float = 0.02) -> Marked:
    """One made-up history; `ratio` 0 has no step."""
    e = rng.standard_t(3, LENGTH)
    x = e.copy()
    x[1:] += 0.1 * e[:-1]
    at = int(rng.integers(40, LENGTH - 40))
    step = np.where(np.arange(LENGTH) >= at, log1p(ratio * noise), 0.0) * (1 if rng.random() < 0.5 else -1)
    return Marked(values=100 * np.exp(noise / 1.4 * x + step), change_points=(at,) if ratio else ())


def speed(n: int) -> float:
    """Series of n points per second of CPU time, with two steps each."""
    rng = np.random.default_rng(1)
    values = np.exp(0.01 * rng.standard_t(3, n)) * np.repeat([1.0, 1.05, 0.98], [n // 3, n // 3, n - 2 * (n // 3)])
    change_points(values)
    done, start = 0, time.process_time()
    while time.process_time() - start < 0.5:
        change_points(values)
        done += 1
    return done / (time.process_time() - start)


def made_up(count: int, seed: int) -> str:
    """Recall by size of the step, and false alarms."""
    rng = np.random.default_rng(seed)
    lines = ["made-up histories: recall by step in standard deviations, false alarms per 1000 quiet points"]
    for sensitivity in SENSITIVITIES:
        cells = []
        for ratio in RATIOS:
            score = whole([made(ratio, rng) for _ in range(count)], sensitivity)
            share = wilson(score.right, count)
            cells.append(f"{ratio:g}: {share.value:.2f} [{share.low:.2f}, {share.high:.2f}]")
        quiet = whole([made(0, rng) for _ in range(count)], sensitivity)
        lines.append(f"{sensitivity.name:8} {'  '.join(cells)}  false {1000 * quiet.wrong / quiet.points:.2f}")
    return "\n".join(lines)


def marked(path: Path) -> str:
    """Scores on the histories of one file."""
    series = read(path)
    marks = sum(len(s.change_points) for s in series)
    lines = [f"{len(series)} histories, {sum(len(s.values) for s in series)} points, {marks} marks",
             f"{'':34} {'prec.':>6} {'recall':>6} {'F1':>6} {'false/1000':>10} median delay"]  # fmt: skip
    for sensitivity in SENSITIVITIES:
        lines.append(whole(series, sensitivity).line(f"{sensitivity.name}, whole series"))
        lines.append(point_by_point(series, sensitivity).line(f"{sensitivity.name}, point by point"))
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures; a BenchError becomes one sentence and its exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--histories", type=Path, help="marked histories; else made-up ones")
    parser.add_argument("--count", type=int, default=200, help="made-up histories per cell")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    try:
        text = marked(options.histories) if options.histories else made_up(options.count, options.seed)
    except BenchError as error:
        sys.stderr.write(f"error: {error}\n")
        return int(error.exit_code)
    rates = ", ".join(f"{speed(n):,.0f} of {n} points" for n in (100, 1000))
    sys.stdout.write(f"{text}\nseries per CPU second: {rates}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
