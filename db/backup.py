"""A copy of a SQLite database while others read and write it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from bench.errors import StoreError, UsageError
from db.engine import file_of, parse, place, translated


def backup(url: str, target: Path) -> int:
    """Write a compact copy as of one moment, check it, and say how many bytes it has.

    `target` appears whole or not at all. Raises UsageError where it is there already, StoreError for a
    server's database, a missing one, and a copy that cannot be written or is damaged.
    """
    parsed = parse(url)
    file, where = file_of(parsed), place(parsed)
    if file is None:
        raise StoreError(f"the database {where} is a server's; copy it with pg_dump (docs/store.md says how).")
    if not file.is_file():
        raise StoreError(f"there is no database at {where}.")
    if target.exists():
        raise UsageError(f"{target} is there already; name another file.")
    part = target.with_name(f"{target.name}.part")
    part.unlink(missing_ok=True)
    with translated(parsed):
        try:
            with closing(sqlite3.connect(file, isolation_level=None)) as connection:
                connection.execute("VACUUM INTO ?", (str(part),))
            with closing(sqlite3.connect(part)) as copy:
                said = copy.execute("PRAGMA quick_check").fetchone()[0]
            if said != "ok":
                raise StoreError(f"the copy of {where} is damaged ({said}), as the database may be; try again.")
            part.rename(target)
        finally:
            part.unlink(missing_ok=True)
    return target.stat().st_size
