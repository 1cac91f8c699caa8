"""Tests with the `benchmark` fixture of pytest-benchmark or pytest-codspeed, unmodified. Runs in a worker.

pytest collects, sets up fixtures, runs the test and tears down. Our fixture only hands the callable
to the harness and waits inside the test until the session has measured it, so the harness keeps
clock, loops and order of rounds, and the timed code runs in the main thread. What the test asserts
afterwards counts: a failure there is a failure of the variant.

- `benchmark(f, *args, **kwargs)`: f with its arguments is timed.
- `benchmark.pedantic(…)`: `setup` and `teardown` surround every call and are not timed. One round of
  one iteration without a warm-up says that the call cannot be repeated: it is made once a process.
  Otherwise `rounds` and `iterations` are the harness's business, like all options of sampling.
- `@pytest.mark.benchmark` on a test without the fixture times the whole test function.
- `group` and what is in `extra_info` by then become notes; `stats` is there after the call.

The options and hooks of those two plugins stay valid where they are installed, but they do not run.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import inspect
import io
import os
import sys
from collections.abc import Callable, Generator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import SkipTest

from bench.api import Skip, Work, fingerprint
from bench.loaders import paths
from bench.loaders.benchmark_fixture import BenchmarkFixture, Hold
from bench.loaders.native import problem_of
from bench.loaders.scope import left_out
from bench.model import Scalar

if TYPE_CHECKING:
    from bench.ports import Device

try:
    import pytest
    from _pytest.unittest import TestCaseFunction
except ImportError as missing:
    raise ImportError("pytest, which runs this suite, is not installed where it runs: pip install pytest") from missing

FIXTURES = ("benchmark", "codspeed_benchmark")
MARKERS = ("benchmark", "codspeed_benchmark")

OURS = ("bench", "runners")
"""Packages of the harness that a worker has imported before any suite."""

QUIET = {
    "pytest_cov": "--no-cov",
    "xdist": "-n0",
    "pytest_timeout": "--timeout=0",
    "pytest_rerunfailures": "--reruns=0",
}
"""Installed plugins that would trace the timed code, move it elsewhere, or end it: the option that stops them."""


def discover(
    places: Sequence[str], skip: Sequence[str], announce: Callable[[str], None], patterns: Sequence[str] = ()
) -> dict[str, Any]:
    """Collect the tests of each place. See bench.loaders.native.discover; a module is named by its file."""
    benchmarks: dict[str, dict[str, Any]] = {}
    problems: list[dict[str, str]] = []
    for place in places:
        if place in skip:
            continue
        announce(place)  # its conftest.py is imported first
        if not Path(place).exists():
            problems.append(
                {"module": place, "message": "is not there; name a folder or a file of tests", "detail": ""}
            )
            continue
        collector = _Collector(place, skip, announce, patterns)
        code, said = _pytest(["--collect-only", "--maxfail=0", place], collector)
        problems += collector.problems
        if code is pytest.ExitCode.USAGE_ERROR or code is pytest.ExitCode.INTERNAL_ERROR:
            text = collector.broken or _complaint(said)
            problems.append({"module": place, "message": text, "detail": said[-2000:]})
        for name, benchmark in collector.benchmarks.items():
            if name in benchmarks:
                text = f"{name} is found in two places; measure them one by one"
                problems.append({"module": place, "message": text, "detail": ""})
            benchmarks.setdefault(name, benchmark)
    return {"benchmarks": list(benchmarks.values()), "path": [], "problems": problems}


def drive(source: str, device: Device, params: dict[str, Scalar], hold: Hold) -> None:
    """Run the one test, and `hold` its work inside it. Raises what the test raises, and Skip."""
    settings, file, tail = source.split("::", 2)
    chosen = Path(settings)
    if chosen.is_file():
        arguments = ["--rootdir", str(chosen.parent), "-c", settings]
    else:
        arguments = ["--rootdir", settings, "-c", os.devnull]
    driver = _Driver(file, tail, params.get("case"), hold)
    code, said = _pytest([*arguments, "--maxfail=0", f"{file}::{tail}"], driver)
    if driver.error is not None:
        raise driver.error
    if driver.reason:
        raise Skip(driver.reason)
    if driver.broken:
        raise RuntimeError(driver.broken)
    if not driver.ran:
        raise LookupError(_complaint(said) if said and code is not pytest.ExitCode.OK else f"{source} is not there")
    if not driver.held:
        raise Skip("the test never calls its benchmark fixture")


def _pytest(arguments: list[str], plugin: object) -> tuple[int | pytest.ExitCode, str]:
    """Run pytest here. Returns its exit code and what it said on standard error."""
    options = ["--capture=no", "-p", "no:cacheprovider"]
    if not os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD"):
        options += [option for module, option in QUIET.items() if importlib.util.find_spec(module)]
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        code = pytest.main([*options, *arguments], plugins=[plugin])
    sys.stderr.write(said.getvalue())
    return code, said.getvalue().strip()


def _complaint(said: str) -> str:
    """The one line of pytest's complaint that says what is wrong."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    for line in lines:
        if "error: " in line:
            return f"pytest: {line.partition('error: ')[2]}"
    raised = [line.removeprefix("E").strip() for line in lines if line.startswith("E  ")]
    return f"pytest: {': '.join([*lines[:1], *raised[-1:]])}" if lines else "pytest could not collect it"


