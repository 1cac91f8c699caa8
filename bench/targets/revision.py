"""What a folder's code is: commits, the working tree, and where a branch left the default one."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from bench.errors import HostError, UsageError
from bench.model import Revision

FIELDS = "%H%x00%cI"

WORKING_TREE = "."

GIT_TIMEOUT_S = 300.0
"""For one git command: a large checkout on a slow disk."""

UNTRACKED_LIMIT_BYTES = 200_000_000
"""Untracked files belong to a working tree; data sets that nobody ignored do not."""

LOCAL_VARIABLES = (
    "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR", "GIT_PREFIX",
)  # fmt: skip
"""Set by git inside hooks: they would turn every question to another repository."""


def revision_of(folder: Path) -> Revision | None:
    """Commit, branch and whether files differ from it; null outside git or before a first commit."""
    try:
        head = _git(folder, "log", "-1", f"--format={FIELDS}")
        commit, _, committed_at = head.partition("\0")
        branch = _git(folder, "symbolic-ref", "--short", "-q", "HEAD", quiet=True)
        dirty = bool(_git(folder, "status", "--porcelain", "--untracked-files=no", quiet=True))
    except (UsageError, HostError):
        return None
    moment = datetime.fromisoformat(committed_at)
    return Revision(commit=commit, dirty=dirty, branch=branch or None, committed_at=moment)


def default_base(project: Path) -> Revision:
    """Where HEAD left the default branch: the base of a pull request.

    The default branch is origin/HEAD, else origin/main, main, origin/master or master, the first
    that exists; `branch` names it. On the default branch itself the base is HEAD. Raises UsageError
    where there is no such branch or no common commit.
    """
    repository = Repository.open(project)
    branch = repository.default_branch()
    commit = _git(project, "merge-base", "HEAD", branch, quiet=True)
    if not commit:
        raise UsageError(
            f"HEAD and {branch} have no common commit in {project}; fetch more history (git fetch --unshallow), "
            "or name the base."
        )
    return repository.describe(commit.split()[0], branch=branch.removeprefix("origin/"))


def age(revision: Revision, now: datetime | None = None) -> str:
    """How old a commit is, for a person: `3 days`; empty where its moment is not known."""
    if revision.committed_at is None:
        return ""
    seconds = max(0.0, ((now or datetime.now(UTC)) - revision.committed_at).total_seconds())
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= length:
            count = int(seconds // length)
            return f"{count} {unit}{'s' if count > 1 else ''}"
    return "under a minute"


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The files of one commit or of a working tree, as git objects that can be written anywhere.

    tree: git's hash of all files. Equal trees are equal files.
    """

    repository: Repository
    revision: Revision
    tree: str
    label: str
    variables: dict[str, str] = field(default_factory=dict)

    def export(self, folder: Path) -> Path:
        """Write all files to `folder`, which must be empty; returns the project's folder in it.

        The repository itself stays as it is: no worktree is registered, no reference is made.
        Raises HostError, and UsageError when the commit does not hold the project's folder.
        """
        folder.mkdir(parents=True, exist_ok=True)
        index = folder.with_name(f"{folder.name}.index")
        variables = {**self.variables, "GIT_INDEX_FILE": str(index)}
        place = ("--git-dir", str(self.repository.git_dir), "--work-tree", str(folder))
        plain = ("-c", "core.fsmonitor=false", "-c", "core.splitIndex=false", "-c", "core.sparseCheckout=false")
        try:
            _git(folder, *place, *plain, "read-tree", self.tree, variables=variables)
            _git(folder, *place, *plain, "checkout-index", "--all", "--force", variables=variables)
        finally:
            index.unlink(missing_ok=True)
        project = folder / self.repository.prefix
        if not project.is_dir():
            raise UsageError(f"{self.label} has no folder {self.repository.prefix}; name a revision that has it.")
        return project

    def add_history(self, folder: Path) -> None:
        """Let tools that derive a version from git (setuptools-scm, hatch-vcs) see commit and tags in an export.

        Its objects are borrowed from the repository. A tool that finds no history says so itself.
        """
        repository = self.repository
        try:
            kind = _git(repository.folder, "rev-parse", "--show-object-format")
            _git(folder, "init", "--quiet", "--template=", f"--object-format={kind}", ".")
            objects = folder / ".git" / "objects" / "info" / "alternates"
            objects.parent.mkdir(parents=True, exist_ok=True)
            objects.write_text(f"{repository.common_dir / 'objects'}\n", encoding="utf-8")
            if (repository.common_dir / "shallow").is_file():
                shutil.copy(repository.common_dir / "shallow", folder / ".git" / "shallow")
            tags = _git(repository.folder, "for-each-ref", "--format=create %(refname) %(objectname)", "refs/tags")
            _git(folder, "update-ref", "--stdin", given=f"{tags}\n" if tags else "")
            _git(folder, "update-ref", "--no-deref", "HEAD", self.revision.commit)
            _git(folder, "read-tree", "HEAD")
        except (HostError, UsageError):
            shutil.rmtree(folder / ".git", ignore_errors=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """A git repository as seen from the project's folder: a checkout, a linked worktree or a bare one."""

    folder: Path
    git_dir: Path
    common_dir: Path
    prefix: str  # the project's folder in the repository: "" or "sub/folder/"
    bare: bool

    @classmethod
    def open(cls, project: Path) -> Repository:
        """Raises UsageError when `project` is in no repository, or git refuses it."""
        project = project.resolve()
        facts = _git(project, "rev-parse", "--absolute-git-dir", "--git-common-dir", "--is-bare-repository")
        git_dir, common_dir, bare = facts.split("\n")
        inside = _git(project, "rev-parse", "--is-inside-work-tree") == "true"
        return cls(
            folder=project, git_dir=Path(git_dir), common_dir=(project / common_dir).resolve(), bare=bare == "true",
            prefix=_git(project, "rev-parse", "--show-prefix") if inside else "",
        )  # fmt: skip

    def find(self, text: str) -> str | None:
        """The commit that `text` names, also where only origin has the branch (as in CI checkouts)."""
        if text.startswith("-") or not text.strip():
            return None
        for name in (text, f"origin/{text}"):
            found = _git(self.folder, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}", quiet=True)
            if found:
                return found
        return None

    def ask(self, *arguments: str) -> str:
        """What git says of the project's folder. Raises UsageError with git's own reason when it refuses."""
        return _git(self.folder, *arguments)

    def default_branch(self) -> str:
        """See default_base."""
        remote = _git(self.folder, "symbolic-ref", "--short", "-q", "refs/remotes/origin/HEAD", quiet=True)
        names = [remote] if remote else []
        for name in (*names, "origin/main", "main", "origin/master", "master"):
            if _git(self.folder, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}", quiet=True):
                return name
        raise UsageError(
            f"{self.folder} has no branch origin/HEAD, main or master to compare with; name the base, or fetch it."
        )

    def describe(self, commit: str, *, branch: str | None = None, dirty: bool = False) -> Revision:
        """The Revision of a full commit hash."""
        moment = _git(self.folder, "log", "-1", "--format=%cI", commit)
        return Revision(commit=commit, dirty=dirty, branch=branch, committed_at=datetime.fromisoformat(moment))

    def commits(self) -> dict[str, datetime]:
        """When each commit of all branches and tags was made, by full hash."""
        listed = _git(self.folder, "log", "--all", "--format=%H %cI")
        pairs = (line.split(" ", 1) for line in listed.splitlines())
        return {commit: datetime.fromisoformat(moment) for commit, moment in pairs}

    @contextmanager
    def snapshot(self, text: str) -> Iterator[Snapshot]:
        """The files that a revision, or `.` for the working tree, stands for; valid inside the context.

        Raises UsageError when there is no such revision or no working tree.
        """
        if text == WORKING_TREE:
            with self._working_tree() as snapshot:
                yield snapshot
            return
        commit = self.find(text)
        if commit is None:
            raise UsageError(f"{text} is no revision of {self.folder}; `git log --oneline` lists them, or fetch it.")
        branch = text if _is_branch(self.folder, text) else None
        short = commit[:7]
        yield Snapshot(
            repository=self, revision=self.describe(commit, branch=branch),
            tree=_git(self.folder, "rev-parse", f"{commit}^{{tree}}"),
            label=short if commit.startswith(text) else f"{text} ({short})",
        )  # fmt: skip

    @contextmanager
    def _working_tree(self) -> Iterator[Snapshot]:
        """Tracked and untracked files as they are now, without those that git ignores.

        New objects go to a temporary folder and the index is a copy, so the repository does not change.
        """
        if self.bare or _git(self.folder, "rev-parse", "--is-inside-work-tree") != "true":
            raise UsageError(f"{self.folder} is a bare repository without a working tree; name a revision, not `.`.")
        commit = self.find("HEAD")
        if commit is None:
            raise UsageError(f"{self.folder} has no commit yet; commit once, then measure `.`.")
        top = Path(_git(self.folder, "rev-parse", "--show-toplevel"))
        self._check_untracked(top)
        with tempfile.TemporaryDirectory(prefix="bench-tree-") as scratch:
            index, objects = Path(scratch) / "index", Path(scratch) / "objects"
            objects.mkdir()
            variables = {
                "GIT_INDEX_FILE": str(index),
                "GIT_OBJECT_DIRECTORY": str(objects),
                "GIT_ALTERNATE_OBJECT_DIRECTORIES": _quoted(self.common_dir / "objects"),
            }
            if (self.git_dir / "index").is_file():
                shutil.copy2(self.git_dir / "index", index)  # its time too: git reads again what changed in that second
            else:
                _git(top, "read-tree", "HEAD", variables=variables)
            _git(top, "-c", "core.safecrlf=false", "add", "--all", ".", variables=variables)
            tree = _git(top, "write-tree", variables=variables)
            dirty = tree != _git(self.folder, "rev-parse", "HEAD^{tree}")
            branch = _git(self.folder, "symbolic-ref", "--short", "-q", "HEAD", quiet=True) or None
            mark = f"+{tree[:7]}" if dirty else ""
            yield Snapshot(
                repository=self, revision=self.describe(commit, branch=branch, dirty=dirty), tree=tree,
                label=f". ({commit[:7]}{mark})",
                variables={k: v for k, v in variables.items() if k != "GIT_INDEX_FILE"},
            )  # fmt: skip

    def _check_untracked(self, top: Path) -> None:
        listed = _git(top, "ls-files", "--others", "--exclude-standard", "-z")
        sizes: dict[str, int] = {}
        for name in filter(None, listed.split("\0")):
            file = top / name
            if file.is_file() and not file.is_symlink():
                sizes[name] = file.stat().st_size
        if sum(sizes.values()) > UNTRACKED_LIMIT_BYTES:
            largest = max(sizes, key=lambda name: sizes[name])
            raise UsageError(
                f"{top} has {sum(sizes.values()) / 1e6:.0f} MB of untracked files ({largest} is the largest), too much "
                "to copy as part of the working tree; name them in .gitignore, or commit them."
            )


def _is_branch(folder: Path, text: str) -> bool:
    references = (f"refs/heads/{text}", f"refs/remotes/origin/{text}")
    return any(_git(folder, "rev-parse", "--verify", "--quiet", name, quiet=True) for name in references)


def _quoted(path: Path) -> str:
    """A path in a list of git's: `"…"` where it holds what separates or quotes."""
    text = str(path)
    if os.pathsep in text or '"' in text:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return text


def _git(
    folder: Path,
    *arguments: str,
    variables: Mapping[str, str] | None = None,
    given: str | None = None,
    quiet: bool = False,
) -> str:
    """What git prints, without the last line's end; empty when it refuses and `quiet` is set.

    Raises UsageError with git's own reason when it refuses, HostError when it cannot be run.
    """
    environment = {k: v for k, v in os.environ.items() if k not in LOCAL_VARIABLES}
    environment |= {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", **(variables or {})}
    command: Sequence[str] = ("git", "-C", str(folder), *arguments)
    try:
        done = subprocess.run(
            command, capture_output=True, encoding="utf-8", errors="surrogateescape", timeout=GIT_TIMEOUT_S,
            check=False, env=environment, input=given if given is not None else "",
        )  # fmt: skip
    except OSError as error:
        raise HostError(f"git cannot be run ({error.strerror}); install it.") from None
    except subprocess.TimeoutExpired:
        raise HostError(f"git {arguments[0]} in {folder} gave no answer within {GIT_TIMEOUT_S:g} s.") from None
    if done.returncode == 0:
        return done.stdout.rstrip("\n")
    if quiet:
        return ""
    verb = next((a for a in arguments if not a.startswith("-") and os.sep not in a and "=" not in a), arguments[0])
    reason = " ".join(done.stderr.split()).removeprefix("fatal: ").rstrip(".") or f"exit code {done.returncode}"
    raise UsageError(f"git {verb} in {folder} failed: {reason}.")
