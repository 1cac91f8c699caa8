"""Run an installer or a probe: quiet, with a deadline, and nothing of it left behind."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from bench.errors import HostError

LAST_LINES = 6
"""Lines of output that an error quotes."""

LINE_LENGTH = 160

NOISE = re.compile(
    r"\[notice\]|note: This|hint: See above|[╰│×|^]|\[end of output\]|\d+ \||error: subprocess-exited-with-error"
    r"|ERROR: Failed (to build|building)|Looking in (indexes|links):"
)
"""Beginnings of lines in which an installer or compiler frames the reason, and would push it out."""

VERSIONS = re.compile(r" \(from versions: [^)]*\)")

FOREIGN_VARIABLES = (
    "PYTHONPATH", "PYTHONHOME", "PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_REQUIRE_VIRTUALENV",
    "PIP_REQUIREMENT", "PIP_DRY_RUN", "PIP_REPORT", "PIP_QUIET", "PIP_VERBOSE", "PYTHONDONTWRITEBYTECODE",
    "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE",
)  # fmt: skip
"""What a person set for other installations and would redirect or contradict ours."""


def run_quietly(
    command: Sequence[str],
    *,
    what: str,
    timeout_s: float,
    folder: Path,
    environment: Mapping[str, str] | None = None,
    log: Path | None = None,
    guarded: bool = False,
) -> str:
    """What the command printed on stdout. It runs in a process group of its own, which ends with it.

    environment: all variables; by default ours, less those that would redirect an installer.
    log: file that keeps all output of a command that fails.
    guarded: the group ends with our kill -9 too, for commands that would meddle with the next ones.
    Raises HostError that names `what` failed, the command and its last lines, which are its note too.
    """
    environment = environment if environment is not None else _installers_environment()
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, cwd=folder, env=environment,
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            failed = HostError(f"{what} failed: {command[0]} cannot be started ({error.strerror}).")
            failed.add_note(f"{command[0]} cannot be started")
            raise failed from None
        code: int | None = None
        try:
            with _reaper(process.pid) if guarded else nullcontext():
                code = process.wait(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            pass
        finally:
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        printed = _text(output)
        if code == 0:
            return printed
        ended = f"did not end within {timeout_s:g} s" if code is None else f"ended with exit code {code}"
        printed = f"{printed}\n{_text(errors)}"
        kept = ""
        if log is not None:
            with suppress(OSError):
                log.write_text(f"{shlex.join(command)}\n{printed}", encoding="utf-8")
                kept = f" (all of it in {log})"
        said = _last_lines(printed)
        failed = HostError(f"{what} failed: `{shlex.join(command)}` {ended}, saying{kept}: {said}.")
        failed.add_note(said)
        raise failed


@contextmanager
def _reaper(group: int) -> Iterator[None]:
    scratch = tempfile.mkdtemp(prefix="bench-reaper-")  # the reaper removes it
    reaper = subprocess.Popen(
        [sys.executable, "-P", "-m", "bench.measure.reaper", scratch], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    assert reaper.stdin is not None
    with suppress(OSError):
        reaper.stdin.write(f"+{group}\n".encode())
        reaper.stdin.flush()
    try:
        yield
    finally:
        with suppress(OSError):
            reaper.stdin.write(f"-{group}\n".encode())
        with suppress(OSError):
            reaper.stdin.close()
        reaper.wait()


def _last_lines(text: str) -> str:
    lines = [VERSIONS.sub("", line.strip()) for line in text.splitlines()]
    told = [line for line in lines if line and not NOISE.match(line)] or [line for line in lines if line]
    short = [line if len(line) <= LINE_LENGTH else f"{line[: LINE_LENGTH - 1]}…" for line in told[-LAST_LINES:]]
    return " | ".join(short).rstrip(".") or "nothing"


def _installers_environment() -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k not in FOREIGN_VARIABLES}
    return kept | {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1", "PYTHONUTF8": "1"}


def _text(file: object) -> str:
    file.seek(0)  # type: ignore[attr-defined]
    data: bytes = file.read()  # type: ignore[attr-defined]
    return data.decode(errors="replace")
