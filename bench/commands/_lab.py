"""Changes built, and one benchmark measured at two of them: what a bisection asks for, wired."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import cached_property
from typing import TYPE_CHECKING

from bench.commands._measuring import recording
from bench.commands._shared import note

if TYPE_CHECKING:
    from bench.commands._measuring import Recorder
    from bench.config import Config
    from bench.errors import BuildError
    from bench.experiment import Enough
    from bench.model import Benchmark, ExperimentResult, Policy, Scalar, Target
    from bench.ports import Store, Suites
    from bench.targets import SideSpec
    from bench.targets.installer import Installer


class TargetLab:
    """See bench.suspects.Lab. Everything measured becomes one stored run.

    sides: what a change's name asks for; requirements: what all sides need. Both are set before the first question.
    """

    def __init__(self, config: Config, store: Store, stack: ExitStack, *, profile: str, python: str | None) -> None:
        self.sides: Callable[[str], SideSpec]
        self.requirements: Sequence[str] = ()
        self._config = config
        self._store = store
        self._stack = stack
        self._profile = profile
        self._python = python
        self._targets: dict[str, Target] = {}
        self._broken: dict[str, BuildError] = {}
        self._recorder: Recorder | None = None
        self._results: list[ExperimentResult] = []

    def ready(self, benchmark: Benchmark, params: dict[str, Scalar], source: Suites, policy: Policy) -> None:
        """Say what is measured."""
        from bench.model import Variant

        self._benchmark = benchmark
        self._variant = Variant(benchmark=benchmark.name, params=params)
        self._source = source
        self._policy = policy

    @cached_property
    def installer(self) -> Installer:
        """Pip for the interpreter of all sides."""
        from bench.targets.cache import Cache
        from bench.targets.installer import Installer
        from bench.targets.interpreter import read_interpreter
        from bench.targets.resolve import BUILD_TIMEOUT_S

        log = Cache(self._config.cache).root / "failed.log"
        interpreter = read_interpreter(self._python)
        return Installer(interpreter=interpreter, isolation=True, timeout_s=BUILD_TIMEOUT_S, log=log)

    @cached_property
    def machine(self) -> str:
        """Fingerprint of this machine: what was measured on another one answers nothing here."""
        from runners.machine import read_machine

        return read_machine(self._config.tags).fingerprint

    def target(self, name: str) -> Target:
        """Build a change, once. Raises BuildError."""
        from bench.errors import BuildError
        from bench.targets import resolve

        if name in self._broken:
            raise self._broken[name]
        if name not in self._targets:
            try:
                self._targets[name] = resolve(
                    self.sides(name), project=self._config.root, cache=self._config.cache, python=self._python,
                    requirements=self.requirements, say=self.say,
                )  # fmt: skip
            except BuildError as error:
                self._broken[name] = error
                raise
        return self._targets[name]

    def compare(self, base: str, head: str, *, launches: int, enough: Enough | None, patient: bool) -> ExperimentResult:
        """See bench.suspects.Lab."""
        import secrets
        from dataclasses import replace

        from bench.experiment import run_experiments
        from bench.model import Arm, Experiment
        from bench.plan import sides

        targets = sides(self.target(base), self.target(head), self._benchmark)
        arms = tuple(Arm(variant=self._variant, target=target) for target in targets)
        budget = None if patient else self._policy.budget_s
        policy = replace(self._policy, launches=launches, budget_s=budget)
        if launches == 1:  # exact metrics: the time is not looked at
            policy = replace(policy, rounds=1, samples=1, warm_up_calls=1, warm_up_cap_ns=1)
        experiment = Experiment(benchmark=self._benchmark, arms=arms, policy=policy, seed=secrets.randbelow(2**31))
        recorder, index = self._record(), len(self._results)
        (result,), interrupted = run_experiments(
            [experiment], path=self._source.path, progress=recorder.progress, enough=enough,
            finished=lambda _, found: recorder.keep(index, found),
        )  # fmt: skip
        self._results.append(result)
        if interrupted:
            raise KeyboardInterrupt
        return result

    def identical(self, one: str, other: str) -> bool:
        """See bench.suspects.Lab."""
        from bench.targets import identical

        return identical(self.target(one), self.target(other))

    def withdrawn(self, name: str) -> bool:
        """Whether a release has no wheel; commits are built."""
        from bench.errors import BuildError

        requirements = self.sides(name).requirements
        try:
            return not all(self.installer.has_wheel(pin) for pin in requirements)
        except BuildError:
            return False  # building it will say why

    def say(self, text: str) -> None:
        """One sentence for a person, beside a bar that may be there."""
        if self._recorder is None:
            note(text)
        else:
            self._recorder.progress.message(text)

    def store(self, *, interrupted: bool) -> None:
        """Keep what this call measured, if it did."""
        if self._recorder is not None and self._results:
            run = self._recorder.store(self._results, interrupted=interrupted)
            note(f"stored as {run.key[:8]}")

    def _record(self) -> Recorder:
        if self._recorder is None:
            revision = next((t.revision for t in reversed(self._targets.values()) if t.revision), None)
            self._recorder = self._stack.enter_context(
                recording(self._config, self._store, profile=self._profile, source=self._source.name, revision=revision)
            )
        return self._recorder
