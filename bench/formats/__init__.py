"""Result files of other tools: every module here that does not begin with `_` is one format.

Such a module holds `FORMAT`, a bench.ports.Format. It recognises a file by its content and reads it
as records (`_record`) in the file's own words; what all formats share (who the machine is, what an
upload lacks, the key of a run) is done once, in `_build`. `_read` finds the format of each file.
"""

from __future__ import annotations

import importlib
import pkgutil

from bench.errors import UsageError
from bench.ports import Format


def all_formats() -> tuple[Format, ...]:
    """One of each, by name. A module that cannot be imported fails loudly."""
    names = (m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_"))
    found: list[Format] = [importlib.import_module(f"{__name__}.{name}").FORMAT for name in names]
    return tuple(sorted(found, key=lambda form: form.name))


def format_named(name: str) -> Format:
    """The format of that name. Raises UsageError."""
    forms = {form.name: form for form in all_formats()}
    if name not in forms:
        raise UsageError(f"there is no format {name!r}; there are {', '.join(forms)}.")
    return forms[name]
