"""Progress with a time estimate, on standard error: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence

from bench.reports.format import duration
from bench.stats.boundaries import LOOKS

QUIET_S = 10.0
"""Least time between two lines in a log."""


class Estimator:
    """How long the rest takes: the mean launch of each experiment so far times what is to come."""

    def __init__(self, names: Sequence[str], launches: Sequence[int], budgets: Sequence[float | None]) -> None:
        self.names = list(names)
        self.left = list(launches)
        self.total = sum(launches)
        self.bounded = any(b is not None for b in budgets)
        self._budgets = list(budgets)
        self._seconds: list[list[float]] = [[] for _ in names]

    def launch_done(self, experiment: int, seconds: float) -> None:
        """Learn from one launch."""
        self.left[experiment] = max(0, self.left[experiment] - 1)
        self._seconds[experiment].append(seconds)

    def experiment_done(self, experiment: int) -> None:
        """No more of it."""
        self.left[experiment] = 0

    @property
    def done(self) -> int:
        """Launches behind us, skipped ones included."""
        return self.total - sum(self.left)

    def remaining_s(self) -> float | None:
        """Seconds; null before anything is known."""
        known = [s for seconds in self._seconds for s in seconds]
        if not known:
            return None
        mean = sum(known) / len(known)
        total = 0.0
        for left, seconds, budget in zip(self.left, self._seconds, self._budgets, strict=True):
            rest = left * (sum(seconds) / len(seconds) if seconds else mean)
            if budget is not None and left:  # it ends no experiment before its first look
                mine = rest / left
                rest = min(rest, max(0.0, budget - sum(seconds), (LOOKS[0] - len(seconds)) * mine))
            total += rest
        return total

    def words(self) -> str:
        """`about 12 s left`; `at most` where experiments end as soon as they are decided."""
        left = self.remaining_s()
        return "" if left is None else f"{'at most' if self.bounded else 'about'} {duration(left)} left"


class LineProgress:
    """See bench.ports.Progress."""

    def __init__(
        self,
        write: Callable[[str], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
        every: float = QUIET_S,
    ) -> None:
        self._write = write or (lambda text: print(text, file=sys.stderr, flush=True))  # noqa: T201
        self._clock = clock
        self._every = every
        self._last = clock()
        self._estimator = Estimator((), (), ())
        self._named: set[str] = set()

    def plan(self, experiments: Sequence[str], launches: Sequence[int], budgets: Sequence[float | None]) -> None:
        """Say what is coming."""
        self._estimator = Estimator(experiments, launches, budgets)
        noun = "experiment" if len(experiments) == 1 else "experiments"
        self.message(f"{len(experiments)} {noun}, at most {sum(launches)} launches")

    def rehearsing(self, experiment: int) -> None:
        """Artifacts may be built now, which takes long once."""
        name = self._estimator.names[experiment]
        if name not in self._named:
            self._named.add(name)
            self.message(f"checking {name} (builds what is not cached)")

    def launch_done(self, experiment: int, seconds: float) -> None:
        """A line when the last is long ago."""
        self._estimator.launch_done(experiment, seconds)
        self._maybe()

    def experiment_done(self, experiment: int) -> None:
        """Update the estimate."""
        self._estimator.experiment_done(experiment)

    def message(self, text: str) -> None:
        """One line."""
        self._last = self._clock()
        self._write(f"bench: {text}")

    def _maybe(self) -> None:
        if self._clock() - self._last >= self._every:
            self.message(f"{self._estimator.done} of {self._estimator.total} launches, {self._estimator.words()}")


class BarProgress:
    """A bar that rewrites its line; for a terminal only."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self._bar = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("launches"),
            TimeElapsedColumn(), TextColumn("{task.fields[left]}"), console=Console(stderr=True), transient=True,
        )  # fmt: skip
        self._estimator = Estimator((), (), ())

    def plan(self, experiments: Sequence[str], launches: Sequence[int], budgets: Sequence[float | None]) -> None:
        """Show the bar."""
        self._estimator = Estimator(experiments, launches, budgets)
        for ended in self._bar.task_ids:
            self._bar.remove_task(ended)
        self._task = self._bar.add_task("planning", total=sum(launches), left="")
        self._bar.start()

    def rehearsing(self, experiment: int) -> None:
        """Name what is set up."""
        self._bar.update(self._task, description=f"checking {self._estimator.names[experiment]}")

    def launch_done(self, experiment: int, seconds: float) -> None:
        """One step."""
        self._estimator.launch_done(experiment, seconds)
        self._show(f"measuring {self._estimator.names[experiment]}")

    def experiment_done(self, experiment: int) -> None:
        """Fill the experiment's part; close the bar after the last."""
        self._estimator.experiment_done(experiment)
        self._show("measured")
        if not sum(self._estimator.left):
            self._bar.stop()

    def message(self, text: str) -> None:
        """A line above the bar."""
        self._bar.console.print(f"bench: {text}", highlight=False)

    def close(self) -> None:
        """Give the terminal back, also after an interruption."""
        self._bar.stop()

    def _show(self, description: str) -> None:
        words = self._estimator.words()
        self._bar.update(self._task, completed=self._estimator.done, description=description, left=words)