def _is_benchmark(item: pytest.Item) -> bool:
    if not isinstance(item, pytest.Function):
        return False
    return any(name in item.fixturenames for name in FIXTURES) or _marked(item)


def _marked(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(name) is not None for name in MARKERS)


def _case(item: pytest.Function) -> str | None:
    callspec = getattr(item, "callspec", None)
    return None if callspec is None else str(callspec.id)


def _tail(item: pytest.Function) -> str:
    """`Class::function`, without the case."""
    case = _case(item)
    tail = item.nodeid.partition("::")[2]
    return tail if case is None else tail.removesuffix(f"[{case}]")


def _top(path: Path) -> Path:
    """The file or outermost package by whose name pytest imports a file or folder of tests."""
    while (path.parent / "__init__.py").is_file():
        path = path.parent
    return path


class _Plugin:
    """What collecting and running share."""

    def __init__(self, place: str) -> None:
        self._overlays = paths.prefer_overlays()
        top = _top(Path(place).resolve())
        self._overlays.suites |= {"conftest", top.stem}
        if top.name in OURS and (top / "__init__.py").is_file():
            paths.share_name(top)
        self.broken = ""

    def pytest_internalerror(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Of pytest itself, a plugin, or a hook in a conftest.py; it is told on standard output only."""
        text = str(excinfo.value).strip().partition("\n")[0]
        self.broken = f"pytest, a plugin or a conftest.py failed: {excinfo.typename}: {text}"

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Asked of every folder before its conftest.py is imported, which may be a part of a package."""
        if (collection_path / "conftest.py").is_file():
            self._overlays.suites.add(_top(collection_path / "conftest.py").stem)
        return None

    @pytest.hookimpl(tryfirst=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> None:
        """Asked of every module of tests before it is imported."""
        if isinstance(collector, pytest.Module):
            self._overlays.suites.add(_top(collector.path).stem)

    def pytest_configure(self, config: pytest.Config) -> None:
        for marker in MARKERS:
            config.addinivalue_line("markers", f"{marker}: a benchmark, or its options")

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Take the place of the other plugins once their options are read and before fixtures are known."""
        manager = session.config.pluginmanager
        for name in ("benchmark", "pytest-benchmark", "codspeed", "codspeed_plugin"):
            if manager.has_plugin(name):
                manager.unregister(name=name)
        manager.register(_Fixtures(getattr(self, "hold", None)), "bench-fixtures")


class _Collector(_Plugin):
    """Collects without running."""

    def __init__(
        self, place: str, skip: Sequence[str], announce: Callable[[str], None], patterns: Sequence[str]
    ) -> None:
        super().__init__(place)
        self.benchmarks: dict[str, dict[str, Any]] = {}
        self.problems: list[dict[str, str]] = []
        self._place = Path(place).resolve()
        self._skip = skip
        self._announce = announce
        self._patterns = patterns

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        super().pytest_ignore_collect(collection_path)
        if os.path.relpath(collection_path) in self._skip:
            return True
        return True if collection_path.is_file() and left_out(self._suite(collection_path), self._patterns) else None

    @pytest.hookimpl(tryfirst=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> None:
        super().pytest_make_collect_report(collector)
        if isinstance(collector, pytest.Module):
            self._announce(os.path.relpath(collector.path))

    def pytest_exception_interact(self, node: pytest.Collector, call: pytest.CallInfo[Any]) -> None:
        if call.excinfo is not None:
            error = call.excinfo.value
            self.problems.append(problem_of(node.nodeid or str(self._place), error.__cause__ or error))

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        config = session.config
        settings = os.path.relpath(config.inipath or config.rootpath)
        for item in session.items:
            if isinstance(item, pytest.Function) and _is_benchmark(item):
                self._keep(item, settings)

    def _keep(self, item: pytest.Function, settings: str) -> None:
        suite = self._suite(item.path)
        tail, case = _tail(item), _case(item)
        name = f"{suite}.{tail.replace('::', '.')}"
        if name not in self.benchmarks:
            title = (item.function.__doc__ or "").strip().partition("\n")[0]
            self.benchmarks[name] = {
                "name": name, "version": _version(item.function), "suite": suite, "loader": __name__, "title": title,
                "source": f"{settings}::{os.path.relpath(item.path)}::{tail}",
                "axes": {} if case is None else {"case": []},
            }  # fmt: skip
        if case is not None:
            self.benchmarks[name]["axes"]["case"].append(case)

    def _suite(self, file: Path) -> str:
        if self._place.is_file() or not file.is_relative_to(self._place):
            return file.stem
        return ".".join(file.relative_to(self._place).with_suffix("").parts)


def _version(function: Callable[..., Any]) -> str:
    try:
        return fingerprint(function)
    except (OSError, TypeError, SyntaxError, AssertionError):  # no source, or a lambda
        code = getattr(function, "__code__", None)
        return hashlib.sha256(repr(code and (code.co_code, code.co_names)).encode()).hexdigest()[:12]


class _Driver(_Plugin):
    """Runs one test and remembers how it ended."""

    def __init__(self, file: str, tail: str, case: Scalar | None, hold: Hold) -> None:
        super().__init__(file)
        self._tail = tail
        self._wanted = case
        self._hold = hold
        self.ran = self.held = False
        self.error: BaseException | None = None
        self.reason = ""

    def hold(self, work: Work) -> Sequence[float]:
        """Measure, with whatever traces or profiles the test set aside."""
        self.held = True
        tracer, profiler = sys.gettrace(), sys.getprofile()
        sys.settrace(None)
        sys.setprofile(None)
        try:
            return self._hold(work)
        finally:
            sys.settrace(tracer)
            sys.setprofile(profiler)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [
            item
            for item in items
            if isinstance(item, pytest.Function) and _tail(item) == self._tail and _case(item) == self._wanted
        ][:1]

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> bool | None:
        """A marked test without the fixture is the work itself. A coroutine that no plugin runs is not."""
        if any(name in pyfuncitem.fixturenames for name in FIXTURES) or not _marked(pyfuncitem):
            return None
        if inspect.iscoroutinefunction(pyfuncitem.obj):
            return None
        arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
        run = partial(pyfuncitem.obj, **arguments) if arguments else pyfuncitem.obj
        self.hold(Work(run=run, skips=(pytest.skip.Exception,)))
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> None:
        """So is a marked method of a unittest.TestCase, which unittest itself calls."""
        if not isinstance(item, TestCaseFunction) or not _marked(item) or set(FIXTURES) & set(item.fixturenames):
            return
        work = Work(run=item.obj, skips=(pytest.skip.Exception, SkipTest))

        def measure() -> None:
            self.hold(work)

        item.obj = measure

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[Any]) -> Generator[None, Any, Any]:
        report = yield
        self.ran = True
        if report.failed and self.error is None:
            self.error = call.excinfo.value if call.excinfo is not None else AssertionError(report.longreprtext)
        elif report.skipped and not self.reason:
            expected = getattr(report, "wasxfail", None)
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
            said = f"expected to fail: {expected}" if expected is not None else reason.removeprefix("Skipped: ")
            self.reason = said or "the test skips itself"
        return report

    def pytest_exception_interact(self, node: Any, call: pytest.CallInfo[Any]) -> None:
        """Of the collection, which makes no report of a test."""
        if self.error is None and call.excinfo is not None:
            self.error = call.excinfo.value.__cause__ or call.excinfo.value


class _Fixtures:
    """Registered last, so that its fixtures win over those of other plugins."""

    def __init__(self, hold: Hold | None) -> None:
        self._hold = hold

    @pytest.fixture
    def benchmark(self, request: pytest.FixtureRequest) -> BenchmarkFixture:
        assert self._hold is not None, "nothing runs while tests are collected"
        return BenchmarkFixture(request.node, self._hold)

    @pytest.fixture
    def codspeed_benchmark(self, benchmark: BenchmarkFixture) -> BenchmarkFixture:
        return benchmark
