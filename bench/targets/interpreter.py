"""The Python that a target runs on: what it is, what it has, and who can install for it."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.errors import HostError, UsageError
from bench.targets.process import run_quietly

PROBE_TIMEOUT_S = 60.0

OLDEST = (3, 11)

OLDEST_PIP = (22, 3)
"""`--dry-run --report` and `--python`."""

PROBE = """
import sys
if sys.version_info < (3, 8):
    print('{"version": %s}' % list(sys.version_info[:3]))
    sys.exit()
import importlib.metadata, importlib.util, json, pathlib, re, sysconfig
packages = {}
for found in importlib.metadata.distributions():
    name = found.metadata["Name"]
    if name:
        packages.setdefault(re.sub(r"[-_.]+", "-", name).lower(), found.version)
wheels = []
spec = importlib.util.find_spec("ensurepip")
if spec and spec.origin:
    told = sysconfig.get_config_var("WHEEL_PKG_DIR")
    folders = [pathlib.Path(spec.origin).parent / "_bundled"] + ([pathlib.Path(told)] if told else [])
    wheels = [str(w) for f in folders for w in f.glob("pip-*.whl")]
print(json.dumps({
    "version": list(sys.version_info[:3]), "abi": sysconfig.get_config_var("SOABI") or sys.implementation.cache_tag,
    "platform": sysconfig.get_platform(), "packages": packages, "wheels": wheels,
    "pip": packages.get("pip") if importlib.util.find_spec("pip") else None,
}))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """One Python with what is installed beside it.

    pip: the beginning of a command that installs for it, empty when there is none.
    """

    python: str
    version: tuple[int, ...]
    abi: str  # what a compiled wheel depends on
    packages: dict[str, str]
    pip: tuple[str, ...]

    @property
    def fingerprint(self) -> str:
        """Changes with the interpreter and with every package installed, upgraded or removed."""
        facts = [self.python, self.version, self.abi, sorted(self.packages.items())]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]


def read_interpreter(python: str | None) -> Interpreter:
    """Ask an interpreter: a path, a command on PATH, or null for the one that runs bench.

    Raises UsageError when it is not there or too old, HostError when it does not answer.
    """
    path = find_python(python)
    facts = _probe(path, python)
    version = tuple(facts["version"])
    if version < OLDEST:
        raise UsageError(
            f"{path} is Python {'.'.join(map(str, version))} and bench measures "
            f"{'.'.join(map(str, OLDEST))} or newer; choose another interpreter."
        )
    return Interpreter(
        python=path, version=version, abi=f"{facts['abi']} {facts['platform']}",
        packages=facts["packages"], pip=_pip(path, facts),
    )  # fmt: skip


def find_python(python: str | None) -> str:
    """Absolute path of an interpreter; a link stays one, since it is how a virtual environment knows itself."""
    if python is None:
        return sys.executable
    given = Path(python).expanduser()
    if given.is_dir():  # a virtual environment
        given = given / "bin" / "python"
    found = shutil.which(str(given))
    if found is None:
        raise UsageError(f"there is no interpreter {python}; give its path, a virtual environment's, or a command.")
    return str(Path(found).absolute())


def _probe(path: str, python: str | None) -> dict[str, Any]:
    what = f"asking the interpreter {python or path}"
    answer = run_quietly([path, "-P", "-c", PROBE] if python is None else [path, "-c", PROBE],
                         what=what, timeout_s=PROBE_TIMEOUT_S, folder=Path(path).parent)  # fmt: skip
    try:
        facts: dict[str, Any] = json.loads(answer.strip().splitlines()[-1])
    except (ValueError, IndexError):
        raise HostError(f"{what} failed: it answered {answer.strip()[:80]!r}; is it a Python?") from None
    return facts


def _pip(path: str, facts: dict[str, Any]) -> tuple[str, ...]:
    """Its own pip; ours, told to install for it; or the wheel that Python itself brings. None is installed."""
    if facts["pip"] and _numbers(facts["pip"]) >= OLDEST_PIP:
        return (path, "-m", "pip")
    if path != sys.executable:
        ours = _probe(sys.executable, None)
        if ours["pip"] and _numbers(ours["pip"]) >= OLDEST_PIP:
            return (sys.executable, "-m", "pip", "--python", path)
    wheels = [w for w in facts["wheels"] if _numbers(Path(w).name.split("-")[1]) >= OLDEST_PIP]
    return (path, f"{wheels[-1]}/pip") if wheels else ()


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
