"""The system as it is read: files under one root, a few tools, and what this process may use.

Everything that looks at the machine takes a Host, so a test describes a machine as a folder of the
files that were copied from one.
"""

from __future__ import annotations

import math
import os
import platform
import re
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path


def run_tool(argv: Sequence[str]) -> str | None:
    """Standard output of a tool; null where it is missing, fails or does not answer in ten seconds."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, errors="replace", timeout=10, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout if done.returncode == 0 else None


def allowed_cpus() -> frozenset[int]:
    """Numbers of the logical CPUs that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """One machine. The defaults are the one we run on."""

    root: Path = Path("/")
    system: str = field(default_factory=platform.system)  # Linux, Darwin, …
    architecture: str = field(default_factory=platform.machine)
    cpus: frozenset[int] = field(default_factory=allowed_cpus)
    tool: Callable[[Sequence[str]], str | None] = run_tool

    def text(self, path: str) -> str | None:
        """Content of a file, stripped; null where it cannot be read."""
        try:
            return (self.root / path).read_text(encoding="utf-8", errors="replace").strip("\0 \n\t")
        except (OSError, ValueError):
            return None

    def number(self, path: str) -> int | None:
        """Content of a file that holds one integer; null for anything else, such as `max`."""
        text = self.text(path)
        try:
            return None if text is None else int(text)
        except ValueError:
            return None

    def glob(self, pattern: str) -> list[Path]:
        """Paths under the root, sorted, as seen from it."""
        try:
            return sorted(path.relative_to(self.root) for path in self.root.glob(pattern))
        except OSError:
            return []

    def exists(self, path: str) -> bool:
        """Whether there is such a file."""
        return (self.root / path).exists()

    def memory_limit(self) -> int | None:
        """Bytes that our control group may use; null: no limit. Versions 1 and 2."""
        values = [self.number(f"{folder}/memory.max") for folder in self._groups("")]
        values += [self.number(f"{folder}/memory.limit_in_bytes") for folder in self._groups("memory")]
        # Version 1 spells "no limit" as a number near 2**63.
        limits = [value for value in values if value is not None and value < 2**60]
        return min(limits, default=None)

    def memory_left(self) -> int | None:
        """Bytes until our control group's limit; null: no limit. Cached files that may be dropped count as free."""
        left = []
        for group, limit_name, used_name, cached in (
            ("", "memory.max", "memory.current", "inactive_file"),
            ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        ):
            for folder in self._groups(group):
                limit, used = self.number(f"{folder}/{limit_name}"), self.number(f"{folder}/{used_name}")
                if limit is None or used is None or limit >= 2**60:
                    continue
                match = re.search(rf"^{cached} (\d+)$", self.text(f"{folder}/memory.stat") or "", flags=re.MULTILINE)
                left.append(limit - used + (int(match.group(1)) if match else 0))
        return max(0, min(left)) if left else None

    def cpu_limit(self) -> float | None:
        """CPUs' worth of time that our control group may use; null: no quota. Versions 1 and 2."""
        limits = []
        for folder in self._groups(""):
            quota, _, period = (self.text(f"{folder}/cpu.max") or "max").partition(" ")
            if quota.isdigit() and period.isdigit():
                limits.append(int(quota) / int(period))
        for folder in self._groups("cpu"):
            quota_us, period_us = self.number(f"{folder}/cpu.cfs_quota_us"), self.number(f"{folder}/cpu.cfs_period_us")
            if quota_us is not None and quota_us > 0 and period_us:
                limits.append(quota_us / period_us)
        return min(limits, default=None)

    def usable_cpus(self) -> int:
        """Logical CPUs we can keep busy: affinity, and the quota rounded up to whole CPUs."""
        quota = self.cpu_limit()
        return len(self.cpus) if quota is None else max(1, min(len(self.cpus), math.ceil(quota - 0.01)))

    def _groups(self, controller: str) -> list[str]:
        """Folders of our control group and of all above it; `""` is the one hierarchy of version 2.

        Inside a container the path of /proc/self/cgroup may be the one outside: folders that do
        not exist read as null, and the mount itself is then our own group.
        """
        for line in (self.text("proc/self/cgroup") or "").splitlines():
            _, names, path = [*line.split(":", 2), "", ""][:3]
            if controller not in names.split(","):
                continue
            mounts = ["sys/fs/cgroup", "sys/fs/cgroup/unified"] if not controller else [f"sys/fs/cgroup/{controller}"]
            if names != controller:
                mounts.append(f"sys/fs/cgroup/{names}")
            parts = [part for part in path.split("/") if part]
            if ".." in parts:
                parts = []
            return ["/".join([mount, *parts[:n]]) for mount in mounts for n in range(len(parts), -1, -1)]
        return []
