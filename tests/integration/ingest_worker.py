"""Pushes made-up runs into a store; started as a process by test_store_crash."""

import sys

from bench.testing import make_run
from db.store import open_store

url, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
print("ready", flush=True)
sys.stdin.readline()
with open_store(url) as store:
    for seed in range(first, first + count):
        run = make_run(seed=seed)
        added = store.add(run)
        print(run.key, added.value, flush=True)
