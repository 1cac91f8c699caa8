"""Foreign values, checked while they are taken. All raise FormatError that names the value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from math import isfinite
from typing import Any

from bench.errors import FormatError
from bench.metrics import TIME, Better, Kind, Metric, Summary
from bench.model import Measurement, Number

WIDEST = 2**63
"""Integers beyond this are no measurement."""

TIME_UNITS = {"ps": 1e-3, "ns": 1.0, "us": 1e3, "µs": 1e3, "μs": 1e3, "ms": 1e6, "s": 1e9, "sec": 1e9, "m": 6e10,
              "min": 6e10, "h": 3.6e12, "nanosecond": 1.0, "nanoseconds": 1.0, "microsecond": 1e3, "microseconds": 1e3,
              "millisecond": 1e6, "milliseconds": 1e6, "second": 1e9, "seconds": 1e9, "minutes": 6e10}  # fmt: skip
"""Nanoseconds in a unit, as tools spell them."""

BYTE_UNITS = {"b": 1.0, "byte": 1.0, "bytes": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12, "kib": 2.0**10,
              "mib": 2.0**20, "gib": 2.0**30, "tib": 2.0**40}  # fmt: skip
"""Bytes in a unit, in lower case."""


def keys(value: Any) -> frozenset[str]:
    """Keys of a JSON object; none where it is something else. For sniffing."""
    return frozenset(value) if isinstance(value, dict) else frozenset()


def table(value: Any, what: str) -> dict[str, Any]:
    """A JSON object."""
    if not isinstance(value, dict):
        raise FormatError(f"{what} is {_spell(value)} where an object was expected")
    return value


def rows(value: Any, what: str) -> list[Any]:
    """A JSON array."""
    if not isinstance(value, list):
        raise FormatError(f"{what} is {_spell(value)} where a list was expected")
    return value


def text(value: Any, what: str) -> str:
    """Text that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise FormatError(f"{what} is {_spell(value)} where text was expected")
    return value


def optional_text(value: Any) -> str | None:
    """Stripped text; null for anything else, and for nothing but spaces."""
    return value.strip() or None if isinstance(value, str) else None


def number(value: Any, what: str) -> Number:
    """A finite number that is no bool."""
    if type(value) is float and isfinite(value):  # nearly always; a history asks a million times
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise FormatError(f"{what} is {_spell(value)} where a number was expected")
    if isinstance(value, float) and not isfinite(value):
        raise FormatError(f"{what} is {value}, which is no measurement")
    if isinstance(value, int) and abs(value) >= WIDEST:
        raise FormatError(f"{what} is a whole number beyond 64 bits")
    return value


def optional_number(value: Any) -> Number | None:
    """A finite number; null for anything else."""
    if type(value) is float:  # nearly always
        return value if isfinite(value) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < WIDEST else None


def whole(value: Any) -> int | None:
    """A positive whole number, also written as text; null for anything else."""
    if isinstance(value, str) and value.strip().isdigit() and len(value.strip()) < 19:
        value = int(value)
    found = optional_number(value)
    return int(found) if found is not None and 0 < found < WIDEST and found == int(found) else None


def scaled(value: Any, factor: float, what: str) -> Number:
    """A number in another unit; whole numbers stay whole where the factor is 1."""
    found = number(value, what)
    return found if factor == 1.0 else found * factor


def spelled(value: str, what: str) -> Number:
    """A finite number written as text; whole ones stay whole."""
    try:
        return number(int(value) if value.strip().isdigit() else float(value), what)
    except ValueError:  # no number, or one of thousands of digits
        raise FormatError(f"{what} is {_spell(value)} where a number was expected") from None


def nanoseconds(values: Iterable[Any], factor: float, what: str) -> tuple[Number, ...]:
    """Durations in ns. `factor`: nanoseconds in their unit (`TIME_UNITS`)."""
    return tuple(scaled(value, factor, what) for value in values)


def moment(value: Any, what: str, *, unit: float = 1.0) -> datetime:
    """An aware UTC moment from ISO 8601 text or from numbers of `unit` seconds since 1970; without a zone it is UTC."""
    try:
        if isinstance(value, str):
            found = datetime.fromisoformat(value.strip())
            return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
        return datetime.fromtimestamp(float(number(value, what)) * unit, UTC)
    except (ValueError, OverflowError, OSError):
        raise FormatError(f"{what} is {_spell(value)}, which is no point in time") from None


def optional_moment(value: Any, *, unit: float = 1.0) -> datetime | None:
    """A moment; null where there is none."""
    try:
        return None if value is None else moment(value, "a date", unit=unit)
    except FormatError:
        return None


def gib(value: Any, factor: float = 1.0) -> int | None:
    """Whole GiB of memory; `factor`: bytes in the unit of the number."""
    found = optional_number(value)
    return round(found * factor / 2**30) or None if found is not None and 0 < found * factor < 2**53 else None


def texts(values: Mapping[str, Any], names: Iterable[str]) -> dict[str, str]:
    """Those of the names that hold text, a number or a switch, as text."""
    found = {name: values.get(name) for name in names}
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in found.items()
        if isinstance(value, str | int | float) and str(value).strip()
    }


@cache
def summarised(metric: Metric, statistic: str) -> Metric:
    """The metric of a summary that a file states in place of raw samples: `time_median`.

    A series of its own: a median and the lower quartile of raw samples must not follow each other in one.
    """
    return Metric(
        name=f"{metric.name}_{statistic}", unit=metric.unit, better=metric.better, kind=metric.kind,
        summary=Summary.LAUNCH, help=f"{statistic} as stated by the tool: {metric.help}",
    )  # fmt: skip


def quantity(name: str, unit: str, better: Better | None = None) -> tuple[Metric, float]:
    """A metric for a foreign number and the factor into its unit: time in ns, memory in B, rates in 1/s.

    Without `better`, rates improve upwards and everything else downwards.
    """
    plain = unit.strip()
    if plain in TIME_UNITS:
        kind, found, factor = Kind.TIME, "ns", TIME_UNITS[plain]
    elif plain.lower() in BYTE_UNITS:
        kind, found, factor = Kind.MEMORY, "B", BYTE_UNITS[plain.lower()]
    elif plain.lower().endswith(("/s", "/sec", "/second", "per second", "per_second")) or plain.lower() == "hz":
        rate = plain.lower() in ("1/s", "ops/s", "op/s", "items/s", "/s", "hz")
        kind, found, factor = Kind.THROUGHPUT, "1/s" if rate else plain, 1.0
    else:
        kind, found, factor = Kind.COUNT, plain or "1", 1.0
    direction = better or (Better.HIGHER if kind is Kind.THROUGHPUT else Better.LOWER)
    return Metric(name=name, unit=found, better=direction, kind=kind, summary=Summary.LAUNCH), factor


def once(metric: Metric, value: Number) -> Measurement:
    """One value of a metric."""
    return Measurement(metric=metric, launches=((value,),))


def raw_times(samples: tuple[Number, ...], metric: Metric = TIME) -> Measurement:
    """Samples of one process, each of one call."""
    return Measurement(metric=metric, launches=(samples,))


def _spell(value: Any) -> str:
    if value is None:
        return "missing"
    said = repr(value)
    return said if len(said) <= 40 else f"{said[:40]}…"
