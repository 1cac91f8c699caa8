"""Run an installer or a probe: quiet, with a deadline, and nothing of it left behind."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from bench.errors import HostError

LAST_LINES = 6
"""Lines of output that an error quotes."""

FOREIGN_VARIABLES = (
    "PYTHONPATH", "PYTHONHOME", "PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_REQUIRE_VIRTUALENV",
    "PIP_REQUIREMENT", "PIP_DRY_RUN", "PIP_REPORT", "PIP_QUIET", "PIP_VERBOSE", "PYTHONDONTWRITEBYTECODE",
    "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE",
)  # fmt: skip
"""What a person set for other installations and would redirect or contradict ours."""


def run_quietly(
    command: Sequence[str], *, what: str, timeout_s: float, folder: Path, environment: Mapping[str, str] | None = None
) -> str:
    """What the command printed on stdout. It runs in a process group of its own, which ends with it.

    environment: all variables; by default ours, less those that would redirect an installer.
    Raises HostError that names `what` failed, the command and its last lines.
    """
    environment = environment if environment is not None else _installers_environment()
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, cwd=folder, env=environment,
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise HostError(f"{what} failed: {command[0]} cannot be started ({error.strerror}).") from None
        code: int | None = None
        try:
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
        lines = [line.strip() for line in (printed + "\n" + _text(errors)).splitlines() if line.strip()]
        said = " | ".join(_without_notices(lines)[-LAST_LINES:]).rstrip(".") or "it printed nothing"
        raise HostError(f"{what} failed: `{shlex.join(command)}` {ended}, saying: {said}.")


def _installers_environment() -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k not in FOREIGN_VARIABLES}
    return kept | {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1", "PYTHONUTF8": "1"}


def _without_notices(lines: list[str]) -> list[str]:
    """Without the installer's advice about itself, which would push out the reason."""
    return [line for line in lines if not line.startswith(("[notice]", "note: This", "hint: See above", "╰─>"))]


def _text(file: object) -> str:
    file.seek(0)  # type: ignore[attr-defined]
    data: bytes = file.read()  # type: ignore[attr-defined]
    return data.decode(errors="replace")
