"""The experiments of one suite module: they rehearse together, and share the parents of each launch."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from bench.measure.callgrind import HASH_SEED, SLOWER
from bench.measure.parents import Parents
from bench.measure.session import Session
from bench.metrics import PEAK_MEMORY
from bench.model import Benchmark, Experiment

if TYPE_CHECKING:
    from bench.experiment import ExperimentRunner
    from bench.ports import Progress


class ModuleRunner:
    """`runners` of benchmarks that one import provides, by their place in the run."""

    def __init__(self, runners: dict[int, ExperimentRunner], session: Session, path: Sequence[str]) -> None:
        self._runners = runners
        self._session = session
        self._path = path
        first = next(iter(runners.values())).experiment
        self._random = random.Random(f"parents {first.seed}")
        self._kept: Parents | None = None
        self._shared = False

    @property
    def undecided(self) -> list[int]:
        """Which experiments want another launch."""
        return [index for index, runner in self._runners.items() if runner.undecided]

    @property
    def decided(self) -> list[int]:
        """The others."""
        return [index for index, runner in self._runners.items() if not runner.undecided]

    @property
    def holds_parents(self) -> bool:
        """Whether the parents of the rehearsal wait for the first launch."""
        return self._kept is not None

    def rehearse(self, progress: Progress) -> None:
        """Rehearse all, at every target in forks of one process where that pays.

        A rehearsal leaves no trace in the parents: they are those of the first launch too.
        """
        progress.rehearsing(next(iter(self._runners)))
        parents = self._open(self._runners)
        try:
            for index, runner in self._runners.items():
                progress.rehearsing(index)
                runner.rehearse(parents)
                if runner.experiment.policy.instructions:
                    progress.message(f"counting the instructions of {runner.experiment.name}")
                    runner.count_instructions(self._under_valgrind)
        except BaseException:
            parents.close()
            raise
        self._shared = parents.shared
        if parents.obstacle:
            suite = self._benchmark.suite
            progress.message(f"{suite} is imported anew for every variant and launch: {parents.obstacle}")
        if self._shared and self.undecided:
            self._kept = parents
        else:
            parents.close()

    def launch(self) -> Iterator[tuple[int, float]]:
        """One launch of each undecided experiment: its index, and the seconds with its share of the import."""
        waiting = self.undecided
        if not self._shared:
            for index in waiting:
                runner = self._runners[index]
                yield index, runner.launch(self._parents(runner.draw_hash_seed()))
            return
        parents, self._kept = self._kept, None
        imported_s = 0.0
        if parents is None:
            parents = self._open(waiting)
            imported_s = parents.seconds
        try:
            for index in waiting:
                yield index, self._runners[index].launch(parents, imported_s / len(waiting))
        finally:
            parents.close()

    @property
    def _benchmark(self) -> Benchmark:
        return next(iter(self._runners.values())).experiment.benchmark

    def _parents(self, hash_seed: int) -> Parents:
        return Parents(self._session, self._benchmark, self._path, hash_seed)

    def _under_valgrind(self, under: Sequence[str]) -> Parents:
        return Parents(self._session, self._benchmark, self._path, HASH_SEED, under=under, slower=SLOWER)

    def _open(self, indices: Iterable[int]) -> Parents:
        targets = {repr(target): target for index in indices for target in self._runners[index].targets}
        parents = self._parents(self._random.randrange(2**32))
        parents.open(targets.values())
        return parents


def modules(experiments: Sequence[Experiment]) -> list[list[int]]:
    """Indices of experiments by the module that a worker imports for them, in the order of their first."""
    found: dict[tuple[object, ...], list[int]] = {}
    for index, experiment in enumerate(experiments):
        benchmark = experiment.benchmark
        module = (benchmark.loader, benchmark.source.partition(":")[0], benchmark.suite)
        kind = (benchmark.threads, benchmark.primary == PEAK_MEMORY.name)
        found.setdefault((*module, *kind), []).append(index)
    return list(found.values())
