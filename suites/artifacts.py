"""Things that are expensive to make and cheap to keep: built once per machine, checked at every use.

An artifact is a folder `$BENCH_CACHE/artifacts/<name>-<digest>`. The digest covers everything that
can change its content, so two commits or two sets of installed versions never share one. Its
manifest is written last and the folder appears by a rename: a build that died leaves nothing that
could be taken for an artifact.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # Windows: two builders may then build twice; the rename keeps the result whole
    fcntl = None  # type: ignore[assignment]

MANIFEST = "manifest.json"
VALUES = "values.json"

CPU_FLAGS = ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "avx512_bf16", "amx_int8", "asimddp", "i8mm", "sve")
"""Instruction sets by which inference kernels choose their arithmetic, and so their rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A finished folder."""

    folder: Path
    build_seconds: float
    built_now: bool  # by this call, or waited for: the set-up time of this launch is not typical

    def __truediv__(self, name: str) -> Path:
        """Path of a file in it."""
        return self.folder / name


def cache_folder() -> Path:
    """The environment's BENCH_CACHE, else ~/.cache/inference-bench; always absolute."""
    return Path(os.environ.get("BENCH_CACHE") or "~/.cache/inference-bench").expanduser().resolve()


def artifact(
    name: str,
    build: Callable[[Path], object],
    *,
    sources: Sequence[Path],
    packages: Sequence[str] = (),
    inputs: Mapping[str, str] | None = None,
    cpu: bool = False,
) -> Artifact:
    """The artifact of that name, built by `build(folder)` where it is missing or damaged.

    sources: files of the code that builds it; packages: distributions whose versions matter;
    inputs: further facts, such as digests of data and the digest of an artifact it is made from;
    cpu: whether the content depends on the instruction sets of this CPU.
    Whatever `build` raises passes through, and nothing is kept.
    """
    facts: dict[str, Any] = {
        "sources": [hashlib.sha256(source.read_bytes()).hexdigest() for source in sources],
        "packages": {package: version(package) for package in packages},
        "inputs": dict(inputs or {}),
        "cpu": cpu_flags() if cpu else [],
    }
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]
    shelf = cache_folder() / "artifacts"
    folder = shelf / f"{name}-{digest}"
    manifest = _valid(folder)
    if manifest is not None:
        return Artifact(folder=folder, build_seconds=manifest["build_seconds"], built_now=False)
    shelf.mkdir(parents=True, exist_ok=True)
    with locked(shelf / f"{folder.name}.lock"):
        manifest = _valid(folder)  # another process may have built it while we waited
        if manifest is None:
            for left in shelf.glob(f".{folder.name}.*"):  # of builders that died: we hold the lock
                shutil.rmtree(left, ignore_errors=True)
            manifest = _build(folder, build, facts)
    return Artifact(folder=folder, build_seconds=manifest["build_seconds"], built_now=True)


def kept(
    name: str, compute: Callable[[], Mapping[str, Any]], *, sources: Sequence[Path], packages: Sequence[str] = (),
    inputs: Mapping[str, str] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """What `compute` found for these facts and this kind of CPU, computed once: values that JSON can hold.

    For what is dear and the same each time, such as a fixed network's answers to a whole test set.
    """

    def build(folder: Path) -> None:
        (folder / VALUES).write_text(json.dumps(dict(compute())), encoding="utf-8")

    made = artifact(name, build, sources=sources, packages=packages, inputs=inputs, cpu=True)
    values: dict[str, Any] = json.loads((made / VALUES).read_text(encoding="utf-8"))
    return values


def _build(folder: Path, build: Callable[[Path], object], facts: dict[str, Any]) -> dict[str, Any]:
    workshop = folder.with_name(f".{folder.name}.{os.getpid()}")
    workshop.mkdir()
    try:
        start = time.perf_counter()
        build(workshop)
        manifest = {
            "facts": facts,
            "build_seconds": round(time.perf_counter() - start, 3),
            "files": {file.name: _seal(file) for file in sorted(workshop.iterdir())},
        }
        (workshop / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
        if folder.exists():  # damaged
            shutil.rmtree(folder)
        workshop.rename(folder)
    finally:
        shutil.rmtree(workshop, ignore_errors=True)
    return manifest


def _seal(file: Path) -> dict[str, Any]:
    facts = file.stat()
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return {"size": facts.st_size, "mtime_ns": facts.st_mtime_ns, "sha256": digest}


def _valid(folder: Path) -> dict[str, Any] | None:
    """The manifest when every file is as it was left.

    Size and time of change are enough (as in git's index): hashing 90 MB in every launch would cost
    more than loading them. Where the time differs, for example after a copy, the content decides.
    """
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        for name, seal in manifest["files"].items():
            facts = (folder / name).stat()
            if facts.st_size != seal["size"]:
                return None
            if facts.st_mtime_ns != seal["mtime_ns"] and _seal(folder / name)["sha256"] != seal["sha256"]:
                return None
        float(manifest["build_seconds"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return dict(manifest)


@contextlib.contextmanager
def locked(file: Path) -> Iterator[None]:
    """Hold an exclusive lock, which the system releases when the process dies."""
    with file.open("a") as stream:
        if fcntl is not None:
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def verified(file: Path, sha256: str) -> bool:
    """Whether the file has that digest; a stamp of path, size and time spares hashing it again."""
    facts = file.stat()
    seen = [str(file.resolve()), facts.st_size, facts.st_mtime_ns]
    stamp = cache_folder() / "verified" / f"{sha256[:16]}.json"
    with contextlib.suppress(OSError, ValueError):
        if json.loads(stamp.read_text(encoding="utf-8")) == seen:
            return True
    if _seal(file)["sha256"] != sha256:
        return False
    with contextlib.suppress(OSError):  # a read-only cache costs time, not correctness
        stamp.parent.mkdir(parents=True, exist_ok=True)
        draft = stamp.with_name(f".{stamp.name}.{os.getpid()}")
        draft.write_text(json.dumps(seen), encoding="utf-8")
        draft.replace(stamp)
    return True


def version(package: str) -> str:
    """Installed version of a distribution, `none` where it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "none"


def cpu_flags() -> list[str]:
    """Architecture and those of CPU_FLAGS that this CPU has; on other systems than Linux its name."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return [platform.machine(), platform.processor()]
    words = next((line.split() for line in text.splitlines() if line.lower().startswith(("flags", "features"))), [])
    return [platform.machine(), *(flag for flag in CPU_FLAGS if flag in words)]
