"""Real pull requests of networkx, judged by the gate with networkx's own asv suite: the table in docs/measuring.md.

    git clone https://github.com/networkx/networkx NX
    python -m benchmarks.real_pull_requests NX --python PYTHON3.12 [--only TEXT] [--output ROWS.md]

Every pair is measured as its reviewer would, by `bench compare` with the installed bench; faster commits
also the other way round, as the regression that their reversal would be. Rows are written as they come.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GRID = "benchmark_shortest_path.AllShortestPathsGrid.*"
ALGORITHMS = "benchmark_algorithms"

HEAD = ("pair", "what its authors say", "variant", "answer", "head / base (95 %)", "pairs", "seconds (CPU)", "exit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A commit and its parent."""

    commit: str
    says: str
    selectors: tuple[str, ...]
    suite: str = "head"  # --suite-from
    faster: bool = True
    options: tuple[str, ...] = ()

    def sides(self, *, reverse: bool) -> tuple[str, str]:
        """Base and head."""
        sides = (f"{self.commit}~1", self.commit)
        return sides[::-1] if reverse else sides


PAIRS = (
    Pair(commit="c1c468d52", says="30–40 % faster", selectors=(GRID,)),
    Pair(commit="7f7afab19", says="10 % faster", selectors=(GRID,)),
    Pair(
        commit="722e47218", says="faster", suite="main",
        selectors=(f"{ALGORITHMS}.DirectedAlgorithmBenchmarks.time_kosaraju_scc",),
    ),
    Pair(
        commit="f750ce5ba", says="faster", suite="main",
        selectors=(f"{ALGORITHMS}.ReachabilityBenchmark.time_is_reachable",),
    ),
    Pair(
        commit="7c0a99877", says="faster", suite="main",
        selectors=(f"{ALGORITHMS}.AlgorithmBenchmarksConnectedGraphsOnly.time_square_clustering",),
    ),
    Pair(commit="8d58e6c99", says="AGENTS.md", selectors=(GRID,), faster=False),
    Pair(commit="340c286fd", says="CI", selectors=(GRID,), faster=False),
    Pair(commit="b53714073", says="documentation", selectors=(GRID,), faster=False, options=("--measure-identical",)),
    Pair(commit="4ba50db2d", says="CI", selectors=(GRID,), faster=False, options=("--measure-identical",)),
)  # fmt: skip


def rows(repository: Path, python: str, pair: Pair, *, reverse: bool) -> Iterator[tuple[str, ...]]:
    """Compare one pair. Yields its rows of the table; one that says why, where there is no report."""
    base, head = pair.sides(reverse=reverse)
    suite = pair.suite
    if reverse and suite == "head":
        suite = "base"  # the suite that knows the benchmark
    command = [
        str(Path(sys.executable).with_name("bench")), "compare", base, head, *pair.selectors, "--json", "--python",
        python, "--asv", "benchmarks/asv.conf.json", "--suite-from", suite, *pair.options,
    ]  # fmt: skip
    start, spent = time.monotonic(), _children_s()
    done = subprocess.run(command, cwd=repository, stdout=subprocess.PIPE, text=True, check=False)
    seconds = f"{time.monotonic() - start:.0f} ({_children_s() - spent:.0f})"
    what = f"`{base}` → `{head}`"
    if not done.stdout:
        yield what, pair.says, ", ".join(pair.selectors), "no report", "", "", seconds, str(done.returncode)
        return
    for variant in json.loads(done.stdout)["variants"]:
        yield (
            what, pair.says, f"`{variant['name']}`", _answer(variant), _ratio(variant), str(variant["launches"]),
            seconds, str(done.returncode),
        )  # fmt: skip


def _children_s() -> float:
    """CPU time of everything that was started and has ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _answer(variant: dict[str, Any]) -> str:
    answer = str(variant["verdict"]).upper()
    if variant["confirmed"] is not None:
        answer += ", confirmed" if variant["confirmed"] else ", not confirmed"
    if variant["basis"] == "cpu_time":
        answer += ", on CPU time"
    if variant["verdict"] in ("failed", "inconclusive"):
        answer += f": {variant['reason']}"
    return answer


def _ratio(variant: dict[str, Any]) -> str:
    metric = variant["metrics"].get(variant["basis"] or "time")
    if metric is None:
        return ""
    change = metric["change"]
    if change["low"] is None:
        return f"{change['value']:.3f} ({change['note']})"
    return f"{change['value']:.3f} ({change['low']:.3f}–{change['high']:.3f})"


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repository", type=Path, help="a clone of networkx")
    parser.add_argument("--python", default=sys.executable, help="interpreter of both sides, 3.12 or newer")
    parser.add_argument("--only", default="", metavar="TEXT", help="pairs whose commit begins so")
    parser.add_argument("--output", type=Path, metavar="FILE", help="append the rows there too")
    chosen = parser.parse_args(arguments)
    _say(HEAD, chosen.output)
    _say(["---"] * len(HEAD), chosen.output)
    for pair in PAIRS:
        if pair.commit.startswith(chosen.only):
            for reverse in (False, True) if pair.faster else (False,):
                for row in rows(chosen.repository, chosen.python, pair, reverse=reverse):
                    _say(row, chosen.output)


def _say(cells: Sequence[str], output: Path | None) -> None:
    line = f"| {' | '.join(cells)} |\n"
    sys.stdout.write(line)
    sys.stdout.flush()
    if output is not None:
        with output.open("a", encoding="utf-8") as file:
            file.write(line)


if __name__ == "__main__":
    main()
