"""An airspeed velocity suite, unmodified, read by asv's own library `asv_runner`. Runs in a worker.

How asv's kinds become ours:

- `time_*`: the function with its parameters is what we time; asv's timer is not in between, unless the
  suite has a `timer` of its own. Where there is a `setup`, every call gets a fresh one (as in
  asv_runner), and calls are timed one by one.
- `timeraw_*`: every call runs the statement in a fresh interpreter, and the times are those that this
  interpreter took around the statement alone, as in asv.
- `track_*`: called once a launch; its value is the metric `value`. asv knows no direction, and reads
  more as worse: so do we.
- `mem_*`: called once a launch; the size of what it returns is the metric `object_size`.
- `peakmem_*`: called once a launch, and read from the harness's metric `peak_memory`.

`timeout`, `version`, `params`, `param_names`, `setup_cache`, `setup`, `teardown` and skips mean what
they mean in asv. How long and how often is sampled is the harness's business: `repeat`, `number`,
`rounds`, `warmup_time` and `sample_time` do not count, except that `number = repeat = 1` without a
warm-up says that the function can run only once in a process.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
import json
import math
import os
import pickle
import pkgutil
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
import timeit
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import asdict
from functools import partial
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from bench.api import Skip, Work
from bench.loaders import paths
from bench.loaders.asv_words import OBJECT_SIZE, axes, tracked
from bench.loaders.native import problem_of
from bench.loaders.scope import left_out
from bench.measure.meters.children import peak_children_bytes
from bench.model import Scalar

if TYPE_CHECKING:
    from bench.ports import Device

NEEDS = "asv_runner, which reads asv suites, is not installed where the suite runs: pip install asv_runner"

with suppress(ImportError):  # so that it is there before the set-up is timed; `discover` says what is missing
    importlib.import_module("asv_runner.discovery")


def _runner() -> tuple[ModuleType, dict[type, str]]:
    """(asv_runner.discovery, its classes of benchmarks by kind). Raises ImportError."""
    discovery = importlib.import_module("asv_runner.discovery")
    types: list[type] = importlib.import_module("asv_runner.benchmarks").benchmark_types
    base = importlib.import_module("asv_runner.benchmarks._base").Benchmark
    if not any(t.__name__ == "MemBenchmark" for t in types):
        # Without pympler asv forgets these without a word; we want to skip them with one.
        pattern = re.compile("^(Mem[A-Z_].+)|(mem_.+)$")
        types.append(type("MemBenchmark", (base,), {"name_regex": pattern}))
    return discovery, {t: t.__name__.removesuffix("Benchmark").lower() for t in types}


def discover(
    places: Sequence[str], skip: Sequence[str], announce: Callable[[str], None], patterns: Sequence[str] = ()
) -> dict[str, Any]:
    """Import the modules of each benchmark folder, loudly. See bench.loaders.native.discover.

    A function that gives itself another module's name (`benchmark_name`) is not found by a pattern for that.
    """
    benchmarks: list[dict[str, Any]] = []
    problems: list[dict[str, str]] = []
    path: list[str] = []
    try:
        discovery, kinds = _runner()
    except ImportError as error:
        text = NEEDS if error.name == "asv_runner" else f"asv_runner cannot be imported: {error}"
        return {"benchmarks": [], "path": [], "problems": [{"module": places[0], "message": text, "detail": ""}]}
    for place in places:
        root = Path(place).resolve()
        if not (root / "__init__.py").is_file():
            text = "is no package of asv benchmarks (no __init__.py); check benchmark_dir in asv.conf.json"
            problems.append({"module": str(root), "message": text, "detail": ""})
            continue
        if root.name in sys.modules:
            text = f"is named like a module that the harness needs; rename the folder {root.name}"
            problems.append({"module": str(root), "message": text, "detail": ""})
            continue
        path.append(f"{root.name}={root}")
        if root.name in skip:
            continue
        announce(root.name)
        try:
            paths.add(path[-1:])
        except BaseException as error:  # noqa: BLE001 - the package itself is broken
            problems.append(problem_of(root.name, error))
            continue
        for name in _module_names(root.name, [str(root)]):
            if name in skip or left_out(_suite_of(name), patterns):
                continue
            if name != root.name:
                announce(name)
            try:
                module = importlib.import_module(name)
            except BaseException as error:  # noqa: BLE001 - asv gives the whole suite up; we do not
                problems.append(problem_of(name, error))
                continue
            for found in _in_module(module, discovery):
                if isinstance(found, BaseException):
                    problems.append(problem_of(name, found))
                else:
                    benchmarks.append(_describe(found, root.name, module, kinds[type(found)]))
    return {"benchmarks": benchmarks, "path": path, "problems": problems}


def _module_names(package: str, folders: list[str]) -> Iterator[str]:
    """The package and everything in it, without importing anything."""
    yield package
    for found in pkgutil.iter_modules(folders):
        name = f"{package}.{found.name}"
        if found.ispkg:
            yield from _module_names(name, [str(Path(folder) / found.name) for folder in folders])
        else:
            yield name


def _suite_of(module: str) -> str:
    """Its name without the package, which itself is a suite too."""
    return module.partition(".")[2] or module


def _in_module(module: ModuleType, discovery: ModuleType) -> Iterator[Any]:
    """Benchmarks of one module, or the errors of those that cannot be made; asv's rules of what is one."""

    def make(*arguments: Any) -> Any:
        try:
            return discovery._get_benchmark(*arguments)
        except BaseException as error:  # noqa: BLE001 - a constructor of the suite's own
            return error

    for name, value in list(vars(module).items()):
        if name.startswith("_"):
            continue
        found = []
        if inspect.isclass(value) and not inspect.isabstract(value):
            for attribute, member in inspect.getmembers(value):
                if inspect.isfunction(member) or inspect.ismethod(member):
                    found.append(make(attribute, module, value, member))
        elif inspect.isfunction(value):
            found.append(make(name, module, None, value))
        yield from (benchmark for benchmark in found if benchmark is not None)


