"""Do batches pay, for whom, and who should wait for whom?

A batch raises throughput where reading the weights is the cost. It does not lower the latency of a
lone request: that is `throughput` at batch 1. Under load a request waits for those before it, and
there a batch can lower everybody's latency: `closed` (clients that wait for their answer) and `open`
(arrivals that wait for nobody). All serve with one worker; clients and worker have two cores.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.api import HIGHER, LOWER, Metric, Work, Wrong, benchmark
from suites.artifacts import kept
from suites.engines import ort_session
from suites.imports import need
from suites.load import Load, closed_loop, open_loop, poisson
from suites.models import minilm, mlp, vision
from suites.serving import Greedy, Policy, Service

SUITES = "pip install 'inference-bench[suites]'"
TORCH = "pip install 'inference-bench[torch]'"
ORT = ("numpy", "onnx", "onnxruntime")

LARGEST = 32
"""Requests in a batch at most: 128 give the same throughput per core and quadruple the wait."""

TOLERANCE = 1e-4
"""Largest relative difference of a request's answer in a batch to its answer alone."""

ROUNDS = 150
"""Requests of each client in a closed loop."""

ARRIVALS = 600
"""Requests in an open loop."""

PATIENCE_S = 0.25
"""An open loop gives up when the oldest request has waited so long: the queue would only grow."""

TOKENS = 32
"""Length of MiniLM's texts here: that of a query."""

POLICIES = ("none", "greedy", "wait_1ms", "wait_2ms", "wait_5ms", "adaptive")

LATENCY = (
    Metric("mean_latency", unit="ns", better=LOWER, kind="time", exact=False, help="mean latency of a request"),
    Metric(
        "p99_latency",
        unit="ns",
        better=LOWER,
        kind="time",
        exact=False,
        help="latency that 99 % of requests stay under",
    ),
    Metric("rate", unit="1/s", better=HIGHER, kind="throughput", exact=False, help="answers per second"),
    Metric("batch", unit="requests", better=HIGHER, kind="count", exact=False, help="mean size of a batch"),
)
OPEN = (
    *LATENCY,
    Metric("lag", unit="ns", better=LOWER, kind="time", exact=False, help="p99 of how late the driver itself was"),
    Metric("kept_up", unit="1", better=HIGHER, kind="count", exact=False, help="0: some request waited too long"),
)


class Waiting:
    """Wait a fixed time for a full batch."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def wanted(self) -> tuple[int, float]:
        """A full batch, so long."""
        return LARGEST, self.seconds

    def done(self, size: int, seconds: float, waiting: int) -> None:
        """There is nothing to learn."""


class Adaptive:
    """Wait for as many requests as were about lately, a small part of the time that a batch takes.

    Clients that got their answers together ask again together: whoever starts with the first of them
    makes the others wait for a whole batch. How many are about is what was in the batch and what came
    meanwhile. A lone client is one request: nothing is ever waited for.
    """

    SHARE = 0.3
    """Of a batch's time that is waited at most: it bounds the loss where nobody comes."""

    MEMORY = 0.7
    """How much of an estimate is kept from batch to batch."""

    def __init__(self) -> None:
        self.about, self.seconds = 1.0, 0.0

    def wanted(self) -> tuple[int, float]:
        """Those about lately, a share of a batch's time."""
        return min(LARGEST, round(self.about)), self.SHARE * self.seconds

    def done(self, size: int, seconds: float, waiting: int) -> None:
        """Move the estimates towards this batch."""
        self.about += (1 - self.MEMORY) * (size + waiting - self.about)
        self.seconds += (1 - self.MEMORY) * (seconds - self.seconds)


def policy_of(name: str) -> tuple[Policy, int]:
    """(policy, largest batch) of one of POLICIES."""
    if name.startswith("wait_"):
        return Waiting(float(name.removeprefix("wait_").removesuffix("ms")) / 1000), LARGEST
    return (Adaptive() if name == "adaptive" else Greedy()), 1 if name == "none" else LARGEST


