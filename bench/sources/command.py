"""Command lines as benchmarks: whole programs, side by side."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence

from bench.errors import UsageError
from bench.model import Benchmark, Target
from bench.ports import Discovery

LOADER = "bench.loaders.command"

QUOTED = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"|\\.", re.DOTALL)

SHELLS = re.compile(r"[|&;<>`]|\$[({]|^\s*\w+=")
"""What a shell would act on outside of quotes: pipes, lists, redirections, substitutions, a variable in front."""

VERSION = "1"
"""The workload is the command line, which names the variant: its identity needs nothing else."""


class CommandSource:
    """One benchmark `command` with an axis of command lines; the first of several is the baseline.

    Programs are not pinned to a core and may use all of them, as when their user starts them.
    """

    name = "command"

    def __init__(self, commands: Sequence[str], *, timeout_s: float = 120.0) -> None:
        """Raises UsageError for a command line that is empty, repeated, cannot be split or needs a shell."""
        for command in commands:
            try:
                words = shlex.split(command)
            except ValueError as error:
                raise UsageError(f"--command {command!r} cannot be split into words: {error}.") from None
            if not words:
                raise UsageError("--command needs a program to run.")
            if found := SHELLS.search(QUOTED.sub("", command)):
                raise UsageError(
                    f"--command {command!r} has {found[0].strip()!r}, which only a shell understands, and none is "
                    f"started; quote it, or write --command {shlex.join(['sh', '-c', command])!r}."
                )
        if len(set(commands)) != len(commands):
            raise UsageError("--command names the same command line twice; name it once.")
        self._commands = tuple(commands)
        self._timeout_s = timeout_s
        self.path: tuple[str, ...] = ()

    def discover(self, target: Target, patterns: Sequence[str] = ()) -> Discovery:
        """See bench.ports.Source; nothing is started."""
        benchmark = Benchmark(
            name="command", version=VERSION, suite="command", source="", loader=LOADER,
            title="Start a program and wait for its end",
            axes={"command": list(self._commands)}, timeout_s=self._timeout_s, threads=_cores(),
            baseline={"command": self._commands[0]} if len(self._commands) > 1 else {},
        )  # fmt: skip
        return Discovery(benchmarks=(benchmark,) if self._commands else ())


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
