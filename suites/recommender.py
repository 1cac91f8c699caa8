"""A recommender end to end: which of the usual steps makes it faster, and how many requests a second does it bear?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, cycle
from math import ceil
from typing import Any

from bench.api import HIGHER, LOWER, Items, Metric, Work, Wrong, benchmark
from suites import engines, features
from suites.data import events
from suites.imports import need
from suites.impressions import KafkaLog, SqlLog, Writer
from suites.load import Load, closed_loop, open_loop, poisson, sustained_rate
from suites.services import kafka, mariadb
from suites.serving import Answer, Service

FEW_EVENTS, MANY_EVENTS = 10_000, 25_000
FEW_ITEMS, MANY_ITEMS = 20_000, 200_000

WORKERS = 4
"""Threads of the service: more than cores, since they wait for servers."""

BATCH = 32

LIMIT_S = 0.05
"""A rate is sustained while 99 of 100 requests are answered within this."""

ATTEMPT_S, FEWEST, LONGEST_S = 0.5, 100, 3.0
"""An attempt at a rate lasts so long, or until so many requests were sent (fewer have no 99th percentile), but not
longer than the last one: the few that a very low rate then has must all be answered in time.
"""

LOG_LIMIT_S = 1.0
"""Impressions must be stored so soon after the last answer, or the log grows, and the rate is not sustained."""

STEP = 1.2
"""Factor to which a sustained rate is found."""

PATIENCE_S = 10.0

PROBE = 50
"""Users whose answers are compared with the reference's."""

CLOSE = 0.99
"""Least mean cosine of the users' vectors to those of fp32; int8 has .9999."""