class Server:
    """The perceptron as a service under a policy; rows are asked for by number, and every answer is kept."""

    def __init__(self, policy: str, rows: int) -> None:
        numpy = need("numpy", SUITES)
        self.session = ort_session(mlp.graph() / mlp.MODEL, 1)
        self.rows, self.sizes = mlp.inputs(rows), [0, 0]
        self.answers = numpy.full((rows, mlp.SIZES["small"][-1]), numpy.nan, "float32")
        behaviour, batch = policy_of(policy)
        self.service = Service(lambda: self._answer, workers=1, batch=batch, policy=behaviour)

    def _answer(self, requests: Sequence[int]) -> Sequence[Any]:
        chosen = [k % len(self.rows) for k in requests]
        found = self.session.run(None, {"input": self.rows[chosen]})[0]
        self.answers[chosen] = found
        self.sizes[0] += 1
        self.sizes[1] += len(chosen)
        return list(found)

    def warm(self, clients: int) -> None:
        """Every row once, by so many clients: a policy learns who is about. Answers and sizes are forgotten."""
        closed_loop(lambda k: self.service.submit(k).result(), clients=clients, requests=len(self.rows))
        self.answers[:] = float("nan")
        self.sizes = [0, 0]

    def report(self, load: Load) -> dict[str, float]:
        """Values of LATENCY."""
        return {
            "mean_latency": load.mean_s * 1e9, "p99_latency": load.quantile_s(0.99) * 1e9, "rate": load.rate,
            "batch": self.sizes[1] / self.sizes[0],
        }  # fmt: skip

    def check(self, load: Load) -> bool:
        """Raises Wrong where a request got another answer than it gets alone."""
        numpy = need("numpy", SUITES)
        asked = ~numpy.isnan(self.answers).all(axis=1)
        if not asked.any():
            raise Wrong("no request was answered")
        same(self.answers[asked], mlp.answer(self.rows[asked]))
        return True


def same(found: Any, alone: Any) -> bool:
    """Raises Wrong when answers in a batch are not those that the same requests get alone."""
    numpy = need("numpy", SUITES)
    size = float(numpy.linalg.norm(found - alone) / numpy.linalg.norm(alone))
    if not size <= TOLERANCE:
        raise Wrong(f"answers in a batch differ from those alone by {size:.1e}, over {TOLERANCE:.0e}")
    return True


def _perceptron(device: Any, size: str, batch: int) -> Work:
    session, rows = ort_session(mlp.graph(size) / mlp.MODEL, device.threads), mlp.inputs(batch)
    widths = "-".join(map(str, mlp.SIZES[size]))
    return Work(
        run=lambda: session.run(None, {"input": rows})[0], items=batch,
        check=lambda found: same(found, mlp.answer(rows, size)),
        notes={"provider": "CPUExecutionProvider", "model": f"perceptron {widths}", "weights": "random"},
    )  # fmt: skip


@benchmark(axes={"batch": (1, 8, 32, 128)}, baseline={"batch": 1}, requires=ORT, launches=5)
def throughput(device: Any, batch: int) -> Work:
    """A perceptron of 10 MB, 1 to 128 rows in a call, weights in the cache: how do throughput and a call grow?

    A lone request is answered fastest alone: no batch lowers its latency.
    """
    return _perceptron(device, "small", batch)


@benchmark(
    axes={"batch": (1, 8, 32, 128)}, baseline={"batch": 1}, requires=ORT, profiles=("full",), launches=5
)  # fmt: skip
def throughput_large(device: Any, batch: int) -> Work:
    """A perceptron of 140 MB, 1 to 128 rows in a call: a lone row waits for memory, so how many ride along for free?"""
    return _perceptron(device, "large", batch)


@benchmark(
    axes={"network": ("minilm", "mobilenet_v3"), "batch": (1, 8, 32, 128)}, baseline={"batch": 1}, requires=ORT,
    exclude=({"network": "mobilenet_v3", "batch": 128},), profiles=("full",), launches=5,
)  # fmt: skip
def networks(device: Any, network: str, batch: int) -> Work:
    """MiniLM-L6 (texts of 32 tokens) and MobileNetV3: how much is left to gain where a lone request fills the core?"""
    numpy = need("numpy", SUITES)
    if network == "minilm":
        made = minilm.graph()
        random = numpy.random.default_rng(0)
        inputs = minilm.feed(random.integers(1000, 30000, (batch, TOKENS)))
    else:
        made, inputs = vision.graph(network), {"input": vision.images(batch)}
    session = ort_session(made / minilm.MODEL, device.threads)
    first = {name: array[:1] for name, array in inputs.items()}
    return Work(
        run=lambda: session.run(None, inputs)[0], items=batch,
        check=lambda found: same(found[:1], session.run(None, first)[0]),
        notes={"provider": "CPUExecutionProvider", "model": network},
    )  # fmt: skip