def _describe(benchmark: Any, root: str, module: ModuleType, kind: str) -> dict[str, Any]:
    suite = _suite_of(module.__name__)
    title = inspect.getdoc(benchmark.func) or benchmark.pretty_name or ""
    found: dict[str, Any] = {
        "name": benchmark.name,
        "version": benchmark.version,
        "suite": suite,
        "source": f"{root}:{benchmark.name}",
        "loader": __name__,
        "title": title.partition("\n\n")[0].replace("\n", " "),
        "axes": axes_of(benchmark),
        "metrics": [],
        "primary": {"track": "value", "mem": "object_size", "peakmem": "peak_memory"}.get(kind, "time"),
    }
    if benchmark.timeout is not None:
        found["timeout_s"] = float(benchmark.timeout)
    if kind == "track":
        found["metrics"] = [asdict(tracked(str(benchmark.unit))[0])]
    if kind == "mem":
        found["metrics"] = [asdict(OBJECT_SIZE)]
        found["requires"] = ["pympler"]
    return found


def axes_of(benchmark: Any) -> dict[str, list[Scalar]]:
    """The texts that asv gives to parameters, by axis: without addresses, all different."""
    return axes(benchmark.param_names, benchmark.params)


def import_suite(source: str, suite: str) -> None:
    """Import the module of a benchmark: what all benchmarks in it share."""
    package = source.partition(":")[0]
    importlib.import_module(package if suite == package else f"{package}.{suite}")


def load(source: str, device: Device, params: dict[str, Scalar]) -> Work:
    """The set-up of `package:benchmark`. Raises LookupError for parameters that are not there any more."""
    discovery, kinds = _runner()
    package, _, name = source.partition(":")
    root = sys.modules[package].__path__[0]
    benchmark = discovery.get_benchmark_from_name(root, name)
    kind = kinds[type(benchmark)]
    if params:
        benchmark.set_param_idx(_index(benchmark, params))
    folder, cache = _cache_of(benchmark)
    os.chdir(folder)
    if cache is not None:
        set_cache = getattr(benchmark, "set_cache", None) or benchmark.insert_param  # the latter up to 0.2
        set_cache(cache)
    _set_up(benchmark)
    work = _work(benchmark, kind)
    skips = importlib.import_module("asv_runner.benchmarks.mark").SkipNotImplemented
    return Work(**{**work, "close": benchmark.do_teardown, "skips": (skips,)})


def _index(benchmark: Any, params: dict[str, Scalar]) -> int:
    wanted = tuple(params.values())
    for index, point in enumerate(itertools.product(*axes_of(benchmark).values())):
        if point == wanted:
            return index
    raise LookupError(f"{benchmark.name} has no parameters {params} in this process; their texts are not stable")


def _set_up(benchmark: Any) -> None:
    said = StringIO()
    try:
        with redirect_stdout(said):  # the reason of a skip is only printed
            skipped = benchmark.do_setup()
    finally:
        print(said.getvalue(), end="")  # noqa: T201 - it is the suite's own output
    if skipped:
        reason = re.search(r"asv: skipped: \w+\((['\"])(.*)\1,?\)", said.getvalue())
        raise Skip((reason and reason[2]) or "the suite skips these parameters")


