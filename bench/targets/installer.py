"""Build a project and install packages into a folder, leaving the interpreter's own as they are."""

from __future__ import annotations

import json
import tempfile
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.errors import BuildError, HostError
from bench.targets.interpreter import Interpreter
from bench.targets.parse import requirement_name
from bench.targets.process import run_quietly

QUIET = ("--quiet", "--no-color", "--progress-bar", "off")


def is_installable(project: Path) -> bool:
    """Whether a folder says how it is built; one that does not is imported as it lies."""
    if (project / "setup.py").is_file():
        return True
    try:
        document = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        return True  # the build will say what is wrong with it
    return "build-system" in document or "project" in document


@dataclass(frozen=True, slots=True, kw_only=True)
class Installer:
    """Pip for one interpreter. Every method raises BuildError with the command and its last lines.

    log: file that keeps all output of the last command that failed.
    """

    interpreter: Interpreter
    isolation: bool
    timeout_s: float
    log: Path

    def build(self, project: Path, folder: Path, what: str) -> Path:
        """Build the wheel of a project into `folder`."""
        flags = () if self.isolation else ("--no-build-isolation",)
        self._pip(f"building {what}", "wheel", *QUIET, *flags, "--no-deps", "--wheel-dir", str(folder), str(project))
        wheels = list(folder.glob("*.whl"))
        if len(wheels) != 1:
            raise BuildError(f"building {what} gave {len(wheels)} wheels instead of one; look at its build backend.")
        return wheels[0]

    def lacking(self, wanted: Sequence[str], what: str) -> dict[str, str]:
        """Name → what to install for all of `wanted` and their dependencies that the interpreter lacks.

        Packages that it has are kept wherever they fit.
        """
        found: dict[str, str] = {}
        for item in self._report(wanted, what, "--upgrade-strategy", "only-if-needed"):
            name = requirement_name(item["metadata"]["name"])
            found[name] = f"{name}=={item['metadata']['version']}"
            if item["is_direct"]:
                found[name] = f"{name} @ {item['download_info']['url']}"
        return found

    def versions(self, package: str) -> str:
        """What `pip index versions` prints of a package: all releases but pre-releases and yanked ones."""
        return self._pip(f"listing the releases of {package}", "index", "versions", package, "--no-color")

    def has_wheel(self, pin: str) -> bool:
        """Whether the release that an exact requirement names has a wheel for this interpreter."""
        try:
            self._report([pin], pin, "--no-deps", "--ignore-installed", "--only-binary", ":all:")
        except BuildError as error:
            if "No matching distribution" in error.said:
                return False
            raise
        return True

    def install(self, pins: Sequence[str], site: Path, what: str) -> None:
        """Install exactly these, without their dependencies, into the folder `site`."""
        site.mkdir(parents=True, exist_ok=True)
        if pins:
            self._pip(f"installing {what}", "install", *QUIET, *self._flags(), "--no-deps", "--no-warn-script-location",
                      "--upgrade", "--target", str(site), *pins)  # fmt: skip

    def compile(self, folder: Path) -> None:
        """Compile every module, since processes that measure write no bytecode. Files that do not compile stay."""
        command = [self.interpreter.python, "-P", "-c", "import compileall, sys; compileall.compile_dir(sys.argv[1], "
                   "quiet=2, stripdir=sys.argv[1])", str(folder)]  # fmt: skip
        run_quietly(command, what=f"compiling {folder}", timeout_s=self.timeout_s, folder=folder)

    def _report(self, wanted: Sequence[str], what: str, *options: str) -> list[dict[str, Any]]:
        """What pip would install for these."""
        with tempfile.TemporaryDirectory(prefix="bench-report-") as scratch:
            report, listed = Path(scratch) / "report.json", Path(scratch) / "requirements.txt"
            listed.write_text("".join(f"{line}\n" for line in wanted), encoding="utf-8")
            self._pip(f"resolving {what}", "install", *QUIET, *self._flags(), "--dry-run", "--report", str(report),
                      *options, "--requirement", str(listed))  # fmt: skip
            items: list[dict[str, Any]] = json.loads(report.read_text(encoding="utf-8"))["install"]
        return items

    def _flags(self) -> tuple[str, ...]:
        return () if self.isolation else ("--no-build-isolation",)

    def _pip(self, what: str, *arguments: str) -> str:
        if not self.interpreter.pip:
            raise HostError(
                f"{what} needs pip and {self.interpreter.python} has none that is new enough; "
                "install it there (python -m ensurepip, or uv pip install pip)."
            )
        with tempfile.TemporaryDirectory(prefix="bench-pip-") as empty:  # pip may be run from where no module lies
            command = [*self.interpreter.pip, *arguments]
            try:
                return run_quietly(command, what=what, timeout_s=self.timeout_s, folder=Path(empty), log=self.log,
                                   guarded=True)  # fmt: skip
            except HostError as error:
                raise BuildError(str(error), said=error.__notes__[-1]) from None
