"""claims.toml → claims. A folder of suites may hold one; ours is suites/claims.toml.

    [[claim]]
    id = "B13"
    en = "INT8 is 2–4 times as fast"
    zh = "INT8 提速 2–4 倍"
    figure = "2–4×"
    kind = "measured"
    stated = { metric = "time", take = "speedup", relation = "between", low = 2, high = 4, unit = "×" }
    note = "…"
    probes = [{ head = "quantization.resnet50[precision=int8]", label = "ResNet-50" }]

A probe may state a figure of its own; what it leaves out comes from the claim's.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bench.claims.judging import range_of
from bench.claims.words import Beyond, Claim, Kind, Probe, Relation, Source, Stated, Take
from bench.errors import ConfigError

FILE = "claims.toml"

CLAIM = {
    "id", "en", "zh", "figure", "kind", "note", "stated", "probes", "some", "count", "holds", "source", "needs",
}  # fmt: skip
PROBE = {"head", "base", "label", "judged", "stated"}
STATED = {"metric", "take", "relation", "value", "low", "high", "unit", "beyond"}
SOURCE = {"title", "date", "looked_up"}

BETTER = {Take.SPEEDUP: Beyond.MORE, Take.CUT: Beyond.MORE}
"""The side on which a figure is exceeded, where the claim names none; of the others: neither."""


def claims_of(places: Sequence[str], root: Path) -> tuple[Claim, ...]:
    """The claims of all places of suites, folders below `root` or packages. Raises ConfigError, also without any."""
    found = [folder / FILE for place in places if (folder := _folder(place, root)) and (folder / FILE).is_file()]
    if not found:
        raise ConfigError(f"there is no {FILE} in {', '.join(places)}.")
    return tuple(claim for file in found for claim in read(file.read_text(encoding="utf-8"), str(file)))


def _folder(place: str, root: Path) -> Path | None:
    if (root / place).is_dir():
        return root / place
    try:
        spec = find_spec(place)
    except (ImportError, ValueError):
        return None
    return Path(next(iter(spec.submodule_search_locations))) if spec and spec.submodule_search_locations else None


def read(text: str, name: str) -> tuple[Claim, ...]:
    """The claims of one document. Raises ConfigError that names the claim and the key."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{name} cannot be read: {error}.") from None
    claims = []
    for index, table in enumerate(document.get("claim", []), start=1):
        where = f"{name}, claim {table.get('id', index)}"
        try:
            claims.append(_claim(table))
        except (KeyError, TypeError, ValueError) as error:
            what = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)
            raise ConfigError(f"{where}: {what}.") from None
    names = [claim.id for claim in claims]
    if twice := sorted({n for n in names if names.count(n) > 1}):
        raise ConfigError(f"{name}: {', '.join(twice)} is there twice.")
    return tuple(claims)


def _claim(table: Mapping[str, Any]) -> Claim:
    _known(table, CLAIM)
    kind = Kind(table["kind"])
    stated = table.get("stated", {})
    probes = tuple(_probe(probe, stated) for probe in table.get("probes", ()))
    source = table.get("source")
    if source is not None:
        _known(source, SOURCE)
    claim = Claim(
        id=table["id"], en=table["en"], zh=table["zh"], figure=table["figure"], kind=kind, note=table["note"],
        probes=probes, some=table.get("some", False), count=table.get("count"),
        stated=_stated(stated) if kind is Kind.COUNTED else None, holds=table.get("holds"),
        source=Source(**source) if source is not None else None, needs=table.get("needs", ""),
    )  # fmt: skip
    if (kind is Kind.COUNTED) != (claim.count is not None):
        raise ValueError("a counted claim, and no other, has a `count`")
    if kind is Kind.FACT and (claim.holds is None or claim.source is None):
        raise ValueError("a fact has `holds` and a `source`")
    if kind is Kind.HARDWARE and not claim.needs:
        raise ValueError("a claim of kind hardware says what it `needs`")
    return claim


def _probe(table: Mapping[str, Any], stated: Mapping[str, Any]) -> Probe:
    _known(table, PROBE)
    own = table.get("stated", {})
    if own.keys() & {"value", "low", "high", "relation"}:  # a range is stated whole
        stated = {key: value for key, value in stated.items() if key not in ("value", "low", "high", "relation")}
    return Probe(
        head=table["head"], base=table.get("base"), label=table["label"], stated=_stated({**stated, **own}),
        judged=table.get("judged", True),
    )  # fmt: skip


def _stated(table: Mapping[str, Any]) -> Stated:
    _known(table, STATED)
    take, relation = Take(table.get("take", "value")), Relation(table["relation"])
    low, high = range_of(relation, table.get("value"), table.get("low"), table.get("high"))
    beyond = Beyond(table["beyond"]) if "beyond" in table else BETTER.get(take, Beyond.NEITHER)
    return Stated(
        metric=table.get("metric", "time"), take=take, relation=relation, low=low, high=high, unit=table["unit"],
        beyond=beyond,
    )  # fmt: skip


def _known(table: Mapping[str, Any], keys: set[str]) -> None:
    if strange := sorted(table.keys() - keys):
        raise ValueError(f"{', '.join(strange)} is no key here")
