"""What lies between two ends: the commits of a range, or the releases of a package."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from bench.errors import BuildError, UsageError
from bench.targets.installer import Installer
from bench.targets.revision import Repository

FIELDS = "%H%x1f%P%x1f%aN%x1f%aI%x1f%s"

LISTED = "Available versions:"
"""Beginning of the line in which pip lists the versions of a package, newest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A commit or a release, as a person knows it.

    name: the full hash or the version; parents: names of those it was made from.
    """

    name: str
    parents: tuple[str, ...] = ()
    author: str = ""
    authored_at: datetime | None = None
    subject: str = ""

    @property
    def short(self) -> str:
        """A hash's first nine digits; a version as it is."""
        return self.name[:9] if len(self.name) >= 40 else self.name


def commits(repository: Repository, good: str, bad: str, *, first_parent: bool = False) -> tuple[Change, ...]:
    """The commits from GOOD on, itself first, to BAD, each after its parents.

    first_parent: merges count as one change, and what they bring is not looked into.

    Raises UsageError where one is no commit, or BAD does not descend from GOOD.
    """
    ends = []
    for text in (good, bad):
        found = repository.find(text)
        if found is None:
            raise UsageError(f"{text} is no revision of {repository.folder}; `git log --oneline` lists them.")
        ends.append(found)
    old, new = ends
    if old == new:
        raise UsageError(f"{good} and {bad} are the same commit {old[:9]}; there is nothing between them.")
    base = repository.ask("merge-base", old, new)
    if base == new:
        raise UsageError(f"{bad} is older than {good}; give the older one first: improvements are found too.")
    if base != old:
        raise UsageError(f"{bad} does not descend from {good}; compare with where they parted: {base[:9]}.")
    lines = ("--first-parent",) if first_parent else ()
    log = repository.ask("log", "--topo-order", "--reverse", *lines, f"--format={FIELDS}", f"{old}..{new}")
    start = repository.ask("log", "-1", f"--format={FIELDS}", old)
    return (_commit(start), *map(_commit, log.split("\n")))


def _commit(line: str) -> Change:
    name, parents, author, moment, subject = line.split("\x1f", 4)
    return Change(
        name=name, parents=tuple(parents.split()), author=author, authored_at=datetime.fromisoformat(moment),
        subject=subject,
    )  # fmt: skip


def releases(installer: Installer, package: str, good: str, bad: str) -> tuple[Change, ...]:
    """The releases of a package from GOOD on, itself first, to BAD, in the order of versions (PEP 440).

    As pip lists them for this interpreter: without pre-releases and yanked ones. Some may have no wheel
    for it; asking for each costs a second, so that is left to `bench.targets.installer.Installer.has_wheel`.

    Raises BuildError when pip cannot list them, UsageError when an end is not among them.
    """
    versions = listed_versions(package, installer.versions(package))
    first, last = (_position(package, versions, text) for text in (good, bad))
    if first == last:
        raise UsageError(f"{good} and {bad} are the same release of {package}; there is nothing between them.")
    if first > last:
        raise UsageError(f"{package} {bad} is older than {good}; give the older one first: improvements are found too.")
    chosen = versions[first : last + 1]
    return tuple(
        Change(name=version, parents=(chosen[i - 1],) if i else (), subject=f"{package} {version}")
        for i, version in enumerate(chosen)
    )


def _position(package: str, versions: Sequence[str], text: str) -> int:
    wanted = _plain(text)
    for index, version in enumerate(versions):
        if _plain(version) == wanted:
            return index
    listed = ", ".join(versions[-12:])
    raise UsageError(f"{package} {text} is no release that pip lists for this interpreter; the newest are {listed}.")


def _plain(version: str) -> str:
    """1.20 and 1.20.0 are one version."""
    public = version.strip().lower().removeprefix("v")
    while public.endswith(".0"):
        public = public[:-2]
    return public


def listed_versions(package: str, printed: str) -> list[str]:
    """Versions out of what `pip index versions` printed, oldest first. Raises BuildError where it lists none."""
    for line in printed.splitlines():
        if line.startswith(LISTED):
            return [version.strip() for version in line.removeprefix(LISTED).split(",")][::-1]
    raise BuildError(f"pip lists no release of {package} for this interpreter; check the name.")
