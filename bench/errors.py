"""Every error that bench raises on purpose.

    BenchError                exit 1   our own fault unless a branch below says otherwise
    ├── UsageError            exit 2   what was asked for cannot be understood
    │   ├── ConfigError                a setting is wrong
    │   ├── SelectorError              no benchmark matches
    │   ├── FormatError                another tool's file is not what it should be
    │   └── WireError                  a file is not a run that we can read
    ├── IncomparableError     exit 5   two runs may not be compared at all
    ├── MissingError          exit 6   a run, benchmark or arm that was asked for is not there
    └── HostError     exit 7   the machine, a build or a runner failed us
        ├── BuildError                 a project or a requirement could not be built or installed
        ├── MeasureError               a worker could not be started or understood
        ├── NotifyError                a message could not be delivered
        └── StoreError                 the database cannot be used
            ├── SchemaError            its schema is not the one that this version speaks
            ├── RunConflictError       the same run key was stored before with other content
            └── StaleError             somebody else changed a regression first

A message is one sentence that says what is wrong, where, and what to do. The command line prints
it and exits with the branch's code; it never prints a traceback for one of these.
"""

from __future__ import annotations

from enum import IntEnum

__all__ = [
    "BenchError",
    "BuildError",
    "ConfigError",
    "Exit",
    "FormatError",
    "HostError",
    "IncomparableError",
    "MeasureError",
    "MissingError",
    "NotifyError",
    "RunConflictError",
    "SchemaError",
    "SelectorError",
    "StaleError",
    "StoreError",
    "UsageError",
    "WireError",
]


class Exit(IntEnum):
    """Exit code of every verb (design: section 11)."""

    OK = 0
    INTERNAL = 1
    USAGE = 2
    REGRESSION = 3
    INCONCLUSIVE = 4
    INCOMPARABLE = 5
    FAILED = 6
    ENVIRONMENT = 7
    TRADE = 8


class BenchError(Exception):
    """Root of the tree."""

    exit_code: Exit = Exit.INTERNAL


class UsageError(BenchError):
    """What was asked for cannot be understood."""

    exit_code = Exit.USAGE


class ConfigError(UsageError):
    """A setting is unknown or has a value that makes no sense."""


class SelectorError(UsageError):
    """A selector matches no benchmark."""


class FormatError(UsageError):
    """Another tool's file is damaged or contradicts itself. The message lacks the file's name: its reader adds it."""


class WireError(UsageError):
    """A file is not a run, is damaged, or was written by a newer bench."""


class IncomparableError(BenchError):
    """Two runs may not be compared at all."""

    exit_code = Exit.INCOMPARABLE


class MissingError(BenchError):
    """A run, benchmark or arm that was asked for is not there."""

    exit_code = Exit.FAILED


class HostError(BenchError):
    """The machine, a build or a runner failed us."""

    exit_code = Exit.ENVIRONMENT


class BuildError(HostError):
    """A project or a requirement could not be built or installed; another one may.

    said: the last words of what refused.
    """

    def __init__(self, sentence: str, said: str = "") -> None:
        super().__init__(sentence)
        self.said = said or sentence


class MeasureError(HostError):
    """A worker could not be started, or answered something that is not our protocol."""


class NotifyError(HostError):
    """A message could not be delivered. `again`: another try may succeed, not before `after_s` seconds."""

    def __init__(self, message: str, *, again: bool, after_s: float | None = None) -> None:
        super().__init__(message)
        self.again = again
        self.after_s = after_s


class StoreError(HostError):
    """The database cannot be opened, read or written."""


class SchemaError(StoreError):
    """The database's schema is newer or older than this version of bench speaks."""


class RunConflictError(StoreError):
    """A run with the same key and other content is stored already."""


class StaleError(StoreError):
    """Somebody else changed a regression since it was read; read it again and decide again."""
