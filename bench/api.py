"""What a suite author imports. Standard library only.

    @benchmark(axes={"engine": ("eager", "fused")}, baseline={"engine": "eager"},
               metrics=(Metric("error", unit="1", better=LOWER, kind=ACCURACY),))
    def encoder(device, engine):
        '''One sentence that says what question this settles.'''
        model = load(engine)
        return Work(run=lambda: model(x), check=close_to_reference, report=lambda out: {"error": ...})

The function is the set-up: what it does before it returns is never inside a latency. The harness
owns clock, loops, warm-up, synchronisation, memory and conditions.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bench import model
from bench.metrics import HARNESS_METRICS, Better, Kind, Summary
from bench.metrics import Metric as MetricValue
from bench.model import Scalar

if TYPE_CHECKING:
    from bench.ports import Clock

__all__ = ["HIGHER", "LOWER", "Items", "Metric", "Skip", "Work", "Wrong", "benchmark"]

LOWER = Better.LOWER
HIGHER = Better.HIGHER

MARK = "__bench_benchmark__"


class Skip(Exception):  # noqa: N818 - reads as a verb in a suite
    """Raise in a set-up when something it needs is not here; the message says what and how to get it."""


class Wrong(Exception):  # noqa: N818 - the Failure kind it becomes
    """Raise in `Work.check` when the answer is wrong: the arm becomes a Failure WRONG."""


def Metric(  # noqa: N802 - reads as the type it returns
    name: str, *, unit: str, better: Better, kind: Kind | str = Kind.ACCURACY, help: str = "", exact: bool = True
) -> MetricValue:
    """A metric of the suite's own, filled by `Work.report`.

    `exact` metrics are deterministic numbers. A value of type `Items` makes the metric a share of
    items with a binomial interval whatever is said here. Not exact: one value a launch.
    """
    return MetricValue(
        name=name, unit=unit, better=better, kind=Kind(kind), help=help,
        summary=Summary.EXACT if exact else Summary.LAUNCH,
    )  # fmt: skip


class Items(tuple[int, ...]):
    """Right (1) or wrong (0) for every item of a test set, in a fixed order.

    Kept one by one, so that two variants are compared on the same items (McNemar's pairs).
    """

    def __new__(cls, right: Iterable[Any]) -> Items:
        """Take any iterable of truth values, e.g. a numpy array of bool."""
        return super().__new__(cls, (1 if r else 0 for r in right))


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a set-up returns.

    run: the call that is timed, without arguments.
    items: pieces of work in one call (throughput = items / time).
    check: given the first call's result; returns False or raises Wrong when it is wrong.
    report: given the first call's result; values of the declared metrics. Runs once, untimed.
    size_bytes: bytes of the artifact (model file, payload).
    notes: short facts worth storing, e.g. the execution provider that really ran.
    close: called at the end, for servers and files.
    prepare: called untimed before every call, for work that uses up or changes what it is given;
    calls are then timed one by one.
    once: the call is made once in a process and that is its time: for work that cannot be repeated,
    or whose value is not its time.
    clock: what reads wall and CPU time where the work happens in another process.
    peak_bytes: largest resident memory where the work happens in another process.
    skips: exceptions of `run` that mean SKIPPED.
    kind: `real`, `emulated` or `estimated`; null: the device's. What is not real is called once and checked,
    and has metrics of its own but no time: the harness could only time the emulator.
    servers: ids of processes that answer the call: their CPU time counts as the work's own.
    """

    run: Callable[[], Any]
    items: float = 1.0
    check: Callable[[Any], object] | None = None
    report: Callable[[Any], Mapping[str, float | int | Items]] | None = None
    size_bytes: int | None = None
    notes: Mapping[str, str] = field(default_factory=dict)
    close: Callable[[], object] | None = None
    prepare: Callable[[], object] | None = None
    once: bool = False
    clock: Clock | None = None
    peak_bytes: Callable[[], int] | None = None
    skips: tuple[type[BaseException], ...] = ()
    kind: str | None = None
    servers: tuple[int, ...] = ()


def benchmark(
    *,
    axes: Mapping[str, Sequence[Scalar]] | None = None,
    baseline: Mapping[str, Scalar] | None = None,
    exclude: Sequence[Mapping[str, Scalar]] = (),
    metrics: Sequence[MetricValue] = (),
    requires: Sequence[str] = (),
    profiles: Sequence[str] = ("quick", "full"),
    threads: int = 1,
    timeout: float = 120.0,
    launches: int | None = None,
    version: str | None = None,
) -> Callable[[Callable[..., Work]], Callable[..., Work]]:
    """Declare the decorated set-up function as a benchmark.

    axes: name → values; the function takes `device` and then the axes by name.
    baseline: the axis values of the variant that others are compared with.
    exclude: combinations that make no sense.
    requires: packages (`onnxruntime`), or `device:cuda`; what is missing is SKIPPED. Whether a server
    can be had only the set-up finds out, which then raises Skip.
    profiles: in which profiles it runs; threads: how many the work may use; timeout: seconds for
    each phase.
    launches: the most that `bench run` makes of each variant by default, at least FEWEST_LAUNCHES,
    for work that is expensive to start (a gate makes as many as it needs).
    version: by default a hash of the function's syntax tree and of these settings.

    Raises ValueError for a declaration that contradicts itself.
    """
    axes = dict(axes or {})
    baseline = dict(baseline or {})
    if launches is not None and launches < model.FEWEST_LAUNCHES:
        raise ValueError(f"launches={launches} gives no interval; at least {model.FEWEST_LAUNCHES} do")
    for axis, values in axes.items():
        if not values or len(set(values)) != len(values):
            raise ValueError(f"axis {axis!r} needs one or more different values")
    for rule in (baseline, *exclude):
        for axis, value in rule.items():
            if axis not in axes or value not in axes[axis]:
                raise ValueError(f"{axis}={value!r} is not a point of the axes {axes}")
    if odd := [need for need in requires if ":" in need and not need.startswith("device:")]:
        raise ValueError(f"requires={odd[0]!r} is neither a package nor a device: ask for it in the set-up (Skip)")
    taken = {m.name for m in HARNESS_METRICS}
    for metric in metrics:
        if metric.name in taken:
            raise ValueError(f"metric {metric.name!r} is declared twice or belongs to the harness")
        taken.add(metric.name)

    def mark(function: Callable[..., Work]) -> Callable[..., Work]:
        parameters = list(inspect.signature(function).parameters)
        if parameters != ["device", *axes]:
            raise ValueError(
                f"{function.__name__} must take (device, {', '.join(axes)}), not ({', '.join(parameters)})"
            )
        module = function.__module__
        suite = module.rpartition(".")[2]
        settings = repr((sorted(axes.items()), sorted(baseline.items()), threads))
        setattr(
            function,
            MARK,
            model.Benchmark(
                name=f"{suite}.{function.__name__}",
                version=version or fingerprint(function, settings),
                suite=suite,
                source=f"{module}:{function.__name__}",
                title=(inspect.getdoc(function) or "").partition("\n\n")[0].replace("\n", " "),
                axes={axis: list(values) for axis, values in axes.items()},
                baseline=baseline,
                exclude=tuple(dict(rule) for rule in exclude),
                metrics=tuple(metrics),
                requires=tuple(requires),
                profiles=tuple(profiles),
                threads=threads,
                timeout_s=timeout,
                launches=launches,
            ),
        )
        return function

    return mark


def fingerprint(function: Callable[..., Any], settings: str = "") -> str:
    """Hash of the function's syntax tree (comments, layout and docstring do not count) and settings.

    Axis values are settings of the benchmark, so a new value starts a new version only where the
    tree names it; helpers that the function calls do not count: set `version` by hand to end a series.
    """
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    node = tree.body[0]
    assert isinstance(node, ast.FunctionDef)
    node.decorator_list = []
    if ast.get_docstring(node) is not None:
        node.body = node.body[1:]
    return hashlib.sha256((ast.dump(node) + settings).encode()).hexdigest()[:12]
