"""What a folder's code is: the git revision that was measured."""

from __future__ import annotations

import subprocess
from datetime import datetime
from pathlib import Path

from bench.model import Revision

FIELDS = "%H%x00%cI"


def revision_of(folder: Path) -> Revision | None:
    """Commit, branch and whether files differ from it; null outside git or before a first commit."""
    head = _git(folder, "log", "-1", f"--format={FIELDS}")
    if not head:
        return None
    commit, _, committed_at = head.partition("\0")
    branch = _git(folder, "symbolic-ref", "--short", "-q", "HEAD")
    return Revision(
        commit=commit,
        dirty=bool(_git(folder, "status", "--porcelain", "--untracked-files=no")),
        branch=branch or None,
        committed_at=datetime.fromisoformat(committed_at),
    )


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