def _work(benchmark: Any, kind: str) -> dict[str, Any]:
    arguments = benchmark._build_params() if hasattr(benchmark, "_build_params") else benchmark._current_params
    run = partial(benchmark.func, *arguments) if arguments else benchmark.func
    if kind == "timeraw":
        statement = Statement(run, getattr(benchmark, "_timeraw_env", None))
        return {"run": statement.run, "clock": statement, "peak_bytes": peak_children_bytes}
    if kind == "track":
        _, factor = tracked(str(benchmark.unit))
        return {"run": run, "once": True, "report": lambda value: {"value": _tracked(value, factor)}}
    if kind == "mem":
        return {"run": run, "once": True, "report": lambda found: {OBJECT_SIZE.name: _object_bytes(found)}}
    if kind == "time" and not _runs_once(benchmark):
        fresh = benchmark.redo_setup if benchmark._setups else None
        clock = None if benchmark.timer is timeit.default_timer else TimerClock(benchmark.timer)
        notes = {"setup": "fresh before every call"} if fresh else {}
        return {"run": run, "prepare": fresh, "clock": clock, "notes": notes}
    return {"run": run, "once": True}


def _runs_once(benchmark: Any) -> bool:
    return bool(benchmark.number == 1 and benchmark.repeat == 1 and benchmark.warmup_time == 0)


def _tracked(value: Any, factor: float) -> float | int:
    number: float | int = value if isinstance(value, int) else float(value)
    if math.isnan(number):
        raise Skip("the function tracks NaN, which means in asv that there is no value")
    return number * factor if factor != 1.0 else number


def _object_bytes(found: Any) -> int:
    """What one more copy would take, so that what copies share does not count (asv's definition)."""
    from copy import copy

    sizer = importlib.import_module("pympler.asizeof").asizeof
    return int(sizer([found, copy(found)]) - sizer([found, found]))


class TimerClock:
    """A suite's own `timer`, which tells seconds, as the wall clock."""

    cpu = staticmethod(time.process_time_ns)

    def __init__(self, timer: Callable[[], float]) -> None:
        self._timer = timer

    def wall(self) -> int:
        """Nanoseconds by the suite's timer."""
        return round(self._timer() * 1e9)


class Statement:
    """A text of code, run in a fresh interpreter by every call; a clock that counts only the statement."""

    CODE = """
import sys, time
statement, setup = (compile(text, "<timeraw>", "exec") for text in sys.stdin.read().split("\\0"))
space = {"__name__": "__main__"}
exec(setup, space)
cpu, wall = time.process_time_ns(), time.perf_counter_ns()
exec(statement, space)
wall, cpu = time.perf_counter_ns() - wall, time.process_time_ns() - cpu
sys.stdout.write("\\n%d %d" % (wall, cpu))
"""

    def __init__(self, source: Callable[[], Any], variables: dict[str, str] | None) -> None:
        self._source = source
        self._variables = variables or {}
        self._wall = self._cpu = 0

    def wall(self) -> int:
        """Nanoseconds in statements so far."""
        return self._wall

    def cpu(self) -> int:
        """CPU time of statements so far, in ns."""
        return self._cpu

    def run(self) -> None:
        """Raises RuntimeError with the last line when the statement fails."""
        found = self._source()
        statement, setup = found if isinstance(found, tuple) else (found, "")
        texts = "\0".join(textwrap.dedent(text) for text in (statement, setup))
        done = subprocess.run(
            [sys.executable, "-c", self.CODE], input=texts, capture_output=True, text=True, check=False,
            env={**os.environ, **self._variables},
        )  # fmt: skip
        if done.returncode:
            last = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]
            raise RuntimeError(f"the statement failed: {last}")
        wall, cpu = done.stdout.rpartition("\n")[2].split()
        self._wall += int(wall)
        self._cpu += int(cpu)


def _cache_of(benchmark: Any) -> tuple[Path, Any]:
    """(working folder, what `setup_cache` returned): made once a run and target, then read by every launch.

    As in asv, `setup_cache` may leave files in the working folder for its benchmarks. Raises RuntimeError
    when an earlier process failed in it, so that its time is not spent again for every variant.
    """
    scratch = Path(os.environ.get("BENCH_SCRATCH") or tempfile.mkdtemp())
    if benchmark.setup_cache_key is None:
        scratch.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(dir=scratch)), None
    name = re.sub(r"\W+", "-", f"{benchmark.setup_cache_key}")
    folder, kept = scratch / f"asv-{name}", scratch / f"asv-{name}.pickle"
    failed = scratch / f"asv-{name}.json"
    if kept.is_file():
        return folder, pickle.loads(kept.read_bytes())
    if folder.is_dir():
        why = json.loads(failed.read_text()) if failed.is_file() else "it did not come to its end"
        raise RuntimeError(f"setup_cache failed in an earlier process: {why}")
    folder.mkdir(parents=True)
    os.chdir(folder)
    try:
        data = pickle.dumps(benchmark.do_setup_cache())
    except NotImplementedError:
        shutil.rmtree(folder)
        raise Skip("setup_cache raises NotImplementedError") from None
    except BaseException as error:
        failed.write_text(json.dumps(traceback.format_exception_only(error)[-1].strip()))
        raise
    partial_file = kept.with_suffix(".part")
    partial_file.write_bytes(data)
    partial_file.replace(kept)
    return folder, pickle.loads(data)
