"""How often the gate errs and how much it sees, on recorded or simulated noise of launches.

    python -m benchmarks.operating_characteristics POOL.json [MORE.json ...]
    python -m benchmarks.operating_characteristics --simulate normal --simulate contaminated --spread 0.015
    python -m benchmarks.operating_characteristics POOL.json --borrowed 20 --moods 8

A pool holds launches of the same code on both sides (A/A), one log(head / base) a launch:

    {"format": "bench-launch-ratios/1",
     "workloads": {"mobilenet": [0.0031, -0.0102, ...], "bert": [...]}}

Each pool is centred on its median and joined with its mirror image (base and head of an A/A pair may
be swapped), then drawn from with replacement and shifted by log(1 + effect). Launches are thus taken
as independent: a drift over minutes is not in these figures. A stream is looked at by the rule of
bench.stats.sequential until it decides. `before`: share that ends REGRESSED; `after`: and is
confirmed by fresh launches (the product of the two rates, as the launches are independent). Brackets
are 95 % Wilson intervals of the drawing, not of the pool: a small pool may flatter or slander.

`--borrowed N`: expensive launches, decided with the spread of N earlier runs of ten launches, drawn from the
same pool anew for every hundred streams. `--moods K`: the spread of each run differs, 1/σ² ~ χ²(K)/K: at 8 it
changes by a factor of two between runs, at 3 by one of four.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite, log1p
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from bench.errors import BenchError, UsageError, WireError
from bench.stats.location import TRIM, Interval
from bench.stats.moderated import (
    MIN_HISTORY,
    MODERATED_CONFIRMATION,
    MODERATED_LOOKS,
    Prior,
    fit_prior,
    launch_variance,
)
from bench.stats.proportions import wilson
from bench.stats.sequential import (
    ALPHA,
    CONFIRMATION_LAUNCHES,
    CONFIRMATION_LEVEL,
    EARLY_CONFIRMATIONS,
    EARLY_LEVEL,
    FIRST_ALWAYS_VALID,
    LOOKS,
    always_valid_quantile,
    nominal_p,
    schedule,
)
from benchmarks.streams import NOISES, Array, yuen

FORMAT = "bench-launch-ratios/1"
EFFECTS = (0.0, 0.01, 0.02, 0.03, 0.05, 0.10)
FEWEST = 10
"""Smallest pool that is worth drawing from."""

PAST_LAUNCHES, BLOCK = 10, 100
"""Launches of an earlier run; streams that borrow from the same ones."""

REGRESSED, IMPROVED, UNCHANGED, EXHAUSTED = range(4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """The gate's settings. `looks` end the stream; `always_valid` takes the mixture's bound instead of the table's."""

    looks: tuple[int, ...] = LOOKS
    alpha: float = ALPHA
    floor: float = 0.01
    margin: float = 0.02
    always_valid: bool = False
    borrowed: int = 0  # earlier runs whose spread is borrowed
    moods: int = 0  # freedoms of the spread's law from run to run; 0: the same in all

    def quantile(self, freedom: int) -> float:
        """How many standard errors the interval reaches."""
        if self.always_valid:
            return always_valid_quantile(freedom, self.alpha)
        return float(stdtrit(freedom, 1 - nominal_p(self.alpha, self.looks) / 2))

    @property
    def confirmation(self) -> int:
        """Fresh launches of a confirmation."""
        return MODERATED_CONFIRMATION if self.borrowed else CONFIRMATION_LAUNCHES


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One workload at one effect. Shares of streams; launches until the first stage ends."""

    workload: str
    effect: float
    before: Interval
    after: Interval
    unchanged: Interval
    improved: Interval
    launches: float
    launches_p90: float


def gate(launches: Array, rule: Rule, prior: Prior | None = None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """End of each stream (lower is better) and the launches it took; `launches` has rule.looks[-1] columns."""
    state = np.full(len(launches), EXHAUSTED)
    taken = np.full(len(launches), rule.looks[-1])
    open_ = np.ones(len(launches), dtype=bool)
    for look in rule.looks:
        centre, half = interval(launches[:, :look], rule, prior)
        low, high = centre - half, centre + half
        regressed = (low > 0) & (centre > log1p(rule.floor))
        improved = (high < 0) & (-centre > log1p(rule.floor))
        unchanged = (-log1p(rule.margin) < low) & (high < log1p(rule.margin))
        for code, hit in ((UNCHANGED, unchanged), (IMPROVED, improved), (REGRESSED, regressed)):
            state[open_ & hit] = code
        closing = open_ & (regressed | improved | unchanged)
        taken[closing] = look
        open_ &= ~closing
    return state, taken


def interval(launches: Array, rule: Rule, prior: Prior | None) -> tuple[Array, Array]:
    """Centre and half-width of each row at one look."""
    if prior is not None:
        centre, error, freedom = moderated(launches, prior)
        return centre, float(stdtrit(freedom, 1 - rule.alpha / len(rule.looks) / 2)) * error
    centre, error, kept = yuen(launches)
    with np.errstate(invalid="ignore"):  # no error and no finite bound: 0 · inf, decides nothing
        half = rule.quantile(kept) * error
    half[error == 0.0] = 0.0
    return centre, half


def moderated(launches: Array, prior: Prior) -> tuple[Array, Array, float]:
    """Rows of bench.stats.moderated: centre, standard error by the posterior variance, freedom."""
    n = launches.shape[1]
    centre, error, freedom = yuen(launches, TRIM if n >= 5 else 1.5 / 4)
    total = prior.freedom + freedom
    return centre, np.sqrt((prior.freedom * prior.variance + freedom * n * error**2) / total / n), total


def confirmed(launches: Array, rule: Rule, prior: Prior | None = None) -> NDArray[np.bool_]:
    """Which rows of fresh launches repeat a regression."""
    centre, error, freedom = yuen(launches) if prior is None else moderated(launches, prior)
    level = CONFIRMATION_LEVEL if prior else CONFIRMATION_LEVEL - len(EARLY_CONFIRMATIONS) * EARLY_LEVEL
    return (centre - float(stdtrit(freedom, 1 - level)) * error > 0) & (centre > log1p(rule.floor / 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """Launches of one workload, and what they borrow from earlier runs."""

    first: Array  # a row for each comparison
    fresh: Array  # of their confirmations
    priors: tuple[Prior | None, ...]  # one for each block of rows


def draw(pool: Array, rule: Rule, streams: int, rng: np.random.Generator) -> Noise:
    """Rows drawn from the pool and its mirror image."""
    centred = pool - np.median(pool)
    both = np.concatenate([centred, -centred])

    def rows(shape: tuple[int, int]) -> Array:
        found: Array = rng.choice(both, shape)
        if rule.moods:
            found = found * np.sqrt(rule.moods / rng.chisquare(rule.moods, (shape[0], 1)))
        return found

    first, fresh = rows((streams, rule.looks[-1])), rows((streams, rule.confirmation))
    priors: list[Prior | None] = [None]
    if rule.borrowed:
        histories = [rows((rule.borrowed, PAST_LAUNCHES)) for _ in range(0, streams, BLOCK)]
        priors = [fit_prior(*zip(*map(launch_variance, past.tolist()), strict=True)) for past in histories]
    return Noise(first=first, fresh=fresh, priors=tuple(priors))


def characteristics(
    workload: str, pool: Array, rule: Rule, streams: int, rng: np.random.Generator, effects: Sequence[float] = EFFECTS
) -> Iterator[Outcome]:
    """Outcome per effect. All effects see the same noise, so that power grows with them."""
    noise = draw(pool, rule, streams, rng)
    block = -(-streams // len(noise.priors))
    for effect in effects:
        shifted = log1p(effect)
        ends = [
            (*gate(noise.first[i : i + block] + shifted, rule, prior),
             confirmed(noise.fresh[i : i + block] + shifted, rule, prior))
            for prior, i in zip(noise.priors, range(0, streams, block), strict=True)
        ]  # fmt: skip
        state, taken, kept = (np.concatenate(parts) for parts in zip(*ends, strict=True))
        before = wilson(int((state == REGRESSED).sum()), streams)
        again = wilson(int(kept.sum()), streams)
        yield Outcome(
            workload=workload,
            effect=effect,
            before=before,
            after=Interval(before.value * again.value, before.low * again.low, before.high * again.high, streams),
            unchanged=wilson(int((state == UNCHANGED).sum()), streams),
            improved=wilson(int((state == IMPROVED).sum()), streams),
            launches=float(taken.mean()),
            launches_p90=float(np.quantile(taken, 0.9)),
        )


def mean_outcomes(outcomes: Sequence[Outcome]) -> Iterator[Outcome]:
    """Mean over workloads per effect; the means of the interval ends are wider than the interval of the mean."""

    def mean(intervals: Iterable[Interval]) -> Interval:
        found = list(intervals)
        ends = np.mean([(i.value, i.low, i.high) for i in found], axis=0)
        return Interval(float(ends[0]), float(ends[1]), float(ends[2]), sum(i.n for i in found))

    for effect in dict.fromkeys(o.effect for o in outcomes):
        same = [o for o in outcomes if o.effect == effect]
        yield Outcome(
            workload=f"mean of {len(same)}",
            effect=effect,
            before=mean(o.before for o in same),
            after=mean(o.after for o in same),
            unchanged=mean(o.unchanged for o in same),
            improved=mean(o.improved for o in same),
            launches=float(np.mean([o.launches for o in same])),
            launches_p90=float(np.mean([o.launches_p90 for o in same])),
        )


def read_pools(path: Path) -> dict[str, Array]:
    """Workloads of one file. Raises UsageError or WireError that names the file and what is wrong in it."""
    try:
        document = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise WireError(f"{path} is not JSON: {error}") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise WireError(f'{path} is no pool of launches: it needs "format": "{FORMAT}" and "workloads"')
    workloads = document.get("workloads")
    if not isinstance(workloads, dict) or not workloads:
        raise WireError(f'{path} holds no workloads: "workloads" maps each name to a list of log ratios')
    return {name: _pool(values, f"{name} in {path}") for name, values in workloads.items()}


def _pool(values: object, where: str) -> Array:
    if not isinstance(values, list) or len(values) < FEWEST:
        raise WireError(f"{where} is no list of at least {FEWEST} launches: record more of them")
    for index, value in enumerate(values):
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            raise WireError(f"launch {index + 1} of {where} is {value!r}: each is one finite number, log(head / base)")
    return np.asarray(values, dtype=np.float64)


def table(outcomes: Sequence[Outcome]) -> str:
    """Lines of text, aligned."""

    def share(interval: Interval) -> str:
        digits = 3 if interval.high < 0.02 else 1
        low, value, high = (f"{100 * x:.{digits}f}" for x in (interval.low, interval.value, interval.high))
        return f"{value} [{low}, {high}]"

    head = ("workload", "effect", "before, %", "after, %", "unchanged, %", "launches", "p90")
    rows = [head]
    for o in outcomes:
        rows.append(
            (o.workload, f"{o.effect:.0%}", share(o.before), share(o.after), share(o.unchanged),
             f"{o.launches:.1f}", f"{o.launches_p90:.0f}")
        )  # fmt: skip
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)


def parser() -> argparse.ArgumentParser:
    """Command line."""
    found = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    found.add_argument("pools", nargs="*", type=Path)
    found.add_argument("--simulate", action="append", choices=sorted(NOISES), default=[])
    found.add_argument("--spread", type=float, default=0.015, help="SD of an undisturbed simulated launch (log scale)")
    found.add_argument("--streams", type=int, default=20_000)
    found.add_argument("--seed", type=int, default=1)
    found.add_argument("--alpha", type=float, default=ALPHA)
    found.add_argument("--floor", type=float, default=0.01)
    found.add_argument("--margin", type=float, default=0.02)
    found.add_argument("--budget", type=int, default=LOOKS[-1], help="launches at most")
    found.add_argument("--always-valid", action="store_true", help="look after every launch")
    found.add_argument("--borrowed", type=int, default=0, metavar="RUNS", help="with the spread of earlier runs")
    found.add_argument(
        "--moods", type=int, default=0, metavar="K", help="the spread differs by run; the less K, the more"
    )
    return found


def report(options: argparse.Namespace) -> str:
    """The table for parsed options."""
    looks = schedule(options.budget)
    if not looks:
        raise UsageError(f"a budget of {options.budget} launches ends before the first look: give at least {LOOKS[0]}")
    if options.always_valid:
        looks = tuple(range(FIRST_ALWAYS_VALID, options.budget + 1))
    if options.borrowed:
        if options.borrowed < MIN_HISTORY:
            raise UsageError(f"{options.borrowed} earlier runs lend no spread: give at least {MIN_HISTORY}")
        looks = MODERATED_LOOKS
    rule = Rule(
        looks=looks, alpha=options.alpha, floor=options.floor, margin=options.margin,
        always_valid=options.always_valid, borrowed=options.borrowed, moods=options.moods,
    )  # fmt: skip
    rng = np.random.default_rng(options.seed)
    pools: dict[str, Array] = {}
    for path in options.pools:
        for name, pool in read_pools(path).items():
            pools[f"{path.stem}: {name}" if name in pools else name] = pool
    for name in options.simulate:
        pools[f"{name} {options.spread:.1%}"] = options.spread * NOISES[name](rng, (1, 200_000))[0]
    if not pools:
        raise UsageError("there is nothing to draw from: name a pool file, or --simulate normal")
    outcomes = [o for name, pool in pools.items() for o in characteristics(name, pool, rule, options.streams, rng)]
    means = list(mean_outcomes(outcomes))
    shown = outcomes if len(pools) == 1 else [*outcomes, *means]
    suite = 1 - (1 - means[0].after.value) ** 100
    return f"{table(shown)}\nA suite of 100 such benchmarks raises a false alarm in {suite:.2%} of runs.\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; a BenchError becomes one sentence and its exit code."""
    try:
        sys.stdout.write(report(parser().parse_args(arguments)))
    except BenchError as error:
        sys.stderr.write(f"error: {error}\n")
        return int(error.exit_code)
    return 0


if __name__ == "__main__":
    sys.exit(main())
