"""The log of what was shown to whom: written into MariaDB before the answer, or through Kafka after it."""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from statistics import median
from typing import Any

from suites.services.kafka import PARTITION, Kafka
from suites.services.mariadb import MariaDB

TABLE = "CREATE TABLE impressions (user INT UNSIGNED NOT NULL, items BLOB NOT NULL) ENGINE=InnoDB"
INSERT = "INSERT INTO impressions VALUES (%s, %s)"

HEADER = struct.Struct("<dI")
"""Of a message: when it was written (seconds of `time.perf_counter`) and the user; the items follow."""

POLL_S = 0.02
"""How long the consumer waits for more before it stores what it has: a fresher log costs more statements."""

CHUNK = 1000
"""The most messages that are stored by one statement."""

Shown = Iterable[tuple[int, Any]]
"""Users and what was shown to them, an array of item numbers."""

Writer = Callable[[Shown], object]


class SqlLog:
    """Each request writes its impression itself and waits for the commit."""

    def __init__(self, server: MariaDB) -> None:
        self._server = server
        self._delays: list[float] = []
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute(TABLE)

    def writer(self) -> Writer:
        """For one thread, over a connection of its own."""
        cursor = self._server.connect().cursor()

        def write(shown: Shown) -> None:
            start = time.perf_counter()
            cursor.executemany(INSERT, [(user, items.tobytes()) for user, items in shown])
            self._delays.append(time.perf_counter() - start)

        return write

    def stored(self) -> int:
        """Impressions in the table."""
        return _count(self._server)

    def drained(self, written: int, patience_s: float) -> bool:
        """Always: an answer comes after its impression."""
        return True

    def delay_s(self) -> float:
        """Median time from an answer's being ready to its impression's being stored."""
        return median(self._delays)

    def close(self) -> None:
        """Nothing runs on its own."""


class KafkaLog:
    """Requests leave their impressions with the producer; a consumer puts them into the table meanwhile."""

    def __init__(self, server: MariaDB, broker: Kafka) -> None:
        self._server, self._broker = server, broker
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute(TABLE)
        self._producer, self._consumer = broker.producer(), broker.consumer(**{"fetch.wait.max.ms": int(POLL_S * 1000)})
        self._delays: list[float] = []
        self._ended = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._store, daemon=True)
        self._thread.start()

    def writer(self) -> Writer:
        """For any thread; hands over and returns at once."""
        produce, poll, topic = self._producer.produce, self._producer.poll, self._broker.topic

        def write(shown: Shown) -> None:
            for user, items in shown:
                produce(topic, HEADER.pack(time.perf_counter(), user) + items.tobytes(), partition=PARTITION)
            poll(0)  # takes away the reports of what was delivered

        return write

    def stored(self) -> int:
        """Impressions in the table by now."""
        return _count(self._server)

    def drained(self, written: int, patience_s: float) -> bool:
        """Whether the consumer stores all that were written within the patience. Raises what it met."""
        deadline = time.monotonic() + patience_s
        while len(self._delays) < written and time.monotonic() < deadline:
            if self._error is not None:
                raise self._error
            time.sleep(POLL_S / 4)
        return len(self._delays) >= written

    def delay_s(self) -> float:
        """Median time from an answer's being ready to its impression's being stored."""
        return median(self._delays)

    def close(self) -> None:
        """End the consumer."""
        self._ended.set()
        self._thread.join()
        self._consumer.close()

    def _store(self) -> None:
        try:
            with self._server.connect() as connection, connection.cursor() as cursor:
                while not self._ended.is_set():
                    messages = [m for m in self._consumer.consume(CHUNK, POLL_S) if m.error() is None]
                    if messages:
                        self._insert(cursor, [message.value() for message in messages])
        except BaseException as error:  # noqa: BLE001 - told to who asks how many were stored
            self._error = error

    def _insert(self, cursor: Any, values: Sequence[bytes]) -> None:
        written = [HEADER.unpack_from(value) for value in values]
        cursor.executemany(
            INSERT, [(user, value[HEADER.size :]) for (_, user), value in zip(written, values, strict=True)]
        )
        now = time.perf_counter()
        self._delays += [now - moment for moment, _ in written]


def _count(server: MariaDB) -> int:
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM impressions")
        return int(cursor.fetchone()[0])