FAITHFUL = {"fp32": 0.99, "int8": 0.9}
"""Share of the reference's best ten that must be found. fp32 differs by the order of additions only; int8 finds .98."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """How a request is answered."""

    store: str = "scan"  # features: computed by MariaDB without or with an index, or from Redis
    items: str = "online"  # their vectors: computed for every request, or once
    precision: str = "fp32"  # of the user tower
    log: str = "sql"  # impressions: written before the answer, or through Kafka after it
    batch: int = 1


SYNCHRONOUS = Stage()
INDEXED = replace(SYNCHRONOUS, store="index")
CACHED = replace(INDEXED, store="redis")
PRECOMPUTED = replace(CACHED, items="precomputed")
INT8 = replace(PRECOMPUTED, precision="int8")
LOGGED = replace(INT8, log="kafka")
BATCHED = replace(LOGGED, batch=BATCH)

STAGES = {
    "synchronous": SYNCHRONOUS, "indexed": INDEXED, "cached": CACHED, "precomputed": PRECOMPUTED, "int8": INT8,
    "logged": LOGGED, "batched": BATCHED,
}  # fmt: skip
"""Each step keeps all those before it."""

RECALL = Metric("recall", unit="1", better=HIGHER, help="of the reference's ten best items, for 50 users")
DELAY = Metric(
    "log_delay", unit="s", better=LOWER, kind="time", exact=False,
    help="from an answer's being ready to its impression's being stored, median",
)  # fmt: skip
SUSTAINED = Metric(
    "sustained", unit="1/s", better=HIGHER, kind="throughput", exact=False,
    help="highest rate of random arrivals at which 99 % are answered within 50 ms",
)  # fmt: skip

NEEDS = ("numpy", "onnx", "onnxruntime")


@benchmark(
    axes={"stage": ("synchronous", "cached", "batched")}, baseline={"stage": "synchronous"},
    metrics=(RECALL, DELAY), requires=NEEDS, launches=5,
)  # fmt: skip
def request(device: Any, stage: str) -> Work:
    """One client, 20,000 items, features of 10,000 events: how long does a request take?"""
    case = Case(STAGES[stage], FEW_EVENTS, FEW_ITEMS)
    return case.work(lambda: {})


@benchmark(
    axes={"stage": tuple(STAGES)}, baseline={"stage": "synchronous"}, metrics=(RECALL, DELAY, SUSTAINED),
    requires=NEEDS, profiles=("full",), launches=5,
)  # fmt: skip
def case_study(device: Any, stage: str) -> Work:
    """One client and random arrivals, 200,000 items, features of 25,000 events: which step gives how much?"""
    case = Case(STAGES[stage], MANY_EVENTS, MANY_ITEMS)
    return case.work(lambda: {"sustained": case.sustained()})


@benchmark(
    axes={"precision": ("fp32", "int8"), "users": (1, BATCH)}, baseline={"precision": "fp32"},
    metrics=(Metric("cosine", unit="1", better=HIGHER, help="mean cosine of the users' vectors to numpy's in fp32"),),
    requires=NEEDS, profiles=("full",), launches=5,
)  # fmt: skip
def user_tower(device: Any, precision: str, users: int) -> Work:
    """The user tower alone, for one user and for a batch: what does int8 gain where nothing else takes time?"""
    numpy = need("numpy", engines.SUITES)
    from suites.models import towers

    made = towers.built(FEW_ITEMS)
    model = made / (towers.USER_INT8 if precision == "int8" else towers.USER_FP32)
    session = engines.ort_session(model, device.threads)
    rows = events.features(FEW_EVENTS)
    known = sorted(rows)[:users]
    inputs = towers.inputs(towers.profiles(max(known) + 1)[known], [rows[user] for user in known])
    expected = towers.forward(towers.user_network(), inputs)

    def cosine(found: Any) -> float:
        lengths = numpy.linalg.norm(found, axis=1) * numpy.linalg.norm(expected, axis=1)
        return float(((found * expected).sum(axis=1) / lengths).mean())

    def check(found: Any) -> bool:
        if not cosine(found) >= CLOSE:
            raise Wrong(f"mean cosine to numpy's vectors is {cosine(found):.4f}, under {CLOSE}")
        return True

    return Work(
        run=lambda: session.run(None, {towers.INPUT: inputs})[0], items=users, check=check,
        report=lambda found: {"cosine": round(cosine(found), 5)}, size_bytes=model.stat().st_size,
        notes={"weights": "random", **engines.build_notes(made)},
    )  # fmt: skip


class Case:
    """The service at a stage, with everything it needs, and the reference's answers."""

    def __init__(self, stage: Stage, events_count: int, items: int) -> None:
        self.stage = stage
        self.numpy = need("numpy", engines.SUITES)
        from suites.models import towers

        self.towers = towers
        self.made = towers.built(items)
        self.rows = events.features(events_count)
        self.users = sorted(self.rows)
        self.profiles = towers.profiles(max(self.users) + 1)
        self.candidates = towers.candidates(max(self.users) + 1, items)
        self.notes = {"weights": "random", "workers": str(WORKERS), **engines.build_notes(self.made)}
        self.servers: tuple[int, ...] = ()
        self.answered = 0
        with ExitStack() as stack:
            make = self._serve(stack, events_count)
            self.service = Service(make, workers=WORKERS, batch=stage.batch)
            stack.callback(self.service.close)
            self.close = stack.pop_all().close

    def _serve(self, stack: ExitStack, events_count: int) -> Callable[[], Answer]:
        """Open servers and networks; what makes a worker's function."""
        server = mariadb.serve()
        stack.callback(server.close)
        self.notes |= server.notes()
        self.servers += (server.pid,) if server.pid else ()
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SELECT @@innodb_flush_log_at_trx_commit")
            self.notes["commit"] = f"innodb_flush_log_at_trx_commit={cursor.fetchone()[0]}"
            if self.stage.store != "redis":
                events.create(cursor, events_count, indexed=self.stage.store == "index")
        many: Callable[[], features.ReaderOfMany]
        if self.stage.store == "redis":
            store = features.in_redis(self.rows)
            stack.callback(store.close)
            self.notes |= store.notes
            self.servers += store.servers
            assert store.reader_of_many is not None
            many = store.reader_of_many
        else:
            many = partial(_one_by_one, server)
        self.log = self._log(stack, server)
        vectors = self._vectors()
        tower = engines.ort_session(
            self.made / (self.towers.USER_INT8 if self.stage.precision == "int8" else self.towers.USER_FP32), 1
        )
        return lambda: self._answer(many(), tower, vectors, self.log.writer())

    def _log(self, stack: ExitStack, server: mariadb.MariaDB) -> SqlLog | KafkaLog:
        if self.stage.log == "sql":
            return SqlLog(server)
        broker = kafka.serve()
        stack.callback(broker.close)
        self.notes |= broker.notes()
        log = KafkaLog(server, broker)
        stack.callback(log.close)
        return log

    def _vectors(self) -> Callable[[Any], Any]:
        """Vectors (n, WIDTH) of item numbers (n)."""
        load = self.numpy.load
        if self.stage.items == "precomputed":
            vectors = load(self.made / self.towers.VECTORS)
            return lambda numbers: vectors[numbers]
        attributes = load(self.made / self.towers.ATTRIBUTES)
        tower = engines.ort_session(self.made / self.towers.ITEM_FP32, 1)
        return lambda numbers: tower.run(None, {self.towers.INPUT: attributes[numbers]})[0]

    def _answer(self, read: features.ReaderOfMany, tower: Any, vectors: Callable[[Any], Any], write: Writer) -> Answer:
        towers = self.towers

        def answer(users: Sequence[int]) -> list[Any]:
            inputs = towers.inputs(self.profiles[users], read(users))
            found = tower.run(None, {towers.INPUT: inputs})[0]
            answers = []
            for user, vector in zip(users, found, strict=True):
                numbers = self.candidates[user]
                answers.append(numbers[towers.best_of(vectors(numbers), vector)])
            write(zip(users, answers, strict=True))
            return answers

        return answer

    def work(self, load: Callable[[], dict[str, float]]) -> Work:
        """The work of one client. load: metrics that need more than one."""
        upcoming = cycle(self.users)
        stages = {"online": (self.towers.ATTRIBUTES, self.towers.ITEM_FP32), "precomputed": (self.towers.VECTORS,)}
        tower = self.towers.USER_INT8 if self.stage.precision == "int8" else self.towers.USER_FP32
        return Work(
            run=lambda: self.ask(next(upcoming)).result(),
            check=self.check,
            report=lambda _: {"recall": Items(self.hits()), "log_delay": self.log.delay_s(), **load()},
            size_bytes=sum((self.made / name).stat().st_size for name in (tower, *stages[self.stage.items])),
            notes=self.notes,
            close=self.close,
            servers=self.servers,
        )

    def ask(self, user: int) -> Any:
        """Send a request; a Future of the numbers of the best items."""
        self.answered += 1
        return self.service.submit(user)

    def expected(self, users: Sequence[int]) -> list[set[int]]:
        """The best items of each user by numpy in fp32, with nothing between."""
        towers = self.towers
        network, vectors = towers.user_network(), self.numpy.load(self.made / towers.VECTORS, mmap_mode="r")
        found = towers.forward(network, towers.inputs(self.profiles[users], [self.rows[user] for user in users]))
        return [
            set(numbers[towers.best_of(vectors[numbers], vector)].tolist())
            for numbers, vector in zip(self.candidates[users], found, strict=True)
        ]

    def hits(self) -> list[bool]:
        """For PROBE users, whether each of the best items was found."""
        users = self.users[:: max(1, len(self.users) // PROBE)][:PROBE]
        futures = [self.ask(user) for user in users]
        found = [set(future.result().tolist()) for future in futures]
        return [item in got for got, best in zip(found, self.expected(users), strict=True) for item in sorted(best)]

    def check(self, first: Any) -> bool:
        """Raises Wrong when answers are not the reference's, or an impression is lost."""
        if len(set(first.tolist()) & self.expected(self.users[:1])[0]) < self.towers.BEST // 2:
            raise Wrong("the first answer has less than half of the reference's best items")
        hits = self.hits()
        found, least = sum(hits) / len(hits), FAITHFUL[self.stage.precision]
        if found < least:
            raise Wrong(f"{found:.1%} of the reference's best items were found, under {least:.0%}")
        self.log.drained(self.answered, PATIENCE_S)
        if (stored := self.log.stored()) != self.answered:
            raise Wrong(f"{self.answered} requests were answered, and {stored} impressions are stored")
        return True

    def sustained(self) -> float:
        """The highest rate of random arrivals that is answered in time."""
        users, seeds = cycle(self.users), count()

        def attempt(rate: float) -> Load:
            enough = max(rate * ATTEMPT_S, min(FEWEST, rate * LONGEST_S))
            due = poisson(rate, ceil(enough), next(seeds))
            load = open_loop(lambda _: self.ask(next(users)), due, patience_s=2 * LIMIT_S)
            return load if self.log.drained(self.answered, LOG_LIMIT_S) else replace(load, given_up=True)

        alone = closed_loop(lambda _: self.ask(next(users)).result(), clients=1, requests=20)
        one_client = 1 / alone.mean_s
        return sustained_rate(attempt, limit_s=LIMIT_S, start=one_client, lowest=one_client / 8, finest=STEP, tries=3)


def _one_by_one(server: mariadb.MariaDB) -> features.ReaderOfMany:
    read = features.row_reader(server.connect(), events.AGGREGATE)
    return lambda users: [read(user) for user in users]
