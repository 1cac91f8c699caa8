"""Our suites as tests with the fixture `benchmark` of pytest-benchmark. See bench.bridges.

Every benchmark `suite.function` becomes `test_suite_function`, and its variants the cases of the test.
The group is the experiment, so that variants which are compared stand in one table of
`--benchmark-group-by=group` (the default). `extra_info` holds what pytest-benchmark cannot measure
itself: `baseline`, `items` in a call, `size` in bytes, the suite's own metrics (of a test set the share
of right items), and its `notes`.

What a benchmark requires and is not here skips its test; a wrong answer fails it, and so does a suite
that cannot be read (`test_unreadable`). Peak memory is left out: all tests share one process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bench.api import Skip, Wrong
from bench.bridges.variants import Ready, declared
from bench.measure.contract import CPU
from bench.model import Benchmark, Variant, variant_name

ROUNDS = 20
"""Calls of work that needs a preparation before each: pytest-benchmark then chooses no number itself."""


def expose(*places: str, into: dict[str, Any], profile: str | None = None, device: str = CPU) -> None:
    """Put a test for every benchmark of the places into the module whose globals() are `into`.

    A place is a folder, seen from that module's file, or an importable package of suites.
    """
    found = declared(places, into, profile)
    for benchmark in found.benchmarks:
        name = f"test_{benchmark.name.replace('.', '_')}"
        into[name] = _named(_test_of(benchmark, device), name, into["__name__"], benchmark.title)
    if found.problems:
        into["test_unreadable"] = _named(_unreadable(dict(found.problems)), "test_unreadable", into["__name__"], "")


def _named(test: Callable[..., None], name: str, module: str, title: str) -> Callable[..., None]:
    test.__name__ = test.__qualname__ = name
    test.__module__, test.__doc__ = module, title
    return test


def _test_of(declared: Benchmark, device: str) -> Callable[..., None]:
    variants = declared.variants()
    if not declared.axes:

        def test_it(benchmark: Any) -> None:
            _run(benchmark, declared, variants[0], device)

        return test_it

    def test_variant(benchmark: Any, variant: Variant) -> None:
        _run(benchmark, declared, variant, device)

    names = [variant_name("", v.params).strip("[]") for v in variants]
    marked: Callable[..., None] = pytest.mark.parametrize("variant", variants, ids=names)(test_variant)
    return marked


def _run(fixture: Any, benchmark: Benchmark, variant: Variant, device: str) -> None:
    fixture.group = variant_name(benchmark.name, benchmark.group_of(variant))
    try:
        ready = Ready(benchmark, variant.params, device)
    except Skip as skip:
        pytest.skip(str(skip))
    try:
        fixture.extra_info.update(_facts(ready, variant))
        _measure(fixture, ready)
    except ready.skips as skip:
        pytest.skip(str(skip))
    except Wrong as wrong:
        pytest.fail(str(wrong) or "the answer is wrong", pytrace=False)
    finally:
        ready.close()


def _facts(ready: Ready, variant: Variant) -> dict[str, Any]:
    work = ready.work
    size = {} if work.size_bytes is None else {"size": work.size_bytes}
    return {"baseline": variant.baseline, "items": work.items, **size, "notes": dict(work.notes)}


def _measure(fixture: Any, ready: Ready) -> None:
    """Judge an answer, so that a wrong one gets no time, and let pytest-benchmark time the call. Raises Skip, Wrong."""
    work = ready.work
    if work.clock is not None:
        raise Skip("its time passes in another process, where pytest-benchmark has no clock")
    if work.once:
        answer = fixture.pedantic(ready.call, setup=_setup(ready), rounds=1)
        fixture.extra_info.update(ready.judge(answer))
        return
    _, answer = ready.first_call()
    fixture.extra_info.update(ready.judge(answer))
    if work.prepare is None:
        fixture(ready.call)
    else:
        fixture.pedantic(ready.call, setup=_setup(ready), rounds=ROUNDS)


def _setup(ready: Ready) -> Callable[[], None]:
    """What the work prepares; it returns nothing, because that would be taken as arguments of the call."""
    prepare = ready.work.prepare

    def setup() -> None:
        if prepare is not None:
            prepare()

    return setup


def _unreadable(problems: dict[str, str]) -> Callable[..., None]:
    def test(benchmark: Any, suite: str) -> None:
        pytest.fail(f"suite {suite}: {problems[suite]}", pytrace=False)

    marked: Callable[..., None] = pytest.mark.parametrize("suite", list(problems))(test)
    return marked
