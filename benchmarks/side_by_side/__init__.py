"""The gate beside asv, pytest-benchmark and pyperf: the same work, the same machine, the same hour.

    pip install asv==0.6.6 pyperf virtualenv
    python -m benchmarks.side_by_side measure RESULTS.jsonl --hours 1
    python -m benchmarks.side_by_side report RESULTS.jsonl

A small project is made with the same five benchmarks in each tool's own form and three commits: `base`, `same` (other
bytes, the same work) and `slower` (3 % more work). Every tool compares base with same and base with
slower, as its documentation tells a user to, one tool after the other, again and again.
"""
