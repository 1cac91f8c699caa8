"""One variant, for the verbs that follow one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.model import Benchmark, Variant
    from bench.ports import Discovery


def one_variant(found: Discovery, selector: str, why: str) -> tuple[Benchmark, Variant]:
    """The one variant that a selector names; `why` ends the sentence where it names several.

    Raises MissingError without any benchmark, SelectorError for no match, UsageError for several.
    """
    from bench.errors import MissingError, UsageError
    from bench.plan import parse, select

    wanted = parse(selector)
    hits = [(b, v) for b in found.benchmarks for v in b.variants() if wanted.matches(b, v)]
    if not found.benchmarks:
        raise MissingError(f"there is no benchmark: {'; '.join(p.message for p in found.problems) or 'none found'}.")
    if not hits:
        select(found.benchmarks, [selector], None)  # says what is near
    if len(hits) > 1:
        names = ", ".join(v.name for _, v in hits[:4]) + (", …" if len(hits) > 4 else "")
        raise UsageError(f"{selector!r} is {len(hits)} variants and {why}: {names}.")
    return hits[0]