@benchmark(axes={"pace": ("hot", "paced")}, baseline={"pace": "hot"}, requires=ORT, profiles=("full",))
def pace(device: Any, pace: str) -> Work:
    """A lone request right after the last one, or after a pause of 10 ms: what does an idle core cost the next one?"""
    session, rows = ort_session(mlp.graph() / mlp.MODEL, device.threads), mlp.inputs(1)
    return Work(
        run=lambda: session.run(None, {"input": rows})[0], check=lambda found: same(found, mlp.answer(rows)),
        prepare=(lambda: time.sleep(0.01)) if pace == "paced" else (lambda: None),
        notes={"provider": "CPUExecutionProvider"},
    )  # fmt: skip


@benchmark(
    axes={"clients": (1, 2, 4, 8, 16), "policy": POLICIES}, baseline={"policy": "none"}, metrics=LATENCY, requires=ORT,
    profiles=("full",), threads=2, launches=7,
)  # fmt: skip
def closed(device: Any, clients: int, policy: str) -> Work:
    """Clients that wait for their answer, one worker: which policy lowers the mean latency, and does one never harm?"""
    server = Server(policy, 256)
    server.warm(clients)
    return Work(
        run=lambda: closed_loop(
            lambda k: server.service.submit(k).result(), clients=clients, requests=ROUNDS * clients
        ),
        items=ROUNDS * clients, check=server.check, report=server.report, close=server.service.close, once=True,
        notes={"provider": "CPUExecutionProvider", "model": "perceptron", "weights": "random"},
    )  # fmt: skip


@benchmark(
    axes={"load": (0.5, 1.5), "policy": POLICIES}, baseline={"policy": "none"}, metrics=OPEN, requires=ORT,
    profiles=("full",), threads=2, launches=5,
)  # fmt: skip
def arrivals(device: Any, load: float, policy: str) -> Work:
    """Poisson arrivals at a share of what the worker can answer one by one: which policy keeps up, and how fast?"""
    server = Server(policy, 256)
    server.warm(1)
    due = poisson(load * capacity(), ARRIVALS, seed=1)

    def report(found: Load) -> dict[str, float]:
        # What was sent at once waits at the end: nobody was there any more to give up.
        kept_up = not found.given_up and max(found.latencies_s) <= PATIENCE_S
        return {**server.report(found), "lag": found.lag_s * 1e9, "kept_up": float(kept_up)}

    return Work(
        run=lambda: open_loop(server.service.submit, due, patience_s=PATIENCE_S), items=ARRIVALS, check=server.check,
        report=report, close=server.service.close, once=True,
        notes={"provider": "CPUExecutionProvider", "model": "perceptron", "weights": "random"},
    )  # fmt: skip


def capacity() -> float:
    """Requests that the service answers in a second one by one, on this kind of CPU; measured once."""

    def compute() -> dict[str, float]:
        server = Server("none", 256)
        server.warm(4)
        found = max(
            closed_loop(lambda k: server.service.submit(k).result(), clients=4, requests=1000).rate for _ in range(3)
        )
        server.service.close()
        return {"rate": found}

    return float(kept("batching-capacity", compute, sources=[Path(__file__)], packages=["onnxruntime"])["rate"])


@benchmark(
    axes={"network": ("resnet50", "minilm"), "batch": (1, 8, 32, 128)}, baseline={"batch": 1},
    requires=("torch", "device:cuda"), profiles=("full",),
)  # fmt: skip
def cuda(device: Any, network: str, batch: int) -> Work:
    """ResNet-50 and MiniLM-L6 in half precision on an NVIDIA GPU: at which batch is it busy?"""
    torch = need("torch", TORCH)
    from suites.fusion import module_of

    module = module_of(network, "sdpa").to(device.name).half()
    random = torch.Generator().manual_seed(0)
    if network == "minilm":
        inputs = torch.randint(1000, 30000, (batch, TOKENS), generator=random).to(device.name)
    else:
        inputs = torch.from_numpy(vision.images(1)).expand(batch, *vision.SHAPE).to(device.name).half()

    def run(given: Callable[[], Any] = lambda: inputs) -> Any:
        with torch.inference_mode():
            return module(given())

    def check(found: Any) -> bool:
        alone = run(lambda: inputs[:1])
        size = float((found[:1] - alone).float().norm() / alone.float().norm())
        if not size <= 100 * TOLERANCE:  # half precision
            raise Wrong(f"answers in a batch differ from those alone by {size:.1e}")
        return True

    return Work(run=run, items=batch, check=check, notes={"provider": device.name, "precision": "fp16"})
