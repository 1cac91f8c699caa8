"""What a folder that is imported from holds."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

UNIMPORTANT = ("RECORD", "INSTALLER", "REQUESTED", "WHEEL", "METADATA", "direct_url.json")
"""Files of a *.dist-info that cannot change speed: origin, version and description."""

EXTENSIONS = (".so", ".pyd")


def digest(folder: Path) -> str:
    """Hash over names and contents of what can be imported or read; bytecode and descriptions left out."""
    total = hashlib.sha256()
    for name, file in sorted(_files(folder)):
        total.update(f"{name}\0{file.stat().st_size}\0".encode(errors="surrogateescape"))
        with file.open("rb") as handle:
            total.update(hashlib.file_digest(handle, "sha256").digest())
    return total.hexdigest()


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    """(name, file); a dist-info is named without the version."""
    for file in folder.rglob("*"):
        top, *inside = file.relative_to(folder).parts
        if top == "__pycache__" or "__pycache__" in inside or not file.is_file():
            continue
        if top.endswith(".dist-info"):
            if file.name in UNIMPORTANT or "licenses" in inside:
                continue
            top = top.partition("-")[0]
        yield "/".join((top, *inside)), file


def modules(folder: Path) -> list[str]:
    """Names that an import finds directly in a folder: packages, modules and extensions."""
    found = set()
    for item in folder.iterdir():
        if item.is_dir():
            name = item.name if (item / "__init__.py").is_file() else ""
        elif item.suffix == ".py":
            name = item.stem
        else:
            name = item.name.partition(".")[0] if item.suffix in EXTENSIONS else ""
        if name.isidentifier():
            found.add(name)
    return sorted(found)
