"""A broker that speaks Kafka's protocol: BENCH_KAFKA_SERVERS, 127.0.0.1:9092, or librdkafka's mock broker.

The mock broker is part of the client library and lives in our process. It holds a fetch for the
whole time that the consumer is willing to wait, so it proves the plumbing and says nothing about
Kafka's latency; notes say when it was used.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from bench.api import Skip
from suites.imports import need
from suites.services import names, private

VARIABLE = "BENCH_KAFKA_SERVERS"
MOCK = "mock"
"""Value of the variable that asks for the mock broker even where a broker answers."""

PORT = 9092
HOW = f"docker compose up -d kafka, or set {VARIABLE}=HOST:PORT,…"

PATIENCE_S = 10.0

QUIET = {"log_level": 0}

PARTITION = 0
"""The one that is written and read. It is always named: the mock broker gives every topic four of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kafka:
    """A broker and a topic of ours. origin: given, found or mock."""

    servers: str
    origin: str
    topic: str
    mock: Any = None  # the producer that the mock broker lives in

    def producer(self, **settings: Any) -> Any:
        """A producer; with `linger.ms` 0, so that nothing waits for company, unless told otherwise."""
        kafka = need("confluent_kafka", "pip install 'inference-bench[suites]'")
        return kafka.Producer({"bootstrap.servers": self.servers, "linger.ms": 0, **QUIET, **settings})

    def consumer(self, **settings: Any) -> Any:
        """A consumer that reads our topic from its beginning, without a group and without committing."""
        kafka = need("confluent_kafka", "pip install 'inference-bench[suites]'")
        consumer = kafka.Consumer({
            "bootstrap.servers": self.servers, "group.id": self.topic, "enable.auto.commit": False,
            "fetch.wait.max.ms": 5, **QUIET, **settings,
        })  # fmt: skip
        consumer.assign([kafka.TopicPartition(self.topic, PARTITION, 0)])
        return consumer

    def notes(self) -> dict[str, str]:
        """What is worth storing about it."""
        return {"kafka": "librdkafka's mock broker: no figure for Kafka's latency" if self.mock else self.origin}

    def close(self) -> None:
        """Delete our topic, or let the mock broker go."""
        if self.mock is None:
            _delete(self.servers, [self.topic])


def serve() -> Kafka:
    """A broker to use, with an empty topic. Raises Skip where a given one does not answer."""
    kafka = need("confluent_kafka", "pip install 'inference-bench[suites]'")
    given = os.environ.get(VARIABLE)
    if given and given != MOCK:
        try:
            return _there(given, "given")
        except kafka.KafkaException as error:
            raise Skip(f"{VARIABLE}={given} does not answer ({error.args[0].str()}): {HOW}") from None
    if given != MOCK and private.listens("127.0.0.1", PORT):
        with suppress(kafka.KafkaException):
            return _there(f"127.0.0.1:{PORT}", "found")
    topic = names.own()
    mock = kafka.Producer({"bootstrap.servers": "mock", "test.mock.num.brokers": 1, **QUIET})
    brokers = mock.list_topics(topic, timeout=PATIENCE_S).brokers.values()
    servers = ",".join(f"{broker.host}:{broker.port}" for broker in brokers)
    return Kafka(servers=servers, origin=MOCK, topic=topic, mock=mock)


def _there(servers: str, origin: str) -> Kafka:
    """Make the topic, and delete those of processes that are gone."""
    admin, topic = _admin(servers), names.own()
    kafka_admin = need("confluent_kafka.admin", "pip install 'inference-bench[suites]'")
    left = [name for name in admin.list_topics(timeout=PATIENCE_S).topics if names.is_left(name)]
    if left:
        _delete(servers, left)
    admin.create_topics([kafka_admin.NewTopic(topic, num_partitions=1)])[topic].result(PATIENCE_S)
    _wait(lambda: bool(admin.list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions))
    return Kafka(servers=servers, origin=origin, topic=topic)


def _admin(servers: str) -> Any:
    admin = need("confluent_kafka.admin", "pip install 'inference-bench[suites]'")
    return admin.AdminClient({"bootstrap.servers": servers, "socket.timeout.ms": int(PATIENCE_S * 1000), **QUIET})


def _delete(servers: str, topics: list[str]) -> None:
    kafka = need("confluent_kafka", "pip install 'inference-bench[suites]'")
    for deleted in _admin(servers).delete_topics(topics).values():
        with suppress(kafka.KafkaException):  # another process may have swept it meanwhile
            deleted.result(PATIENCE_S)


def _wait(ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not ready():
        if time.monotonic() > deadline:
            raise Skip(f"the Kafka broker made no topic within {PATIENCE_S:.0f} s")
        time.sleep(0.02)
