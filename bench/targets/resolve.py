"""From what a side asks for to a Target: everything it needs built, cached and proved."""

from __future__ import annotations

import hashlib
import os
import re
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.errors import HostError, UsageError
from bench.loaders.paths import OVERLAYS
from bench.model import Revision, Target
from bench.targets import harness
from bench.targets.cache import Cache, Entry, Say, silent
from bench.targets.contents import digest, modules
from bench.targets.installer import Installer, is_installable
from bench.targets.interpreter import read_interpreter
from bench.targets.parse import SideSpec, requirement_name
from bench.targets.proof import check_origins
from bench.targets.revision import Repository, Snapshot

BUILD_TIMEOUT_S = 1800.0
"""For one command of an installer: a large compiled project takes many minutes."""

BUILD_VARIABLES = (
    "CC", "CXX", "CPPFLAGS", "CFLAGS", "CXXFLAGS", "LDFLAGS", "CMAKE_ARGS", "RUSTFLAGS", "ARCHFLAGS",
    "MACOSX_DEPLOYMENT_TARGET",
)  # fmt: skip
"""What compilers and build backends read: another value is another build."""

SITE = "site"
SOURCE = "source"


def resolve(
    spec: SideSpec,
    *,
    project: Path,
    cache: Path,
    python: str | None = None,
    requirements: Sequence[str] = (),
    build_isolation: bool = True,
    timeout_s: float = BUILD_TIMEOUT_S,
    say: Say = silent,
) -> Target:
    """Build what the side needs and return a Target whose workers import exactly that.

    The interpreter (`python`, null for the one that runs bench; a side's own `python:` wins) stays
    as it is. A revision of `project` is built from a copy, also the working tree, so that both
    sides were built, compiled and placed alike, in folders whose paths have one length; together
    with what its dependencies lack it comes first on PYTHONPATH. Requirements, the side's and those
    for `requirements` (every side's), are resolved against what the interpreter has and only the
    difference is installed. `Target.requirements` lists what was installed.

    Raises UsageError for what cannot be meant, HostError when a build fails, with the command and
    its last lines, or when the build is not what a worker would import.
    """
    if spec.run is not None:
        raise UsageError(f"{spec.text} is a stored run: there is nothing to launch; compare it with another run.")
    store = Cache(cache)
    interpreter = read_interpreter(spec.python or python)
    installer = Installer(
        interpreter=interpreter, isolation=build_isolation, timeout_s=timeout_s, log=store.root / "failed.log"
    )
    workshop = _Workshop(store, installer, say)
    sites: list[_Site] = []
    revision: Revision | None = None
    names: list[str] = []
    mine = {requirement_name(r) for r in spec.requirements}
    wanted = [*spec.requirements, *(r for r in requirements if requirement_name(r) not in mine)]
    if wanted:
        sites.append(workshop.requirements(wanted))
    if spec.revision is not None:
        with Repository.open(project).snapshot(spec.revision) as snapshot:
            sites.append(workshop.project(snapshot))
            revision = snapshot.revision
            names.append(snapshot.label)
    names += [Path(r).name if r.endswith(".whl") else r for r in spec.requirements]
    names += [f"env:{name}={value}" for name, value in spec.variables.items()]
    names += [f"device:{spec.device}"] if spec.device else []
    names += [f"python:{spec.python}"] if spec.python else []
    ours = harness.harness_entry(store, workshop.installer)
    callers = [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
    sides = [site.folder for site in sites]
    path = [ours.folder / harness.FIRST, *sides, *map(Path, callers), ours.folder / harness.LAST]
    target = Target(
        label=" ".join(names),
        python=interpreter.python if spec.python or python else None,
        revision=revision,
        requirements=tuple(dict.fromkeys(pin for site in sites for pin in site.pins)),
        variables={**spec.variables, **_search(path, sides, safe=revision is not None)},
        device=spec.device or "cpu",
    )
    hidden: set[str] = set()
    for site in sites:
        names = modules(site.folder)
        check_origins(target, [name for name in names if name not in hidden], site.folder)
        hidden |= set(names)
    return target


def _search(path: Sequence[Path], sites: Sequence[Path], *, safe: bool) -> dict[str, str]:
    """Variables by which processes find their code; `safe`: not in the current folder, nor in a script's."""
    variables = {"PYTHONPATH": os.pathsep.join(map(str, path))}
    if sites:
        variables[OVERLAYS] = os.pathsep.join(map(str, sites))
    return {**variables, "PYTHONSAFEPATH": "1"} if safe else variables


@dataclass(frozen=True, slots=True, kw_only=True)
class _Site:
    """A folder for PYTHONPATH and what of packages is in it or was found to fit."""

    folder: Path
    pins: tuple[str, ...] = ()


class _Workshop:
    """Builds sites for one interpreter."""

    def __init__(self, cache: Cache, installer: Installer, say: Say) -> None:
        self._cache = cache
        self.installer = installer
        self._interpreter = installer.interpreter
        self._say = say

    def requirements(self, wanted: Sequence[str]) -> _Site:
        """What the interpreter lacks of these, with dependencies."""
        what = {
            "kind": "requirements",
            "interpreter": self._interpreter.fingerprint,
            "wanted": sorted(_identity(r) for r in wanted),
        }
        names = ", ".join(Path(r).name for r in wanted)

        def build(folder: Path) -> dict[str, Any]:
            self._say(f"looking for {names}")
            return self._fill(folder / SITE, [w for w in wanted if w.endswith(".whl")],
                              [r for r in wanted if not r.endswith(".whl")], names)  # fmt: skip

        entry = self._cache.get(what, build, say=self._say)
        pins = dict.fromkeys(entry.facts["pins"])
        had = {requirement_name(p) for p in pins}
        for name in map(requirement_name, wanted):
            if name not in had and name in self._interpreter.packages:
                pins[f"{name}=={self._interpreter.packages[name]}"] = None
        return _Site(folder=entry.folder / SITE, pins=tuple(sorted(pins)))

    def project(self, snapshot: Snapshot) -> _Site:
        """The project of a snapshot and what its dependencies lack."""
        built = self._wheel(snapshot)
        if built.facts["wheel"] is None:
            return _Site(folder=built.folder / built.facts["folder"])
        wheel = built.folder / built.facts["wheel"]

        def build(folder: Path) -> dict[str, Any]:
            return self._fill(folder / SITE, [str(wheel)], [], f"what {snapshot.label} depends on")

        what = {"kind": "project", "interpreter": self._interpreter.fingerprint, "wheel": built.key}
        entry = self._cache.get(what, build, say=self._say)
        return _Site(folder=entry.folder / SITE, pins=tuple(entry.facts["pins"]))

    def _wheel(self, snapshot: Snapshot) -> Entry:
        """The wheel of a snapshot; or its files, where the project has no build system."""
        installer, label = self.installer, snapshot.label

        def build(folder: Path) -> dict[str, Any]:
            with self._cache.workplace(say=self._say) as place:
                self._say(f"building {label}")
                source = place / SOURCE
                project = snapshot.export(source)
                if (source / ".gitmodules").is_file():
                    self._say(f"{label} has git submodules; they are not part of the build")
                if is_installable(project):
                    snapshot.add_history(source)
                    return {"wheel": installer.build(project, folder, label).name}
                source.rename(folder / SOURCE)
            inside = Path(SOURCE, snapshot.repository.prefix)
            inside = inside / "src" if (folder / inside / "src").is_dir() else inside
            installer.compile(folder / inside)
            return {"wheel": None, "folder": str(inside), "digest": digest(folder / inside)}

        what = {
            "kind": "wheel",
            "commit": snapshot.revision.commit,
            "tree": snapshot.tree,
            "folder": snapshot.repository.prefix,
            "python": self._interpreter.version,
            "abi": self._interpreter.abi,
            "flags": {name: os.environ[name] for name in BUILD_VARIABLES if name in os.environ},
            "packages": None if installer.isolation else self._interpreter.fingerprint,
        }
        return self._cache.get(what, build, say=self._say)

    def _fill(self, site: Path, wheels: Sequence[str], wanted: Sequence[str], what: str) -> dict[str, Any]:
        """Install wheels, and what they and `wanted` need that is not there. Returns facts for a manifest."""
        # A wheel's own dependencies are asked for, not the wheel: pip answers with the dependencies of
        # what is installed when that has the same version, as two commits often have.
        needs = [need for wheel in wheels for need in _dependencies(Path(wheel))]
        own = {requirement_name(wheel) for wheel in wheels}
        lacking: dict[str, str] = {}
        if asked := [*wanted, *needs]:
            lacking = self.installer.lacking(asked, what)
        pins = sorted(pin for name, pin in lacking.items() if name not in own)
        if pins:
            self._say(f"installing what {self._interpreter.python} lacks: {', '.join(pins)}")
        self.installer.install([*wheels, *pins], site, what)
        versions = [f"{requirement_name(w)}=={Path(w).name.split('-')[1]}" for w in wheels]
        return {"pins": sorted([*versions, *pins]), "digest": digest(site)}


def _identity(requirement: str) -> str:
    """The requirement, or a wheel's name with the hash of its content."""
    if not requirement.endswith(".whl"):
        return requirement
    path = Path(requirement)
    return f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}"


def _dependencies(wheel: Path) -> list[str]:
    """Requires-Dist of a wheel. Raises HostError when it is none."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            name = next(n for n in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", n))
            text = archive.read(name).decode("utf-8")
    except (OSError, zipfile.BadZipFile, StopIteration, UnicodeDecodeError):
        raise HostError(f"{wheel} is no readable wheel; build or download it again.") from None
    head = text.partition("\n\n")[0]
    found = [line.partition(":")[2].strip() for line in head.splitlines() if line.startswith("Requires-Dist:")]
    return [line for line in found if not re.search(r";.*\bextra\s*==", line)]
