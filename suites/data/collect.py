"""Makes functions.jsonl.gz out of CPython's own source; run by hand, only when the data shall change.

    python3.11 -m suites.data.collect /path/to/Python-3.11.x/Lib

Parses, never imports. One record per function or class that has a docstring; same source, same bytes.
"""

from __future__ import annotations

import ast
import gzip
import inspect
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LEFT_OUT = {
    "site-packages",
    "test",
    "tests",
    "idlelib",
    "lib2to3",
    "turtledemo",
    "__pycache__",
    "ensurepip",
    "pydoc_data",
}
"""Folders that are not the library itself, or not CPython's work."""

BODY_CHARACTERS = 400
"""Longest body kept: a few hundred kilobytes have to hold all records."""

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def records(library: Path) -> Iterator[dict[str, Any]]:
    """Records of all modules in the order of their names, then of their lines."""
    for file in sorted(library.rglob("*.py")):
        parts = file.relative_to(library).with_suffix("").parts
        if LEFT_OUT.intersection(parts) or any(part.startswith("_sysconfigdata") for part in parts):
            continue
        text = file.read_text(encoding="utf-8")
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        yield from _definitions(ast.parse(text), module, text.splitlines(), ())


def _definitions(node: ast.AST, module: str, lines: list[str], outer: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Definition):
            path = (*outer, child.name)
            if text := ast.get_docstring(child):
                yield _record(child, module, ".".join(path), lines, inspect.cleandoc(text))
            yield from _definitions(child, module, lines, path)
        else:
            yield from _definitions(child, module, lines, outer)


def _record(node: Definition, module: str, name: str, lines: list[str], text: str) -> dict[str, Any]:
    summary, _, body = text.partition("\n\n")
    last = node.end_lineno or node.lineno
    widths = [len(line) for line in lines[node.lineno - 1 : last]]
    arguments: list[dict[str, Any]] = []
    if not isinstance(node, ast.ClassDef):
        a = node.args
        positional = [*a.posonlyargs, *a.args]
        defaults = [None] * (len(positional) - len(a.defaults)) + list(a.defaults)
        pairs = [*zip(positional, defaults, strict=True), *zip(a.kwonlyargs, a.kw_defaults, strict=True)]
        arguments = [{"name": p.arg, "default": "" if d is None else ast.unparse(d)} for p, d in pairs]
    return {
        "module": module,
        "name": name,
        "kind": {"FunctionDef": "function", "AsyncFunctionDef": "coroutine", "ClassDef": "class"}[type(node).__name__],
        "line": node.lineno,
        "lines": last - node.lineno + 1,
        "mean_width": round(sum(widths) / len(widths), 4),
        "public": not any(part.startswith("_") for part in (*module.split("."), *name.split("."))),
        "arguments": arguments,
        "summary": " ".join(summary.split()),
        "body": " ".join(body.split())[:BODY_CHARACTERS],
    }


def main() -> None:
    """Write the file beside this script."""
    target = Path(__file__).with_name("functions.jsonl.gz")
    text = "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records(Path(sys.argv[1])))
    target.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))
    sys.stderr.write(
        f"{target}: {text.count(chr(10))} records, {len(text)} characters, {target.stat().st_size} bytes\n"
    )


if __name__ == "__main__":
    main()
